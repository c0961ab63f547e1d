"""Text with separators: what a CSV of any kind says about itself, and how it is read."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import pandas as pd

__all__ = ["MISSING", "FileError", "read_csv", "refuse_doubles", "short", "to_pandas"]

# Cells that are missing in every CSV, as pandas has it.
MISSING = (
    *("", "NA", "N/A", "n/a", "<NA>", "#N/A", "#NA", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "null", "None"),
)
_SEPARATORS = ",;\t|"
_SPELLED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}
_HEAD = 2**20  # Bytes that tell separator and names; a header may be long.


class FileError(ValueError):
    """A file cannot be read or written; the message says which and why, in one line."""


class _Look(NamedTuple):
    """What the head of a CSV tells: the separator, the names, the sign of decimals."""

    separator: str
    names: list[str]
    decimal: str


def read_csv(
    name: str,
    open_file: Callable[[], Any],
    *,
    separator: str | None = None,
    encoding: str | None = None,
    missing_values: Sequence[str] = (),
    text: Collection[str] = (),
) -> pd.DataFrame:
    """Read the CSV that `open_file` opens, as bytes; the rest is as in `read_table`."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    with open_file() as file:
        head = file.read(_HEAD)
        whole = not file.read(1)
    encoding = _encoding(head, encoding)
    look = _look(name, _decode(name, head, encoding), whole, separator)
    refuse_doubles(name, look.names)
    with open_file() as file:
        try:
            table = arrow.read_csv(
                file,
                read_options=arrow.ReadOptions(encoding=encoding, block_size=2**22),
                parse_options=arrow.ParseOptions(
                    delimiter=look.separator,
                    newlines_in_values=True,
                    # Of a single column an empty line is a gap.
                    ignore_empty_lines=len(look.names) > 1,
                ),
                convert_options=arrow.ConvertOptions(
                    null_values=[*MISSING, *missing_values],
                    strings_can_be_null=True,
                    decimal_point=look.decimal,
                    column_types={c: pa.string() for c in look.names if c.strip() in text},
                ),
            )
        except UnicodeDecodeError as error:
            raise FileError(_not_text(name, encoding)) from error
        except pa.ArrowInvalid as error:
            raise FileError(
                f"{name} is not a CSV with the separator {look.separator!r}: {short(error)} "
                "Say which it is with --separator, or correct the line."
            ) from error
    for column, values in zip(look.names, table.columns, strict=False):
        if pa.types.is_binary(values.type):  # What is no UTF-8 stays bytes.
            raise FileError(_not_text(name, encoding, column))
    names = [c.strip() or f"unnamed_{j}" for j, c in enumerate(table.column_names, start=1)]
    return to_pandas(table.rename_columns(names))


def _encoding(head: bytes, given: str | None) -> str:
    if given is not None:
        try:
            return codecs.lookup(given).name
        except LookupError:
            raise FileError(
                f"There is no encoding {given!r}. Usual ones: utf-8, latin-1, cp1252, utf-16."
            ) from None
    return "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"


def _decode(name: str, head: bytes, encoding: str) -> str:
    try:
        # Incremental, because the head may end within a character.
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except (UnicodeDecodeError, UnicodeError) as error:
        raise FileError(_not_text(name, encoding)) from error
    if "\0" in text:
        raise FileError(
            f"{name} is not a text file. Give a CSV, or Parquet or Excel with its suffix."
        )
    return text.removeprefix("\ufeff")


def _not_text(name: str, encoding: str, column: str | None = None) -> str:
    where = "" if column is None else f", in column {column!r}"
    return (
        f"{name} is not {encoding} text{where}. Say what it is with --encoding, such as latin-1 "
        "or cp1252."
    )


def _look(name: str, text: str, whole: bool, separator: str | None) -> _Look:
    if not text.strip():
        raise FileError(f"{name} is empty.")
    if separator is not None:
        separator = _SPELLED.get(separator, separator)
        if len(separator) != 1:
            raise FileError(f"--separator must be one character or 'tab'. Received: {separator!r}")
    tried = [(*_score(text, whole, one), one) for one in separator or _SEPARATORS]
    # The first of the best: a comma where nothing separates.
    _, _, records, chosen = max(tried, key=lambda one: one[:2])
    decimal = "."
    if chosen != ",":
        cells = Counter(
            "comma" if "," in cell else "point"
            for record in records[1:]
            for cell in record
            if re.fullmatch(r"\s*[-+]?\d+[.,]\d+\s*", cell)
        )
        decimal = "," if cells["comma"] and not cells["point"] else "."
    return _Look(chosen, records[0], decimal)


def _score(text: str, whole: bool, separator: str) -> tuple[float, int, list[list[str]]]:
    """How well a separator fits: the share of lines as long as the first, and how long it is."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        records = [record for record in reader if record]
    except csv.Error:
        return -1.0, 0, [[text.splitlines()[0]]]
    if not whole and len(records) > 1:
        records.pop()  # It may be cut off.
    size = len(records[0])
    share = sum(len(record) == size for record in records) / len(records)
    return (share if size > 1 else 0.0), size, records


def to_pandas(table: Any) -> pd.DataFrame:
    """A frame in which gaps change as little as possible: flags stay flags, dates dates."""
    import pyarrow as pa

    for j, field in enumerate(table.schema):
        if pa.types.is_null(field.type):  # An empty column is one of unknown numbers.
            table = table.set_column(j, field.name, table.column(j).cast(pa.float64()))
    booleans = {pa.bool_(): pd.BooleanDtype()}
    return table.to_pandas(types_mapper=booleans.get, date_as_object=False, ignore_metadata=True)


def refuse_doubles(name: str, names: Sequence[str]) -> None:
    """Two columns of one name cannot be told apart; those without a name get one each."""
    counts = Counter(str(one).strip() for one in names)
    doubles = [one for one, count in counts.items() if count > 1 and one]
    if doubles:
        shown = ", ".join(map(repr, doubles[:5])) + (", ..." if len(doubles) > 5 else "")
        raise FileError(
            f"{name} has more than one column called {shown}. Rename them, so that each can be "
            "told from the others."
        )


def short(error: BaseException) -> str:
    """What an error says, in one line that is not too long."""
    said = " ".join(str(error).split()) or type(error).__name__
    said = said if len(said) <= 200 else said[:197] + "..."
    return said if said.endswith((".", "?", "!")) else said + "."
