"""Export fitted models: `to_onnx`, `to_torch` and `to_keras`.

`to_onnx` makes one graph from raw columns to predictions. `to_torch` and `to_keras` put the trained
weights into the layers of `promissing.torch` or `promissing.keras`, all members of the ensemble
included; the result takes encoded rows and can be fine-tuned. The encoder stays `model.encoder_`.

Not exported: abstention by `min_known`, warnings, and the refusal of infinite values.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["to_keras", "to_onnx", "to_torch"]

OPSET = 18


def to_onnx(
    model: Any, path: str | Path | None = None, *, matrix: bool = False, opset: int = OPSET
) -> Any:
    """Return a fitted model as an ONNX graph, from raw columns to predictions.

    There is one input of shape (n, 1) for each column of the table, with its name (or "x0", "x1",
    ...):

    - numbers and booleans are double, and NaN is missing;
    - dates and durations are int64 nanoseconds, dates since 1970 in UTC, and the smallest int64 is
      missing;
    - text and categories are strings, and the empty string is missing. Categories are spelled as
      in training; numbers as categories are spelled like Python's ``str``, such as "1" and "1.5".
      An unknown category carries no information.

    The outputs are "label" and "probabilities" of a classifier, or "prediction" of a regressor.
    Prediction sets, intervals and abstention are left out.

    Parameters
    ----------
    model : NanMLPClassifier, NanMLPRegressor, NanFusionClassifier or NanFusionRegressor
        The fitted model, or a pipeline of `TableEncoder` or `Pruner` that ends in one.
    path : path, optional
        File to write (.onnx).
    matrix : bool, default=False
        Whether the graph has one input "X" (n, p) of doubles instead, for tables of numbers.
    opset : int, default=18
        The version of the ONNX operators, 18 or later.

    Returns
    -------
    onnx.ModelProto
        The graph. Its metadata entry "promissing" holds columns, categories, classes, prior and
        versions as JSON.

    Examples
    --------
    >>> import numpy as np, onnxruntime
    >>> from promissing import NanMLPClassifier
    >>> from promissing.export import to_onnx
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> X[::4, 1] = np.nan
    >>> model = NanMLPClassifier(n_members=2, max_iter=5, random_state=0).fit(X, X[:, 0] > 0)
    >>> graph = to_onnx(model, matrix=True).SerializeToString()
    >>> session = onnxruntime.InferenceSession(graph)
    >>> label, proba = session.run(None, {"X": X})
    >>> bool(np.abs(proba - model.predict_proba(X)).max() < 1e-5)
    True
    """
    return import_module("promissing.export.onnx").build(model, path, matrix=matrix, opset=opset)


def to_torch(model: Any) -> Any:
    """Return a fitted model as a PyTorch module.

    Parameters
    ----------
    model : NanMLPClassifier, NanMLPRegressor, NanFusionClassifier or NanFusionRegressor
        The fitted model.

    Returns
    -------
    torch.nn.Module
        A module that takes the encoded rows, ``model.encoder_.transform(X)``, as float32, and
        returns probabilities (n, K), or predicted numbers (n,) or (n, k). Its ``members`` are the
        networks of the ensemble, whose outputs are logits or standardised numbers. It is in
        evaluation mode; ``module.train()`` switches on the dropout of training.

    See Also
    --------
    to_keras : The same for Keras.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from promissing import NanMLPClassifier
    >>> from promissing.export import to_torch
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> X[::4, 1] = np.nan
    >>> model = NanMLPClassifier(n_members=2, max_iter=5, random_state=0).fit(X, X[:, 0] > 0)
    >>> module = to_torch(model)
    >>> proba = module(torch.from_numpy(model.encoder_.transform(X))).detach().numpy()
    >>> bool(np.abs(proba - model.predict_proba(X)).max() < 1e-5)
    True
    """
    return import_module("promissing.export.torch").build(model)


def to_keras(model: Any) -> Any:
    """Return a fitted model as a Keras model.

    Parameters
    ----------
    model : NanMLPClassifier, NanMLPRegressor, NanFusionClassifier or NanFusionRegressor
        The fitted model.

    Returns
    -------
    keras.Model
        A functional model that takes the encoded rows, ``model.encoder_.transform(X)``, and
        returns probabilities (n, K), or predicted numbers (n, k). It can be compiled, trained and
        saved like any other; a process that loads the file must import `promissing.keras` first.

    See Also
    --------
    to_torch : The same for PyTorch.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing import NanMLPRegressor
    >>> from promissing.export import to_keras
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = NanMLPRegressor(n_members=1, max_iter=5, random_state=0).fit(X, X[:, 0])
    >>> network = to_keras(model)
    >>> found = np.asarray(network(model.encoder_.transform(X)))[:, 0]
    >>> bool(np.abs(found - model.predict(X)).max() < 1e-5)
    True
    """
    return import_module("promissing.export.keras").build(model)
