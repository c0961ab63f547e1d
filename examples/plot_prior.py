"""
From a certain prediction to the prior
======================================

A row loses its values one by one. The prediction approaches the prior, which is the share of the
class in the training data. An empty row predicts it exactly.
"""

import matplotlib.pyplot as plt
import numpy as np

from promissing import NanMLPClassifier
from promissing.datasets import load_nhanes
from promissing.inspection import information_loss

survey = load_nhanes()
model = NanMLPClassifier(random_state=0).fit(survey.X[500:], survey.y[500:])
people = survey.X[:500]
people = people.iloc[
    np.argsort(-model.predict_proba(people)[:, 1])[[0, 5, 20, 50, 200]]
]
paths = information_loss(
    model, people, groups=survey.modalities, orders=20, random_state=0
)

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(np.linspace(0, 1, len(survey.modalities) + 1), paths.mean.T, "o-", ms=3)
ax.axhline(model.prior_[1], color="0.5", ls="--")
ax.annotate(
    "prior",
    (0, model.prior_[1]),
    xytext=(2, 4),
    textcoords="offset points",
    color="0.5",
)
ax.set(
    xlabel="share of the examinations removed", ylabel="mean P(diabetes)", ylim=(0, 1)
)
ax.set_title("Five people, examinations removed in random order")
