"""Random layers for the property tests, and the formula in plain loops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray


class Case(NamedTuple):
    x: NDArray[np.float64]
    kernel: NDArray[np.float64]
    bias: NDArray[np.float64]
    compensation_weight: NDArray[np.float64] | None
    groups: list[int] | None
    shares: list[float] | None
    compensation: str

    @property
    def weights(self):
        return self.kernel, self.bias, self.compensation_weight

    @property
    def magnitude(self) -> float:
        """The size of the summed terms, to which tolerances are relative."""
        parts = [np.abs(np.nan_to_num(self.x)) @ np.abs(self.kernel), np.abs(self.bias)[None]]
        if self.compensation_weight is not None:
            parts.append(np.abs(np.atleast_2d(self.compensation_weight)).sum(0)[None])
        return 1.0 + sum(float(part.max(initial=0.0)) for part in parts)


FEW = [(1, 1, 1), (5, 7, 3), (4, 9, 2), (6, 4, 4)]


@st.composite
def cases(draw, few_shapes=False):
    """Draw a case, with few shapes for frameworks that compile every new one."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = st.tuples(st.integers(1, 6), st.integers(1, 9), st.integers(1, 4))
    n, p, s = draw(st.sampled_from(FEW) if few_shapes else sizes)
    rank = draw(st.sampled_from([2, 2, 3]))
    shape = (n, p) if rank == 2 else (2, n, p)
    scale = draw(st.sampled_from([1e-3, 1.0, 1e3]))
    gaps = draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    x = np.where(rng.random(shape) < gaps, np.nan, rng.normal(size=shape) * scale)
    groups = None
    if draw(st.booleans()):
        n_features = draw(st.integers(1, p))
        extra = rng.integers(0, n_features, p - n_features).tolist()
        groups = rng.permutation([*range(n_features), *extra]).tolist()
    n_features = p if groups is None else max(groups) + 1
    shares = None
    if draw(st.booleans()):
        raw = rng.random(n_features) + 1e-3
        shares = (raw / raw.sum()).tolist()
    compensation = draw(st.sampled_from(["none", "shared", "feature"]))
    size = {"none": None, "shared": (s,), "feature": (n_features, s)}[compensation]
    weight = None if size is None else rng.normal(size=size)
    # float32 values, so that every front-end starts from the same numbers.
    x, kernel, bias = (
        a.astype(np.float32).astype(float) for a in (x, rng.normal(size=(p, s)), rng.normal(size=s))
    )
    weight = None if weight is None else weight.astype(np.float32).astype(float)
    return Case(x, kernel, bias, weight, groups, shares, compensation)


def spelled_out(case: Case) -> NDArray[np.float64]:
    """Compute the definition, row by row and neuron by neuron."""
    p, s = case.kernel.shape
    groups = case.groups or list(range(p))
    n_features = max(groups) + 1
    shares = case.shares or [1 / n_features] * n_features
    rows = case.x.reshape(-1, p)
    out = np.zeros((len(rows), s))
    for i, row in enumerate(rows):
        for k in range(s):
            rho = 0.0
            for j, g in enumerate(groups):
                size = groups.count(g)
                if not np.isnan(row[j]):
                    out[i, k] += row[j] * case.kernel[j, k]
                    continue
                rho += shares[g] / size
                if case.compensation == "feature":
                    out[i, k] += case.compensation_weight[g, k] / size
            out[i, k] += (1 - rho) * case.bias[k]
            if case.compensation == "shared":
                out[i, k] += rho * case.compensation_weight[k]
    return out.reshape(*case.x.shape[:-1], s)
