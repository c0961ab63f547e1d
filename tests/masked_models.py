"""Small models that predict from missing values, for the tests of explanations."""

import numpy as np

NAN = np.nan
GROUPS = {"blood": [0, 1], "scan": [2], "gene": [3]}


def numbers(n=6, p=4, seed=0, gaps=0.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    x[rng.random(x.shape) < gaps] = NAN
    return x


class Network:
    """A small network with random weights that predicts from missing values.

    With one output it is a regressor, else a classifier. `asked` holds the tables it predicted.
    """

    def __init__(self, p=4, n_outputs=2, seed=0, scale=2.0):
        rng = np.random.default_rng(seed)
        self.first = rng.normal(size=(2 * p, 6)) * scale / np.sqrt(p)
        self.second = rng.normal(size=(6, n_outputs))
        self.asked = []
        if n_outputs == 1:
            self.predict = self.outputs
        else:
            self.classes_ = np.array(["a", "b", "c", "d"][:n_outputs])
            self.predict_proba = self.probabilities

    def outputs(self, X):
        self.asked.append(X)
        x = np.asarray(X, dtype=float)
        seen = np.hstack([np.nan_to_num(x), np.isnan(x)])
        return np.tanh(seen @ self.first) @ self.second

    def probabilities(self, X):
        e = np.exp(self.outputs(X))
        return e / e.sum(axis=1, keepdims=True)


def without(x, columns):
    x = np.array(x, dtype=float)
    x[..., list(columns)] = NAN
    return x


def columns_of(groups, names):
    return [j for name in names for j in groups[name]]


class Sums:
    """The sum of all features and twice the product of the first two, with known Shapley values."""

    def predict(self, X):
        x = np.nan_to_num(np.asarray(X, dtype=float))
        return x.sum(axis=1) + 2 * x[:, 0] * x[:, 1]

    @staticmethod
    def shapley(x):
        x = np.nan_to_num(x)
        shared = x[:, 0] * x[:, 1]
        return x + np.column_stack([shared, shared, *[np.zeros(len(x))] * (x.shape[1] - 2)])
