"""Models as files: one safetensors file with JSON inside, never pickle.

The tensors of the file are the arrays of the model. Its metadata hold one JSON text with the class,
the parameters and the state of encoder and target, and a SHA-256 digest of everything else in the
file. Reading can only build one of the classes named here, and nothing in a file is executed.

======  ==========================================================================================
format  contents
======  ==========================================================================================
4       The present names of parameters, and any loss.
3       A digest of all tensors and metadata. A file without it, or with a wrong one, is refused.
1, 2    No digest. Such a file still loads, with a warning that its integrity cannot be checked.
======  ==========================================================================================

The digest detects damage. It is no signature: a file that is changed on purpose can have a new
digest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from sklearn.base import is_classifier

import promissing
from promissing._validation import warn
from promissing.encoding.table_encoder import KINDS, TableEncoder
from promissing.estimators.fusion import NanFusionClassifier, NanFusionRegressor
from promissing.estimators.missing_record import MissingRecord
from promissing.estimators.mlp import NanMLPClassifier, NanMLPRegressor
from promissing.estimators.modalities import is_position
from promissing.estimators.parameters import RENAMED, check_parameters
from promissing.estimators.recipe import Recipe
from promissing.io.files import atomic_write, check_target, short
from promissing.networks.base import describe
from promissing.networks.fusion import Fusion
from promissing.networks.losses import CLASS_LOSSES, REGRESSION_LOSSES, ClassLoss, NumberLoss
from promissing.networks.mlp import MLP

__all__ = ["FORMAT", "load", "save"]

Array = NDArray[Any]

FORMAT = 4  # Raised when a file could no longer be read by older versions.
_KEY, _DIGEST = "promissing", "sha256"  # Of the metadata.
_CLASSES = {
    cls.__name__: (cls, network)
    for cls, network in (
        (NanFusionClassifier, Fusion),
        (NanFusionRegressor, Fusion),
        (NanMLPClassifier, MLP),
        (NanMLPRegressor, MLP),
    )
}
# The types of everything in the JSON text; see `_is`.
_Scalar = bool | int | float | str
_DOCUMENT = {
    "format": int,
    "version": str,
    "class": str,
    "network": dict[str, Any],
    "params": dict[str, Any],
    "encoder": dict[str, Any],
    "target": dict[str, Any],
    "facts": dict[str, Any],
    "prior_weight": float,
    "missing_values": list[str],
    "calibration": dict[str, dict[str, Any]],
}
_ENCODER = {
    "params": dict[str, Any],
    "names": list[str] | None,
    "kinds": list[str],
    "categories": list[list[_Scalar] | None],
    "other": list[bool],
}
_ENCODER_PARAMS = {
    "kinds": list[list[str | int]] | None,
    "n_bins": int,
    "fine_bins": int | str,
    "max_categories": int,
    "unseen": str,
    "scale": bool,
}
_LABELS = {"loss": str, "dtype": str, "labels": list[_Scalar]}
_NUMBERS = {"loss": str, "flat": bool, "settings": dict[str, Any]}
_FACTS = {
    "loss_curve_": list[float],
    "validation_loss_curve_": list[float],
    "loss_": float,
    "best_loss_": float,
    "n_iter_": int,
    "n_outputs_": int,
    "modalities_": dict[str, list[int]],
    "target_name_": str | None,
    "reading_": dict[str, Any] | None,
    "recipe_": dict[str, Any],
    "record_": list[int],  # Rows and patterns of the missing record.
}
# The arrays of the record of missing values, and the prefixes of all other tensors.
_RECORD = {
    **{"missing": np.int64, "sample": np.bool_, "hashes": np.int64},
    **{"loss": np.float64, "accuracy": np.float64},
}
_PARTS = ("encoder", "params", "target", "record", "calibration")
# Names of earlier formats, and the present ones.
_LOSSES = {"log": "log", "softmax": "softmax", "squared": "squared_error"}
_TENSORS = {
    "params.straight_kernel": "params.skip_kernel",
    "params.straight_compensation_weight": "params.skip_compensation_weight",
}
# The dtypes of tensors in the header of a file.
_DTYPES = ("BOOL", "U8", "I32", "I64", "F32", "F64")
_LABEL_DTYPE = re.compile(r"object|[<>|=]?(b1|[iu][1248]|f[248]|U[0-9]+|[mM]8\[ns\])")
_LABEL_TYPES = {"b": bool, "f": float, "U": str, "O": _Scalar}  # The others are int.
# Parameters that were added since format 1, and the values that do without them.
_WITHOUT = {
    "average": False,
    "below_min_known": "raise",
    "compensation_rate": 0.0,
    "gate_rate": 0.0,
    "linear_skip": False,
    "n_fine_bins": 0,
    "prior_correction": False,
}
# Errors that parts cause which do not fit together.
_DAMAGE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)
_DEEPEST = 16  # Levels of lists and mappings in a parameter.
_LONGEST = 10_000  # Characters of a column name, where no digest vouches for it.


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model to a file, whole or not at all.

    A symbolic link is followed: the file it points to is replaced, and the link stays.

    Parameters
    ----------
    model : NanMLPClassifier, NanMLPRegressor, NanFusionClassifier or NanFusionRegressor
        A fitted model.
    path : str or Path
        The file to write, by convention with the suffix ".safetensors". An existing file is
        replaced. Directories, devices and pipes are refused.

    Examples
    --------
    >>> import numpy as np, promissing, tempfile, pathlib
    >>> from promissing.estimators import save
    >>> X, y = np.array([[0.0], [1.0], [np.nan], [1.0]] * 5), [0, 1, 0, 1] * 5
    >>> model = promissing.NanMLPClassifier(n_members=1, random_state=0).fit(X, y)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> save(model, path)
    >>> path.exists()
    True
    """
    if not hasattr(model, "params_"):
        raise ValueError(
            f"This {type(model).__name__} is not fitted yet: there is nothing to save."
        )
    if type(model).__name__ not in _CLASSES:
        raise ValueError(
            f"A {type(model).__name__} cannot be saved, since only promissing's own classes can be "
            f"read again: {', '.join(_CLASSES)}. Pickle it, or save a model of its base class."
        )
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no directory {path.parent} to save {path.name} in.")
    check_target(path, (path.suffix.lower(),), special=False)
    meta, arrays = model.encoder_.get_state()
    tensors = {f"encoder.{name}": value for name, value in arrays.items()}
    tensors |= {f"params.{name}": value for name, value in model.params_.items()}
    tensors["prior"] = model._prior
    if model.prior_offset_ is not None:
        tensors["prior_offset"] = model.prior_offset_
    tensors |= _record_arrays(model.missing_record_)
    for section, (_, arrays) in model.calibration_.items():
        tensors |= {f"calibration.{section}.{name}": value for name, value in arrays.items()}
    loss, (target, arrays) = model._loss, model._loss.state()
    if type(loss) is not (CLASS_LOSSES | REGRESSION_LOSSES).get(loss.name):  # type: ignore[operator]
        raise ValueError(
            f"A model with the loss {type(loss).__name__} cannot be saved, because only the losses "
            "of promissing.networks.losses can be read again. Pickle the model."
        )
    tensors |= {f"target.{name}": value for name, value in arrays.items()}
    if isinstance(loss, ClassLoss):
        target["labels"] = [_to_json(label, "y") for label in target["labels"]]
    else:
        target["settings"] = loss.settings()
    facts = {name: getattr(model, name) for name in _FACTS if hasattr(model, name)}
    if "recipe_" in facts:
        facts["recipe_"] = asdict(model.recipe_)
    if model.missing_record_ is not None:
        facts["record_"] = [model.missing_record_.n_rows, model.missing_record_.n_patterns]
    document = {
        "format": FORMAT,
        "version": promissing.__version__,
        "class": type(model).__name__,
        "network": describe(model._network),
        "params": {k: _to_json(v, k) for k, v in _storable_params(model).items()},
        "encoder": meta,
        "target": {"loss": loss.name, **target},
        "facts": facts,
        "prior_weight": float(model._prior_weight),
        "missing_values": [str(value) for value in model.missing_values_],
        # Formats 1 and 2 have no such entry: format 3 cannot pass for them without its digest.
        "digest": _DIGEST,
    }
    if model.calibration_:
        document["calibration"] = {name: meta for name, (meta, _) in model.calibration_.items()}
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            "The model cannot be saved: a column name, category, class or parameter holds "
            f"{error.object[error.start : error.end][:8]!a}, which is not valid Unicode. Correct "
            "the text and fit again."
        ) from None
    tensors = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
    metadata = {_KEY: json.dumps(document)}
    metadata[_DIGEST] = _digest(metadata, tensors)
    with atomic_write(path) as draft:
        save_file(tensors, draft, metadata)


def load(path: str | Path) -> Any:
    """Read a model that `save` wrote, whatever its class. Nothing in the file is executed.

    A damaged file is refused. Files of formats 1 and 2, of earlier versions, have no digest: they
    are read with a warning that their integrity cannot be checked.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    NanMLPClassifier, NanMLPRegressor, NanFusionClassifier or NanFusionRegressor
        The fitted model.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a model file, is damaged, or is of a newer format.

    Examples
    --------
    >>> import numpy as np, promissing, tempfile, pathlib
    >>> X, y = np.array([[0.0], [1.0], [np.nan], [1.0]] * 5), [0, 1, 0, 1] * 5
    >>> model = promissing.NanMLPClassifier(n_members=1, random_state=0).fit(X, y)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> model.save(path)
    >>> promissing.load(path)
    NanMLPClassifier(n_members=1, random_state=0)
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if not Path(path).is_file():
        what = "a directory" if Path(path).is_dir() else "a device or a pipe"
        raise ValueError(f"{path} is {what}, not a model file.")
    try:
        metadata, tensors = _read(path)
    except (SafetensorError, ValueError, OSError) as error:
        raise ValueError(
            f"{path} is not a model file, or is damaged: not readable as safetensors "
            f"({_reason(error)})."
        ) from None
    if _KEY not in metadata:
        raise ValueError(f"{path} is a safetensors file, but not one that promissing wrote.")
    try:
        document = json.loads(metadata[_KEY], object_pairs_hook=_without_doubles)
        number, name = document["format"], document["class"]
        if type(number) is not int or number < 1 or not isinstance(name, str):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(f"{path} is damaged: its description cannot be read.") from None
    if number > FORMAT:
        raise ValueError(
            f"{path} was written by promissing {document.get('version')!s:.20} in format "
            f"{number!s:.20}, and this is promissing {promissing.__version__}, which reads up to "
            f"{FORMAT}. Upgrade."
        )
    checked = number > 2 or _DIGEST in metadata
    if checked and metadata.pop(_DIGEST, "") != _digest(metadata, tensors):
        raise ValueError(
            f"{path} is damaged: its contents do not match its SHA-256 digest, or it has none. Use "
            "an undamaged copy, or save the model again."
        )
    if name not in _CLASSES:
        raise ValueError(f"{path} holds an unknown kind of model: {name!r:.60}.")
    try:
        _expect(metadata, {_KEY: str}, "the metadata")
        document.setdefault("calibration", {})
        if number > 2:
            _expect(document, {**_DOCUMENT, "digest": str}, "the description")
        else:
            _complete(document, tensors)
        if number < FORMAT:
            tensors = _modernise(document, tensors)
        model = _rebuild(document, tensors)
    except _DAMAGE as error:
        raise ValueError(
            f"{path} is damaged: its parts do not fit together ({_reason(error)})."
        ) from None
    if number <= 2:
        warn(
            f"{path} was saved in format {number}, which has no digest: its integrity cannot be "
            "checked. Saving the model again adds one."
        )
    return model


def _read(path: str | Path) -> tuple[dict[str, str], dict[str, Array]]:
    """The metadata and tensors of a safetensors file; types that no model has are refused."""
    tensors = {}
    with safe_open(path, framework="numpy") as file:
        for name in file.keys():  # noqa: SIM118
            dtype = file.get_slice(name).get_dtype()
            if dtype not in _DTYPES:
                raise ValueError(f"the tensor {name!r:.60} has the type {dtype!s:.20}")
            tensors[name] = file.get_tensor(name)
        return dict(file.metadata() or {}), tensors


def _digest(metadata: Mapping[str, str], tensors: Mapping[str, Array]) -> str:
    """The SHA-256 digest of all metadata, and of the names, types, shapes and bytes of all tensors.

    Each part is preceded by its length, and parts are in the order of their names.
    """
    made = hashlib.sha256()
    for name, text in sorted(metadata.items()):
        head = json.dumps([name, len(text.encode())]).encode()
        made.update(b"%d:%b%b" % (len(head), head, text.encode()))
    for name, value in sorted(tensors.items()):
        value = value.astype(value.dtype.newbyteorder("<"), copy=False)
        head = json.dumps([name, value.dtype.str, value.shape]).encode()
        made.update(b"%d:%b" % (len(head), head))
        made.update(value.tobytes())
    return made.hexdigest()


def _complete(document: dict[str, Any], tensors: dict[str, Array]) -> None:
    """Check a file of format 1 or 2, and complete it with what was added since it was written."""
    document.setdefault("prior_weight", 0.0)
    document.setdefault("missing_values", [])
    _expect(document, _DOCUMENT, "the description")
    encoder = document["encoder"]
    encoder["params"] = {"scale": True, "fine_bins": 0, **encoder["params"]}
    if any(len(name) > _LONGEST for name in encoder["names"] or ()):
        raise ValueError(f"a column name of more than {_LONGEST} characters")
    present, old = document["params"], {new: old for old, new in RENAMED.items()}
    for name in _CLASSES[document["class"]][0]._get_param_names():
        if name in _WITHOUT and old.get(name) not in present:
            present.setdefault(name, _WITHOUT[name])
    groups, maps = tensors["encoder.groups"], tensors["encoder.maps"]
    tensors.setdefault("encoder.fine", np.zeros(groups.shape, bool))
    if maps.ndim == 2 and len(maps) == 4:  # Nothing was subtracted from the bins.
        tensors["encoder.maps"] = np.vstack([maps, np.zeros_like(maps[:1])])


def _modernise(document: dict[str, Any], tensors: dict[str, Array]) -> dict[str, Array]:
    """Give a file of format 1, 2 or 3 the names of the present format."""
    params, network, target = document["params"], document["network"], document["target"]
    for old, new in RENAMED.items():
        if old in params:
            params[new] = params.pop(old)
    for old, new in (("straight", "linear_skip"), ("loss_name", "loss")):
        if old in network:
            network[new] = network.pop(old)
    network["loss"] = _LOSSES[network["loss"]]
    if target.pop("kind") == "numbers":
        _expect(target, {"flat": bool}, "the target")
        target |= {"loss": network["loss"], "settings": {}}
    else:
        multilabel = target.pop("multilabel")
        if type(multilabel) is not bool:
            raise ValueError(f"the target has multilabel={multilabel!r:.60}")
        if multilabel:
            network["loss"] = "multilabel"
        target["loss"] = network["loss"]
    return {_TENSORS.get(name, name): value for name, value in tensors.items()}


def _rebuild(document: Mapping[str, Any], tensors: Mapping[str, Array]) -> Any:
    """Build the model; refuse parts that do not fit."""
    cls, network_type = _CLASSES[document["class"]]
    model = cls(**{k: _from_json(v) for k, v in document["params"].items()})
    check_parameters(model)

    def part(prefix: str) -> dict[str, Array]:
        return {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}

    _check_encoder(document["encoder"], arrays := part("encoder."))
    model.encoder_ = TableEncoder.from_state(document["encoder"], arrays)
    model.n_features_in_ = model.encoder_.n_features_in_
    if hasattr(model.encoder_, "feature_names_in_"):
        model.feature_names_in_ = model.encoder_.feature_names_in_
    read = _read_classes if is_classifier(model) else _read_numbers
    model._loss = read(document["target"], part("target."), tensors["prior"])
    model._prior = tensors["prior"]
    if is_classifier(model):
        model.classes_ = model._loss.labels
    model._network = _read_network(model, network_type, document["network"])
    model.params_ = part("params.")
    wanted = model._network.shapes()
    members = {len(value) for value in model.params_.values()}
    if set(wanted) != set(model.params_) or len(members) != 1 or members == {0}:
        raise ValueError("the weights are not those of the network")
    for name, value in model.params_.items():
        _check_array(value, f"the weights {name!r}", (*value.shape[:1], *wanted[name]), np.float32)
    unknown = [k for k in tensors if k.partition(".")[0] not in _PARTS]
    if not {"prior"} <= set(unknown) <= {"prior", "prior_offset"}:
        raise ValueError(f"the tensors {unknown!r:.60}")
    model.prior_offset_ = tensors.get("prior_offset")  # Absent in files of earlier formats.
    if model.prior_offset_ is not None:
        size = (*members, model._loss.n_outputs)
        _check_array(model.prior_offset_, "the prior offset", size, np.float64)
    _read_facts(model, document["facts"])
    _read_record(model, document["facts"].get("record_"), part("record."))
    model.calibration_ = {
        section: (meta, part(f"calibration.{section}."))
        for section, meta in document["calibration"].items()
    }
    model.missing_values_ = tuple(document["missing_values"])
    model._check_restored()
    model._set_generators(model.n_members_)
    model._prior_weight = weight = float(document["prior_weight"])
    if not 0 <= weight < np.inf:
        raise ValueError(f"the prior has the weight {weight}")
    return model


def _read_facts(model: Any, facts: Mapping[str, Any]) -> None:
    """Set the other fitted attributes."""
    for name, fact in facts.items():
        if not _is(fact, _FACTS[name]):
            raise ValueError(f"{name} is {fact!r:.60}")
        if name != "record_":
            setattr(model, name, fact)
    needed = {"loss_curve_", "validation_loss_curve_", "loss_", "best_loss_", "n_iter_"}
    needed |= {"n_outputs_"} | ({"modalities_"} if hasattr(model, "modalities") else set())
    if not needed <= set(facts):
        raise ValueError(f"{sorted(needed - set(facts))[0]} is absent")
    if model.n_outputs_ != model._loss.n_outputs:
        raise ValueError(f"n_outputs_ is {model.n_outputs_}")
    if "recipe_" in facts:
        told, hints = facts["recipe_"], get_type_hints(Recipe)
        _expect(told, hints, "the recipe")
        others = told["augment_others"]
        model.recipe_ = Recipe(**told | {"augment_others": others and tuple(others)})


def _record_arrays(record: MissingRecord | None) -> dict[str, Array]:
    """Return the tensors of the record of missing values."""
    if record is None:
        return {}
    found = {f"record.{name}": getattr(record, name) for name in _RECORD}
    return {name: value for name, value in found.items() if value is not None}


def _read_record(model: Any, sizes: list[int] | None, arrays: dict[str, Array]) -> None:
    """Set the record of missing values; files of earlier formats have none."""
    if sizes is None and not arrays:
        return
    n_features = model.n_features_in_
    for name, value in arrays.items():
        shapes = {"sample": (*value.shape[:1], n_features), "hashes": (value.size,)}
        wanted = shapes.get(name, (n_features,))
        _check_array(value, f"the record's {name}", wanted, _RECORD[name])
    if sizes is None or len(sizes) != 2 or not set(arrays) >= {"missing", "sample", "hashes"}:
        raise ValueError("the record of missing values is incomplete")
    model.missing_record_ = MissingRecord(n_rows=sizes[0], n_patterns=sizes[1], **arrays)


def _check_encoder(meta: Mapping[str, Any], arrays: dict[str, Array]) -> None:
    """Refuse the state of an encoder that could not encode; `from_state` checks its shapes."""
    _expect(meta, _ENCODER, "the encoder", exact=False)
    params, names, categories = meta["params"], meta["names"], meta["categories"]
    _expect(params, _ENCODER_PARAMS, "the encoder's parameters", exact=False)
    kinds, fine_bins = params["kinds"] or [], params["fine_bins"]
    if (
        min(params["n_bins"], params["max_categories"] - 1) < 0
        or (fine_bins < 0 if isinstance(fine_bins, int) else fine_bins != "auto")
        or params["unseen"] not in ("ignore", "error")
        or not all(len(pair) == 2 and pair[1] in KINDS for pair in kinds)
    ):
        raise ValueError(f"the encoder's parameters are {params!r:.100}")
    if names is not None and len(set(names)) != len(names):
        raise ValueError("column names occur more than once")
    groups, maps = arrays["groups"], arrays["maps"]
    # Checked here: the shift of a feature that was never observed is NaN, and bounds are infinite.
    if groups.dtype.kind != "i" or groups.ndim != 1 or maps.shape != (5, len(groups)):
        raise ValueError("the encoder's columns are not numbered")
    for name, dtype in (("gaps", bool), ("fine", bool), ("maps", np.float64)):
        if arrays[name].dtype != dtype:
            raise ValueError(f"the encoder's {name} have the type {arrays[name].dtype}")
    arrays["groups"] = groups = groups.astype(np.intp)
    if len(groups) and (groups.min() < 0 or groups.max() >= len(meta["kinds"])):
        raise ValueError("the encoder's columns are not numbered")
    shift, scale, low, high, mean = maps
    sizes = np.bincount(groups, minlength=len(meta["kinds"]))
    unobserved = np.isnan(shift)
    if (
        not np.isfinite([np.where(unobserved, 0.0, shift), scale, mean]).all()
        or not (scale > 0).all()
        or not ((low <= high) & (low < np.inf) & (high > -np.inf)).all()
        or (sizes[groups[unobserved]] != 1).any()
    ):
        raise ValueError("the encoder's columns have no scale")
    observed = ~np.isin(np.arange(len(sizes)), groups[unobserved])
    columns = (meta["kinds"], categories, meta["other"], sizes.tolist(), observed.tolist())
    for kind, values, other, size, seen in zip(*columns, strict=True):
        good = values is None and not other
        if kind == "category":
            good = (
                values is not None
                and len(set(values)) == len(values)
                and all(isfinite(value) for value in values if isinstance(value, float))
                and len(values) + other == (size if seen else 0)
            )
        if not good:
            raise ValueError(f"a {kind!r:.20} has the categories {values!r:.60}")


def _read_classes(told: Any, arrays: Mapping[str, Array], prior: Array) -> ClassLoss:
    """Return the loss of a classifier; check it and the prior."""
    _expect(told, _LABELS, "the target")
    values, weights = told["labels"], arrays.get("class_weights")
    if told["loss"] not in CLASS_LOSSES or not _LABEL_DTYPE.fullmatch(told["dtype"]):
        raise ValueError(f"the target is {told['loss']!r:.20} of type {told['dtype']!r:.20}")
    multilabel = CLASS_LOSSES[told["loss"]].multilabel
    _, is_text, width = told["dtype"].partition("U")
    # Text is as wide as its longest label: the width in a damaged file may be of any size.
    dtype = np.dtype(str if is_text else told["dtype"])
    if not _is(values, list[_LABEL_TYPES.get(dtype.kind, int)]) or (  # type: ignore[misc]
        is_text and max(map(len, values), default=0) > int(width)
    ):
        raise ValueError(f"the classes are not of type {told['dtype']!r:.20}")
    labels = np.array(values, dtype=dtype)
    if (
        labels.tolist() != values
        or len(labels) < 2
        or (labels[:-1] >= labels[1:]).any()
        or (multilabel and not np.array_equal(labels, np.arange(len(labels))))
    ):
        raise ValueError("the classes are not in order")
    if set(arrays) - {"class_weights"}:
        raise ValueError(f"the target has {sorted(arrays)!r:.60}")
    if weights is not None:
        _check_array(weights, "the class weights", labels.shape)
        if (weights < 0).any() or not weights.any():
            raise ValueError("the class weights are negative or all zero")
    _check_array(prior, "the prior", labels.shape)
    if (prior < 0).any() or (prior > 1 + 1e-6).any():
        raise ValueError("the prior is no share")
    if not multilabel and abs(prior.sum() - 1) > 1e-6:
        raise ValueError("the prior does not add up to 1")
    return CLASS_LOSSES[told["loss"]](labels, weights)


def _read_numbers(told: Any, arrays: Mapping[str, Array], prior: Array) -> NumberLoss:
    """Return the loss of a regressor; check it and the prior."""
    _expect(told, _NUMBERS, "the target")
    if told["loss"] not in REGRESSION_LOSSES or set(arrays) != {"mean", "scale"}:
        raise ValueError(f"the target is {told['loss']!r:.20} with {sorted(arrays)!r:.60}")
    shape = (1,) if told["flat"] else (max(1, arrays["mean"].size),)
    for name, value in arrays.items():
        _check_array(value, f"the {name}", shape)
    if not (arrays["scale"] >= 0).all():
        raise ValueError("the target has a negative scale")
    loss = REGRESSION_LOSSES[told["loss"]](**arrays, flat=told["flat"], **told["settings"])
    _check_array(prior, "the prior", (loss.n_outputs,))
    return loss


def _read_network(model: Any, kind: Any, told: Mapping[str, Any]) -> Any:
    """Return the network, which must be one for the encoder and the loss of the model."""
    loss, hints = model._loss, get_type_hints(kind) | {"loss": str}
    for name, value in told.items():
        if not _is(value, hints[name]):
            raise ValueError(f"the network's {name!r:.20} is {value!r:.60}")
    # Checked first: building a network takes memory in proportion to `n_columns`.
    columns = model.encoder_.groups_.tolist()
    if (told["n_columns"], told["groups"]) != (len(columns), columns):
        raise ValueError("the columns are not those of the network")
    sizes = [*told.get("hidden", ()), *told.get("units", ()), told.get("fusion_units", 1)]
    if (
        (told["n_outputs"], told["loss"]) != (loss.n_outputs, loss.name)
        or min(sizes) < 1
        or told.get("shares") is not None
        or not 0 <= told.get("gate_rate", 0.0) <= 1e30
    ):
        raise ValueError("the network is not one for the target")
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in told.items()}
    return kind(**given | {"loss": loss})


def _check_array(value: Array, what: str, shape: tuple[int, ...], dtype: Any = np.float64) -> None:
    if value.shape != shape or value.dtype != dtype:
        raise ValueError(f"{what} have the shape {value.shape} and the type {value.dtype}")
    if not np.isfinite(value).all():
        raise ValueError(f"{what} are not finite")


def _expect(told: Any, hints: Mapping[str, Any], what: str, *, exact: bool = True) -> None:
    """Refuse a mapping that lacks entries, or in which they are of other types."""
    if not isinstance(told, dict) or (exact and told.keys() != hints.keys()):
        raise ValueError(f"{what} is {told!r:.60}")
    for name, hint in hints.items():
        if not _is(told[name], hint):
            raise ValueError(f"{what} has {name}={told[name]!r:.60}")


def _is(value: Any, hint: Any) -> bool:
    """Whether a value from JSON is of a type; a float may be written as an int, True is no int."""
    if hint is Any:
        return True
    if isinstance(hint, UnionType):
        return any(_is(value, one) for one in get_args(hint))
    kind, inner = get_origin(hint), get_args(hint)
    if kind is dict:
        return type(value) is dict and all(_is(one, inner[1]) for one in value.values())
    if kind in (list, tuple):
        return type(value) is list and all(_is(one, inner[0]) for one in value)
    if hint is float:
        return type(value) in (int, float)
    return value is None if hint in (None, type(None)) else type(value) is hint


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError
    return made


def _reason(error: BaseException) -> str:
    """What an error says, in a few words."""
    return short(error).removesuffix(".")


def _storable_params(model: Any) -> dict[str, Any]:
    """Return the parameters, with the columns that a callable or dtype has selected."""
    params = dict(model.get_params(deep=False))
    if isinstance(params.get("modalities"), Mapping):
        params["modalities"] = {
            name: given if _is_plain(given) else model.modality_columns_.get(name, given)
            for name, given in params["modalities"].items()
        }
    return params


def _is_plain(given: Any) -> bool:
    """Return whether JSON can hold the selection of the columns of a modality."""
    if isinstance(given, Sequence) and not isinstance(given, str | range):
        return all(isinstance(item, str) or is_position(item) for item in given)
    return isinstance(given, str) or is_position(given)


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
    if isinstance(value, NumberLoss):
        return {"loss": [value.name, _to_json(value.settings(), name)]}
    if name == "random_state":  # A generator's position is of no use to a fitted model.
        return None
    raise ValueError(f"`{name}` cannot be saved: {value!r}. Use numbers, text, lists and dicts.")


def _from_json(value: Any, depth: int = 0) -> Any:
    """A parameter, as `_to_json` was given it."""
    if depth > _DEEPEST:
        raise ValueError(f"a parameter of more than {_DEEPEST} levels")
    if not isinstance(value, dict):
        if not _is(value, _Scalar | None):
            raise ValueError(f"a parameter is {value!r:.60}")
        return value
    ((kind, items),) = value.items()
    if not isinstance(items, list):
        raise ValueError(f"a parameter is {value!r:.60}")
    if kind == "loss":
        return REGRESSION_LOSSES[items[0]](**_from_json(items[1], depth + 1))
    if kind == "dict":
        return {_from_json(k, depth + 1): _from_json(v, depth + 1) for k, v in items}
    return {"tuple": tuple, "list": list}[kind]([_from_json(one, depth + 1) for one in items])
