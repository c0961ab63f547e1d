"""Until `promissing.training` has `give_back` and imports `aligned` from `table_encoder`."""

from __future__ import annotations

import ctypes

from promissing.encoding.table_encoder import aligned

__all__ = ["aligned", "give_back"]


def give_back() -> None:
    """Return freed memory to the operating system.

    Compiling a program takes about 250 MB, most of which the C library keeps. Only glibc has a
    function to release it.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # Another C library or operating system.
        return
