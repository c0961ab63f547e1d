"""The main job in a minute: a network on a table with holes, beside mean imputation.

    python examples/demo.py        # or: make demo

A table of 2,000 rows is made here. In one column the values of a whole range are lost (missing not
at random), elsewhere a fifth of the values is lost by chance. The same network is trained twenty
times on each treatment of the gaps; only the first layer differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score

from promissing.jax import NanDenseParams, apply, init

RUNS, EPOCHS, BATCH = 20, 60, 50


def make_table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2000, 6))
    y = (x[:, 0] + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] + 0.5 * rng.normal(size=2000)) > 0
    gaps = rng.random(x.shape) < 0.2
    gaps[:, 0] = (x[:, 0] > 0.3) & (x[:, 0] < 2)  # What is missing is not random.
    return np.where(gaps, np.nan, x).astype(np.float32), y.astype(np.float32)


def forward(params: Any, x: Any) -> Any:
    first, (kernel, bias), (last_kernel, last_bias) = params
    hidden = jax.nn.relu(jax.nn.relu(apply(first, x)) @ kernel + bias)
    return (hidden @ last_kernel + last_bias)[..., 0]


def start(key: Any, compensation: str) -> Any:
    keys = jax.random.split(key, 3)
    glorot = jax.nn.initializers.glorot_uniform()
    first: NanDenseParams = init(keys[0], 6, 16, compensation=compensation)
    second = (glorot(keys[1], (16, 8)), jnp.zeros(8))
    return first, second, (glorot(keys[2], (8, 1)), jnp.zeros(1))


@jax.jit
@jax.vmap
def train(params: Any, x: Any, y: Any, key: Any) -> Any:
    """Twenty networks at once, each on its own table."""
    optimiser = optax.adam(3e-3)

    def loss(params: Any, x: Any, y: Any) -> Any:
        return optax.sigmoid_binary_cross_entropy(forward(params, x), y).mean()

    def step(state: Any, rows: Any) -> Any:
        params, memory = state
        update, memory = optimiser.update(jax.grad(loss)(params, x[rows], y[rows]), memory)
        return (optax.apply_updates(params, update), memory), None

    orders = jax.vmap(lambda k: jax.random.permutation(k, len(x)))(jax.random.split(key, EPOCHS))
    state, _ = jax.lax.scan(step, (params, optimiser.init(params)), orders.reshape(-1, BATCH))
    return state[0]


def evaluate(compensation: str, treat: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> tuple:
    tables = [make_table(seed) for seed in range(RUNS)]
    x, y = (np.stack(parts) for parts in zip(*tables, strict=True))
    x = np.stack([treat(table[:1000], table) for table in x])
    keys = jax.random.split(jax.random.key(0), RUNS)
    params = jax.vmap(lambda key: start(key, compensation))(keys)
    params = train(params, jnp.asarray(x[:, :1000]), jnp.asarray(y[:, :1000]), keys)
    logits = np.asarray(jax.vmap(forward)(params, x[:, 1000:]))
    scores = [roc_auc_score(label, z) for label, z in zip(y[:, 1000:], logits, strict=True)]
    return np.mean(scores), np.std(scores)


def main() -> None:
    def mean_imputation(training: np.ndarray, table: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(table), np.nanmean(training, axis=0), table)

    def nothing(training: np.ndarray, table: np.ndarray) -> np.ndarray:
        return table

    console = Console()
    result = Table(title=f"AUC on 1,000 unseen rows, {RUNS} tables", title_justify="left")
    result.add_column("gaps are")
    result.add_column("AUC", justify="right")
    result.add_column("spread", justify="right")
    with console.status("training 80 networks"):
        for name, compensation, treat in (
            ("filled with the mean", "none", mean_imputation),
            ("pruned (PROMISSING)", "none", nothing),
            ("pruned, shared compensation (mPROMISSING)", "shared", nothing),
            ("pruned, compensation per feature", "feature", nothing),
        ):
            mean, spread = evaluate(compensation, treat)
            result.add_row(name, f"{mean:.3f}", f"{spread:.3f}")
    console.print(result)


if __name__ == "__main__":
    main()
