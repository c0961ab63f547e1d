"""
What to measure next
====================

Which examination should a person take next? The plan orders the missing examinations by the
expected fall of the loss. The curve compares policies on other people, who start with the
interview only.
"""

import numpy as np
from sklearn.model_selection import train_test_split

from promissing import NanMLPClassifier
from promissing.datasets import load_nhanes
from promissing.uncertainty import acquisition_curve, next_measurement

survey = load_nhanes()
X_train, X_rest, y_train, y_rest = train_test_split(
    survey.X, survey.y, test_size=0.4, random_state=0
)
X_back, X_test, y_back, y_test = train_test_split(
    X_rest, y_rest, test_size=0.5, random_state=0
)
model = NanMLPClassifier(random_state=0).fit(X_train, y_train)

interviewed = X_test.copy()
visits = [
    c
    for name, columns in survey.modalities.items()
    if name != "interview"
    for c in columns
]
interviewed[visits] = np.nan
ordered = next_measurement(
    model, interviewed[:50], X_back, groups=survey.modalities, random_state=0
)
print(ordered.to_frame()[["row", "rank", "group", "gain", "stop"]].head(4).round(4))

# %%
# All examinations are unknown at the beginning of the curve.
curve = acquisition_curve(
    model,
    X_test[:300],
    y_test[:300],
    ("global", "random"),
    background=X_back,
    groups=survey.modalities,
    random_state=0,
)
curve.plot()
