"""Models from files, and tables brought into the shape a model knows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from promissing.cli._common import read_frame, say
from promissing.cli._words import in_shell_words

__all__ = ["also_missing", "as_when_fitted", "read_model", "read_rows"]

_MOST = 8  # Names in a sentence.


def read_model(path: str) -> Any:
    """A model of one target, as `promissing fit` or `save` wrote it."""
    from promissing.estimators.persistence import load

    model = load(path)
    if getattr(model._target, "multilabel", False) or model.prior_.ndim != 1:
        raise ValueError(f"{path} predicts several labels at once; use it from Python.")
    if not hasattr(model, "classes_") and model.n_outputs_ > 1:
        raise ValueError(f"{path} predicts several numbers at once; use it from Python.")
    return model


def read_rows(
    model: Any,
    file: str,
    *,
    strict: bool = False,
    keep: Collection[str] = (),
    identifier: str | None = None,
    **reading: Any,
) -> tuple[Any, Any]:
    """The table in a file, and the part of it that the model knows.

    A column the model knows and the file lacks is unknown in every row, unless `strict`; other
    columns are ignored. Both are said on standard error. The identifier and those to `keep` are
    read as written.
    """
    from promissing.io.description import reads_as

    lenient = _remembered_columns(model)
    reading = as_when_fitted(model, reading)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return _by_position(model, file, read_frame(file, lenient=lenient, **reading))
    wanted = [str(name) for name in names]
    known: str = identifier or (model.reading_ or {}).get("id", "")
    text = _text_columns(model, wanted) | ({*keep, known} - {*wanted})
    frame = read_frame(file, text=text, lenient=lenient, identifier=identifier, **reading)
    lacking = [name for name in wanted if name not in frame.columns]
    used = {*wanted, *keep, known}
    extra = [str(name) for name in frame.columns if name not in used]
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
    if model.target_name_ in extra:
        extra.remove(model.target_name_)
        say(f"Column {model.target_name_!r} is the target of the model: it is not used.")
    if extra:
        say(f"{file} has {_columns(extra)} the model does not know: ignored.")
    for name, kind in zip(wanted, model.encoder_.kinds_, strict=True):
        # Refused later: say before what the text looks like.
        if kind in ("number", "date") and name in frame.columns:
            note = reads_as(frame[name])
            if note is not None:
                say(in_shell_words(note))
    return frame, frame.reindex(columns=wanted)


def as_when_fitted(model: Any, reading: Mapping[str, Any]) -> dict[str, Any]:
    """How to read a table: as the options say, and else as when the model was fitted."""
    known = model.reading_ or {}
    dates, kinds = reading.get("dates") or {}, reading.get("kinds") or {}
    now = {*dates, *kinds}  # A column that is declared now is not as it was declared then.
    then = {
        name: {c: v for c, v in known.get(name, {}).items() if c not in now}
        for name in ("dates", "kinds")
    }
    return {
        **reading,
        "missing_values": also_missing(model, reading.get("missing_values") or ()),
        "decimal": reading.get("decimal") or known.get("decimal"),
        "dates": then["dates"] | dates,
        "kinds": then["kinds"] | kinds,
    }


def _remembered_columns(model: Any) -> set[str]:
    """Columns that options of fitting named, which a new table may lack."""
    known = model.reading_ or {}
    return {*known.get("dates", {}), *known.get("kinds", {})}


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
