"""
A scikit-learn pipeline with missing values
===========================================

:class:`~promissing.NanMLPClassifier` is a scikit-learn estimator: it works in pipelines, searches
and cross-validation. It takes frames with missing values, categories and dates as they are.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from promissing import NanMLPClassifier, Pruner, load
from promissing.datasets import load_nhanes
from promissing.missingness import remove

survey = load_nhanes()
X, y = survey.X[:2500], survey.y[:2500]
print(X.dtypes.value_counts())
print(f"{X.isna().to_numpy().mean():.0%} of the cells are missing")

# %%
# Cross-validate it as any other estimator.
models = {
    "NanMLPClassifier": NanMLPClassifier(random_state=0),
    "HistGradientBoosting": HistGradientBoostingClassifier(
        categorical_features="from_dtype", random_state=0
    ),
}
for name, model in models.items():
    scores = cross_val_score(model, X, y, cv=3, scoring="roc_auc")
    print(f"{name}: AUC {scores.mean():.3f} +- {scores.std():.3f}")

# %%
# Fitted attributes tell what the data were and what the defaults became.
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = NanMLPClassifier(random_state=0).fit(X_train, y_train)
print(model.recipe_)
print("prior:", model.prior_.round(3))

# %%
# ``known_share`` is the share of a row that is known. When values are removed, predictions move
# towards the prior.
rng = np.random.default_rng(0)
lossy = remove(X_test, rng.random(X_test.shape) < rng.random((len(X_test), 1)))
known, p = model.known_share(lossy), model.predict_proba(lossy)[:, 1]
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.scatter(known, p, s=6)
ax.axhline(model.prior_[1], ls="--", color="0.5")
ax.set(xlabel="share of the row that is known", ylabel="P(diabetes)")

# %%
# Any estimator can use pruning through a transformer, here a linear model on numbers.
numbers = X.select_dtypes("number")
linear = make_pipeline(
    StandardScaler(), Pruner("feature"), LogisticRegression(max_iter=1000)
)
print(
    f"pruned logistic regression: {cross_val_score(linear, numbers, y, cv=3).mean():.2f}"
)

# %%
# A model is saved in a file that cannot execute code, and predicts without JAX.
path = Path(tempfile.mkdtemp()) / "model.safetensors"
model.save(path)
print(
    "same predictions:",
    np.array_equal(load(path).predict(X_test), model.predict(X_test)),
)
