"""
Quantiles and other losses
==========================

``NanMLPRegressor(loss="quantile")`` predicts quantiles. An empty row predicts those of the training
targets.
"""

import matplotlib.pyplot as plt
import numpy as np

from promissing import NanMLPRegressor
from promissing.networks.losses import Pinball

rng = np.random.default_rng(0)
x = rng.uniform(-2, 2, size=2000)
y = x**2 + (0.3 + 0.5 * np.abs(x)) * rng.gumbel(size=2000)
X = np.where(rng.random(2000) < 0.1, np.nan, x)[:, None]

loss = Pinball(levels=(0.1, 0.5, 0.9))
model = NanMLPRegressor(loss=loss, n_members=4, random_state=0).fit(X, y)
grid = np.linspace(-2, 2, 100)[:, None]
quantiles = model.predict_quantiles(grid)
empty = model.predict_quantiles([[np.nan]])[0]
print(
    "empty row:",
    empty.round(2),
    " training targets:",
    np.quantile(y, (0.1, 0.5, 0.9)).round(2),
)

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.scatter(x, y, s=2, color="0.6")
ax.plot(grid, quantiles, color="#c2410c", label=["10 %", "50 %", "90 %"])
ax.set(xlabel="x", ylabel="y", title="Predicted quantiles")
