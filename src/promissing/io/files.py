"""Tables from files and back: CSV of any kind, Parquet, Excel, and the standard streams.

What cannot be read is refused with a `FileError`, one line that says why and what to do. Files are
written whole or not at all.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from promissing.io import text as _written
from promissing.io.delimited import MISSING, FileError, read_csv, refuse_doubles, short, to_pandas

__all__ = [
    "FileError",
    "atomic_write",
    "check_target",
    "read_table",
    "write_bytes",
    "write_table",
    "write_text",
]

_KINDS = {
    **dict.fromkeys((".csv", ".txt", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".xlsx", ".xlsm"), "excel"),
}
_KNOWN = ".csv, .tsv, .txt (each also with .gz), .parquet or .xlsx"
_TABS = (".tsv", ".tab")
KINDS = ("number", "boolean", "category", "date")
MAX_BYTES = 2**30  # Of a file once it is unpacked.
_MARKS = {b"\x1f\x8b": "gzip", b"PAR1": "parquet", b"PK\x03\x04": "excel"}


def read_table(
    source: str | Path,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    missing_values: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    dates: Sequence[str] | Mapping[str, str | None] = (),
    text: Collection[str] = (),
    max_bytes: int = MAX_BYTES,
) -> pd.DataFrame:
    r"""Read a table from a file, or from standard input.

    Parameters
    ----------
    source : str or Path
        A CSV of any separator, perhaps gzipped, a TSV, Parquet or, with openpyxl, Excel, as its
        suffix says; "-" is standard input, in any of these formats.
    separator : str, optional
        The separator of a CSV: one character, or "tab". By default it is detected.
    encoding : str, optional
        The encoding of a CSV; by default UTF-8, or what a byte order mark says.
    decimal : {".", ","}, optional
        The decimal sign of numbers that can be read in two ways, such as 1,234. By default each
        column decides by its other cells, then most of the other columns. Unless commas separate
        the columns, decimal commas need no declaration.
    missing_values : sequence of str, optional
        What stands for missing beside an empty cell, NA, NaN, null and their kin, such as "?" or
        "-999", which is a number too. Spaces around a cell do not count.
    kinds : mapping of str to str, optional
        The kind of some columns: "number" also reads money, percentages (45 % is 45) and numbers
        with one unit; "category" keeps the text, so that 007 stays 007; "boolean" reads true and
        false, yes and no, 1 and 0; "date" is as in `dates`.
    dates : sequence of str, or mapping of str to str, optional
        Columns with dates in text: ISO 8601, or day, month and year in figures, such as
        31.01.2024. A mapping also gives the format in the notation of `strptime`, or None.
    text : collection of str, optional
        Columns of a CSV that are text even if all their cells look like numbers.
    max_bytes : int, default=2**30
        The largest size of a compressed file once it is unpacked.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from promissing.io.files import read_table
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("age;ward;crp;visit\n34;north;1,5;31.01.2024\n-1;?;2;01.02.2024\n")
    >>> frame = read_table(path, missing_values=["?", "-1"], dates=["visit"])
    >>> frame["age"].tolist(), frame["crp"].tolist(), str(frame["visit"][0])
    ([34.0, nan], [1.5, 2.0], '2024-01-31 00:00:00')
    """
    if decimal not in (None, ".", ","):
        raise FileError(f"`decimal` must be '.' or ','. Received: {decimal!r}")
    declared = _declared(kinds, dates)
    name, content = _open(source, max_bytes)
    kind = content.kind
    try:
        if content.zipped:
            # Before it is parsed: pyarrow hangs at exit if a file fails while it is read.
            with content.open() as file:
                unpacked = 0
                while data := file.read(2**20):
                    content.check_size(unpacked := unpacked + len(data))
        if kind == "csv":
            frame = read_csv(
                name,
                content.open,
                separator="\t" if separator is None and content.tabs else separator,
                encoding=encoding,
                decimal=decimal,
                missing_values=missing_values,
                text={*text, *declared},
            )
        elif kind == "parquet":
            frame = _read_parquet(name, content)
        else:
            frame = _read_excel(name, content)
    except FileError:
        raise
    except (ValueError, OSError, EOFError) as error:
        raise FileError(f"{name} cannot be read: {short(error)}") from error
    if not frame.shape[1]:
        raise FileError(f"{name} is empty: it has no columns.")
    if not len(frame):
        raise FileError(f"{name} is empty: it has a header and no rows.")
    refuse_doubles(name, list(frame.columns))
    frame = _without(frame, missing_values)
    if kind != "csv" and decimal is not None:
        _read_text_numbers(frame, decimal, {*text, *declared})
    for column, (wanted, form) in declared.items():
        if column in frame.columns:
            frame[column] = _as_kind(frame[column], column, wanted, form, decimal)
    return frame


def _declared(
    kinds: Mapping[str, str] | None, dates: Sequence[str] | Mapping[str, str | None]
) -> dict[str, tuple[str, str | None]]:
    """The kind of every column that has one, and the format if it is a date."""
    found: dict[str, tuple[str, str | None]] = {}
    for column, kind in (kinds or {}).items():
        if kind not in KINDS:
            raise FileError(f"`kinds`: {column!r} must be one of {KINDS}. Received: {kind!r}")
        found[column] = kind, None
    formats = dates if isinstance(dates, Mapping) else dict.fromkeys(dates)
    for column, form in formats.items():
        if found.get(column, ("date",))[0] != "date":
            raise FileError(
                f"`dates` names column {column!r}, and `kinds` says {found[column][0]!r}. Give one."
            )
        found[column] = "date", form
    return found


def _as_kind(
    column: pd.Series, name: str, kind: str, form: str | None, decimal: str | None
) -> pd.Series:
    """A column as the declared kind; what cannot be read is refused."""
    dtype = column.dtype
    if kind == "category":
        if dtype.kind == "f" and (column.dropna() % 1 == 0).all():
            column = column.astype("Int64")  # 3.0 is 3.
        return column.astype(object).map(str, na_action="ignore")
    done = {"number": "biuf", "boolean": "b", "date": "M"}[kind]
    if dtype.kind in done or column.isna().all():
        return column.astype(float) if dtype.kind == "O" else column
    texts = column.astype(object).map(str, na_action="ignore")
    if kind == "number":
        values = _numbers(texts, name, decimal)
    elif kind == "boolean":
        values = _written.read_booleans(texts)
    else:
        try:
            values = _written.read_dates(texts, form)
        except ValueError as error:
            raise FileError(
                f"Column {name!r}: {error}. Pass the format: `dates={{{name!r}: '%d/%m/%Y'}}` if "
                "the day comes first."
            ) from None
    lost = texts[texts.notna() & values.isna()]
    if len(lost):
        odd = lost.unique().tolist()[:5]
        raise FileError(
            f"Column {name!r} must hold {kind}s, and holds {odd[0]!r} ({len(lost)} of "
            f"{len(column)} cells cannot be read). Correct the cells, or count them as missing: "
            f"`missing_values={odd}`."
        )
    return values


def _read_text_numbers(frame: pd.DataFrame, decimal: str, text: Collection[str]) -> None:
    """Read the columns of text in which every cell is a number with a sign, in place."""
    import pyarrow as pa

    for name in frame.columns:
        column = frame[name]
        if name in text or column.dtype.kind != "O":
            continue
        if not all(isinstance(cell, str) for cell in column.dropna()):
            continue
        cells = pa.array(column, pa.string(), from_pandas=True)
        found = _written.signs(cells)
        signed = found.comma + found.point + found.either_comma + found.either_point
        if signed and found.numbers == found.cells:
            values = _written.read_numbers(cells, found.decimal or decimal)
            frame[name] = values.to_numpy(zero_copy_only=False)


def _numbers(texts: pd.Series, name: str, decimal: str | None) -> pd.Series:
    """Numbers from text, with currency, percent sign or unit."""
    import pyarrow as pa

    codes, distinct = pd.factorize(texts)
    bare = pa.array(_written.bare_numbers(distinct.tolist()), pa.string())
    found = _written.signs(bare)
    doubtful = found.either_comma or found.either_point
    if doubtful and not (found.decimal or decimal):
        if found.comma or (found.either_comma and found.either_point):
            raise FileError(
                f"Column {name!r} has commas and points that can be read in two ways. Pass "
                "`decimal`."
            )
        # Alone, a comma before three digits separates thousands, and a point is a decimal point.
        decimal = "."
    read = _written.read_numbers(bare, found.decimal or decimal)
    values = np.append(read.to_numpy(zero_copy_only=False).astype(float), np.nan)
    return pd.Series(values[codes], texts.index)


def check_target(
    target: str | Path, suffixes: Collection[str] | None = None, *, special: bool = True
) -> None:
    """Refuse a file that could not be written, before any work is done for it.

    Parameters
    ----------
    target : str or Path
        The file; "-" is standard output. A symbolic link stands for the file it points to.
    suffixes : collection of str, optional
        The suffixes that are allowed; by default those of tables.
    special : bool, default=True
        Whether a device or a pipe may be written to, whatever its suffix.

    Examples
    --------
    >>> from promissing.io.files import check_target
    >>> check_target("table.csv")
    """
    if str(target) == "-":
        return
    path = Path(target)
    if path.is_dir():
        raise FileError(f"{path} is a directory. Give the name of a file.")
    if _is_special(path) and not special:
        raise FileError(f"{path} is a device or a pipe. Give the name of a regular file.")
    real = _followed(path)
    if not real.parent.is_dir():
        raise FileError(f"There is no directory {real.parent} to write {real.name} in.")
    # An ordinary file is replaced, for which its directory must be writable, too.
    places = [path] if _is_special(path) else [real.parent, *([real] if real.exists() else [])]
    if not all(os.access(place, os.W_OK) for place in places):
        raise FileError(f"{path} cannot be written: permission denied.")
    if suffixes is None:
        _kind_of(path)
    elif path.suffix.lower() not in suffixes and not _is_special(path):
        known = ", ".join(suffixes)
        raise FileError(f"{path} has an unknown suffix {path.suffix!r}. Known: {known}.")


def write_table(frame: pd.DataFrame, target: str | Path) -> None:
    """Write a table as its suffix says, whole or not at all.

    Parameters
    ----------
    frame : DataFrame
        The table; its index is not written.
    target : str or Path
        The file; "-" is CSV on standard output. A symbolic link is followed.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.io.files import write_table
    >>> write_table(pd.DataFrame({"age": [34, 51]}), "-")
    age
    34
    51
    """
    if str(target) == "-":
        with _text_of(frame, "Standard output"):
            frame.to_csv(sys.stdout, index=False)
            sys.stdout.flush()
        return
    check_target(target)
    path = Path(target)
    kind = _kind_of(path)
    with _text_of(frame, path), atomic_write(path) as draft:
        if kind == "parquet":
            frame.to_parquet(draft, index=False)
        elif kind == "excel":
            book = io.BytesIO()
            with _needs_openpyxl(path.name):
                frame.to_excel(book, index=False, engine="openpyxl")
            draft.write_bytes(book.getvalue())
        else:
            zipped = path.suffix.lower() == ".gz"
            tab = (Path(path.stem) if zipped else path).suffix.lower() in _TABS
            options: Any = {"index": False, "sep": "\t" if tab else ","}
            # No time stamp, so that the same table is the same file.
            how: Any = {"method": "gzip", "mtime": 0} if zipped else None
            frame.to_csv(draft, compression=how, **options)


def write_text(path: str | Path, text: str) -> None:
    """Write a text as UTF-8, whole or not at all.

    Parameters
    ----------
    path : str or Path
        The file; "-" is standard output. A symbolic link is followed.
    text : str
        The text.

    Examples
    --------
    >>> from promissing.io.files import write_text
    >>> write_text("-", "done")
    done
    """
    try:
        if str(path) == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            write_bytes(path, text.encode())
    except UnicodeEncodeError as error:
        name = "Standard output" if str(path) == "-" else path
        raise FileError(f"{name} cannot be written: {_not_encoded(error)}") from error


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file, whole or not at all.

    Parameters
    ----------
    path : str or Path
        The file. A symbolic link is followed.
    data : bytes
        Its contents.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from promissing.io.files import write_bytes
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "data.bin"
    >>> write_bytes(path, b"1234")
    >>> path.read_bytes()
    b'1234'
    """
    path = Path(path)
    check_target(path, (path.suffix.lower(),))
    with atomic_write(path) as draft:
        draft.write_bytes(data)


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Replace a file by a draft, once the draft is complete.

    If the block raises, the old file stays as it was. A symbolic link is followed: the file it
    points to is replaced, and the link stays. A device or a pipe is written to directly.

    Parameters
    ----------
    path : str or Path
        The file. It need not exist; its directory must.

    Yields
    ------
    Path
        The draft to write to, in the directory of the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from promissing.io.files import atomic_write
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.txt"
    >>> with atomic_write(path) as draft:
    ...     _ = draft.write_text("complete")
    >>> path.read_text()
    'complete'
    """
    path = Path(path)
    if _is_special(path):
        yield path
        return
    path = _followed(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o666 & ~mask)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _too_large(name: str, most: int) -> str:
    return (
        f"{name} unpacks to more than {most:,} bytes. If you trust it, allow more: "
        f"`max_bytes={4 * most}`."
    )


class _Content:
    """What is in a file or came from standard input, readable more than once."""

    def __init__(
        self, name: str, origin: Path | bytes, kind: str, most: int, *, zipped: bool, tabs: bool
    ) -> None:
        self.name, self.origin, self.kind, self.most = name, origin, kind, most
        self.zipped, self.tabs = zipped, tabs

    def open(self) -> Any:
        raw: Any = io.BytesIO(self.origin) if isinstance(self.origin, bytes) else self.origin
        if self.zipped:
            return gzip.open(raw, "rb")
        return raw if isinstance(raw, io.BytesIO) else open(raw, "rb")

    def check_size(self, unpacked: int) -> None:
        if unpacked > self.most:
            raise FileError(_too_large(self.name, self.most))


def _open(source: str | Path, most: int) -> tuple[str, _Content]:
    path = Path(source)
    if str(source) == "-" or _is_special(path):  # A pipe can be read once only.
        data = sys.stdin.buffer.read() if str(source) == "-" else path.read_bytes()
        mark = next((what for start, what in _MARKS.items() if data.startswith(start)), "csv")
        kind = "csv" if mark == "gzip" else mark
        name = "Standard input" if str(source) == "-" else str(path)
        return name, _Content(name, data, kind, most, zipped=mark == "gzip", tabs=False)
    if path.is_dir():
        raise FileError(f"{path} is a directory, not a table.")
    if not path.exists():
        raise FileError(f"There is no file {path}.{_nearby(path)}")
    zipped = path.suffix.lower() == ".gz"
    tabs = (Path(path.stem) if zipped else path).suffix.lower() in _TABS
    name = str(path)
    return name, _Content(name, path, _kind_of(path), most, zipped=zipped, tabs=tabs)


def _kind_of(path: Path) -> str:
    """The format a file has by its suffix."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        suffix = Path(path.stem).suffix.lower()
        if _KINDS.get(suffix, "csv") != "csv":
            suffix = ".gz"
    if _is_special(path):
        return "csv"
    if suffix not in _KINDS:
        raise FileError(
            f"{path} has {f'an unknown suffix {suffix!r}' if suffix else 'no suffix'}. "
            f"Known: {_KNOWN}."
        )
    return _KINDS[suffix]


def _is_special(path: Path) -> bool:
    """Whether it is there and no ordinary file, as /dev/null or a named pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _nearby(path: Path) -> str:
    there = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    found = get_close_matches(path.name, there, n=1, cutoff=0.8)
    return f" Did you mean {path.parent / found[0]}?" if found else ""


def _read_parquet(name: str, content: _Content) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import parquet

    with content.open() as file:
        try:
            told = parquet.ParquetFile(file)
            # Repeated values take no room in the file, and eight bytes each in memory.
            cells = told.metadata.num_rows * told.metadata.num_columns
            groups = range(told.num_row_groups)
            sizes = (told.metadata.row_group(g).total_byte_size for g in groups)
            content.check_size(max(8 * cells, sum(sizes)))
            table = told.read()
        except pa.ArrowInvalid as error:
            raise FileError(f"{name} is not Parquet, or is damaged: {short(error)}") from error
    for field in table.schema:
        if pa.types.is_nested(field.type):
            raise FileError(
                f"{name}: column {field.name!r} holds {field.type}. Spread it over columns of its "
                "own, or turn it into text."
            )
    index = [c for c in table.column_names if re.fullmatch(r"__index_level_\d+__", c)]
    refuse_doubles(name, table.column_names)
    return to_pandas(table.drop_columns(index))


def _read_excel(name: str, content: _Content) -> pd.DataFrame:
    with content.open() as file, _needs_openpyxl(name):
        with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(file) as parts:
            content.check_size(sum(part.file_size for part in parts.infolist()))
        file.seek(0)
        header = pd.read_excel(file, header=None, nrows=1, engine="openpyxl")
        refuse_doubles(name, [str(c) for c in header.iloc[:1].to_numpy().ravel() if pd.notna(c)])
        file.seek(0)
        frame = pd.read_excel(file, na_values=list(MISSING), engine="openpyxl")
    return frame.rename(columns=str).convert_dtypes(
        convert_string=False, convert_integer=False, convert_floating=False
    )


@contextlib.contextmanager
def _needs_openpyxl(name: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise FileError(
            f"{name} is an Excel file, which needs openpyxl: `pip install openpyxl`, or save it "
            "as CSV."
        ) from error


def _without(frame: pd.DataFrame, missing_values: Sequence[str]) -> pd.DataFrame:
    """The frame in which these values are missing, as text or as the number they spell."""
    words = [str(value) for value in missing_values]
    if not words:
        return frame
    numbers = pd.to_numeric(pd.Series(words, dtype=object), errors="coerce").dropna().tolist()
    for column in frame:
        kind = frame[column].dtype.kind
        hit = frame[column].isin(numbers if kind in "iuf" else [] if kind in "bmM" else words)
        if hit.any():
            frame[column] = frame[column].mask(hit)
    return frame


def _followed(path: Path) -> Path:
    """The file a symbolic link points to; other paths as they are."""
    if not path.is_symlink():
        return path
    real = Path(os.path.realpath(path))
    if real.is_symlink():
        raise FileError(f"{path} is a symbolic link that leads back to itself.")
    return real


@contextlib.contextmanager
def _text_of(frame: pd.DataFrame, name: object) -> Iterator[None]:
    """Name the column with text that the file cannot hold."""
    try:
        yield
    except UnicodeEncodeError as error:
        encoding = error.encoding
        column = next((c for c in frame if not _encodable([c, *frame[c]], encoding)), None)
        raise FileError(
            f"{name} cannot be written: {'' if column is None else f'in column {column!r}, '}"
            f"{_not_encoded(error)}"
        ) from error


def _encodable(values: Sequence[Any], encoding: str) -> bool:
    try:
        for value in values:
            if isinstance(value, str):
                value.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _not_encoded(error: UnicodeEncodeError) -> str:
    text = error.object[max(0, error.start - 10) : error.start + 10]
    return f"{text!a:.60} is not valid {error.encoding} text. Correct the text."
