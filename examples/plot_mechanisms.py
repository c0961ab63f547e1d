"""
Mechanisms of missing values
============================

The same column loses half of its values completely at random (MCAR), depending on another column
(MAR), and depending on its own value (MNAR).
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from promissing.missingness import mar_logistic, mcar, self_masking

rng = np.random.default_rng(0)
age = rng.normal(50, 15, 600)
table = pd.DataFrame({"age": age, "pressure": 90 + 0.8 * age + rng.normal(0, 12, 600)})
lost = {"columns": "pressure", "ratio": 0.5, "random_state": 0}
tables = {
    "MCAR": mcar(table, **lost),
    "MAR, by age": mar_logistic(table, drivers="age", slope=4.0, **lost),
    "MNAR, by itself": self_masking(table, slope=4.0, **lost),
}
fig, axes = plt.subplots(
    1, 3, figsize=(9, 3), sharex=True, sharey=True, layout="constrained"
)
for ax, (name, lossy) in zip(axes, tables.items(), strict=True):
    missing = lossy["pressure"].isna()
    ax.scatter(
        table["age"][~missing], table["pressure"][~missing], s=5, color="#0b5394"
    )
    ax.scatter(
        table["age"][missing],
        table["pressure"][missing],
        s=5,
        color="#e8871e",
        alpha=0.6,
    )
    ax.set(title=name, xlabel="age")
    print(f"{name}: mean of the known values {lossy['pressure'].mean():.0f}")
axes[0].set_ylabel("pressure (orange: lost)")
print(f"all values: {table['pressure'].mean():.0f}")
