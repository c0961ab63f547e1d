"""
Feature importance by Shapley values
====================================

The contribution of each examination, averaged over people. The sum of a row's values is the
difference between its prediction and the prediction for an empty row.
"""

import matplotlib.pyplot as plt

from promissing import NanMLPClassifier
from promissing.datasets import load_nhanes
from promissing.inspection import importance, shapley

survey = load_nhanes()
model = NanMLPClassifier(random_state=0).fit(survey.X[1000:], survey.y[1000:])
values = shapley(model, survey.X[:100], groups=survey.modalities, random_state=0)
found = importance(values)
print(found.round(3).head(3))

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.barh(
    found.index[::-1], found["importance"][::-1], xerr=found["standard_error"][::-1]
)
ax.set_xlabel("mean absolute change of P(diabetes)")
