"""Models as files: one safetensors file with JSON inside, never pickle.

The arrays of the file are those of the model; its metadata hold one JSON text with the class, the
parameters, and what encoder and targets have learnt. Reading it can only build one of the classes
named here, so a file can be wrong but cannot do anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from sklearn.base import is_classifier

import promissing
from promissing._parameters import check_parameters
from promissing._targets import Classes, Numbers
from promissing.tables import TableEncoder

__all__ = ["FORMAT", "load", "save"]

FORMAT = 2  # Raised when a file could no longer be read by older versions.
_KEY = "promissing"
_HOME = {
    "NanFusionClassifier": "promissing.fusion",
    "NanFusionRegressor": "promissing.fusion",
    "NanMLPClassifier": "promissing.mlp",
    "NanMLPRegressor": "promissing.mlp",
}


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model to `path`, whole or not at all."""
    if not hasattr(model, "params_"):
        raise ValueError(
            f"This {type(model).__name__} is not fitted yet: there is nothing to save."
        )
    if type(model).__name__ not in _HOME:
        raise ValueError(
            f"A {type(model).__name__} cannot be saved, since only promissing's own classes can be "
            f"read again: {', '.join(_HOME)}. Pickle it, or save a model of its base class."
        )
    meta, arrays = model.encoder_.get_state()
    tensors = {f"encoder.{name}": value for name, value in arrays.items()}
    tensors |= {f"params.{name}": value for name, value in model.params_.items()}
    tensors["prior"] = model.prior_
    if model.prior_offset_ is not None:
        tensors["prior_offset"] = model.prior_offset_
    target = model._target
    if isinstance(target, Classes):
        labels = target.labels
        if target.class_weights is not None:
            tensors["target.class_weights"] = target.class_weights
        told = {
            "kind": "classes",
            "multilabel": target.multilabel,
            "dtype": "object" if labels.dtype == object else labels.dtype.str,
            "labels": [_to_json(label, "y") for label in labels.tolist()],
        }
    else:
        told = {"kind": "numbers", "flat": target.flat}
        tensors |= {"target.mean": target.mean, "target.scale": target.scale}
    document = {
        "format": FORMAT,
        "version": promissing.__version__,
        "class": type(model).__name__,
        "network": asdict(model._network),
        "params": {k: _to_json(v, k) for k, v in model._storable_params().items()},
        "encoder": meta,
        "target": told,
        "facts": {name: getattr(model, name) for name in model._facts},
        "prior_weight": float(model._prior_weight),
        "missing_values": [str(value) for value in model.missing_values_],
    }
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no directory {path.parent} to save {path.name} in.")
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    os.close(handle)
    try:
        contiguous = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
        save_file(contiguous, draft, {_KEY: json.dumps(document)})
        os.chmod(draft, 0o666 & ~_umask())
        os.replace(draft, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(draft)


def load(path: str | Path) -> Any:
    """Read a model that `save` wrote, whatever its class. Nothing in the file is executed.

    Examples
    --------
    >>> import numpy as np, promissing, tempfile, pathlib
    >>> X, y = np.array([[0.0], [1.0], [np.nan], [1.0]] * 5), [0, 1, 0, 1] * 5
    >>> model = promissing.NanMLPClassifier(max_iter=5, random_state=0).fit(X, y)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> model.save(path)
    >>> promissing.load(path)
    NanMLPClassifier(max_iter=5, random_state=0)
    """
    if Path(path).is_dir():
        raise ValueError(f"{path} is a directory, not a model file.")
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(_KEY)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, OSError) as error:
        raise ValueError(
            f"{path} is not a model file, or is damaged: not readable as safetensors ({error})."
        ) from None
    if text is None:
        raise ValueError(f"{path} is a safetensors file, but not one that promissing wrote.")
    try:
        document = json.loads(text)
        number, name = document["format"], document["class"]
        if type(number) is not int or number < 1 or not isinstance(name, str):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(f"{path} is damaged: its description cannot be read.") from None
    if number > FORMAT:
        raise ValueError(
            f"{path} was written by promissing {document.get('version')} in format {number}, and "
            f"this is promissing {promissing.__version__}, which reads up to {FORMAT}. Upgrade."
        )
    if name not in _HOME:
        raise ValueError(f"{path} holds an unknown kind of model: {name!r}.")
    try:
        return _rebuild(document, tensors)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: its parts do not fit together ({error}).") from None


def _rebuild(document: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Any:
    cls = getattr(import_module(_HOME[document["class"]]), document["class"])
    model = cls(**{k: _from_json(v) for k, v in document["params"].items()})

    def part(prefix: str) -> dict[str, np.ndarray]:
        return {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}

    model.encoder_ = TableEncoder.from_state(document["encoder"], part("encoder."))
    model.n_features_in_ = model.encoder_.n_features_in_
    if hasattr(model.encoder_, "feature_names_in_"):
        model.feature_names_in_ = model.encoder_.feature_names_in_
    check_parameters(model)
    told, arrays = document["target"], part("target.")
    if told["kind"] != ("classes" if is_classifier(model) else "numbers"):
        raise ValueError(f"a {told['kind']!r} target")
    if told["kind"] == "classes":
        labels = np.array(told["labels"], dtype=np.dtype(told["dtype"]))
        if len(labels) < 2 or (labels[:-1] >= labels[1:]).any():
            raise ValueError("the classes are not in order")
        weights = arrays.get("class_weights")
        model._target = model._classes_type(labels, bool(told["multilabel"]), weights)
        model.classes_ = labels
    else:
        model._target = Numbers(arrays["mean"], arrays["scale"], bool(told["flat"]))
    network = {k: tuple(v) if isinstance(v, list) else v for k, v in document["network"].items()}
    model._network = model._network_type(**network)
    model.params_ = part("params.")
    wanted = model._network.shapes()
    members = {len(value) for value in model.params_.values()}
    if set(wanted) != set(model.params_) or len(members) != 1:
        raise ValueError("the weights are not those of the network")
    for name, value in model.params_.items():
        if value.shape[1:] != wanted[name] or value.dtype != np.float32:
            raise ValueError(f"the weights {name!r} have the shape {value.shape}")
        if not np.isfinite(value).all():
            raise ValueError(f"the weights {name!r} are not finite")
    columns, outputs = model.encoder_.n_columns_out_, model._target.n_outputs
    if (model._network.n_columns, model._network.n_outputs) != (columns, outputs):
        raise ValueError("network, encoder and target differ in size")
    model.prior_ = tensors["prior"]
    if model.prior_.shape != (len(labels) if is_classifier(model) else outputs,):
        raise ValueError(f"the prior has the shape {model.prior_.shape}")
    offset = tensors.get("prior_offset", np.zeros((model.n_members_, outputs)))
    if offset.shape != (model.n_members_, outputs) or not np.isfinite(offset).all():
        raise ValueError(f"the prior offset has the shape {offset.shape} or is not finite")
    model.prior_offset_ = tensors.get("prior_offset")
    for name in model._facts:
        setattr(model, name, document["facts"][name])
    model.missing_values_ = tuple(str(value) for value in document["missing_values"])
    model._restored()
    model._begin_anew(model.n_members_)
    model._prior_weight = weight = float(document["prior_weight"])
    if not 0 <= weight < np.inf:
        raise ValueError(f"the prior has the weight {weight}")
    return model


def _to_json(value: Any, name: str) -> Any:
    """Parameters as JSON that keeps tuples, and mappings with keys other than text."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return {type(value).__name__: [_to_json(item, name) for item in value]}
    if isinstance(value, Mapping):
        return {"dict": [[_to_json(k, name), _to_json(v, name)] for k, v in value.items()]}
    if name == "random_state":  # A generator's position is of no use to a fitted model.
        return None
    raise ValueError(f"`{name}` cannot be saved: {value!r}. Use numbers, text, lists and dicts.")


def _from_json(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, items),) = value.items()
    if kind == "dict":
        return {_from_json(k): _from_json(v) for k, v in items}
    return {"tuple": tuple, "list": list}[kind](map(_from_json, items))


def _umask() -> int:
    """The umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
