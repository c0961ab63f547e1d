"""
Abstain from uncertain rows
===========================

:class:`~promissing.uncertainty.SelectiveClassifier` chooses a threshold on calibration rows, so
that the accuracy of the decided rows reaches a target with a chosen confidence. The curves show the
risk when only the most certain rows are decided.
"""

import numpy as np
from sklearn.model_selection import train_test_split

from promissing import NanMLPClassifier
from promissing.datasets import load_nhanes
from promissing.metrics import risk_coverage
from promissing.missingness import remove
from promissing.uncertainty import SelectiveClassifier

survey = load_nhanes()
rng = np.random.default_rng(0)


def lossy(X):
    """Remove another share of the values from every row."""
    return remove(
        X, rng.random(X.shape) < rng.choice([0, 0.25, 0.5, 0.75], (len(X), 1))
    )


X_train, X_rest, y_train, y_rest = train_test_split(
    survey.X, survey.y, test_size=0.5, random_state=0
)
X_cal, X_test, y_cal, y_test = train_test_split(
    X_rest, y_rest, test_size=0.5, random_state=0
)
X_cal, X_test = lossy(X_cal), lossy(X_test)

model = NanMLPClassifier(random_state=0).fit(X_train, y_train)
selective = SelectiveClassifier(model, accuracy=0.92, prefit=True).calibrate(
    X_cal, y_cal
)
result = selective.predict_selective(X_test)
decided = ~result.abstained
accuracy = (model.predict(X_test) == y_test)[decided].mean()
print(f"decided: {decided.mean():.0%} of the rows, accuracy there: {accuracy:.1%}")
print(result.to_frame().head(4))

# %%
missing = X_test.isna().mean(axis=1)
risk_coverage(y_test, model.predict_proba(X_test), share_missing=missing).plot()
