"""
Prediction intervals and standard deviations
============================================

For numbers, ``predict(X, return_std=True)`` returns a standard deviation, and a conformal interval
holds the truth with a chosen probability. Both grow as values go missing.
"""

import matplotlib.pyplot as plt
import numpy as np

from promissing import NanMLPRegressor
from promissing.uncertainty import ConformalRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 5))
y = 2 * X[:, 0] + X[:, 1] * X[:, 2] + np.exp(0.7 * X[:, 3]) * rng.normal(size=3000)
X[rng.random(X.shape) < 0.1] = np.nan

model = NanMLPRegressor(n_members=4, random_state=0).fit(X[:1500], y[:1500])
intervals = ConformalRegressor(model, prefit=True, confidence_level=0.9, random_state=0)
intervals.conformalize(X[1500:2250], y[1500:2250])

test, truth = X[2250:], y[2250:]
means = []
for share in (0, 0.25, 0.5, 0.75, 1):
    lossy = np.where(rng.random(test.shape) < share, np.nan, test)
    _, std = model.predict(lossy, return_std=True)
    low, high = np.asarray(intervals.predict_interval(lossy)).T
    covered = ((low <= truth) & (truth <= high)).mean()
    means.append((share, std.mean(), (high - low).mean(), covered))
    print(f"{share:4.0%} missing: std {std.mean():.2f}, interval covers {covered:.0%}")

share, std, width, _ = np.array(means).T
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(share, width, "o-", label="width of the 90 % interval")
ax.plot(share, std, "o-", label="predicted standard deviation")
ax.set(
    xlabel="further values missing",
    ylim=(0, None),
    title="Uncertainty grows with every gap",
)
ax.legend(frameon=False)
