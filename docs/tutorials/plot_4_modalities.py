"""
Modalities that go missing
==========================

In medicine, columns come in groups: questionnaires, blood, scans. Often a whole group is missing.
:class:`~promissing.NanFusionClassifier` learns one representation and one decision per modality. A
modality that is missing simply does not contribute.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from promissing import NanFusionClassifier
from promissing.datasets import load_nhanes
from promissing.inspection import importance, shapley

survey = load_nhanes()
missing = {
    name: survey.X[columns].isna().all(axis=1).mean()
    for name, columns in survey.modalities.items()
}
for name, share in missing.items():
    print(
        f"{name:15} {len(survey.modalities[name]):2} columns, missing for {share:.0%} of the people"
    )

# %%
# Give the modalities by name. ``augment=True`` removes modalities at random while training.
X, y = survey.X, survey.y
model = NanFusionClassifier(
    survey.modalities, augment=True, n_members=4, max_iter=60, random_state=0
)
model.fit(X[1500:], y[1500:])
X_test, y_test = X[:1500], y[:1500]
print(
    f"AUC on new people: {roc_auc_score(y_test, model.predict_proba(X_test)[:, 1]):.3f}"
)

# %%
# Remove one modality after the other. The AUC falls, and predictions approach the prior.
order = [
    "body_scan",
    "diet_day_2",
    "diet_day_1",
    "mood",
    "blood_metals",
    "blood_pressure",
]
order += ["body", "blood_lipids", "interview"]
left, scores, distance = X_test.copy(), [], []
for name in [None, *order]:
    if name is not None:
        left[survey.modalities[name]] = np.nan
    p = model.predict_proba(left)[:, 1]
    scores.append(roc_auc_score(y_test, p))
    distance.append(np.abs(p - model.prior_[1]).mean())

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
steps = ["nothing", *order]
axes[0].plot(scores, steps, "o-")
axes[0].set(xlabel="AUC", title="after removing, from above")
axes[1].plot(distance, steps, "o-")
axes[1].set(xlabel="mean distance from the prior")
axes[0].invert_yaxis()

# %%
# Which modalities matter? Shapley values over modalities need no background data.
values = shapley(model, X_test[:60], groups="modalities", random_state=0)
print(importance(values).round(3))

# %%
# What does each modality predict by itself, for one person?
for name, proba in model.decision_by_modality(X_test[:1]).items():
    print(f"{name:15} {proba[0, 1]:.2f}")
print(f"together        {model.predict_proba(X_test[:1])[0, 1]:.2f}")
