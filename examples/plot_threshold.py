"""
A threshold that keeps its meaning
==================================

Values vanish after training. Among the predictions with a probability of at least 0.9, how many are
right, and how many such predictions are there? A calibrated model makes fewer of them when it knows
less; a model that is not calibrated makes wrong ones.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from promissing import NanMLPClassifier
from promissing.datasets import load_nhanes
from promissing.missingness import mcar_cells

survey = load_nhanes()
X_train, X_test, y_train, y_test = train_test_split(survey.X, survey.y, random_state=0)
models = {
    "promissing": NanMLPClassifier(random_state=0),
    "HistGradientBoosting": HistGradientBoostingClassifier(
        categorical_features="from_dtype", random_state=0
    ),
}
shares = (0, 0.25, 0.5, 0.75)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for (name, model), color in zip(models.items(), ("#c2410c", "#8a8f98"), strict=True):
    model.fit(X_train, y_train)
    accuracy, decided = [], []
    for share in shares:
        proba = model.predict_proba(mcar_cells(X_test, ratio=share, random_state=0))
        certain = proba.max(axis=1) >= 0.9
        accuracy.append((proba.argmax(axis=1) == y_test)[certain].mean())
        decided.append(certain.mean())
    axes[0].plot(shares, accuracy, "o-", color=color, label=name)
    axes[1].plot(shares, decided, "o-", color=color, label=name)
axes[0].set(
    ylabel="accuracy where p ≥ 0.9", xlabel="further values missing", ylim=(0.75, 1)
)
axes[1].set(
    ylabel="share of rows with p ≥ 0.9", xlabel="further values missing", ylim=(0, 1)
)
axes[0].legend(frameon=False)
for ax in axes:
    ax.set_xticks(shares, [f"{share:.0%}" for share in shares])

# %%
# Training with removed values (``augment``, on by default) makes the difference, see
# :doc:`the study </uncertainty-study>`.
