"""Draw docs/figures/fading.png: four networks as values go missing.

    python docs/figures/fading.py        # or: make figures

Twenty rows of a generated table lose their values one by one, in random order. On the left, missing
values are filled with the mean and marked by indicator columns; on the right, they are pruned. The
networks above are trained on the table as it is, in which a tenth of the cells is missing. Those
below are trained with more missing values: on copies of the table in which half of the rows lose
values, each row with a probability of its own, as `augment=True` draws them. Apart from that the
four ensembles are the same, and the two in a row are trained on the same rows as often. The
estimators' correction to the prior, which would lead any network there, is off.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from promissing import NanMLPClassifier
from promissing.estimators.mlp import PLAIN

P, ROWS, SHOWN = 8, 3000, 20
EPOCHS, COPIES = 60, 20
TREATMENTS = ("filled with the mean, and indicators", "pruned")
TRAINING = ("trained on the table", "trained with more missing values")


def augmented(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Copies of a table in which half of the rows lose values."""
    copies = np.tile(X, (COPIES, 1))
    chosen = rng.random((len(copies), 1)) < 0.5
    lost = rng.random(copies.shape) < rng.random((len(copies), 1))
    return np.where(chosen & lost, np.nan, copies)


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS + SHOWN, P))
    score = X[:, 0] + X[:, 1] + X[:, 2] * X[:, 3] + 0.5 * X[:, 4] - 1
    y = score + 0.5 * rng.logistic(size=len(X)) > 0
    train = np.where(rng.random((ROWS, P)) < 0.1, np.nan, X[:ROWS])
    prior = y[:ROWS].mean()
    order = np.stack([rng.permutation(P) for _ in range(SHOWN)])

    tables = (train, augmented(train, rng))
    paths = np.empty((2, 2, P + 1, SHOWN))  # Training, treatment, values lost, row.
    for i, table in enumerate(tables):
        copies = len(table) // ROWS
        shared = {**PLAIN, "n_members": 8, "max_iter": EPOCHS // copies, "random_state": 0}
        shared["prior_correction"] = False
        filled = make_pipeline(SimpleImputer(add_indicator=True), NanMLPClassifier(**shared))
        for j, model in enumerate((filled, NanMLPClassifier(**shared))):
            model.fit(table, np.tile(y[:ROWS], copies))
            for lost in range(P + 1):
                rows = X[ROWS:].copy()
                np.put_along_axis(rows, order[:, :lost], np.nan, axis=1)
                paths[i, j, lost] = model.predict_proba(rows)[:, 1]

    mpl.use("agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    fig, axes = plt.subplots(2, 2, figsize=(9, 6), sharex=True, sharey=True, layout="constrained")
    for i, training in enumerate(TRAINING):
        for j, treatment in enumerate(TREATMENTS):
            ax = axes[i, j]
            ax.plot(paths[i, j], color="#0b5394", lw=1, alpha=0.55)
            ax.axhline(prior, color="0.3", ls="--", lw=1)
            ax.set_title(f"{treatment};\n{training}", fontsize=10)
            at_end = np.abs(paths[i, j, -1] - prior).max()
            print(f"{treatment}, {training}: distance from the prior at the end {at_end:.3f}")
    for ax in axes[1]:
        ax.set_xlabel("number of missing values, of 8")
    for ax in axes[:, 0]:
        ax.set_ylabel("predicted probability")
    axes[0, 0].set_ylim(0, 1)
    axes[0, 0].annotate("prior", (0, prior + 0.02), color="0.3")
    fig.savefig(Path(__file__).parent / "fading.png", dpi=110)


if __name__ == "__main__":
    main()
