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

from promissing._validation import warn
from promissing.io.text import Signs, read_numbers, signs

__all__ = ["MISSING", "FileError", "read_csv", "refuse_doubles", "short", "to_pandas"]

# Cells that are missing in every CSV, as pandas has it.
MISSING = (
    *("", "NA", "N/A", "n/a", "<NA>", "#N/A", "#NA", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "null", "None"),
)
_SEPARATORS = ",;\t|"
_SPELLED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}
_GROUPED = re.compile(r"\s*[-+]?[1-9]\d{0,2}(\.\d{3})+\s*")
_FIRST = 1000  # Cells that tell most columns of text from numbers.
_HEAD = 2**20  # Bytes that tell separator and names; a header may be long.


class FileError(ValueError):
    """A file cannot be read or written; the message says which and why, in one line."""


class _Look(NamedTuple):
    """The dialect of a CSV, from its head.

    `grouped` are columns with numbers such as 1.234, which may be thousands; `skip` is the number
    of lines before the header.
    """

    separator: str
    names: list[str]
    grouped: list[str]
    skip: int


def read_csv(
    name: str,
    open_file: Callable[[], Any],
    *,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
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
    # Where commas separate, 1.234 is a fraction; elsewhere the other columns decide.
    grouped = look.grouped if look.separator != "," or decimal == "," else []
    as_text = [c for c in look.names if c.strip() in text or c in grouped]
    with open_file() as file:
        try:
            table = arrow.read_csv(
                file,
                read_options=arrow.ReadOptions(
                    encoding=encoding, block_size=2**22, skip_rows=look.skip
                ),
                parse_options=arrow.ParseOptions(
                    delimiter=look.separator,
                    newlines_in_values=True,
                    # Of a single column an empty line is a gap.
                    ignore_empty_lines=len(look.names) > 1,
                ),
                convert_options=arrow.ConvertOptions(
                    null_values=[*MISSING, *missing_values],
                    strings_can_be_null=True,
                    column_types={c: pa.string() for c in as_text},
                ),
            )
        except UnicodeDecodeError as error:
            raise FileError(_not_text(name, encoding)) from error
        except pa.ArrowInvalid as error:
            raise FileError(
                f"{name} is not a CSV with the separator {look.separator!r}: {short(error)} "
                "Correct the line, or pass another `separator`."
            ) from error
    for column, values in zip(look.names, table.columns, strict=False):
        if pa.types.is_binary(values.type):  # What is no UTF-8 stays bytes.
            raise FileError(_not_text(name, encoding, column))
    names = [c.strip() or f"unnamed_{j}" for j, c in enumerate(table.column_names, start=1)]
    columns = dict(zip(names, table.columns, strict=True))
    _drop_padded(columns, [*MISSING, *missing_values])
    _settle_decimals(columns, look.separator, decimal, text)
    return to_pandas(pa.table(columns))


def _drop_padded(columns: dict[str, Any], missing: Sequence[str]) -> None:
    """Make cells missing that are signs for missing but for spaces around them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pa.array(list(missing), pa.string())
    for name, cells in columns.items():
        if pa.types.is_string(cells.type):
            hit = pc.is_in(pc.utf8_trim_whitespace(cells), value_set=known)
            if pc.any(hit).as_py():
                columns[name] = pc.if_else(hit, pa.scalar(None, pa.string()), cells)


def _settle_decimals(
    columns: dict[str, Any], separator: str, decimal: str | None, text: Collection[str]
) -> None:
    """Read the columns of text in which every cell is a number, each with its own decimal sign.

    A sign with three digits after it (1,234 or 1.234) may also separate thousands. If a column has
    no other cells, `decimal` decides, then most of the other columns.
    """
    import pyarrow as pa

    def all_numbers(found: Signs) -> bool:
        return found.numbers == found.cells

    counted = {
        name: found
        for name, cells in columns.items()
        if pa.types.is_string(cells.type) and name not in text
        if all_numbers(signs(cells[:_FIRST])) and all_numbers(found := signs(cells))
    }
    votes = Counter("." for cells in columns.values() if pa.types.is_floating(cells.type))
    votes.update(found.decimal for found in counted.values() if found.decimal)
    usual = "," if votes[","] > votes["."] else "." if votes["."] > votes[","] else None
    for name, found in counted.items():
        cells, doubtful = columns[name], found.either_comma + found.either_point
        commas = (found.comma or found.either_comma) and found.decimal != "."
        if commas and separator == "," and decimal is None:
            continue  # Perhaps a list such as 1,2: it stays text, which `describe` notes.
        mixed = bool(found.comma and found.point)
        chosen = found.decimal or decimal
        if chosen is None and not mixed:
            chosen = usual or ("." if not found.either_comma else None)
            if chosen is None and separator == ";" and not found.either_point:
                chosen = ","  # Semicolons separate where commas are decimal signs.
        if chosen is None and doubtful:
            continue
        columns[name] = read_numbers(cells, chosen)
        if mixed:
            both = f"{_example(cells, ',')!r} and {_example(cells, '.')!r}"
            warn(
                f"Column {name!r} has decimal commas and decimal points, such as {both}. Both are "
                "read as decimal signs."
            )
        elif doubtful and not found.decimal and decimal is None:
            example = _example(cells, "," if found.either_comma else ".")
            (value,) = read_numbers(pa.array([example]), chosen).to_pylist()
            if value >= 1000 or (separator == ";" and usual is None and found.either_point):
                other = {",": ".", ".": ","}[chosen or "."]
                warn(
                    f"Column {name!r} holds numbers such as {example!r}, which is read as "
                    f'{value:g}. If that is wrong, pass `decimal="{other}"`.'
                )


def _example(cells: Any, sign: str) -> str:
    import pyarrow.compute as pc

    return str(cells.filter(pc.match_substring(cells, sign))[0].as_py())


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
    return f"{name} is not {encoding} text{where}. Pass its `encoding`, such as latin-1 or cp1252."


def _look(name: str, text: str, whole: bool, separator: str | None) -> _Look:
    if not text.strip():
        raise FileError(f"{name} is empty.")
    if separator is not None:
        separator = _SPELLED.get(separator, separator)
        if len(separator) != 1:
            raise FileError(f"`separator` must be one character or 'tab'. Received: {separator!r}")
    skip = 0
    if told := re.match(r"sep=(.)\r?\n", text):  # A line for Excel, which is no header.
        separator, skip, text = separator or told[1], 1, text[told.end() :]
    tried = [(*_score(text, whole, one), one) for one in separator or _SEPARATORS]
    # The first of the best: a comma where nothing separates.
    _, _, records, chosen = max(tried, key=lambda one: one[:2])
    names = records[0]
    grouped: Counter[str] = Counter()
    for record in records[1:]:
        for column, cell in zip(names, record, strict=False):
            if "." in cell:
                grouped[column] += 1 if _GROUPED.fullmatch(cell) else -len(records)
    return _Look(chosen, names, [column for column in names if grouped[column] > 0], skip)


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

    # An empty column is one of unknown numbers.
    columns = [c.cast(pa.float64()) if pa.types.is_null(c.type) else c for c in table.columns]
    table = pa.table(columns, names=table.column_names)
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
