"""Names for `promissing experiment`."""

from promissing.cli._options import NAMES as NAMED
from promissing.cli._options import ListOf
from promissing.cli._options import one_line_errors as clear_errors

__all__ = ["NAMED", "NUMBERS", "clear_errors"]

NUMBERS = ListOf(float, "number")
