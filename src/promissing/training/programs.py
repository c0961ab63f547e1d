"""A cache of compiled programs with a limited size.

`jax.jit` keeps every program. One takes about 10 MB, so that a process that trains networks of many
shapes would grow without limit. Removing a program changes no result: it is compiled again when it
is needed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable
from functools import lru_cache, partial
from typing import Any

import jax

__all__ = ["KEPT", "Program", "program"]

# Enough for a grid search in which every candidate has its own shapes.
KEPT = 64
# JAX also keeps traces of its own functions, about 0.7 MB for each of our programs. They can be
# removed only together with everything else, so this is done rarely.
CLEARED = 256


class Program:
    """A function that is compiled in the first call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.run, self.called = jax.jit(function), False

    def __call__(self, *args: Any) -> Any:
        """Run the program, and compile it first if need be."""
        result = self.run(*args)
        if not self.called:
            self.called = True
            give_back()
        return result


def give_back() -> None:
    """Return freed memory to the operating system.

    Compiling a program takes about 250 MB. The C library keeps most of it. Only glibc has a
    function to release it.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # Another C library or operating system.
        return


def program(function: Callable[..., Any], static: tuple[Hashable, ...], *args: Any) -> Program:
    """Return `function(*static, ...)` as a program for the shapes and dtypes of `args`.

    The `KEPT` programs that were used last are kept.
    """
    leaves, tree = jax.tree.flatten(args)
    return _program(function, static, tree, tuple((a.shape, a.dtype) for a in leaves))


@lru_cache(maxsize=KEPT)
def _program(
    function: Callable[..., Any], static: tuple[Hashable, ...], tree: Any, shapes: Any
) -> Program:
    if _program.cache_info().misses % CLEARED == 0:
        jax.clear_caches()  # type: ignore[no-untyped-call]
    # Each program has its own `partial`: JAX frees what it holds for a function with the function.
    return Program(partial(function, *static))
