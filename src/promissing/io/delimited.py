"""Until the estimators import `short` from `promissing.io.files`."""

from promissing.io.files import short

__all__ = ["short"]
