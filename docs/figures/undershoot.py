"""Draw docs/figures/undershoot.png: what a neuron and a network make of ever fewer values.

    python docs/figures/undershoot.py        # or: make figures

The paper gives undershoot, for many features of which most are missing, as the reason for its
compensatory weight, and does not show it. Here p = 10, 100 and 1000 features load on two hidden
factors of equal total strength whatever p, the label is the sign of the factors' product, and the
networks are trained on rows of which anything from nothing to everything is missing. For each
share missing the figure shows how large the first layer's activations still are (root mean square,
against complete rows) and how well the network still ranks rows that lack as much. Rows that lack
different amounts must be ranked against each other too: the legend below gives the AUC over them.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import optax
import pandas as pd
from sklearn.metrics import roc_auc_score

from promissing.jax import apply, init

HERE = Path(__file__).parent
FEATURES = (10, 100, 1000)
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
STYLES = {
    "none": ("#0b5394", "-", "o"),
    "shared": ("#b45f06", "--", "s"),
    "feature": ("#38761d", ":", "^"),
}
QUANTITIES = ("activation", "auc", "mixed_auc")
ROWS, UNITS, EPOCHS, BATCH, SEEDS = 4000, 32, 60, 200, 3


def draw(rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    factors = rng.normal(size=(n, 2))
    loading = 4 / np.sqrt(p / 2) * (np.arange(p)[None] % 2 == np.array([[0], [1]]))
    x = factors @ loading + rng.normal(size=(n, p))
    return x.astype(np.float32), factors.prod(axis=1) > 0


def remove(rng: np.random.Generator, x: np.ndarray, share: np.ndarray | float) -> np.ndarray:
    """Remove the given share of every row, to the nearest whole number of values."""
    ranks = rng.random(x.shape).argsort(axis=1).argsort(axis=1)
    gone = np.round(np.broadcast_to(share, len(x)) * x.shape[1])
    return np.where(ranks < gone[:, None], np.float32(np.nan), x)


def forward(params: Any, x: Any) -> Any:
    first, (kernel, bias), (last_kernel, last_bias) = params
    hidden = jax.nn.relu(apply(first, x))
    return (jax.nn.relu(hidden @ kernel + bias) @ last_kernel + last_bias)[:, 0]


@functools.partial(jax.jit, static_argnames="epochs")
def train(params: Any, x: Any, y: Any, key: Any, epochs: int) -> Any:
    optimiser = optax.adam(2e-3)

    def loss(params: Any, x: Any, y: Any) -> Any:
        return optax.sigmoid_binary_cross_entropy(forward(params, x), y).mean()

    def step(state: Any, rows: Any) -> Any:
        params, memory = state
        update, memory = optimiser.update(jax.grad(loss)(params, x[rows], y[rows]), memory)
        return (optax.apply_updates(params, update), memory), None

    def epoch(state: Any, key: Any) -> Any:
        order = jax.random.permutation(key, len(x)).reshape(-1, BATCH)
        return jax.lax.scan(step, state, order)

    state = (params, optimiser.init(params))
    return jax.lax.scan(epoch, state, jax.random.split(key, epochs))[0][0]


def measure(p: int, compensation: str, seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng([seed, p])
    x, y = draw(rng, ROWS, p)
    x = remove(rng, x, rng.random(ROWS))
    keys = jax.random.split(jax.random.key(seed), 4)
    glorot = jax.nn.initializers.glorot_uniform()
    params = (
        init(keys[0], p, UNITS, compensation=compensation),
        (glorot(keys[1], (UNITS, UNITS)), jnp.zeros(UNITS)),
        (glorot(keys[2], (UNITS, 1)), jnp.zeros(1)),
    )
    params = train(params, jnp.asarray(x), jnp.asarray(y, jnp.float32), keys[3], EPOCHS)
    test, label = draw(rng, ROWS, p)
    rows = []
    for share in SHARES:
        gaps = remove(rng, test, share)
        size = float(jnp.sqrt(jnp.mean(apply(params[0], gaps) ** 2)))
        auc = roc_auc_score(label, np.asarray(forward(params, gaps)))
        row = {"p": p, "compensation": compensation, "seed": seed, "share": share}
        rows.append({**row, "activation": size, "auc": auc})
    for row in reversed(rows):
        row["activation"] /= rows[0]["activation"]
    gaps = remove(rng, test, rng.random(ROWS))
    mixed = roc_auc_score(label, np.asarray(forward(params, gaps)))
    return [{**row, "mixed_auc": mixed} for row in rows]


def plot(results: pd.DataFrame, path: Path) -> None:
    mpl.use("agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    fig, axes = plt.subplots(2, len(FEATURES), figsize=(9, 4.8), sharex=True, layout="constrained")
    means = results.groupby(["p", "compensation", "share"])[list(QUANTITIES)].mean()
    for column, p in enumerate(FEATURES):
        axes[0, column].set_title(f"p = {p}")
        for name, (color, line, marker) in STYLES.items():
            curve = means.loc[p, name]
            style = {"color": color, "ls": line, "marker": marker, "ms": 3.5}
            axes[0, column].plot(curve.index, curve["activation"], label=name, **style)
            mixed = f"{curve['mixed_auc'].iloc[0]:.3f}"
            axes[1, column].plot(curve.index, curve["auc"], label=mixed, **style)
    for ax in axes[0]:
        ax.axhline(0, color="0.8", lw=0.8, zorder=0)
    for ax in axes[1]:
        ax.axhline(0.5, color="0.8", lw=0.8, zorder=0)
        ax.set_ylim(0.48, 0.96)
        ax.legend(title="all shares mixed", frameon=False, loc="lower left")
    axes[0, 0].set_ylabel("activation\n(complete rows = 1)")
    axes[1, 0].set_ylabel("AUC")
    axes[1, 1].set_xlabel("share of the values that is missing, r/p")
    axes[0, 0].legend(title="compensation", frameon=False)
    fig.savefig(path, dpi=160)


def main() -> None:
    rows = []
    for p in FEATURES:
        for compensation in STYLES:
            print(f"p = {p}, compensation {compensation}", file=sys.stderr)
            for seed in range(SEEDS):
                rows += measure(p, compensation, seed)
    results = pd.DataFrame(rows)
    table = results.pivot_table(list(QUANTITIES), ["p", "share"], "compensation")
    table.round(3).to_csv(HERE / "undershoot.csv")
    plot(results, HERE / "undershoot.png")
    print(table.round(3).loc[(slice(None), [0.0, 0.5, 0.9, 0.99, 1.0]), :])


if __name__ == "__main__":
    main()
