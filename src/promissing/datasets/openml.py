"""Tables of the paper from OpenML, through scikit-learn's loader and its cache."""

from __future__ import annotations

import os
import warnings
from typing import Any
from urllib.error import HTTPError, URLError

import pandas as pd

from promissing.datasets.dataset import Dataset, DatasetError, differences, one_line
from promissing.datasets.registry import Table

# What the loader warns of on the way to success or to an error, which then says all there is.
_PASSING = ("A network error occurred", "Invalid cache", "Downloaded file could have been")


def fetch(table: Table, data_home: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a table from scikit-learn's cache, or from OpenML into the cache."""
    bunch, notes = _fetch(table, data_home)
    X = bunch.data.apply(_tidy)
    y, more = _labels(table, bunch.target) if table.task == "binary" else (bunch.target, [])
    notes += more + differences(X, table.rows, table.features, "of the paper")
    return Dataset(
        X=X,
        y=y.astype("int8" if table.task == "binary" else "float64").rename("target"),
        task=table.task,
        name=table.name,
        slug=table.slug,
        openml_id=table.openml_id,
        nominal=[c for c in X if isinstance(X[c].dtype, pd.CategoricalDtype)],
        modalities={},
        source=f"OpenML {table.openml_id}",
        notes=tuple(notes),
    )


def _fetch(table: Table, data_home: str | os.PathLike[str] | None) -> tuple[Any, list[str]]:
    """What the loader gives and what it warns of; one line instead of whatever it raises."""
    from sklearn.datasets import fetch_openml, get_data_home

    who = f"Table {table.slug!r} (OpenML {table.openml_id})"
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # The other parser fails on labels that are numbers with pandas 3.1, and then deletes
            # the file from the cache (scikit-learn/scikit-learn#34892). This one takes 2 s for a
            # table as large as the largest.
            bunch = fetch_openml(
                data_id=table.openml_id, data_home=data_home, as_frame=True, parser="liac-arff"
            )
        notes = [str(w.message).strip() for w in caught if issubclass(w.category, UserWarning)]
        return bunch, [note for note in notes if not note.startswith(_PASSING)]
    except HTTPError as error:
        error.close()
        raise DatasetError(f"{who}: OpenML answers {error.code}, {error.reason}.") from error
    except (URLError, TimeoutError, ConnectionError) as error:
        home = get_data_home(data_home)
        why = one_line(getattr(error, "reason", error))
        raise DatasetError(
            f"{who} is neither in scikit-learn's cache ({home}) nor can it be fetched: {why}. "
            "Go online once, or name a directory that has it."
        ) from error
    except Exception as error:  # A full disk, a wrong checksum, an answer that is no table.
        raise DatasetError(f"{who} cannot be had: {one_line(error)}.") from error


def _tidy(column: Any) -> Any:
    """Numbers as float64, whatever else as categories of text."""
    if pd.api.types.is_numeric_dtype(column):
        return column.astype("float64")
    column = column.astype("category")
    return column.cat.rename_categories([str(c) for c in column.cat.categories])


def _labels(table: Table, target: Any) -> tuple[Any, list[str]]:
    """Labels as 0 and 1, the one the registry names being 1."""
    text = target.map(lambda label: f"{label:g}" if isinstance(label, float) else str(label))
    labels = sorted(set(text))
    if len(labels) != 2:
        raise DatasetError(
            f"Table {table.slug!r} (OpenML {table.openml_id}): the target has {len(labels)} "
            "different values instead of 2."
        )
    notes, positive = [], table.positive
    if positive not in labels:
        notes, positive = [f"the label {positive!r} is not there; {labels[1]!r} is 1"], labels[1]
    return (text == positive).astype("int8"), notes
