"""Models from files, and tables brought into the shape a model knows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from promissing.cli._common import say

__all__ = ["also_missing", "read_model", "read_rows"]

_MOST = 8  # Names in a sentence.


def read_model(path: str) -> Any:
    """A model of one target, as `promissing fit` or `save` wrote it."""
    from promissing.persist import load

    model = load(path)
    if getattr(model._target, "multilabel", False) or model.prior_.ndim != 1:
        raise ValueError(f"{path} predicts several labels at once; use it from Python.")
    if not hasattr(model, "classes_") and model.n_outputs_ > 1:
        raise ValueError(f"{path} predicts several numbers at once; use it from Python.")
    return model


def read_rows(
    model: Any, file: str, *, strict: bool = False, keep: Collection[str] = (), **reading: Any
) -> tuple[Any, Any]:
    """The table in a file, and the part of it that the model knows.

    A column the model knows and the file lacks is unknown in every row, unless `strict`; other
    columns are ignored. Both are said on standard error. Those to `keep` are read as written.
    """
    from promissing.files import read_table

    reading |= {"missing_values": also_missing(model, reading.get("missing_values", ()))}
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return _by_position(model, file, read_table(file, **reading))
    wanted = [str(name) for name in names]
    text = _text_columns(model, wanted) | (set(keep) - set(wanted))
    frame = read_table(file, text=text, **reading)
    lacking = [name for name in wanted if name not in frame.columns]
    extra = [str(name) for name in frame.columns if name not in (*wanted, *keep)]
    if len(lacking) == len(wanted):
        raise ValueError(
            f"{file} has none of the {len(wanted)} columns the model knows: {_few(wanted)}. Is it "
            "the right table?"
        )
    if lacking and strict:
        raise ValueError(
            f"{file} lacks {_columns(lacking)} the model knows. Without --strict they count as "
            "unknown."
        )
    if lacking:
        say(f"{file} lacks {_columns(lacking)} the model knows: unknown in every row.")
    if extra:
        say(f"{file} has {_columns(extra)} the model does not know: ignored.")
    return frame, frame.reindex(columns=wanted)


def also_missing(model: Any, said: Sequence[str]) -> tuple[str, ...]:
    """What else stands for missing: what is said, and what did when the model was fitted."""
    known = [value for value in model.missing_values_ if value not in said]
    if known:
        say(f"As when the model was fitted, these count as missing: {_few(known)}.")
    return (*said, *known)


def _by_position(model: Any, file: str, frame: Any) -> tuple[Any, Any]:
    """All columns, for a model that was fitted on an array."""
    if frame.shape[1] != model.n_features_in_:
        raise ValueError(
            f"{file} has {frame.shape[1]} columns, and the model was fitted on "
            f"{model.n_features_in_} columns without names. Give it these, in their order."
        )
    return frame, frame.to_numpy()


def _text_columns(model: Any, names: list[str]) -> set[str]:
    """Columns that were text in training: codes such as 007 must not become numbers."""
    categories = model.encoder_.categories_
    return {
        name
        for name, values in zip(names, categories, strict=True)
        if values and all(isinstance(value, str) for value in values)
    }


def _columns(names: list[str]) -> str:
    return f"{len(names)} columns ({_few(names)})" if len(names) > 1 else f"column {names[0]!r}"


def _few(names: list[str]) -> str:
    return ", ".join(map(repr, names[:_MOST])) + (", ..." if len(names) > _MOST else "")
