"""
Modalities that are missing altogether
======================================

:class:`~promissing.NanFusionClassifier` learns one representation and one decision per modality and
combines those that are there.
"""

from promissing import NanFusionClassifier
from promissing.datasets import load_nhanes
from promissing.inspection import ModalityDecisionDisplay

survey = load_nhanes()
model = NanFusionClassifier(survey.modalities, n_members=2, max_iter=40, random_state=0)
model.fit(survey.X[1000:], survey.y[1000:])

people = survey.X[:1000]
people = people[people.isna().any(axis=1)][:2]
ModalityDecisionDisplay.from_estimator(model, people)
