"""A progress bar for training."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["EpochBar"]


class EpochBar:
    """A progress bar that shows the epoch and the losses."""

    def __init__(self, title: str, epochs: int) -> None:
        # Prediction, which needs few packages, imports this module too.
        from rich.console import Console
        from rich.progress import Progress

        self._progress = Progress(console=Console(stderr=True))
        self._progress.start()
        self._task = self._progress.add_task(title, total=epochs)

    def __call__(self, epoch: Any) -> None:
        """Show an epoch."""
        losses = [("loss", epoch.train_loss), ("validation", epoch.val_loss)]
        text = ", ".join(
            f"{name} {np.nanmean(values):.4f}"
            for name, values in losses
            if not np.isnan(values).all()
        )
        self._progress.update(self._task, completed=epoch.number, description=text)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._progress.stop()
