"""
Compare strategies, with one of your own
========================================

``compare`` cross-validates many ways to treat missing values on one table. ``extra`` adds your own
estimators to the comparison.
"""

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from promissing.compare import compare
from promissing.datasets import load_nhanes

survey = load_nhanes()
forest = make_pipeline(
    make_column_transformer(
        (
            SimpleImputer(strategy="median"),
            make_column_selector(dtype_include="number"),
        ),
        (
            OneHotEncoder(handle_unknown="ignore"),
            make_column_selector(dtype_exclude="number"),
        ),
    ),
    RandomForestClassifier(min_samples_leaf=5, random_state=0),
)
found = compare(
    survey.X[:1500],
    survey.y[:1500],
    task="classification",
    strategies=["mean", "mean+indicator", "fpromissing", "hgb"],
    extra={"forest on medians": forest},
    folds=3,
    settings={"n_members": 2},
    random_state=0,
)
print(found.table[["strategy", "mean", "spread", "p"]].round(3))

# %%
print(found.recommendation)

# %%
# The same models on complete test rows, and on test rows that lack half of their inputs:
import matplotlib.pyplot as plt

table = found.table[::-1]
fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.plot(table["log_loss"], table["title"], "o", label="as they are")
ax.plot(
    table["log_loss_missing"], table["title"], "o", label="half of the inputs missing"
)
ax.set_xlabel("log loss")
ax.legend(frameon=False)
