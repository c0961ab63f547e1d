"""
Reproducing the paper
=====================

The repository has the three studies of the paper as commands, with recorded results. This tutorial
runs a small part of the first one: networks learn XOR from points of which one coordinate may be
missing not at random, with several strategies for the missing values.

The whole study takes nine minutes on two cores: ``python -m studies simulation --out OUT``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from promissing.compare import strategies
from promissing.datasets import make_xor
from promissing.estimators.mlp import PLAIN
from promissing.missingness import mnar

network = {
    **PLAIN,
    "hidden_layer_sizes": (16,),
    "max_iter": 150,
    "learning_rate_init": 0.02,
}
names = ("mean", "knn", "mean+indicator", "promissing", "mpromissing")
scores = {name: [] for name in names}
for seed in range(5):
    X, y = make_xor(1000, noise=0.25, random_state=seed)
    lossy = mnar(X, ratio=0.5, columns=[0], random_state=seed)
    for name in names:
        model = strategies.make(
            name, "classification", settings=network, random_state=seed
        )
        model.fit(lossy[:500], y[:500])
        scores[name].append(
            roc_auc_score(y[500:], model.predict_proba(lossy[500:])[:, 1])
        )
for name, found in scores.items():
    print(f"{name:15} AUC {np.mean(found):.3f}")

# %%
# When a value is missing because of its own size, the gap itself is information. Mean and KNN
# imputation hide it; indicators and mPROMISSING use it. PROMISSING, without a compensation, gains
# little here.
fig, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
ax.barh(
    list(names)[::-1], [np.mean(scores[name]) for name in names][::-1], color="#0b5394"
)
ax.set(xlim=(0.5, 1), xlabel="AUC on incomplete test rows")

# %%
# :doc:`The simulation study </simulation>` has all strategies, mechanisms and 100 repetitions.
# :doc:`The map of the paper </paper>` says where every equation, figure and table is.
