"""Fitted models as ONNX graphs, from raw columns to predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import promissing
from promissing._validation import expect, warn
from promissing.encoding.table_encoder import TableEncoder
from promissing.export import OPSET
from promissing.export.parts import Head, take_apart
from promissing.io.files import check_target, write_bytes
from promissing.networks.fusion import Fusion
from promissing.pruner import Pruner

try:
    import onnx
except ModuleNotFoundError as error:
    raise ImportError(
        "promissing.export.to_onnx needs onnx: `pip install 'promissing[onnx]'`"
    ) from error

from onnx import TensorProto, helper, numpy_helper

__all__ = ["MISSING_DATE", "build"]

Array = NDArray[Any]

_ML_OPSET, _IR_VERSION = 3, 9
MISSING_DATE = np.iinfo(np.int64).min
_LARGEST = 1e30  # Standardised numbers without bins are clipped here, so that none overflows.
_TYPES = {"number": TensorProto.DOUBLE, "boolean": TensorProto.DOUBLE}
_TYPES |= {"date": TensorProto.INT64, "category": TensorProto.STRING}


def build(model: Any, path: str | Path | None, *, matrix: bool, opset: int) -> Any:
    """Return a fitted model as a graph; see `promissing.export.to_onnx`.

    Parameters
    ----------
    model : NanEstimator
        The fitted model.
    path : path or None
        The file to write.
    matrix : bool
        Whether there is one input for all columns.
    opset : int
        The version of the operators.

    Returns
    -------
    onnx.ModelProto
        The graph.
    """
    newest = onnx.defs.onnx_opset_version()
    good = isinstance(opset, int) and OPSET <= opset <= newest
    expect(good, "opset", f"a whole number from {OPSET} to {newest}", opset)
    target = None
    if path is not None:
        check_target(path, (".onnx",))
        target = Path(path)
    before, final = _steps(model)
    parts = take_apart(final)  # Refuses other models.
    left_out = [name for name in ("conformal", "selective") if name in final.calibration_]
    if left_out:
        warn(
            "The graph holds the predictions. Sets, intervals and abstention, for which the model "
            "is calibrated, are left out."
        )
    graph = _Graph()
    source = _Source(before[0] if before else final.encoder_)
    readings, inputs = _inputs(graph, source, matrix)
    for step in before:
        readings = _transform(graph, step, readings)
    encoded, absent = _standardise(graph, final.encoder_, readings)
    outputs = _predict(graph, final, parts, encoded, absent)
    made = helper.make_model(
        helper.make_graph(graph.nodes, "promissing", inputs, outputs, graph.constants),
        opset_imports=[
            helper.make_opsetid("", opset),
            helper.make_opsetid("ai.onnx.ml", _ML_OPSET),
        ],
        ir_version=_IR_VERSION,
        producer_name="promissing",
        producer_version=promissing.__version__,
    )
    helper.set_model_props(made, {"promissing": json.dumps(_metadata(final, source, left_out))})
    onnx.checker.check_model(made, full_check=True)
    if target is not None:
        write_bytes(target, made.SerializeToString())
    return made


class _Graph:
    """Nodes and constants, with a new name for every value."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Array) -> str:
        """Add a constant and return its name."""
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def node(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """Add a node with one output and return the name of the output."""
        name = out or f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name


# ------------------------------------------------------------------------------- encoding


class _Source:
    """The raw columns: their names and kinds, and the encoder that knows their categories."""

    def __init__(self, step: Any) -> None:
        self.encoder = step if isinstance(step, TableEncoder) else None
        p = step.n_features_in_
        self.kinds = ["number"] * p if self.encoder is None else list(step.kinds_)
        given = getattr(step, "feature_names_in_", None)
        self.names = [f"x{j}" for j in range(p)] if given is None else [str(n) for n in given]

    @property
    def categories(self) -> dict[str, list[str]]:
        """The spellings of all categories, by column."""
        if self.encoder is None:
            return {}
        pairs = zip(self.names, self.encoder.categories_, strict=True)
        return {name: [spelling(value) for value in values] for name, values in pairs if values}


def _steps(model: Any) -> tuple[list[Any], Any]:
    """Return the transformers of a pipeline, and the estimator at its end."""
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    before = [step for step in steps[:-1] if step is not None and step != "passthrough"]
    for step in before:
        if not isinstance(step, TableEncoder | Pruner):
            raise ValueError(
                f"The pipeline has a {type(step).__name__}, and only TableEncoder and Pruner can "
                "be exported before the estimator. Our estimators standardise and encode by "
                "themselves."
            )
    return before, steps[-1]


def _inputs(graph: _Graph, source: _Source, matrix: bool) -> tuple[str, list[Any]]:
    """Add the inputs, and return them as one matrix of doubles (n, p), NaN where missing."""
    kinds, p = source.kinds, len(source.kinds)
    if matrix:
        for name, kind in zip(source.names, kinds, strict=True):
            if kind not in ("number", "boolean"):
                raise ValueError(
                    f"`matrix=True` is for numbers, and column {name!r} holds values of the kind "
                    f"{kind!r}. Use one input for each column."
                )
        return "X", [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n", p])]
    made = [
        helper.make_tensor_value_info(name, _TYPES[kind], ["n", 1])
        for name, kind in zip(source.names, kinds, strict=True)
    ]
    columns = [_reading(graph, source, j) for j in range(p)]
    return graph.node("Concat", *columns, axis=1), made


def _transform(graph: _Graph, step: Any, readings: str) -> str:
    """Add a transformer, and return its columns as doubles, NaN where missing."""
    if isinstance(step, TableEncoder):
        encoded, absent = _standardise(graph, step, readings)
        nan = graph.constant(np.array([[np.nan]], np.float32))
        lost = graph.node("Cast", absent, to=TensorProto.BOOL)
        values = graph.node("Where", lost, nan, encoded)
        return graph.node("Cast", values, to=TensorProto.DOUBLE)
    layout, p = step._layout, step.n_features_in_
    extra = np.full((p, 1), 1 / p)
    if step.compensation == "feature":
        extra = np.eye(p) if layout.membership is None else np.asarray(layout.membership)
    elif layout.column_shares is not None:
        extra = np.asarray(layout.column_shares)[:, None]
    known = graph.node("Equal", readings, readings)
    values = graph.node("Where", known, readings, graph.constant(np.zeros(1)))
    absent = graph.node("Cast", graph.node("Not", known), to=TensorProto.DOUBLE)
    more = graph.node("MatMul", absent, graph.constant(extra.astype(np.float64)))
    return graph.node("Concat", values, more, axis=1)


def _standardise(graph: _Graph, encoder: Any, readings: str) -> tuple[str, str]:
    """Add an encoder: the values (n, q), 0 where missing, and the missing columns, as float32."""
    shift, scale, low, high, mean = encoder._maps
    owner = graph.constant(encoder.groups_.astype(np.int64))
    values = graph.node("Gather", readings, owner, axis=1)
    # A feature that was never observed is missing in every row: its shift is NaN.
    values = graph.node("Sub", values, graph.constant(shift))
    known = graph.node("Equal", values, values)
    values = graph.node("Where", known, values, graph.constant(np.zeros(1)))
    values = graph.node("Div", values, graph.constant(scale))
    values = graph.node("Max", values, graph.constant(np.maximum(low, -_LARGEST)))
    values = graph.node("Min", values, graph.constant(np.minimum(high, _LARGEST)))
    hot = np.zeros(len(shift), bool)
    hot[encoder._hot] = True
    if hot.any():  # 1 in the column of the category, and 0 in the others.
        inside = graph.node("Sub", graph.constant(np.ones(1)), graph.node("Abs", values))
        values = graph.node("Where", graph.constant(hot), inside, values)
    values = graph.node("Sub", values, graph.constant(mean))
    values = graph.node("Where", known, values, graph.constant(np.zeros(1)))
    encoded = graph.node("Cast", values, to=TensorProto.FLOAT)
    absent = graph.node("Cast", graph.node("Not", known), to=TensorProto.FLOAT)
    return encoded, absent


def _reading(graph: _Graph, source: _Source, j: int) -> str:
    """Add the reading of one column as double (n, 1), NaN where missing."""
    kind, name = source.kinds[j], source.names[j]
    if kind in ("number", "boolean"):
        return graph.node("Identity", name)
    if kind == "date":
        nan = graph.constant(np.array([[np.nan]]))
        lost = graph.node("Equal", name, graph.constant(np.array([[MISSING_DATE]])))
        seconds = graph.node("Cast", name, to=TensorProto.DOUBLE)
        seconds = graph.node("Div", seconds, graph.constant(np.array([[1e9]])))
        return graph.node("Where", lost, nan, seconds)
    encoder: Any = source.encoder
    texts = source.categories.get(name, [])
    if "" in texts or len(set(texts)) < len(texts):
        what = (
            "the empty text, which means missing in the graph" if "" in texts else "two spellings"
        )
        raise ValueError(
            f"Column {name!r} has a category with {what}. Rename the category and fit again."
        )
    elsewhere = float(len(texts)) if encoder._other[j] else -1.0
    places = graph.node(
        "LabelEncoder",
        name,
        domain="ai.onnx.ml",
        keys_strings=[*texts, ""],
        values_floats=[*map(float, range(len(texts))), float("nan")],
        default_float=elsewhere,
    )
    return graph.node("Cast", places, to=TensorProto.DOUBLE)


def spelling(value: Any) -> str:
    """Return how a category is spelled in the inputs of a graph.

    Parameters
    ----------
    value : str, bool, int or float
        The category.

    Returns
    -------
    str
        Text as it is, and ``str(value)`` of others, such as "1", "1.5" and "True".

    Examples
    --------
    >>> from promissing.export.onnx import spelling
    >>> spelling(1), spelling("north")
    ('1', 'north')
    """
    return value if isinstance(value, str) else str(value)


# ------------------------------------------------------------------------------- networks


def _predict(graph: _Graph, model: Any, parts: Any, encoded: str, absent: str) -> list[Any]:
    """Add the networks and the outputs, and return the outputs."""
    network, params = model._network, model.params_
    n_members = len(parts.members)
    kernels, gaps, biases = [], [], []
    for r in range(n_members):
        own = {name: np.asarray(value[r], np.float64) for name, value in params.items()}
        kernel, gap = network.columns(own)
        bias = network.first_layer(own)[1]
        kernels.append(kernel)
        gaps.append(gap)
        biases.append(np.pad(bias, (0, kernel.shape[1] - len(bias))))
    # One product for all members: each missing column adds its own row.
    sums = graph.node(
        "Add",
        graph.node("MatMul", encoded, graph.constant(np.hstack(kernels).astype(np.float32))),
        graph.node("MatMul", absent, graph.constant(np.hstack(gaps).astype(np.float32))),
    )
    sums = graph.node("Add", sums, graph.constant(np.concatenate(biases).astype(np.float32)))
    shape = graph.constant(np.array([-1, n_members, kernels[0].shape[1]]))
    sums = graph.node("Transpose", graph.node("Reshape", sums, shape), perm=[1, 0, 2])
    stacked = {name: np.asarray(value, np.float32) for name, value in params.items()}
    if isinstance(network, Fusion):
        out = _fusion(graph, network, stacked, sums, parts.head)
    else:
        out = _mlp(graph, network, stacked, sums)
    if parts.offset is not None:
        weights = np.zeros((parts.n_columns, 1), np.float32)
        weights[parts.watched] = 1 / max(len(parts.watched), 1)
        share = graph.node("MatMul", absent, graph.constant(weights))
        if not len(parts.watched):
            share = graph.node("Add", share, graph.constant(np.ones(1, np.float32)))
        power = graph.node("Pow", share, graph.constant(np.array([parts.power], np.float32)))
        offset = graph.constant(parts.offset[:, None].astype(np.float32))
        out = graph.node("Add", out, graph.node("Mul", power, offset))
    decoded = _decode(graph, out, parts.head)
    mean = graph.node("ReduceMean", decoded, graph.constant(np.array([0])), keepdims=0)
    return _outputs(graph, model, parts, mean)


def _layer(graph: _Graph, h: str, kernel: Array, bias: Array) -> str:
    product = graph.node("MatMul", h, graph.constant(kernel))
    return graph.node("Add", product, graph.constant(bias[:, None]))


def _activate(graph: _Graph, h: str, name: str) -> str:
    simple = {"identity": "Identity", "logistic": "Sigmoid", "tanh": "Tanh", "relu": "Relu"}
    if name in simple:
        return graph.node(simple[name], h)
    if name == "silu":
        return graph.node("Mul", h, graph.node("Sigmoid", h))
    # The tangent form of GELU.
    cube = graph.node("Mul", h, graph.node("Mul", h, h))
    inner = graph.node("Mul", cube, graph.constant(np.array([0.044715], np.float32)))
    inner = graph.node("Add", h, inner)
    inner = graph.node("Mul", inner, graph.constant(np.array([0.7978845608028654], np.float32)))
    gate = graph.node("Add", graph.node("Tanh", inner), graph.constant(np.ones(1, np.float32)))
    half = graph.node("Mul", h, graph.constant(np.array([0.5], np.float32)))
    return graph.node("Mul", half, gate)


def _mlp(graph: _Graph, network: Any, params: dict[str, Array], sums: str) -> str:
    """Return the outputs (M, n, k), given the sums (M, n, s) of the first layers."""
    h, skip = sums, None
    if network.linear_skip:  # The last sums are those of the skip connection.
        width = sum(params["bias_0"].shape[1:])
        sizes = graph.constant(np.array([width, network.n_outputs]))
        h, skip = f"value{len(graph.nodes)}a", f"value{len(graph.nodes)}b"
        graph.nodes.append(helper.make_node("Split", [sums, sizes], [h, skip], axis=2))
    for i in range(1, len(network.hidden) + 1):
        h = _activate(graph, h, network.activation)
        h = _layer(graph, h, params[f"kernel_{i}"], params[f"bias_{i}"])
    return h if skip is None else graph.node("Add", h, skip)


def _fusion(graph: _Graph, network: Any, params: dict[str, Array], sums: str, head: Head) -> str:
    """Return the outputs (M, n, k) of a network of modalities."""
    h = _activate(graph, sums, network.activation)
    kernel = params["decision_kernel"] * network._double.decides.astype(np.float32)
    decided = _layer(graph, h, kernel, params["decision_bias"])
    if head.kind == "softmax":
        n, m = len(params["decision_bias"]), len(network.units)
        split = graph.constant(np.array([n, -1, m, network.n_outputs]))
        soft = graph.node("Softmax", graph.node("Reshape", decided, split), axis=-1)
        joined = graph.constant(np.array([n, -1, m * network.n_outputs]))
        decided = graph.node("Reshape", soft, joined)
    elif head.kind in ("labels", "two classes"):
        decided = graph.node("Sigmoid", decided)
    h = graph.node("Concat", h, decided, axis=2)
    h = _layer(graph, h, params["fusion_kernel"], params["fusion_bias"])
    h = _activate(graph, h, network.activation)
    return _layer(graph, h, params["final_kernel"], params["final_bias"])


def _decode(graph: _Graph, out: str, head: Head) -> str:
    """Return the predictions (M, n, K) of all members."""
    if head.kind == "softmax":
        return graph.node("Softmax", out, axis=-1)
    if head.kind in ("labels", "two classes"):
        p = graph.node("Sigmoid", out)
        if head.kind == "labels":
            return p
        q = graph.node("Sub", graph.constant(np.ones(1, np.float32)), p)
        return graph.node("Concat", q, p, axis=2)
    assert head.scale is not None
    assert head.mean is not None
    if head.kind == "exp":
        bounded = graph.node("Min", out, graph.constant(np.array([80.0], np.float32)))
        return graph.node("Mul", graph.node("Exp", bounded), graph.constant(head.scale))
    if head.step > 1:
        # Outputs (M, n, k * step) become (M, n, k, step).
        shape = graph.constant(np.array([0, 0, len(head.scale), head.step]))
        out = graph.node("Reshape", out, shape)
        scale, mean = head.scale[:, None], head.mean[:, None]
    else:
        scale, mean = head.scale, head.mean
    values = graph.node("Add", graph.node("Mul", out, graph.constant(scale)), graph.constant(mean))
    if head.step == 1:
        return values
    if head.kind == "affine":
        return graph.node("Gather", values, graph.constant(np.array(0)), axis=3)
    largest, name = f"value{len(graph.nodes)}a", f"value{len(graph.nodes)}b"
    count = graph.constant(np.array([head.step]))
    graph.nodes.append(
        helper.make_node("TopK", [values, count], [largest, name], axis=3, largest=0, sorted=1)
    )
    low, high = (
        graph.node("Gather", largest, graph.constant(np.array(k)), axis=3)
        for k in (head.low, head.high)
    )
    rest = graph.node("Sub", high, low)
    part = graph.node("Mul", rest, graph.constant(np.array([head.place], np.float32)))
    return graph.node("Add", low, part)


# ------------------------------------------------------------------------------- outputs


def _outputs(graph: _Graph, model: Any, parts: Any, mean: str) -> list[Any]:
    """Add the named outputs."""
    if not hasattr(model, "classes_"):
        if parts.flat:
            column = graph.constant(np.array([1]))
            graph.node("Squeeze", mean, column, out="prediction")
            return [helper.make_tensor_value_info("prediction", TensorProto.FLOAT, ["n"])]
        graph.node("Identity", mean, out="prediction")
        k = len(parts.head.scale)
        return [helper.make_tensor_value_info("prediction", TensorProto.FLOAT, ["n", k])]
    graph.node("Identity", mean, out="probabilities")
    classes = np.asarray(model.classes_)
    shape: list[str | int | None] = ["n", len(classes)]
    found = [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, shape)]
    if parts.head.kind == "labels":
        half = graph.constant(np.array([0.5], np.float32))
        chosen = graph.node("Greater", mean, half)
        graph.node("Cast", chosen, to=TensorProto.INT64, out="label")
        return [helper.make_tensor_value_info("label", TensorProto.INT64, shape), *found]
    best = graph.node("ArgMax", mean, axis=1, keepdims=0)
    if classes.dtype.kind in "iub":
        graph.node("Gather", graph.constant(classes.astype(np.int64)), best, axis=0, out="label")
        return [helper.make_tensor_value_info("label", TensorProto.INT64, ["n"]), *found]
    graph.node(
        "LabelEncoder",
        best,
        out="label",
        domain="ai.onnx.ml",
        keys_int64s=list(range(len(classes))),
        values_strings=[str(label) for label in classes.tolist()],
        default_string="",
    )
    return [helper.make_tensor_value_info("label", TensorProto.STRING, ["n"]), *found]


def _metadata(model: Any, source: _Source, left_out: list[str]) -> dict[str, Any]:
    """Return what a user of the graph should know, as values for JSON."""
    return {
        "version": promissing.__version__,
        "estimator": type(model).__name__,
        "columns": dict(zip(source.names, source.kinds, strict=True)),
        "categories": source.categories,
        "missing": {"number": "NaN", "boolean": "NaN", "date": int(MISSING_DATE), "category": ""},
        "classes": [str(label) for label in getattr(model, "classes_", [])],
        "prior": np.asarray(model.prior_).tolist(),
        "left_out": left_out,
    }
