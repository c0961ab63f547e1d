"""When a replica has learned what it can."""

from __future__ import annotations

import numpy as np

__all__ = ["Watch"]


class Watch:
    """Sees the losses of every epoch and says which replicas go on.

    Parameters
    ----------
    n_replicas : int
    validated : bool
        Whether the validation loss decides, or the training loss.
    tol, patience : float
        A replica goes on until its loss has failed to fall by `tol` more than `patience` times in
        a row.
    """

    def __init__(self, n_replicas: int, validated: bool, tol: float, patience: float) -> None:
        self.validated, self.tol, self.patience = validated, tol, patience
        self.active = np.ones(n_replicas, bool)
        self.best_loss = np.full(n_replicas, np.inf, np.float32)
        self.n_epochs, self.best_epoch, self.stalled = np.zeros((3, n_replicas), int)
        self.history: list[np.ndarray] = []

    def see(self, train_loss: np.ndarray, val_loss: np.ndarray) -> None:
        """Take note of the losses (R,) of an epoch, NaN for replicas that were not trained."""
        # New arrays throughout: JAX and the callback may hold the old ones.
        loss = val_loss if self.validated else train_loss
        self.n_epochs = self.n_epochs + self.active
        self.best_epoch = np.where(loss < self.best_loss, self.n_epochs, self.best_epoch)
        # A loss that is not a number is no progress.
        fell = loss <= self.best_loss - self.tol
        self.stalled = np.where(fell, 0, self.stalled + 1)
        self.best_loss = np.fmin(self.best_loss, loss)
        self.active = self.active & (self.stalled <= self.patience)
        self.history.append(np.stack([train_loss, val_loss]))
