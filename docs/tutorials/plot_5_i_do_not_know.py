"""
Saying "I do not know"
======================

A model that decides about people should say when the known values do not decide. This tutorial fits
a model, makes prediction sets, abstains with a bound on the accuracy, and finds out what to measure
next.
"""

import numpy as np
from sklearn.model_selection import train_test_split

from promissing import NanMLPClassifier
from promissing.datasets import load_nhanes
from promissing.missingness import remove
from promissing.uncertainty import (
    ConformalClassifier,
    SelectiveClassifier,
    missingness_drift,
    next_measurement,
)

survey = load_nhanes()
X, y = survey.X, survey.y.map({0: "no", 1: "yes"}).to_numpy()
X_train, X_rest, y_train, y_rest = train_test_split(
    X, y, test_size=0.5, random_state=0, stratify=y
)
X_cal, X_test, y_cal, y_test = train_test_split(
    X_rest, y_rest, test_size=0.6, random_state=0, stratify=y_rest
)
model = NanMLPClassifier(random_state=0).fit(X_train, y_train)

# %%
# Prediction sets
# ---------------
# A set holds the true class with the chosen probability, over many rows. A set with both classes
# means "I do not know". Calibration uses rows that the model was not trained on.
conformal = ConformalClassifier(
    model, prefit=True, confidence_level=0.9, random_state=0
)
conformal.conformalize(X_cal, y_cal)
sets = conformal.predict_set(X_test).to_frame()
print(sets["set"].value_counts())

# %%
# In use, more values are missing than in calibration. Coverage should hold for these rows as well.
rng = np.random.default_rng(0)
shares = rng.choice([0, 0.25, 0.5, 0.75], (len(X_test), 1))
X_lossy = remove(X_test, rng.random(X_test.shape) < shares)
conformal.coverage_by_missing(X_lossy, y_test).plot()

# %%
# Abstention
# ----------
# The threshold is chosen so that at least 93 % of the decided rows are right, with 95 % confidence.
# Calibration rows must lose values as the rows in use do.
cal_shares = rng.choice([0, 0.25, 0.5, 0.75], (len(X_cal), 1))
X_cal_lossy = remove(X_cal, rng.random(X_cal.shape) < cal_shares)
selective = SelectiveClassifier(model, accuracy=0.93, prefit=True).calibrate(
    X_cal_lossy, y_cal
)
result = selective.predict_selective(X_lossy)
decided = ~result.abstained
print(f"decided: {decided.mean():.0%}")
print(
    f"accuracy there: {(model.predict(X_lossy)[decided] == y_test[decided]).mean():.1%}"
)
print(result.to_frame().head(3).to_string())

# %%
# What to measure next
# --------------------
ordered = next_measurement(
    model, X_lossy[:3], X_cal, groups=survey.modalities, random_state=0
)
print(
    ordered.to_frame()[["row", "rank", "group", "gain"]].groupby("row").head(2).round(3)
)

# %%
# Drift
# -----
# Are other values missing than in training?
print(missingness_drift(model, X_lossy))
missingness_drift(model, X_lossy).plot()
