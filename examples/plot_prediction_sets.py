"""
Prediction sets: which classes are plausible?
=============================================

A prediction set holds the true class with a chosen probability. With fewer known values the sets
get larger, and their coverage stays.
"""

import numpy as np
from sklearn.model_selection import train_test_split

from promissing import NanMLPClassifier
from promissing.datasets import load_nhanes
from promissing.missingness import remove
from promissing.uncertainty import ConformalClassifier

survey = load_nhanes()
X_train, X_rest, y_train, y_rest = train_test_split(
    survey.X, survey.y, test_size=0.5, random_state=0
)
X_cal, X_test, y_cal, y_test = train_test_split(
    X_rest, y_rest, test_size=0.6, random_state=0
)

model = NanMLPClassifier(random_state=0).fit(X_train, y_train)
conformal = ConformalClassifier(
    model, prefit=True, confidence_level=0.9, random_state=0
)
conformal.conformalize(X_cal, y_cal)

# Every test row loses a share of its values.
rng = np.random.default_rng(0)
X_test = remove(X_test, rng.random(X_test.shape) < rng.random((len(X_test), 1)))
coverage = conformal.coverage_by_missing(X_test, y_test)
print(coverage.round(2))

# %%
# The dashed line is the chosen probability.
coverage.plot()
