"""Draw docs/figures/fading.png: what two networks say of a row as they are told less and less.

    python docs/figures/fading.py        # or: make figures

Twenty rows of a generated table lose their values one by one, in random order. On the left the
gaps are filled with the mean before the network sees them; on the right the network prunes them and
has learnt to do without (`augment=True`). Both are the same ensemble otherwise, trained on the
same table, of which a tenth of the cells is missing.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from promissing import NanMLPClassifier
from promissing.mlp import PLAIN

P, ROWS, SHOWN = 8, 3000, 20


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS + SHOWN, P))
    score = X[:, 0] + X[:, 1] + X[:, 2] * X[:, 3] + 0.5 * X[:, 4] - 1
    y = score + 0.5 * rng.logistic(size=len(X)) > 0
    train = np.where(rng.random((ROWS, P)) < 0.1, np.nan, X[:ROWS])
    shared = {**PLAIN, "n_members": 8, "max_iter": 60, "random_state": 0}
    filled = make_pipeline(SimpleImputer(), NanMLPClassifier(**shared)).fit(train, y[:ROWS])
    pruned = NanMLPClassifier(**shared | {"augment": True}).fit(train, y[:ROWS])

    order = np.stack([rng.permutation(P) for _ in range(SHOWN)])
    steps = []
    for lost in range(P + 1):
        rows = X[ROWS:].copy()
        np.put_along_axis(rows, order[:, :lost], np.nan, axis=1)
        steps.append([model.predict_proba(rows)[:, 1] for model in (filled, pruned)])
    paths = np.array(steps)  # (P + 1, 2, SHOWN)

    mpl.use("agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for ax, path, title in zip(
        axes,
        paths.swapaxes(0, 1),
        ("filled with the mean", "pruned, trained to do without"),
        strict=True,
    ):
        ax.plot(path, color="#0b5394", lw=1, alpha=0.55)
        ax.axhline(pruned.prior_[1], color="0.3", ls="--", lw=1)
        ax.set_title(title)
        ax.set_xlabel("values that are unknown, of 8")
    axes[0].set_ylabel("predicted probability")
    axes[0].set_ylim(0, 1)
    axes[1].annotate("prior", (0, pruned.prior_[1] + 0.02), color="0.3")
    fig.savefig(Path(__file__).parent / "fading.png", dpi=150)
    at_end = np.abs(paths[-1] - pruned.prior_[1]).max(axis=1)
    print(f"nothing known, distance from the prior: filled {at_end[0]:.3f}, pruned {at_end[1]:.3f}")


if __name__ == "__main__":
    main()
