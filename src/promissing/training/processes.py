"""Refuse to train in a process that cannot use JAX.

JAX computes in threads. A fork copies the memory of a process and not its threads, so that a
forked child waits for ever for those of its parent. This module is loaded with the package and
imports nothing else, so that it knows of forks that come before training.
"""

import os
import sys

__all__ = ["claim_jax"]

_owner: int | None = None  # The process that was the first to use JAX, as far as we know.


def claim_jax() -> None:
    """Note that this process uses JAX from now on, or raise if it is a fork of one that did."""
    global _owner
    if _owner is None:
        _owner = os.getpid()
    if _owner != os.getpid():
        raise RuntimeError(
            "Cannot train in this process: it was forked from a process that had already used "
            "JAX, for example to fit a model, and JAX would wait for ever. Start the process "
            "with the method 'spawn' or 'forkserver' of `multiprocessing` (for example "
            "`multiprocessing.get_context('spawn')`), use joblib's default backend 'loky', or fit "
            "in the parent process. Prediction works in any process."
        )


def _note_use() -> None:
    """Note before a fork whether others have used JAX in this process."""
    global _owner
    # JAX has no public way to tell. It is asked before the fork, since its lock may be held by a
    # thread that the child does not have.
    bridge = sys.modules.get("jax._src.xla_bridge")
    used = getattr(bridge, "backends_are_initialized", None)
    if _owner is None and used is not None and used():
        _owner = os.getpid()


if hasattr(os, "register_at_fork"):  # Only where there are forks.
    os.register_at_fork(before=_note_use)
