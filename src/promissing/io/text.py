"""Numbers, dates and booleans in text: decimal signs, thousands, money, percentages, units."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from promissing._validation import warn
from promissing.encoding.columns import FEW_ODD

__all__ = [
    "TextFormat",
    "are_numbers",
    "find_format",
    "read_kind",
    "read_number_columns",
    "read_signed_numbers",
]

_FIRST = 1000  # Number of cells that are enough to recognize most columns of other text.
_WHOLE_NUMBERS = 10  # Fewer distinct whole numbers may be codes.
_SIGN, _POWER = r"^[-+\x{2212}]?", r"(?:[eE][-+]?\d+)?$"
_WHOLE = _SIGN + r"\d+" + _POWER
# Numbers with one meaning. Three digits after a single sign could also be thousands.
_COMMA = _SIGN + r"(?:\d*|\d{1,3}(?:\.\d{3})+),\d+" + _POWER
_POINT = _SIGN + r"(?:(?:\d*|\d{1,3}(?:,\d{3})+)\.\d+|\d+\.)" + _POWER
_EITHER = _SIGN + r"[1-9]\d{0,2}[.,]\d{3}$"
_POINT_GROUPS = _SIGN + r"[1-9]\d{0,2}(?:\.\d{3}){2,}$"  # 1.234.567: the decimal sign is a comma.
_COMMA_GROUPS = _SIGN + r"[1-9]\d{0,2}(?:,\d{3}){2,}$"

_CURRENCY = (
    r"(?:[$\u20ac\u00a3\u00a5]|US\$|EUR|USD|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK"
    r"|HUF|BRL|ZAR|Euro?s?|Fr\.|kr\.?|z\u0142)"
)
_NUMBER = r"[-+\u2212]?(?:\d[\d.,'\u2019\u00a0\u202f ]*|[.,]\d+)(?:[eE][-+]?\d+)?"
_MONEY = re.compile(
    rf"([-+\u2212]?)\s*{_CURRENCY}\s*({_NUMBER})|()({_NUMBER})\s*{_CURRENCY}", re.IGNORECASE
)
_PERCENT = re.compile(rf"({_NUMBER})\s*%")
_LIMIT = re.compile(rf"(?:[<>\u2264\u2265~]|<=|>=)\s*{_NUMBER}")
_UNIT = re.compile(rf"({_NUMBER})\s*([a-zA-Z\u00b0\u00b5\u03bc]\S*(?: [a-zA-Z]\S*)?)")
_PAIR = re.compile(r"\d+(?:[.,]\d+)?\s*/\s*\d+(?:[.,]\d+)?")
_SPACED = re.compile(r"(?<=\d)['\u2019\u00a0\u202f ](?=\d{3}(?!\d))")
_CLOCK = r"(?:[T ,]\s*\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?"
_DAY = re.compile(rf"(\d{{1,2}})([./-])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){_CLOCK}")
_YEAR = re.compile(rf"\d{{4}}([./-])\d{{1,2}}\1\d{{1,2}}{_CLOCK}")
_BOOLEANS = {
    **dict.fromkeys(("true", "t", "yes", "y", "ja", "j", "1", "1.0"), True),
    **dict.fromkeys(("false", "f", "no", "n", "nein", "0", "0.0"), False),
}


class _DecimalSigns(NamedTuple):
    """Counts of how the cells of one column write numbers.

    Attributes
    ----------
    cells : int
        Observed cells.
    numbers : int
        Cells that are numbers.
    comma, point : int
        Numbers whose decimal sign can only be a comma (1,5) or a point (1.5).
    either_comma, either_point : int
        Numbers with three digits after one sign (1,234 or 1.234): a fraction or thousands.
    """

    cells: int
    numbers: int
    comma: int
    point: int
    either_comma: int
    either_point: int

    @property
    def all_numbers(self) -> bool:
        """Whether every observed cell is a number."""
        return self.numbers == self.cells

    @property
    def decimal(self) -> str | None:
        """The decimal sign, if the cells determine it."""
        if bool(self.comma) == bool(self.point):
            return None
        return "," if self.comma else "."


class TextFormat(NamedTuple):
    """The format that the values of a column of text seem to have.

    Attributes
    ----------
    what : str
        Its name for a sentence, such as "amounts of money".
    examples : list of str
        Values of this format.
    odd : list of str
        Values of another format.
    remedy : str
        A sentence that names the argument of `promissing.io.read_table` to use.
    """

    what: str
    examples: list[str]
    odd: list[str]
    remedy: str


def are_numbers(texts: Sequence[str]) -> NDArray[np.bool_]:
    """Return which texts are numbers, with a decimal comma or point."""
    return np.asarray(_masks(pa.array(list(texts), pa.string()))[0])


def read_number_columns(
    columns: dict[str, Any], separator: str, decimal: str | None, text: Collection[str]
) -> None:
    """Replace pyarrow columns of text in which every cell is a number by these numbers.

    Each column has its own decimal sign. A sign with three digits after it (1,234 or 1.234) may
    also separate thousands. If a column has no other cells, `decimal` decides, then the majority of
    the other columns.
    """
    signs = {
        name: found
        for name, cells in columns.items()
        if pa.types.is_string(cells.type) and name not in text
        if _count_signs(cells[:_FIRST]).all_numbers and (found := _count_signs(cells)).all_numbers
    }
    votes = Counter("." for cells in columns.values() if pa.types.is_floating(cells.type))
    votes.update(found.decimal for found in signs.values() if found.decimal)
    usual = "," if votes[","] > votes["."] else "." if votes["."] > votes[","] else None
    for name, found in signs.items():
        cells, doubtful = columns[name], found.either_comma + found.either_point
        commas = (found.comma or found.either_comma) and found.decimal != "."
        if commas and separator == "," and decimal is None:
            continue  # It may be a list such as 1,2. `describe` has a note on such a column.
        mixed = bool(found.comma and found.point)
        chosen = found.decimal or decimal
        if chosen is None and not mixed:
            chosen = usual or ("." if not found.either_comma else None)
            if chosen is None and separator == ";" and not found.either_point:
                chosen = ","  # Semicolons are the separator where commas are decimal signs.
        if chosen is None and doubtful:
            continue
        columns[name] = _read_numbers(cells, chosen)
        if mixed:
            both = f"{_example(cells, ',')!r} and {_example(cells, '.')!r}"
            warn(
                f"Column {name!r} has decimal commas and decimal points, such as {both}. Both are "
                "read as decimal signs."
            )
        elif doubtful and not found.decimal and decimal is None:
            example = _example(cells, "," if found.either_comma else ".")
            (value,) = _read_numbers(pa.array([example]), chosen).to_pylist()
            if value >= 1000 or (separator == ";" and usual is None and found.either_point):
                other = {",": ".", ".": ","}[chosen or "."]
                warn(
                    f"Column {name!r} holds numbers such as {example!r}, which is read as "
                    f'{value:g}. If this is wrong, pass `decimal="{other}"`.'
                )


def read_signed_numbers(frame: pd.DataFrame, decimal: str, text: Collection[str]) -> None:
    """Replace columns of text in which every cell is a number, and one has a decimal sign."""
    for name in frame.columns:
        column = frame[name]
        is_text = column.dtype.kind == "O" and all(isinstance(c, str) for c in column.dropna())
        if name in text or not is_text:
            continue
        cells = pa.array(column, pa.string(), from_pandas=True)
        found = _count_signs(cells)
        if any(found[2:]) and found.all_numbers:
            values = _read_numbers(cells, found.decimal or decimal)
            frame[name] = values.to_numpy(zero_copy_only=False)


def read_kind(column: pd.Series, kind: str, form: str | None, decimal: str | None) -> pd.Series:
    """Read a column as the declared kind; a cell that cannot be read is a ValueError.

    `form` is the format of dates in the notation of `strptime`.
    """
    dtype, name = column.dtype, column.name
    if kind == "category":
        if dtype.kind == "f" and (column.dropna() % 1 == 0).all():
            column = column.astype("Int64")  # 3.0 is 3.
        return column.astype(object).map(str, na_action="ignore")
    done = {"number": "biuf", "boolean": "b", "date": "M"}[kind]
    if dtype.kind in done or column.isna().all():
        return column.astype(float) if dtype.kind == "O" else column
    texts = column.astype(object).map(str, na_action="ignore")
    if kind == "number":
        values = _read_decorated_numbers(texts, decimal)
    elif kind == "boolean":
        values = texts.str.strip().str.lower().map(_BOOLEANS).astype("boolean")
    else:
        values = _read_dates(texts, form)
    lost = texts[texts.notna() & values.isna()]
    if len(lost):
        odd = lost.unique().tolist()[:5]
        raise ValueError(
            f"Column {name!r} must hold {kind}s, and holds {odd[0]!r} ({len(lost)} of "
            f"{len(column)} cells cannot be read). Correct the cells, or declare them as missing: "
            f"`missing_values={odd}`."
        )
    return values


def find_format(values: Sequence[str], name: str) -> TextFormat | None:
    """Return whether the distinct values of a column of text are numbers, dates or the like."""
    values = [text for text in dict.fromkeys(value.strip() for value in values) if text]
    if not values:
        return None
    return (
        _find_numbers(values, name)
        or _find_decorated_numbers(values, name)
        or _find_pairs(values)
        or _find_dates(values, name)
    )


def _example(cells: Any, sign: str) -> str:
    """Return the first cell that contains the sign."""
    return str(cells.filter(pc.match_substring(cells, sign))[0].as_py())


def _masks(cells: Any) -> tuple[Any, Any, Any, Any]:
    """Return which cells are numbers, have a decimal comma, a decimal point, or either."""
    cells = pc.utf8_trim_whitespace(cells)

    def match(pattern: str) -> Any:
        return pc.fill_null(pc.match_substring_regex(cells, pattern), False)

    either = match(_EITHER)
    comma = pc.or_(pc.and_not(match(_COMMA), either), match(_POINT_GROUPS))
    point = pc.or_(pc.and_not(match(_POINT), either), match(_COMMA_GROUPS))
    number = pc.or_(pc.or_(match(_WHOLE), either), pc.or_(comma, point))
    return number, comma, point, either


def _count_signs(cells: Any) -> _DecimalSigns:
    """Count how a pyarrow array of text writes numbers."""
    number, comma, point, either = _masks(cells)
    either_comma = pc.and_(either, pc.fill_null(pc.match_substring(cells, ","), False))
    found = (number, comma, point, either_comma, pc.and_not(either, either_comma))
    counts = (pc.sum(one).as_py() or 0 for one in found)
    return _DecimalSigns(len(cells) - cells.null_count, *counts)


def _read_numbers(cells: Any, decimal: str | None) -> Any:
    """Read a pyarrow array of text as float64; cells that are no numbers become null.

    `decimal` is the decimal sign of cells with two meanings; if None, such cells become null.
    """
    cells = pc.utf8_trim_whitespace(cells)
    number, comma, _, either = _masks(cells)
    if decimal is None:
        number = pc.and_not(number, either)
    as_comma = pc.or_(comma, either) if decimal == "," else comma
    plain = pc.replace_substring(cells, "\u2212", "-")
    text = pc.if_else(
        as_comma,
        pc.replace_substring(pc.replace_substring(plain, ".", ""), ",", "."),
        pc.replace_substring(plain, ",", ""),
    )
    return pc.cast(pc.if_else(number, text, pa.scalar(None, pa.string())), pa.float64())


def _read_decorated_numbers(texts: pd.Series, decimal: str | None) -> pd.Series:
    """Read numbers with a currency, a percent sign or a unit; NaN for other text."""
    codes, distinct = pd.factorize(texts)
    bare = pa.array(_bare_numbers(distinct.tolist()), pa.string())
    found = _count_signs(bare)
    doubtful = found.either_comma or found.either_point
    if doubtful and not (found.decimal or decimal):
        if found.comma or (found.either_comma and found.either_point):
            raise ValueError(
                f"Column {texts.name!r} has commas and points with two possible meanings. Pass "
                "`decimal`."
            )
        # Alone, a comma before three digits separates thousands, and a point is a decimal point.
        decimal = "."
    read = _read_numbers(bare, found.decimal or decimal)
    values = np.append(read.to_numpy(zero_copy_only=False).astype(float), np.nan)
    return pd.Series(values[codes], texts.index)


def _bare_numbers(texts: Sequence[str]) -> list[str | None]:
    """Remove currencies, percent signs, a common unit, and spaces between thousands.

    Text that is not such a number becomes None.
    """
    one_unit = len({hit[2] for text in texts if (hit := _UNIT.fullmatch(text.strip()))}) == 1
    bare: list[str | None] = []
    for text in (text.strip() for text in texts):
        if found := _MONEY.fullmatch(text):
            text = (found[1] or "") + (found[2] or found[4])
        elif found := _PERCENT.fullmatch(text) or (_UNIT.fullmatch(text) if one_unit else None):
            text = found[1]
        text = _SPACED.sub("", text.strip())
        bare.append(text if re.fullmatch(_NUMBER, text) else None)
    return bare


def _read_dates(texts: pd.Series, form: str | None) -> pd.Series:
    """Read text as dates; NaT for other text, and ValueError if day and month may be swapped.

    `form` is a format of `strptime`. Without it, ISO 8601 and numeric dates are recognized. Cells
    with only one possible order of day and month determine the order of all; between points the
    day always comes first.
    """
    texts = texts.str.strip()
    if form is not None:
        try:
            return pd.to_datetime(texts, format=form, errors="coerce")
        except ValueError as error:
            raise ValueError(f"`dates` of column {texts.name!r}: {error}.") from None
    iso = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True).dt.tz_localize(None)
    if (iso.notna() | texts.isna()).all():
        return iso
    order = _day_first(texts.dropna().unique().tolist())
    if order is None:
        example = next(text for text in texts.dropna() if _DAY.fullmatch(text))
        raise ValueError(
            f"Column {texts.name!r}: {example!r} may mean the day first or the month first. Pass "
            f"the format: `dates={{{texts.name!r}: '%d/%m/%Y'}}` if the day comes first."
        )
    other = pd.to_datetime(texts.where(iso.isna()), format="mixed", dayfirst=order, errors="coerce")
    return iso.fillna(other)


def _find_numbers(values: list[str], name: str) -> TextFormat | None:
    """Recognize numbers with an ambiguous decimal sign, or with a few other texts among them."""
    number, comma, point, either = map(np.asarray, _masks(pa.array(values, pa.string())))
    odd = [text for text, good in zip(values, number, strict=True) if not good]
    examples = [text for text, good in zip(values, number, strict=True) if good]
    if not _mostly(len(examples), len(odd)):
        return None
    limits = [text for text in odd if _LIMIT.fullmatch(text)]
    if limits and len(limits) == len(odd):
        return TextFormat(
            f"numbers and limits such as {', '.join(map(repr, limits[:2]))}",
            examples,
            [],
            "Replace each limit by a number, or declare the limits as missing: "
            f"`missing_values={limits}`.",
        )
    may_be_codes = len(examples) < _WHOLE_NUMBERS
    if odd:
        if may_be_codes and not (comma | point | either).any():
            return None
        remedy = f"If these mean missing, pass `missing_values={odd}`."
        return TextFormat("numbers", examples, odd, remedy)
    commas = [text for text, one in zip(values, comma | either, strict=True) if one and "," in text]
    if not commas:
        if may_be_codes and not point.any():
            return None
        return TextFormat("numbers", examples, [], _use_numbers(name, []))
    if comma.any() and not point.any():
        return TextFormat("numbers with decimal commas", commas, [], 'If so, pass `decimal=","`.')
    remedy = (
        'Pass `decimal=","` if the comma is the decimal sign, `decimal="."` if it separates '
        "thousands."
    )
    return TextFormat("numbers with commas", commas, [], remedy)


def _find_decorated_numbers(values: list[str], name: str) -> TextFormat | None:
    """Recognize money, percentages, and numbers with one unit or with spaces."""
    units = {hit[2] for text in values if (hit := _UNIT.fullmatch(text))}
    unit = f"numbers with the unit {min(units)!r}" if len(units) == 1 else ""
    spaced = [text for text in values if _SPACED.search(text) and _is_bare(text)]
    formats = [
        ("amounts of money", [text for text in values if _MONEY.fullmatch(text)], 1),
        ("percentages", [text for text in values if _PERCENT.fullmatch(text)], 1),
        (unit, [text for text in values if unit and _UNIT.fullmatch(text)], 3),
        ("numbers with spaces", spaced, 2),
    ]
    for what, good, least in formats:
        known = set(good)
        odd = [text for text in values if text not in known and not _is_bare(text)]
        if len(good) >= least and _mostly(len(values) - len(odd), len(odd)):
            return TextFormat(what, good, odd, _use_numbers(name, odd))
    return None


def _is_bare(text: str) -> bool:
    return re.fullmatch(_NUMBER, _SPACED.sub("", text)) is not None


def _use_numbers(name: str, odd: list[str]) -> str:
    missing = f" and `missing_values={odd}`" if odd else ""
    return f"To use the numbers, pass `kinds={{{name!r}: 'number'}}`{missing}."


def _find_pairs(values: list[str]) -> TextFormat | None:
    """Recognize pairs of numbers such as 120/80."""
    good = [text for text in values if _PAIR.fullmatch(text)]
    odd = [text for text in values if not _PAIR.fullmatch(text)]
    if len(good) < 3 or not _mostly(len(good), len(odd)):
        return None
    return TextFormat(
        "pairs of numbers", good, odd, "To use the numbers, split it into two columns."
    )


def _find_dates(values: list[str], name: str) -> TextFormat | None:
    """Recognize numeric dates."""
    good = [text for text in values if _DAY.fullmatch(text) or _YEAR.fullmatch(text)]
    odd = [text for text in values if not (_DAY.fullmatch(text) or _YEAR.fullmatch(text))]
    if not _mostly(len(good), len(odd)):
        return None
    remedy = f"To use the dates, pass `dates=[{name!r}]`"
    if _day_first(good) is None:
        mark = next(hit[2] for text in good if (hit := _DAY.fullmatch(text)))
        remedy = (
            "Day and month may be swapped. To use the dates, pass "
            f"`dates={{{name!r}: '%d{mark}%m{mark}%Y'}}` if the day comes first"
        )
    missing = f" and `missing_values={odd}`" if odd else ""
    return TextFormat("dates", good, odd, f"{remedy}{missing}.")


def _day_first(texts: list[str]) -> bool | None:
    """Return whether the day comes first; None if this is not determined."""
    found = [hit for text in texts if (hit := _DAY.fullmatch(text))]
    first = any(hit[2] == "." or int(hit[1]) > 12 for hit in found)
    second = any(hit[2] != "." and int(hit[3]) > 12 for hit in found)
    if not found:
        return False
    return None if first == second else first


def _mostly(good: int, odd: int) -> bool:
    """Return whether enough values have a format and few enough do not."""
    return good >= 2 and odd <= FEW_ODD and good >= 2 * odd
