"""Forward + backward of the NaN-native layer against the framework's plain one.

    python benchmarks/layers.py            # or: make bench
    python benchmarks/layers.py --quick    # small shapes, few rounds

Every front-end runs in a process of its own. Within it, the plain layer on complete data and ours
on data with 20 % missing take turns, and medians are compared: the machine may be noisy, the ratio
is less so. The loss is the mean square of the output and the gradient is taken with respect to the
weights, as for a first layer. "literal loop" is the layer as one would transcribe it from the
paper: neutralizers by division, one neuron after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SHAPES = [(8192, 512, 512), (4096, 100, 256)]
QUICK = [(512, 64, 64)]
SMALL = (1024, 50, 64)  # for the literal loop, which would take minutes on the others
FRONTENDS = ["jax", "torch", "keras-jax", "keras-torch", "keras-tensorflow"]
COMPENSATIONS = ["none", "shared", "feature"]


def data(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    complete = rng.normal(size=(n, p)).astype(np.float32)
    return complete, np.where(rng.random((n, p)) < 0.2, np.float32(np.nan), complete)


def jax_steps(n: int, p: int, s: int) -> dict[str, Callable[[], Any]]:
    import jax
    import jax.numpy as jnp

    from promissing.jax import apply, init

    complete, gaps = (jnp.asarray(a) for a in data(n, p))

    def step(forward: Callable[..., Any], params: Any, x: Any) -> Callable[[], Any]:
        grad = jax.jit(jax.value_and_grad(lambda params, x: jnp.mean(forward(params, x) ** 2)))
        return lambda: jax.block_until_ready(grad(params, x))

    plain = init(jax.random.key(0), p, s)
    steps = {"plain": step(lambda w, x: x @ w["kernel"] + w["bias"], plain, complete)}
    for name in COMPENSATIONS:
        steps[name] = step(apply, init(jax.random.key(0), p, s, compensation=name), gaps)
    return steps


def torch_steps(n: int, p: int, s: int) -> dict[str, Callable[[], Any]]:
    import torch

    from promissing.torch import NanLinear

    complete, gaps = (torch.tensor(a) for a in data(n, p))

    def step(layer: Any, x: Any) -> Callable[[], Any]:
        def run() -> None:
            layer.zero_grad()
            layer(x).square().mean().backward()

        return run

    steps = {"plain": step(torch.nn.Linear(p, s), complete)}
    for name in COMPENSATIONS:
        steps[name] = step(NanLinear(p, s, compensation=name), gaps)
    if (n, p, s) == SMALL:
        steps["literal loop"] = step(literal_loop(torch.nn.Linear(p, s)), gaps)
    return steps


def literal_loop(linear: Any) -> Any:
    import torch

    class Loop(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = linear

        def forward(self, x: Any) -> Any:
            weight, bias = linear.weight + 1e-7, linear.bias
            missing, neurons = torch.isnan(x), []
            for w, b in zip(weight, bias, strict=True):
                neutralizer = -b / (x.shape[1] * w)
                neurons.append(torch.where(missing, neutralizer, x) @ w + b)
            return torch.stack(neurons, dim=1)

    return Loop()


def keras_steps(n: int, p: int, s: int) -> dict[str, Callable[[], Any]]:
    import keras
    from keras import ops

    from promissing.keras import NanDense

    complete, gaps = (ops.convert_to_tensor(a) for a in data(n, p))
    layers = {"plain": keras.layers.Dense(s)}
    layers |= {name: NanDense(s, compensation=name) for name in COMPENSATIONS}
    inputs = {name: complete if name == "plain" else gaps for name in layers}
    for layer in layers.values():
        layer.build((n, p))
    return {name: keras_step(layer, inputs[name]) for name, layer in layers.items()}


def keras_step(layer: Any, x: Any) -> Callable[[], Any]:
    import keras
    from keras import ops

    if keras.backend.backend() == "jax":
        import jax

        def loss(values: Any, x: Any) -> Any:
            return ops.mean(ops.square(layer.stateless_call(values, [], x)[0]))

        grad = jax.jit(jax.value_and_grad(loss))
        values = [v.value for v in layer.trainable_variables]
        return lambda: jax.block_until_ready(grad(values, x))
    if keras.backend.backend() == "torch":

        def run() -> None:
            layer.zero_grad()
            ops.mean(ops.square(layer(x))).backward()

        return run
    import tensorflow as tf

    @tf.function
    def graph(x: Any) -> Any:
        with tf.GradientTape() as tape:
            value = ops.mean(ops.square(layer(x)))
        return tape.gradient(value, [v.value for v in layer.trainable_variables])

    return lambda: [g.numpy() for g in graph(x)]


def measure(frontend: str, shapes: list[tuple[int, int, int]], rounds: int) -> list[dict[str, Any]]:
    make = {"jax": jax_steps, "torch": torch_steps}.get(frontend, keras_steps)
    rows = []
    for shape in shapes:
        steps = make(*shape)
        times: dict[str, list[float]] = {name: [] for name in steps}
        for turn in range(rounds + 3):
            for name, step in steps.items():
                start = time.perf_counter()
                step()
                if turn >= 3:  # The first turns compile and warm the allocator.
                    times[name].append(time.perf_counter() - start)
        median = {name: statistics.median(values) for name, values in times.items()}
        rows.append({"frontend": frontend, "shape": shape, "seconds": median})
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Forward + backward, times the framework's plain layer")
    columns = [*COMPENSATIONS, "literal loop"]
    for column in ("front-end", "batch x features x units", "plain, ms", *columns):
        table.add_column(column, justify="left" if column == "front-end" else "right")
    for row in rows:
        plain = row["seconds"]["plain"]
        ratios = [row["seconds"].get(name) for name in columns]
        table.add_row(
            row["frontend"],
            " x ".join(map(str, row["shape"])),
            f"{plain * 1e3:.2f}",
            *("" if value is None else f"{value / plain:.2f}" for value in ratios),
        )
    Console(width=100).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small shapes, few rounds")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--only", choices=FRONTENDS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    shapes, rounds = (QUICK, 5) if args.quick else (SHAPES, args.rounds)
    if args.only:
        small = [SMALL] if args.only == "torch" else []
        print(json.dumps(measure(args.only, shapes + small, rounds)))
        return
    rows = []
    for frontend in FRONTENDS:
        env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        if frontend.startswith("keras-"):
            env["KERAS_BACKEND"] = frontend.removeprefix("keras-")
        command = [sys.executable, *sys.argv, "--only", frontend]
        out = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
        rows += json.loads(out.stdout.splitlines()[-1])
    show(rows)


if __name__ == "__main__":
    main()
