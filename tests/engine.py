"""The engine of training with its options as keywords, for tests."""

import numpy as np

from promissing.networks.base import stack
from promissing.networks.losses import CrossEntropy, LogLoss, SquaredError
from promissing.training import train as engine
from promissing.training.options import Augmentation, Options

LOSSES = {"log": LogLoss(), "softmax": CrossEntropy(), "squared": SquaredError()}
AUGMENTATION = {
    "augment": "share",
    "augment_by": "law",
    "augment_empty": "allow_empty",
    "augment_others": "others",
    "units": "units",
}


def row_loss(name, outputs, y, *, xp):
    return LOSSES[name].row_loss(outputs, y, xp=xp)


def train(network, params, data, *, rngs, **settings):
    """Call the engine with the fields of `Options` and `Augmentation` as keywords."""
    other = {k: settings.pop(k) for k in ("fixed", "opt_state", "on_epoch") if k in settings}
    lost = {new: settings.pop(old) for old, new in AUGMENTATION.items() if old in settings}
    options = Options(**settings, augmentation=Augmentation(**lost))
    return engine.train(network, params, data, options, rngs=rngs, **other)


def table(n=60, p=4, *, gaps=0.3, seed=0):
    """Rows, some of them with missing values, and a label that depends on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(np.float32)
    y = (X.sum(axis=1) + rng.normal(size=n) > 0.3).astype(np.float32)[:, None]
    return np.where(rng.random((n, p)) < gaps, np.float32(np.nan), X), y


def generators(n, seed=0):
    return [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(n)]


def run(network, X, y, *, replicas=1, rows=None, pick=slice(None), start=None, **settings):
    """Train `replicas` networks, or those in `pick`, each with its own generator."""
    rngs = generators(replicas)[pick]
    params = stack([network.init(rng) for rng in rngs]) if start is None else start
    rows = [np.arange(len(y))] * replicas if rows is None else rows
    weights, val_rows = settings.pop("weights", None), settings.pop("val_rows", None)
    data = engine.Data(X, y, rows[pick], val_rows and val_rows[pick], weights)
    return train(network, params, data, rngs=rngs, **settings)
