"""Numbers and dates as people write them: decimal commas, thousands, money, percentages, units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from promissing.encoding.columns import FEW_ODD

__all__ = [
    "Look",
    "Signs",
    "are_numbers",
    "bare_numbers",
    "look",
    "read_booleans",
    "read_dates",
    "read_numbers",
    "signs",
]

_WHOLE_NUMBERS = 10  # Fewer different whole numbers than this may be codes.
_SIGN, _POWER = r"^[-+\x{2212}]?", r"(?:[eE][-+]?\d+)?$"
_WHOLE = _SIGN + r"\d+" + _POWER
# What only one reading fits. Exactly three digits after one sign could also be thousands.
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
_TRUE = ("true", "t", "yes", "y", "ja", "j", "1", "1.0")
_FALSE = ("false", "f", "no", "n", "nein", "0", "0.0")


class Signs(NamedTuple):
    """How the cells of one column write numbers.

    Attributes
    ----------
    cells : int
        Cells that are not missing.
    numbers : int
        Those that are numbers.
    comma, point : int
        Those whose decimal sign can only be a comma (1,5) or a point (1.5).
    either_comma, either_point : int
        Those with three digits after one sign (1,234 or 1.234): a fraction or thousands.
    """

    cells: int
    numbers: int
    comma: int
    point: int
    either_comma: int
    either_point: int

    @property
    def decimal(self) -> str | None:
        """The decimal sign, if the cells leave no doubt."""
        if bool(self.comma) == bool(self.point):
            return None
        return "," if self.comma else "."


class Look(NamedTuple):
    """What a column of text seems to hold.

    Attributes
    ----------
    what : str
        Such as "amounts of money", for a sentence.
    examples : list of str
    odd : list of str
        The values that do not fit.
    remedy : str
        What to do, in a sentence that names arguments of `promissing.io.files.read_table`.
    """

    what: str
    examples: list[str]
    odd: list[str]
    remedy: str


def signs(cells: Any) -> Signs:
    """Count how a pyarrow array of text writes numbers."""
    import pyarrow.compute as pc

    number, comma, point, either = _masks(cells)
    either_comma = pc.and_(either, pc.fill_null(pc.match_substring(cells, ","), False))
    found = (number, comma, point, either_comma, pc.and_not(either, either_comma))
    return Signs(len(cells) - cells.null_count, *(pc.sum(one).as_py() or 0 for one in found))


def are_numbers(texts: Sequence[str]) -> NDArray[np.bool_]:
    """Which texts are numbers, with a decimal comma or point."""
    import pyarrow as pa

    return np.asarray(_masks(pa.array(list(texts), pa.string()))[0])


def read_numbers(cells: Any, decimal: str | None) -> Any:
    """Read a pyarrow array of text as float64; null is what is no number.

    `decimal` is the sign where a cell can be read both ways; if None, such a cell is null.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = _trimmed(cells)
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


def bare_numbers(texts: Sequence[str]) -> list[str | None]:
    """Texts without currency, percent sign, a common unit, and spaces between thousands.

    None stands for a text that is no number of these kinds.
    """
    units = {found[2] for text in texts if (found := _UNIT.fullmatch(text.strip()))}
    one_unit = len(units) == 1
    bare: list[str | None] = []
    for text in (text.strip() for text in texts):
        if found := _MONEY.fullmatch(text):
            text = (found[1] or "") + (found[2] or found[4])
        elif found := _PERCENT.fullmatch(text) or (_UNIT.fullmatch(text) if one_unit else None):
            text = found[1]
        text = _SPACED.sub("", text.strip())
        bare.append(text if re.fullmatch(_NUMBER, text) else None)
    return bare


def read_dates(texts: pd.Series, form: str | None = None) -> pd.Series:
    """Read text as dates, NaT where that fails; ValueError if day and month may be swapped.

    `form` is a format of `strptime`; without it ISO 8601 and day, month and year in figures are
    known. The order of day and month follows from the cells in which only one order is possible;
    between points the day always comes first.
    """
    texts = texts.str.strip()
    if form is not None:
        return pd.to_datetime(texts, format=form, errors="coerce")
    iso = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True).dt.tz_localize(None)
    if (iso.notna() | texts.isna()).all():
        return iso
    order = _day_first(texts.dropna().unique().tolist())
    if order is None:
        example = next(text for text in texts.dropna() if _DAY.fullmatch(text))
        raise ValueError(f"{example!r} may mean the day first or the month first")
    other = pd.to_datetime(texts.where(iso.isna()), format="mixed", dayfirst=order, errors="coerce")
    return iso.fillna(other)


def read_booleans(texts: pd.Series) -> pd.Series:
    """Read true and false, yes and no, ja and nein, 1 and 0; NA where that fails."""
    known = dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)
    return texts.str.strip().str.lower().map(known).astype("boolean")


def look(values: Sequence[str], name: str) -> Look | None:
    """Tell whether the different values of a column of text are numbers, dates or the like."""
    values = [text for text in dict.fromkeys(value.strip() for value in values) if text]
    if not values:
        return None
    return (
        _numbers(values, name) or _decorated(values, name) or _pairs(values) or _dates(values, name)
    )


def _masks(cells: Any) -> tuple[Any, Any, Any, Any]:
    """Which cells are numbers, have a decimal comma, a decimal point, or may have either."""
    import pyarrow.compute as pc

    cells = _trimmed(cells)

    def match(pattern: str) -> Any:
        return pc.fill_null(pc.match_substring_regex(cells, pattern), False)

    either = match(_EITHER)
    comma = pc.or_(pc.and_not(match(_COMMA), either), match(_POINT_GROUPS))
    point = pc.or_(pc.and_not(match(_POINT), either), match(_COMMA_GROUPS))
    number = pc.or_(pc.or_(match(_WHOLE), either), pc.or_(comma, point))
    return number, comma, point, either


def _trimmed(cells: Any) -> Any:
    import pyarrow.compute as pc

    return pc.utf8_trim_whitespace(cells)


def _numbers(values: list[str], name: str) -> Look | None:
    """Numbers in a sign that could not be settled, or among them a few other texts."""
    import pyarrow as pa

    cells = pa.array(values, pa.string())
    number, comma, point, either = (np.asarray(one) for one in _masks(cells))
    odd = [text for text, good in zip(values, number, strict=True) if not good]
    examples = [text for text, good in zip(values, number, strict=True) if good]
    if not _mostly(len(examples), len(odd)):
        return None
    limits = [text for text in odd if _LIMIT.fullmatch(text)]
    if limits and len(limits) == len(odd):
        return Look(
            f"numbers and limits such as {_quoted(limits[:2])}",
            examples,
            [],
            "Write a number in place of each limit, or count the limits as missing: "
            f"`missing_values={limits}`.",
        )
    if odd:
        if not (comma | point | either).any() and len(examples) < _WHOLE_NUMBERS:
            return None
        return Look(
            "numbers", examples, odd, f"If these mean missing, pass `missing_values={odd}`."
        )
    commas = [text for text, one in zip(values, comma | either, strict=True) if one and "," in text]
    if not commas:
        few = not point.any() and len(examples) < _WHOLE_NUMBERS
        return None if few else Look("numbers", examples, [], _as_number(name, []))
    if (comma & ~point).any() and not point.any():
        return Look("numbers with decimal commas", commas, [], 'If so, pass `decimal=","`.')
    return Look(
        "numbers with commas",
        commas,
        [],
        'Pass `decimal=","` if the comma is the decimal sign, `decimal="."` if it separates '
        "thousands.",
    )


def _decorated(values: list[str], name: str) -> Look | None:
    """Money, percentages, and numbers with one unit or with spaces between thousands."""
    for what, pattern in (("amounts of money", _MONEY), ("percentages", _PERCENT)):
        good = [text for text in values if pattern.fullmatch(text)]
        odd = [text for text in values if not pattern.fullmatch(text) and not _bare(text)]
        if good and _mostly(len(values) - len(odd), len(odd)):
            return Look(what, good, odd, _as_number(name, odd))
    found = [(text, hit) for text in values if (hit := _UNIT.fullmatch(text))]
    units = {hit[2] for _, hit in found}
    good = [text for text, _ in found]
    odd = [text for text in values if text not in set(good) and not _bare(text)]
    if len(good) >= 3 and len(units) == 1 and _mostly(len(values) - len(odd), len(odd)):
        return Look(f"numbers with the unit {units.pop()!r}", good, odd, _as_number(name, odd))
    good = [text for text in values if _SPACED.search(text) and _bare(text)]
    odd = [text for text in values if not _bare(text)]
    if len(good) >= 2 and _mostly(len(values) - len(odd), len(odd)):
        return Look("numbers with spaces", good, odd, _as_number(name, odd))
    return None


def _bare(text: str) -> bool:
    return re.fullmatch(_NUMBER, _SPACED.sub("", text)) is not None


def _as_number(name: str, odd: list[str]) -> str:
    missing = f" and `missing_values={odd}`" if odd else ""
    return f"To use the numbers, pass `kinds={{{name!r}: 'number'}}`{missing}."


def _pairs(values: list[str]) -> Look | None:
    good = [text for text in values if _PAIR.fullmatch(text)]
    odd = [text for text in values if not _PAIR.fullmatch(text)]
    if len(good) < 3 or not _mostly(len(good), len(odd)):
        return None
    return Look("pairs of numbers", good, odd, "To use the numbers, split it into two columns.")


def _dates(values: list[str], name: str) -> Look | None:
    good = [text for text in values if _DAY.fullmatch(text) or _YEAR.fullmatch(text)]
    odd = [text for text in values if text not in set(good)]
    if len(good) < 2 or not _mostly(len(good), len(odd)):
        return None
    remedy = f"To use the dates, pass `dates=[{name!r}]`"
    if _day_first(good) is None:
        mark = next(hit[2] for text in good if (hit := _DAY.fullmatch(text)))
        remedy = (
            "Day and month may be swapped. To use the dates, pass "
            f"`dates={{{name!r}: '%d{mark}%m{mark}%Y'}}` if the day comes first"
        )
    missing = f" and `missing_values={odd}`" if odd else ""
    return Look("dates", good, odd, f"{remedy}{missing}.")


def _day_first(texts: list[str]) -> bool | None:
    """Whether the day comes first; None if the texts do not tell, or contradict each other."""
    found = [hit for text in texts if (hit := _DAY.fullmatch(text))]
    first = any(hit[2] == "." or int(hit[1]) > 12 for hit in found)
    second = any(hit[2] != "." and int(hit[3]) > 12 for hit in found)
    if not found:
        return False
    return None if first == second else first


def _mostly(good: int, odd: int) -> bool:
    return good >= 2 and odd <= FEW_ODD and good >= 2 * odd


def _quoted(texts: Sequence[str]) -> str:
    return ", ".join(map(repr, texts))
