"""Reading and writing of tables: delimited text, Parquet, Excel and the standard streams.

A file that cannot be read raises a `FileError` with one line that says why and what to do. A file
is written completely or not at all.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import os
import re
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from promissing._validation import did_you_mean, few
from promissing.encoding.columns import KINDS
from promissing.io.text import read_kind, read_number_columns, read_signed_numbers

__all__ = [
    "FileError",
    "atomic_write",
    "check_target",
    "read_table",
    "short",
    "write_bytes",
    "write_table",
    "write_text",
]

MAX_BYTES = 2**30  # Default limit of the size of an unpacked file.
_FORMATS = {
    **dict.fromkeys((".csv", ".txt", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".xlsx", ".xlsm"), "excel"),
}
_KNOWN = ".csv, .tsv, .txt (each also with .gz), .parquet or .xlsx"
_TABS = (".tsv", ".tab")
_FIRST_BYTES = {b"\x1f\x8b": "gzip", b"PAR1": "parquet", b"PK\x03\x04": "excel"}
# Cells that are missing in every CSV, as in pandas.
_MISSING = (
    *("", "NA", "N/A", "n/a", "<NA>", "#N/A", "#NA", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "null", "None"),
)
_SEPARATORS = ",;\t|"
_SPELLED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}
_GROUPED = re.compile(r"\s*[-+]?[1-9]\d{0,2}(\.\d{3})+\s*")
_HEAD = 2**20  # Bytes from which separator and names are read; a header may be long.


class FileError(ValueError):
    """An error of reading or writing a file. Its message is one line with the file and the reason.

    Examples
    --------
    >>> from promissing.io import FileError, read_table
    >>> try:
    ...     read_table("/no/directory/table.csv")
    ... except FileError as error:
    ...     print(error)
    There is no file /no/directory/table.csv.
    """


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
    r"""Read a table from a file or from standard input.

    Parameters
    ----------
    source : str or Path
        A file, whose suffix determines the format: CSV with any separator, TSV (both may be
        gzipped), Parquet or, with openpyxl, Excel. "-" is standard input in any of these formats.
    separator : str, optional
        The separator of a CSV: one character, or "tab". By default it is detected.
    encoding : str, optional
        The encoding of a CSV. The default is UTF-8, or the one of the byte order mark.
    decimal : {".", ","}, optional
        The decimal sign of numbers with two meanings, such as 1,234. By default the other cells of
        the column decide, then the majority of the other columns. Decimal commas need no
        declaration unless commas separate the columns.
    missing_values : sequence of str, optional
        Values that mean missing in addition to an empty cell, NA, NaN, null and similar ones, such
        as "?" or "-999" (also as a number). Spaces around a cell are ignored.
    kinds : mapping of str to str, optional
        The kinds of some columns. "number" also reads money, percentages (45 % is 45) and numbers
        with one unit; "category" keeps the text, so that 007 stays 007; "boolean" reads true and
        false, yes and no, 1 and 0; "date" is the same as `dates`.
    dates : sequence of str, or mapping of str to str, optional
        Columns with dates in text: ISO 8601, or numeric day, month and year, such as 31.01.2024.
        The values of a mapping are formats in the notation of `strptime`, or None.
    text : collection of str, optional
        Columns of a CSV that are text even if all their cells are numbers.
    max_bytes : int, default=2**30
        Maximum size of a compressed file after unpacking.

    Returns
    -------
    DataFrame
        The table.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from promissing.io import read_table
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("age;ward;crp;visit\n34;north;1,5;31.01.2024\n-1;?;2;01.02.2024\n")
    >>> frame = read_table(path, missing_values=["?", "-1"], dates=["visit"])
    >>> frame["age"].tolist(), frame["crp"].tolist(), str(frame["visit"][0])
    ([34.0, nan], [1.5, 2.0], '2024-01-31 00:00:00')
    """
    if decimal not in (None, ".", ","):
        raise FileError(f"`decimal` must be '.' or ','. Received: {decimal!r}")
    declared = _declared_kinds(kinds, dates)
    as_text = {*text, *declared}
    file = _open(source, max_bytes)
    name = file.name
    try:
        file.check_unpacked_size()
        if file.format == "csv":
            frame = _read_csv(file, separator, encoding, decimal, missing_values, as_text)
        else:
            frame = _read_parquet(file) if file.format == "parquet" else _read_excel(file)
        if not frame.shape[1]:
            raise FileError(f"{name} is empty: it has no columns.")
        if not len(frame):
            raise FileError(f"{name} is empty: it has a header and no rows.")
    except FileError:
        raise
    except (ValueError, OSError, EOFError) as error:
        raise FileError(f"{name} cannot be read: {short(error)}") from error
    _refuse_repeated(name, list(frame.columns))
    _drop_missing(frame, missing_values)
    if file.format != "csv" and decimal is not None:
        read_signed_numbers(frame, decimal, as_text)
    for column, (kind, form) in declared.items():
        if column in frame.columns:
            try:
                frame[column] = read_kind(frame[column], kind, form, decimal)
            except ValueError as error:
                raise FileError(str(error)) from None
    return frame


def write_table(frame: pd.DataFrame, target: str | Path) -> None:
    """Write a table completely or not at all; the suffix of the file determines the format.

    Parameters
    ----------
    frame : DataFrame
        The table; its index is not written.
    target : str or Path
        The file; "-" is CSV on standard output. A symbolic link is followed.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.io import write_table
    >>> write_table(pd.DataFrame({"age": [34, 51]}), "-")
    age
    34
    51
    """
    if str(target) == "-":
        with _encoding_errors("Standard output", frame):
            frame.to_csv(sys.stdout, index=False)
            sys.stdout.flush()
        return
    check_target(target)
    path = Path(target)
    kind, zipped, tabs = _format(path)
    with _encoding_errors(path, frame), atomic_write(path) as draft:
        if kind == "parquet":
            frame.to_parquet(draft, index=False)
        elif kind == "excel":
            book = io.BytesIO()
            with _needs_openpyxl(path.name):
                frame.to_excel(book, index=False, engine="openpyxl")
            draft.write_bytes(book.getvalue())
        else:
            # Without a time stamp, so that the same table gives the same file.
            how: Any = {"method": "gzip", "mtime": 0} if zipped else None
            frame.to_csv(draft, compression=how, index=False, sep="\t" if tabs else ",")


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8, completely or not at all.

    Parameters
    ----------
    path : str or Path
        The file; "-" is standard output. A symbolic link is followed.
    text : str
        The text.

    Examples
    --------
    >>> from promissing.io import write_text
    >>> write_text("-", "done")
    done
    """
    with _encoding_errors("Standard output" if str(path) == "-" else path):
        if str(path) == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            write_bytes(path, text.encode())


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file completely or not at all.

    Parameters
    ----------
    path : str or Path
        The file. A symbolic link is followed.
    data : bytes
        Its contents.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from promissing.io import write_bytes
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "data.bin"
    >>> write_bytes(path, b"1234")
    >>> path.read_bytes()
    b'1234'
    """
    path = Path(path)
    check_target(path, (path.suffix.lower(),))
    with atomic_write(path) as draft:
        draft.write_bytes(data)


def check_target(
    target: str | Path, suffixes: Collection[str] | None = None, *, special: bool = True
) -> None:
    """Raise an error if a file could not be written, before any work is done.

    Parameters
    ----------
    target : str or Path
        The file; "-" is standard output. A symbolic link is followed.
    suffixes : collection of str, optional
        The suffixes that are allowed; by default those of tables.
    special : bool, default=True
        Whether a device or a pipe, with any suffix, is allowed.

    Examples
    --------
    >>> from promissing.io import check_target
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
    # A regular file is replaced, so its directory must be writable, too.
    places = [path] if _is_special(path) else [real.parent, *([real] if real.exists() else [])]
    if not all(os.access(place, os.W_OK) for place in places):
        raise FileError(f"{path} cannot be written: permission denied.")
    if suffixes is None:
        _format(path)
    elif path.suffix.lower() not in suffixes and not _is_special(path):
        known = ", ".join(suffixes)
        raise FileError(f"{path} has an unknown suffix {path.suffix!r}. Known: {known}.")


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Replace a file by a draft when the draft is complete.

    If the block raises an error, the old file is kept. A symbolic link is followed: the file it
    points to is replaced, and the link is kept. A device or a pipe is written to directly.

    Parameters
    ----------
    path : str or Path
        The file. Its directory must exist.

    Yields
    ------
    Path
        The draft to write to, in the directory of the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from promissing.io import atomic_write
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


def short(error: BaseException) -> str:
    """Return the message of an error in one line of at most 200 characters."""
    message = " ".join(str(error).split()) or type(error).__name__
    message = message if len(message) <= 200 else message[:197] + "..."
    return message if message.endswith((".", "?", "!")) else message + "."


@dataclass(frozen=True)
class _File:
    """A file, or the bytes of a stream, that can be opened more than once."""

    name: str
    origin: Path | bytes
    format: str
    zipped: bool
    tabs: bool
    max_bytes: int

    def open(self) -> Any:
        raw: Any = io.BytesIO(self.origin) if isinstance(self.origin, bytes) else self.origin
        if self.zipped:
            return gzip.open(raw, "rb")
        return raw if isinstance(raw, io.BytesIO) else open(raw, "rb")

    def check_size(self, unpacked: int) -> None:
        if unpacked > self.max_bytes:
            raise FileError(
                f"{self.name} unpacks to more than {self.max_bytes:,} bytes. If you trust it, "
                f"allow more: `max_bytes={4 * self.max_bytes}`."
            )

    def check_unpacked_size(self) -> None:
        """Check a gzipped file before it is parsed: pyarrow hangs at exit if reading fails."""
        if self.zipped:
            with self.open() as file:
                unpacked = 0
                while data := file.read(2**20):
                    self.check_size(unpacked := unpacked + len(data))


def _open(source: str | Path, max_bytes: int) -> _File:
    path = Path(source)
    if str(source) == "-" or _is_special(path):  # A pipe can be read only once.
        data = sys.stdin.buffer.read() if str(source) == "-" else path.read_bytes()
        found = next((one for start, one in _FIRST_BYTES.items() if data.startswith(start)), "csv")
        zipped = found == "gzip"
        name = "Standard input" if str(source) == "-" else str(path)
        return _File(name, data, "csv" if zipped else found, zipped, False, max_bytes)
    if path.is_dir():
        raise FileError(f"{path} is a directory, not a table.")
    if not path.exists():
        near = did_you_mean(path.name, [one.name for one in path.parent.glob("*")], show=0)
        raise FileError(f"There is no file {path}.{near}")
    return _File(str(path), path, *_format(path), max_bytes)


def _format(path: Path) -> tuple[str, bool, bool]:
    """Return the format by suffix, and whether the file is gzipped and separated by tabs."""
    zipped = path.suffix.lower() == ".gz"
    suffix = (Path(path.stem) if zipped else path).suffix.lower()
    if _is_special(path):
        return "csv", zipped, suffix in _TABS
    if zipped and _FORMATS.get(suffix, "csv") != "csv":
        suffix = ".gz"
    if suffix not in _FORMATS:
        raise FileError(
            f"{path} has {f'an unknown suffix {suffix!r}' if suffix else 'no suffix'}. "
            f"Known: {_KNOWN}."
        )
    return _FORMATS[suffix], zipped, suffix in _TABS


def _is_special(path: Path) -> bool:
    """Return whether a path is a device or a pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _followed(path: Path) -> Path:
    """Return the file a symbolic link points to, and other paths unchanged."""
    if not path.is_symlink():
        return path
    real = Path(os.path.realpath(path))
    if real.is_symlink():
        raise FileError(f"{path} is a symbolic link that leads back to itself.")
    return real


def _declared_kinds(
    kinds: Mapping[str, str] | None, dates: Sequence[str] | Mapping[str, str | None]
) -> dict[str, tuple[str, str | None]]:
    """Return the declared kinds by column, each with the format if it is a date."""
    found: dict[str, tuple[str, str | None]] = {}
    for column, kind in (kinds or {}).items():
        if kind not in KINDS:
            raise FileError(f"`kinds`: {column!r} must be one of {KINDS}. Received: {kind!r}")
        found[column] = kind, None
    formats = dates if isinstance(dates, Mapping) else dict.fromkeys(dates)
    for column, form in formats.items():
        if found.get(column, ("date",))[0] != "date":
            raise FileError(
                f"`dates` names column {column!r}, but its kind in `kinds` is "
                f"{found[column][0]!r}. Remove one of them."
            )
        found[column] = "date", form
    return found


def _read_csv(
    file: _File,
    separator: str | None,
    encoding: str | None,
    decimal: str | None,
    missing_values: Sequence[str],
    text: Collection[str],
) -> pd.DataFrame:
    """Read delimited text; the parameters are those of `read_table`."""
    from pyarrow import csv as arrow

    if separator is None and file.tabs:
        separator = "\t"
    with file.open() as opened:
        head = opened.read(_HEAD)
        complete = not opened.read(1)
    encoding = _encoding(head, encoding)
    start = _decode(file.name, head, encoding)
    separator, names, grouped, skip = _dialect(file.name, start, complete, separator)
    _refuse_repeated(file.name, names)
    if separator == "," and decimal != ",":
        grouped = []  # 1.234 is a fraction. With other separators, the other columns decide.
    missing = [*_MISSING, *missing_values]
    with file.open() as opened:
        try:
            table = arrow.read_csv(
                opened,
                read_options=arrow.ReadOptions(encoding=encoding, block_size=2**22, skip_rows=skip),
                parse_options=arrow.ParseOptions(
                    delimiter=separator,
                    newlines_in_values=True,
                    # In a single column, an empty line is a missing value.
                    ignore_empty_lines=len(names) > 1,
                ),
                convert_options=arrow.ConvertOptions(
                    null_values=missing,
                    strings_can_be_null=True,
                    column_types={
                        c: pa.string() for c in names if c.strip() in text or c in grouped
                    },
                ),
            )
        except UnicodeDecodeError as error:
            raise FileError(_not_text(file.name, encoding)) from error
        except pa.ArrowInvalid as error:
            raise FileError(
                f"{file.name} is not a CSV with the separator {separator!r}: {short(error)} "
                "Correct the line, or pass another `separator`."
            ) from error
    for column, values in zip(names, table.columns, strict=False):
        if pa.types.is_binary(values.type):  # Columns that are not UTF-8 stay bytes.
            raise FileError(_not_text(file.name, encoding, column))
    names = [c.strip() or f"unnamed_{j}" for j, c in enumerate(table.column_names, start=1)]
    columns = {c: _drop_padded(v, missing) for c, v in zip(names, table.columns, strict=True)}
    read_number_columns(columns, separator, decimal, text)
    return _to_pandas(pa.table(columns))


def _drop_padded(cells: Any, missing: Sequence[str]) -> Any:
    """Make cells missing that mean missing, apart from spaces around them."""
    if not pa.types.is_string(cells.type):
        return cells
    hit = pc.is_in(pc.utf8_trim_whitespace(cells), value_set=pa.array(missing, pa.string()))
    return pc.if_else(hit, pa.scalar(None, pa.string()), cells) if pc.any(hit).as_py() else cells


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
    except UnicodeError as error:
        raise FileError(_not_text(name, encoding)) from error
    if "\0" in text:
        raise FileError(
            f"{name} is not a text file. Give a CSV, or Parquet or Excel with its suffix."
        )
    return text.removeprefix("\ufeff")


def _not_text(name: str, encoding: str, column: str | None = None) -> str:
    where = "" if column is None else f", in column {column!r}"
    return f"{name} is not {encoding} text{where}. Pass its `encoding`, such as latin-1 or cp1252."


def _dialect(
    name: str, text: str, complete: bool, separator: str | None
) -> tuple[str, list[str], list[str], int]:
    """Return the dialect of a CSV, given its first lines.

    These are the separator, the column names, the columns with numbers such as 1.234, which may be
    thousands, and the number of lines before the header.
    """
    if not text.strip():
        raise FileError(f"{name} is empty.")
    if separator is not None:
        separator = _SPELLED.get(separator, separator)
        if len(separator) != 1:
            raise FileError(f"`separator` must be one character or 'tab'. Received: {separator!r}")
    skip = 0
    if found := re.match(r"sep=(.)\r?\n", text):  # A line for Excel before the header.
        separator, skip, text = separator or found[1], 1, text[found.end() :]
    tried = [(*_score(text, complete, one), one) for one in separator or _SEPARATORS]
    # The first of the best: a comma if there is one column.
    _, _, records, chosen = max(tried, key=lambda one: one[:2])
    names = records[0]
    grouped: Counter[str] = Counter()
    for record in records[1:]:
        for column, cell in zip(names, record, strict=False):
            if "." in cell:
                grouped[column] += 1 if _GROUPED.fullmatch(cell) else -len(records)
    return chosen, names, [column for column in names if grouped[column] > 0], skip


def _score(text: str, complete: bool, separator: str) -> tuple[float, int, list[list[str]]]:
    """Return the share of records as long as the first, its length, and the records."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        records = [record for record in reader if record]
    except csv.Error:
        return -1.0, 0, [[text.splitlines()[0]]]
    if not complete and len(records) > 1:
        records.pop()  # It may be incomplete.
    size = len(records[0])
    share = sum(len(record) == size for record in records) / len(records)
    return (share if size > 1 else 0.0), size, records


def _read_parquet(file: _File) -> pd.DataFrame:
    from pyarrow import parquet

    with file.open() as opened:
        try:
            content = parquet.ParquetFile(opened)
            meta = content.metadata
            # Repeated values take no space in the file, but eight bytes each in memory.
            sizes = (meta.row_group(g).total_byte_size for g in range(content.num_row_groups))
            file.check_size(max(8 * meta.num_rows * meta.num_columns, sum(sizes)))
            table = content.read()
        except pa.ArrowInvalid as error:
            raise FileError(f"{file.name} is not Parquet, or is damaged: {short(error)}") from error
    for field in table.schema:
        if pa.types.is_nested(field.type):
            raise FileError(
                f"{file.name}: column {field.name!r} holds {field.type}. Split it into several "
                "columns, or convert it to text."
            )
    index = [c for c in table.column_names if re.fullmatch(r"__index_level_\d+__", c)]
    _refuse_repeated(file.name, table.column_names)
    return _to_pandas(table.drop_columns(index))


def _to_pandas(table: Any) -> pd.DataFrame:
    """Convert to pandas so that missing values keep the kind of a column."""
    # A column without any value is one of numbers.
    columns = [c.cast(pa.float64()) if pa.types.is_null(c.type) else c for c in table.columns]
    table = pa.table(columns, names=table.column_names)
    booleans = {pa.bool_(): pd.BooleanDtype()}
    return table.to_pandas(types_mapper=booleans.get, date_as_object=False, ignore_metadata=True)


def _read_excel(file: _File) -> pd.DataFrame:
    with file.open() as opened, _needs_openpyxl(file.name):
        with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(opened) as parts:
            file.check_size(sum(part.file_size for part in parts.infolist()))
        opened.seek(0)
        header = pd.read_excel(opened, header=None, nrows=1, engine="openpyxl")
        names = [str(c) for c in header.iloc[:1].to_numpy().ravel() if pd.notna(c)]
        _refuse_repeated(file.name, names)
        opened.seek(0)
        frame = pd.read_excel(opened, na_values=list(_MISSING), engine="openpyxl")
    return frame.rename(columns=str).convert_dtypes(
        convert_string=False, convert_integer=False, convert_floating=False
    )


@contextlib.contextmanager
def _needs_openpyxl(name: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise FileError(
            f"{name} is an Excel file, which needs openpyxl: `pip install 'promissing[excel]'`, or "
            "save it as CSV."
        ) from error


def _refuse_repeated(name: str, names: Sequence[str]) -> None:
    """Raise an error for repeated column names; columns without a name get one each."""
    counts = Counter(str(one).strip() for one in names)
    repeated = [one for one, count in counts.items() if count > 1 and one]
    if repeated:
        raise FileError(
            f"{name} has more than one column called {few(repeated)}. Rename them, so that all "
            "names are different."
        )


def _drop_missing(frame: pd.DataFrame, missing_values: Sequence[str]) -> None:
    """Make these values of the frame missing, as text or as numbers."""
    words = [str(value) for value in missing_values]
    numbers = pd.to_numeric(pd.Series(words, dtype=object), errors="coerce").dropna().tolist()
    for column in frame if words else ():
        kind = frame[column].dtype.kind
        hit = frame[column].isin(numbers if kind in "iuf" else [] if kind in "bmM" else words)
        if hit.any():
            frame[column] = frame[column].mask(hit)


@contextlib.contextmanager
def _encoding_errors(name: object, frame: pd.DataFrame | None = None) -> Iterator[None]:
    """Turn the error for text that cannot be encoded into one that names file and column."""
    try:
        yield
    except UnicodeEncodeError as error:
        text = error.object[max(0, error.start - 10) : error.start + 10]
        column = None if frame is None else _column_not_encodable(frame, error.encoding)
        where = "" if column is None else f"in column {column!r}, "
        raise FileError(
            f"{name} cannot be written: {where}{text!a:.60} is not valid {error.encoding} text. "
            "Correct the text."
        ) from error


def _column_not_encodable(frame: pd.DataFrame, encoding: str) -> Any:
    for column in frame:
        try:
            "".join(one for one in [column, *frame[column]] if isinstance(one, str)).encode(
                encoding
            )
        except UnicodeEncodeError:
            return column
    return None
