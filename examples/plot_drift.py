"""
Drift of missing values
=======================

A sensor fails, a form changes: new rows lack other values than the training rows. The test compares
the shares of missing values per column and names the columns whose loss costs most.
"""

import numpy as np

from promissing import NanMLPClassifier
from promissing.datasets import load_nhanes
from promissing.uncertainty import missingness_drift

survey = load_nhanes()
model = NanMLPClassifier(random_state=0).fit(survey.X[1000:], survey.y[1000:])

# In a new hospital, cholesterol is rarely measured, and the waist is never measured.
new = survey.X[:1000].copy()
rng = np.random.default_rng(0)
new.loc[rng.random(1000) < 0.8, ["total_cholesterol", "hdl_cholesterol"]] = np.nan
new["waist_cm"] = np.nan

drift = missingness_drift(model, new)
print(drift.to_frame().head(5).round(3))

# %%
drift.plot()
