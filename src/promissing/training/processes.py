"""Refuse to train in a process that cannot use JAX.

JAX computes in threads. A fork copies the memory of a process but not its threads, so that a forked
child would wait forever for the threads of its parent. This module is loaded with the package and
imports nothing else, so that it notices forks before training.
"""

import os
import sys

__all__ = ["claim_jax"]

_owner: int | None = None  # The first process that used JAX, as far as known.


def claim_jax() -> None:
    """Record that this process uses JAX, or raise if it is a fork of a process that did."""
    global _owner
    if _owner is None:
        _owner = os.getpid()
    if _owner != os.getpid():
        raise RuntimeError(
            "Cannot train in this process: it was forked from a process that had already used "
            "JAX, for example to fit a model, and JAX would wait forever. Start the process "
            "with the method 'spawn' or 'forkserver' of `multiprocessing` (for example "
            "`multiprocessing.get_context('spawn')`), use joblib's default backend 'loky', or fit "
            "in the parent process. Prediction works in any process."
        )


def _note_use() -> None:
    """Record before a fork whether JAX was used in this process."""
    global _owner
    # JAX has no public function for this. It is called before the fork: its lock may be held
    # by a thread that the child does not have.
    bridge = sys.modules.get("jax._src.xla_bridge")
    used = getattr(bridge, "backends_are_initialized", None)
    if _owner is None and used is not None and used():
        _owner = os.getpid()


if hasattr(os, "register_at_fork"):  # Only where there are forks.
    os.register_at_fork(before=_note_use)
