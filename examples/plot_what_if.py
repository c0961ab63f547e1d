"""
What if this value were unknown?
================================

The effect of a group of columns on one prediction is measured by making it missing. Nothing is
imputed and no background data are needed.
"""

from promissing import NanMLPClassifier
from promissing.datasets import load_nhanes
from promissing.inspection import CounterfactualDisplay, smallest_change, what_if

survey = load_nhanes()
model = NanMLPClassifier(random_state=0).fit(survey.X[1000:], survey.y[1000:])
people = survey.X[:1000]
people = people.iloc[model.predict_proba(people)[:, 1].argsort()[[-1, -60]]]

effects = what_if(model, people, groups=survey.modalities)
CounterfactualDisplay(effects).plot()

# %%
# The smallest sets of examinations without which the decision would change:
print(smallest_change(model, people, groups=survey.modalities).to_frame())
