"""The style of figures in tutorials and in the gallery."""

from __future__ import annotations

from typing import Any


def reset_figures(gallery_conf: Any, fname: str) -> None:
    """Draw figures without a background, so that they fit on light and on dark pages."""
    import matplotlib.pyplot as plt

    plt.rcdefaults()
    plt.rcParams.update(
        {
            "axes.facecolor": "none",
            "figure.facecolor": "none",
            "savefig.facecolor": "none",
            "savefig.transparent": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "font.size": 9.5,
            "legend.frameon": False,
        }
    )
