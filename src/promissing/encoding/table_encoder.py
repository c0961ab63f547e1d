"""From tables with holes to matrices with NaN, and which columns belong to which feature."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import count
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from promissing._validation import few, warn
from promissing.encoding import columns as _columns
from promissing.encoding.columns import Float, Key, Learned, Scalar, Table
from promissing.encoding.memory import aligned

__all__ = ["TableEncoder", "check_weight"]

KINDS = ("number", "boolean", "category", "date")
FINE, FEW = 32, 10  # What n_fine_bins="auto" means: so many bins for so many numbers.
_BLOCK = 2**17  # Cells encoded at a time: 1 MB, which stays in the cache.


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table of numbers, booleans, categories and dates into a float matrix with NaN.

    Takes pandas and polars frames, NumPy arrays, SciPy sparse matrices and lists of rows. A cell is
    missing if it is None, NaN, pd.NA, NaT or a polars null, and is then NaN in every column that
    encodes it; nothing is filled in. The zeros of a sparse matrix are observed zeros, and the
    result is always dense. A feature that was never observed in training stays unknown for ever:
    its column is NaN whatever it holds later.

    ========== ============================ ==================================================
    kind       inferred for                 becomes
    ========== ============================ ==================================================
    "number"   numbers                      one column of mean 0 and deviation 1 over what is
                                            observed (deviation 1 for a constant), or as it is
                                            (`scale`), then `n_bins`
    "boolean"  True and False               one column of 0 and 1
    "category" text, pandas' and polars'    one 0/1 column for every value
               categories, mixed cells
    "date"     points in time, durations    the number of seconds, as a number
    ========== ============================ ==================================================

    The cells of an object column decide its kind; a NumPy array of text is all text. Dates
    without a time zone are taken as UTC. Text declared as a date is read as ISO 8601. A column
    that held dates in training refuses durations, and the other way round. Text in a column of
    numbers is refused, also where it reads as a number.

    Categories of new rows match those of training in any spelling: pandas, Arrow and polars
    categories match text, and 1, 1.0, "1", "1.0", True and "true" match each other. Where training
    had two of these, each stays a category of its own, and no third spelling matches them. Text
    such as "01" or "1.50" matches itself only, for it may be a code. If most values of a column are
    unseen, `transform` warns.

    Parameters
    ----------
    kinds : mapping, optional
        The kind of some columns, by name (str) or position (int), instead of the inferred one.
    n_bins : int, default=0
        If positive, every number and date also gets the piecewise-linear encoding on that many
        (weighted) quantile bins: one column per bin, 0 below it, 1 above it and linear inside, less
        its mean over what is observed. Bins that coincide are merged. The standardised number
        itself is then held to within three deviations of the mean, and a second column, "far", has
        it ten times coarser and ends at 300 deviations.
    n_fine_bins : int or "auto", default=0
        So many quantile bins besides `n_bins`, for numbers and dates for which that gives more bins
        than `n_bins` does. "auto" is 32 if there are `n_bins` and at most ten columns would get
        them, else 0.
    max_categories : int, default=64
        The most columns a category may take. Where it has more values, the most frequent
        `max_categories - 1` have their own and all others share the column "(other)".
    unknown_categories : {"ignore", "error"}, default="ignore"
        What happens to a category never seen in training. "ignore" sets all its columns to 0: it
        carries no information, and does not inherit what missing means. The estimators do not
        count it as known (`known_share`). A column with "(other)" does not remember which rare
        values it has seen: there a new value is one more rare value, and never an error.
    scale : bool, default=True
        Whether numbers and dates are standardised. If not they keep their units, as what fills
        gaps with a number needs them, and `transform` gives float64.
    fine_bins, unseen : deprecated
        Old names of `n_fine_bins` and `unknown_categories`. They will be removed in release 0.3.

    Attributes
    ----------
    kinds_ : list of str
        The kind of every input column.
    categories_ : list
        For every input column of kind "category" the values with a column of their own, in its
        order; None for the others.
    groups_ : ndarray of int (q,)
        The input column each output column encodes.
    fine_ : ndarray of bool (q,)
        Whether an output column is one of the `n_fine_bins`.
    first_columns_ : ndarray of int (p,)
        The first output column of every input column.
    observed_ : ndarray of bool (p,)
        Whether an input column has an observed value in training.
    gaps_in_training_ : ndarray of bool (p,)
        Whether a value of this input column was missing in training.
    n_columns_out_, n_features_in_ : int
        q and p, how many columns come out and go in.
    feature_names_in_ : ndarray of str
        Only if the input has names, all strings.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.encoding.table_encoder import TableEncoder
    >>> frame = pd.DataFrame({"age": [20, None, 40], "city": ["Ulm", "Bonn", None]})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.transform(frame)
    array([[-1.,  0.,  1.],
           [nan,  1.,  0.],
           [ 1., nan, nan]], dtype=float32)
    >>> encoder.get_feature_names_out()
    array(['age', 'city_Bonn', 'city_Ulm'], dtype=object)
    >>> encoder.groups_
    array([0, 1, 1])
    """

    def __init__(
        self,
        *,
        kinds: Mapping[Key, str] | None = None,
        n_bins: int = 0,
        n_fine_bins: int | str = 0,
        max_categories: int = 64,
        unknown_categories: str = "ignore",
        scale: bool = True,
        fine_bins: int | str = "deprecated",
        unseen: str = "deprecated",
    ) -> None:
        self.kinds = kinds
        self.n_bins = n_bins
        self.n_fine_bins = n_fine_bins
        self.max_categories = max_categories
        self.unknown_categories = unknown_categories
        self.scale = scale
        self.fine_bins = fine_bins
        self.unseen = unseen

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn kinds, means, deviations, bins and categories of the columns of X.

        Parameters
        ----------
        X : frame or array (n, p)
            The order of its rows does not matter.
        y : ignored
        sample_weight : array (n,), optional
            Rows of zero weight count as absent. Only ratios of weights matter.

        Returns
        -------
        TableEncoder
            The fitted encoder itself.
        """
        self._check_parameters()
        table = _columns.open_table(X, self, accept_sparse=True)
        validate_data(self, table.named, reset=True, skip_check_array=True)
        n, p = table.shape
        declared = self._declared_kinds(list(getattr(X, "columns", ())))
        weight = check_weight(sample_weight, n)
        rows = slice(None) if weight.all() else weight > 0
        weight = weight[rows] / weight.max()  # Only ratios of weights matter.

        kinds, learned, durations = [], [], []
        for j in range(p):
            column = table.column(j, slice(None))[rows]
            try:
                kinds.append(declared.get(j) or _columns.infer_kind(column))
                durations.append(_columns.is_duration(column) if kinds[j] == "date" else None)
                learned.append(self._learn(column, kinds[j], weight, self.feature_key(j)))
            except UnicodeEncodeError as error:
                _columns.refuse_text(error, self.feature_key(j))
            if learned[j].doubt and j not in declared:
                key = self.feature_key(j)
                warn(
                    f"Column {key!r} is text, is taken for a category, and {learned[j].doubt}; "
                    f"else `kinds={{{key!r}: 'category'}}` ends this warning."
                )
        if self._n_fine_bins == "auto" and sum(bool(one.fine) for one in learned) > FEW:
            learned = [one._replace(fine=()) for one in learned]
        sizes = [(len(one.maps), len(one.fine)) for one in learned]
        groups = np.repeat(np.arange(p), np.sum(sizes, axis=1))
        return self._set_fitted(
            kinds,
            [one.categories for one in learned],
            [one.other for one in learned],
            durations,
            groups=groups,
            gaps=np.array([one.gaps for one in learned]),
            maps=np.array([row for one in learned for row in (*one.maps, *one.fine)]).T.copy(),
            fine=np.concatenate([np.repeat([False, True], size) for size in sizes]),
        )

    def transform(self, X: Any) -> NDArray[Any]:
        """Encode X as float32, or float64 without `scale`.

        Parameters
        ----------
        X : frame or array (n, p)
            Must have the columns X had in `fit`.

        Returns
        -------
        ndarray of float (n, q)

        Warns
        -----
        UserWarning
            If most values of a column are categories never seen in training.
        """
        return self.encode(X, np.float32 if self.scale else np.float64)

    def encode(self, X: Any, dtype: DTypeLike = np.float32) -> NDArray[Any]:
        """Encode X in the given dtype, always as a NumPy array.

        Parameters
        ----------
        X : frame or array (n, p)
            As in `transform`.
        dtype : dtype, default=np.float32
            A floating dtype.

        Returns
        -------
        ndarray (n, q)
        """
        table = self._open(X)
        if not len(self._hot):
            return self.encode_table(table, dtype=dtype)
        unknown = np.zeros(table.shape, bool)
        out = self.encode_table(table, dtype=dtype, unknown=unknown)
        self.warn_of_unknown_categories(table, unknown)
        return out

    def read(self, X: Any) -> Float:
        """Read X as numbers, one column per feature, in their own units.

        Parameters
        ----------
        X : frame or array (n, p)
            Must have the columns X had in `fit`.

        Returns
        -------
        ndarray of float (n, p)
            A category is its place in `categories_`, one more for "(other)", -1 if unseen. What is
            missing, and a feature never observed in training, is NaN.

        Warns
        -----
        UserWarning
            If most values of a column are categories never seen in training.
        """
        table = self._open(X)
        readings, unseen = self._read_rows(table, slice(0, table.shape[0]))
        self.warn_of_unknown_categories(table, unseen)
        return readings

    def _check_parameters(self) -> None:
        """Check the parameters, and settle those that have an old name."""
        self._n_fine_bins = self._renamed("fine_bins", "n_fine_bins")
        self._unknown_categories = self._renamed("unseen", "unknown_categories")
        counts = {
            "n_bins": (self.n_bins, 0),
            "n_fine_bins": (self._n_fine_bins, 0),
            "max_categories": (self.max_categories, 1),
        }
        for name, (value, least) in counts.items():
            auto = ", or 'auto'" if name == "n_fine_bins" else ""
            if auto and isinstance(value, str) and value == "auto":
                continue
            if not isinstance(value, int | np.integer) or value < least:
                raise ValueError(
                    f"`{name}` must be a whole number >= {least}{auto}. Received: {value!r}"
                )
        if self._n_fine_bins not in (0, "auto") and not self.n_bins:
            raise ValueError(
                "`n_fine_bins` needs `n_bins`, which is 0. "
                f"Received: n_fine_bins={self._n_fine_bins!r}"
            )
        if self._unknown_categories not in ("ignore", "error"):
            raise ValueError(
                '`unknown_categories` must be "ignore" or "error". '
                f"Received: {self._unknown_categories!r}"
            )

    def _renamed(self, old: str, new: str) -> Any:
        """Return the value of a parameter, which may have been given by its old name."""
        value = getattr(self, old)
        if isinstance(value, str) and value == "deprecated":
            return getattr(self, new)
        # Until the estimators use the new name.
        if sys._getframe(3).f_globals["__name__"] != "promissing.estimators.fitting":
            warn(
                f"The parameter `{old}` of TableEncoder is now `{new}`. The old name will be "
                "removed in release 0.3.",
                FutureWarning,
            )
        return value

    def _open(self, X: Any) -> Table:
        if not hasattr(self, "groups_"):  # `check_is_fitted` takes longer than to encode a row.
            check_is_fitted(self)
        table = _columns.open_table(X, self, accept_sparse=True)
        named = table.matrix is None or hasattr(self, "feature_names_in_")
        if named or table.shape[1] != self.n_features_in_:
            validate_data(self, table.named, reset=False, skip_check_array=True)
        return table

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Name the output columns: `age`, `age_far`, `age_bin0`, `age_fine0`, `city_Ulm`.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the input columns; by default those of `fit`, or "x0", "x1", ...

        Returns
        -------
        ndarray of str (q,)
            All different: a name that is taken gets "_2", "_3" and so on.
        """
        check_is_fitted(self)
        names = []
        for j, name in enumerate(_check_feature_names_in(self, input_features)):
            finer = np.count_nonzero(self.fine_[self.groups_ == j])
            size = np.count_nonzero(self.groups_ == j) - finer
            if self.kinds_[j] == "category" and self.observed_[j]:
                levels = [*(self.categories_[j] or []), "(other)"][:size]
                names += [f"{name}_{level}" for level in levels]
            else:
                far = [f"{name}_far"] if self.n_bins and self.scale and size > 1 else []
                names += [name, *far, *(f"{name}_bin{i}" for i in range(size - 1 - len(far)))]
                names += [f"{name}_fine{i}" for i in range(finer)]
        taken: set[str] = set()
        for k, name in enumerate(names):
            tries = (f"{name}_{i}" if i > 1 else name for i in count(1))
            names[k] = next(one for one in tries if one not in taken)
            taken.add(names[k])
        return np.asarray(names, dtype=object)

    def get_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all of a fitted encoder, as a dict that JSON can hold and named arrays."""
        check_is_fitted(self)
        kinds = self.kinds and [
            [key if isinstance(key, str) else int(key), kind] for key, kind in self.kinds.items()
        ]  # Pairs, because JSON turns the keys of a dict into text.
        names, fine = getattr(self, "feature_names_in_", None), self._n_fine_bins
        meta = {
            "params": {
                "kinds": kinds,
                "n_bins": int(self.n_bins),
                # Files keep the names of their format.
                "fine_bins": fine if isinstance(fine, str) else int(fine),
                "max_categories": int(self.max_categories),
                "unseen": self._unknown_categories,
                "scale": bool(self.scale),
            },
            "names": None if names is None else list(names),
            "kinds": self.kinds_,
            "categories": self.categories_,
            "other": self._other,
            "durations": self._durations,
        }
        return meta, {
            "groups": self.groups_,
            "gaps": self.gaps_in_training_,
            "maps": self._maps,
            "fine": self.fine_,
        }

    @classmethod
    def from_state(cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build the encoder that `get_state` described; parts that do not fit are refused."""
        kinds, groups, maps = meta["kinds"], arrays["groups"], arrays["maps"]
        features = np.arange(len(kinds))
        # Earlier files do not tell dates and durations apart.
        durations = meta.get("durations", [None] * len(kinds))
        fits = (
            groups.ndim == 1
            and groups.dtype.kind == "i"
            and np.array_equal(np.unique(groups), features)
            and (np.diff(groups) >= 0).all()
            and maps.shape == (5, len(groups))
            and arrays["gaps"].shape == features.shape
            and arrays["fine"].shape == groups.shape
            and arrays["fine"].dtype == bool
            # Fine columns come last in their feature.
            and (np.diff(groups) + np.diff(arrays["fine"].astype(int)) >= 0).all()
            and len(meta["categories"]) == len(meta["other"]) == len(durations) == len(kinds)
            and (meta["names"] is None or len(meta["names"]) == len(kinds))
            and set(kinds) <= set(KINDS)
        )
        if not fits:
            raise ValueError("The parts of the encoder's state do not fit together.")
        params = dict(meta["params"])
        if params["kinds"] is not None:
            params["kinds"] = dict(params["kinds"])
        params["n_fine_bins"] = params.pop("fine_bins")
        params["unknown_categories"] = params.pop("unseen")
        encoder = cls(**params)
        encoder._n_fine_bins = encoder.n_fine_bins
        encoder._unknown_categories = encoder.unknown_categories
        encoder.n_features_in_ = len(meta["kinds"])
        if meta["names"] is not None:
            encoder.feature_names_in_ = np.asarray(meta["names"], dtype=object)
        return encoder._set_fitted(
            meta["kinds"], meta["categories"], meta["other"], durations, **arrays
        )

    def _set_fitted(
        self,
        kinds: list[str],
        categories: list[list[Scalar] | None],
        other: list[bool],
        durations: list[bool | None],
        *,
        groups: NDArray[np.intp],
        gaps: NDArray[np.bool_],
        maps: Float,
        fine: NDArray[np.bool_],
    ) -> Self:
        self.kinds_, self.categories_, self._other = kinds, categories, other
        self._durations = durations
        self.groups_, self.gaps_in_training_, self._maps = groups, gaps, maps
        self.fine_, self.n_columns_out_ = fine, len(groups)
        self.first_columns_ = np.searchsorted(groups, np.arange(len(kinds)))
        self.observed_ = ~np.isnan(maps[0, self.first_columns_])
        self._lookup = [{v: float(k) for k, v in enumerate(one or ())} for one in categories]
        self._forms = [_forms(one) for one in self._lookup]
        self._only_numbers = set(kinds) == {"number"}
        self._one_to_one = len(groups) == len(kinds)
        self._bounded = bool(np.isfinite(maps[2:4]).any())
        self._centred = bool(maps[4].any())
        self._hot = np.flatnonzero(np.array([kinds[j] == "category" for j in groups]))
        return self

    def linear_columns(self) -> tuple[NDArray[np.intp], Float]:
        """The output columns in which values go on farthest, and units that make them comparable.

        Of a number that is one column, in deviations: "far", or the only one. Of a category they
        are all. Where there are bins.
        """
        number = np.array([self.kinds_[j] in ("number", "date") for j in self.groups_])
        first = np.searchsorted(self.groups_, self.groups_)
        farthest = first + (np.bincount(self.groups_)[self.groups_] > 1)
        columns = np.flatnonzero(~number | (np.arange(len(number)) == farthest))
        return columns, np.where(number, self._maps[1] / self._maps[1, first], 1.0)[columns]

    def feature_key(self, j: int) -> Key:
        """Return the name of feature j, or its position if X has no names.

        Parameters
        ----------
        j : int
            Position of the feature.

        Returns
        -------
        str or int
            The name or the position.

        Examples
        --------
        >>> import pandas as pd
        >>> from promissing.encoding import TableEncoder
        >>> TableEncoder().fit(pd.DataFrame({"age": [20, 40]})).feature_key(0)
        'age'
        """
        return str(self.feature_names_in_[j]) if hasattr(self, "feature_names_in_") else j

    def _declared_kinds(self, names: list[Any]) -> dict[int, str]:
        """Find the position of every column in `kinds`, given what X calls its columns."""
        if self.kinds is not None and not isinstance(self.kinds, Mapping):
            raise ValueError(
                "`kinds` must be a mapping of columns to kinds, such as {'age': 'number'}. "
                f"Received: {self.kinds!r}"
            )
        whole = int | np.integer
        by_number = any(isinstance(key, whole) for key in self.kinds or ())
        if by_number and any(isinstance(n, whole) and n != j for j, n in enumerate(names)):
            raise ValueError(
                "`kinds` names columns by position, and X numbers its columns otherwise: "
                f"{names[:8]}. Rename them to text, and name those."
            )
        position = {self.feature_key(j): j for j in range(self.n_features_in_)}
        position |= {j: j for j in range(self.n_features_in_)}
        declared = {}
        for key, kind in (self.kinds or {}).items():
            if key not in position:
                raise ValueError(f"`kinds` names column {key!r}, which X does not have.")
            if kind not in KINDS:
                raise ValueError(f"`kinds[{key!r}]` must be one of {KINDS}. Received: {kind!r}")
            declared[position[key]] = kind
        return declared

    def _learn(self, column: Any, kind: str, weight: Float, key: Key) -> Learned:
        if kind == "category":
            return _columns.learn_category(column, weight, self.max_categories, key)
        x = _columns.READ[kind](column, key)
        if kind == "boolean":
            return _columns.learn_boolean(x)
        fine = FINE if self._n_fine_bins == "auto" else int(self._n_fine_bins)
        return _columns.learn_number(x, weight, self.n_bins, key, fine_bins=fine, scale=self.scale)

    def encode_table(
        self,
        table: Table,
        *,
        dtype: DTypeLike = np.float32,
        rows: slice = slice(None),
        unknown: NDArray[np.bool_] | None = None,
    ) -> NDArray[Any]:
        """Encode a table opened by `promissing.encoding.columns.open_table`, or some of its rows.

        The column names are not checked and there is no warning of unknown categories.

        Parameters
        ----------
        table : Table
            The opened table, with p columns.
        dtype : dtype, default=np.float32
            Floating dtype of the result.
        rows : slice, default=slice(None)
            The rows to encode.
        unknown : ndarray of bool, shape (rows, p), optional
            Output argument: set to True where a category is unknown.

        Returns
        -------
        ndarray, shape (rows, q)
            The encoded rows.

        Examples
        --------
        >>> from promissing.encoding import TableEncoder
        >>> from promissing.encoding.columns import open_table
        >>> X = [[20.0], [40.0]]
        >>> TableEncoder().fit(X).encode_table(open_table(X), rows=slice(1)).tolist()
        [[-1.0]]
        """
        first, last, _ = rows.indices(table.shape[0])
        out = aligned((last - first, self.n_columns_out_), dtype)
        if table.matrix is not None and self._only_numbers:
            self._write(table.matrix[rows], out)
            return out
        step = max(1, 16 * _BLOCK // table.shape[1])
        for start in range(first, last, step):
            end = min(start + step, last)
            block = slice(start - first, end - first)
            readings, new = self._read_rows(table, slice(start, end))
            self._write(readings, out[block])
            if unknown is not None:
                unknown[block] = new
        return out

    def _read_rows(self, table: Table, rows: slice) -> tuple[Float, NDArray[np.bool_]]:
        """Read some rows as numbers, (n, p), and tell which are categories never seen."""
        if table.sparse is not None and self._only_numbers:
            readings = np.asarray(table.sparse[rows].toarray(), np.float64)
            readings[:, ~self.observed_] = np.nan
            return readings, np.zeros(readings.shape, bool)
        readings = np.empty((rows.stop - rows.start, table.shape[1]))
        unseen = np.zeros(readings.shape, bool)
        for j in range(table.shape[1]):
            try:
                readings[:, j] = self._read(table, j, rows) if self.observed_[j] else np.nan
            except UnicodeEncodeError as error:
                _columns.refuse_text(error, self.feature_key(j))
            if self.kinds_[j] == "category":
                unseen[:, j] = readings[:, j] == -1
        return readings, unseen

    def _read(self, table: Table, j: int, rows: slice) -> Float:
        """Read column j as numbers: a category as its place among the categories, -1 if unseen."""
        column, kind, key = table.column(j, rows), self.kinds_[j], self.feature_key(j)
        if kind != "category":
            if (durations := self._durations[j]) is not None:
                _columns.refuse_other_dates(column, key, durations=durations)
            return _columns.READ[kind](column, key)
        codes, values = _columns.factorize(column, key)
        places = [self._place(value, j) for value in values]
        if self._unknown_categories == "error" and -1.0 in places:
            value = values[places.index(-1.0)]
            raise ValueError(
                f"Column {key!r} holds {value!r}, a category never seen in training. Correct it or "
                f'make it missing, fit on data that has it, or use `unknown_categories="ignore"`.'
            )
        return np.array([*places, np.nan])[codes]  # Code -1, missing, is the last.

    def _place(self, value: Scalar, j: int) -> float:
        """Find the place of a value among the categories of column j; -1 if it is unseen."""
        place = self._lookup[j].get(value)
        if place is not None:
            return place
        elsewhere = float(len(self._lookup[j])) if self._other[j] else -1.0
        known, place = self._forms[j].get(_columns.common_form(value), (None, elsewhere))
        # Two texts may both have been in training, and this one may have been rare.
        if self._other[j] and isinstance(value, str) == isinstance(known, str):
            return elsewhere
        return place

    def warn_of_unknown_categories(
        self, table: Table, unknown: NDArray[np.bool_], warned: set[str] | None = None
    ) -> None:
        """Warn of columns in which most values are categories never seen in training.

        Parameters
        ----------
        table : Table
            The table that was encoded, with n rows and p columns.
        unknown : ndarray of bool, shape (n, p)
            Where a category is unknown, as `encode_table` marks it.
        warned : set of str, optional
            Records the warnings given, so that each is given once.

        Examples
        --------
        >>> from promissing.encoding import TableEncoder
        >>> from promissing.encoding.columns import open_table
        >>> X = [["a"], ["b"]]
        >>> encoder = TableEncoder().fit(X)
        >>> encoder.warn_of_unknown_categories(open_table(X), encoder.read(X) == -1)
        """
        for j in np.flatnonzero(unknown.any(axis=0)).tolist():
            key, n_unknown = self.feature_key(j), int(unknown[:, j].sum())
            column = table.column(j, slice(None))
            n = int((~_columns.is_missing(column)).sum())
            if 2 * n_unknown <= n or (warned is not None and f"unseen {key}" in warned):
                continue
            if warned is not None:
                warned.add(f"unseen {key}")
            row = int(np.argmax(unknown[:, j]))
            _, (value,) = _columns.factorize(column[row : row + 1], key)
            warn(
                f"Column {key!r}: {n_unknown} of {n} values are categories never seen in training, "
                f"such as {value!r}. They tell the model nothing. Known categories are "
                f"{few(self.categories_[j] or [])}. Spell the values as in training, or fit on "
                "data that contains them."
            )

    def _write(self, readings: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the encoding of readings (n, p) into out, a block of rows at a time.

        One formula for every output column: shifted, scaled, clipped and centred. A 0/1 column of a
        category has its place as the shift, is clipped to -1..1 and taken as 1 - |value|, which
        is exact and hands NaN on.
        """
        shift, scale, low, high, mean = self._maps
        step = max(1, _BLOCK // self.n_columns_out_)
        for start in range(0, len(out), step):
            rows = slice(start, start + step)
            values = readings[rows] if self._one_to_one else readings[rows].take(self.groups_, 1)
            if self._bounded:  # Bounds would hide infinity.
                infinite = np.isinf(readings[rows]) & self.observed_
                if infinite.any():
                    i, j = np.argwhere(infinite)[0]
                    _columns.refuse_infinity(
                        readings[start + i, j], out.dtype, self.feature_key(int(j))
                    )
            with np.errstate(over="ignore"):
                values = values - shift
                values /= scale
                if self._bounded:
                    # `np.clip` with arrays takes twice as long.
                    np.maximum(values, low, out=values)
                    np.minimum(values, high, out=values)
                if len(self._hot):
                    values[:, self._hot] = 1 - np.abs(values[:, self._hot])
                if self._centred:
                    values -= mean
                out[rows] = values
            if np.isinf(out[rows]).any():
                i, k = np.argwhere(np.isinf(out[rows]))[0]
                j = int(self.groups_[k])
                _columns.refuse_infinity(readings[start + i, j], out.dtype, self.feature_key(j))

    # Until the estimators use the new names.
    @property
    def _observed(self) -> Any:
        return self.observed_

    def _key(self, j: int) -> Key:
        return self.feature_key(j)

    def _encode(
        self, table: Table, dtype: DTypeLike, rows: slice = slice(None), unseen: Any = None
    ) -> NDArray[Any]:
        return self.encode_table(table, dtype=dtype, rows=rows, unknown=unseen)

    def _warn_of_unseen(self, table: Table, unseen: Any, warned: Any = None) -> None:
        self.warn_of_unknown_categories(table, unseen, warned)

    def _straightest(self) -> tuple[NDArray[np.intp], Float]:
        return self.linear_columns()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _forms(lookup: Mapping[Scalar, float]) -> dict[Scalar | None, tuple[Scalar, float]]:
    """The categories by what their spellings have in common, where only one has it."""
    forms: dict[Scalar | None, list[tuple[Scalar, float]]] = {}
    for value, place in lookup.items():
        forms.setdefault(_columns.common_form(value), []).append((value, place))
    return {form: found[0] for form, found in forms.items() if form is not None and len(found) == 1}


def check_weight(sample_weight: ArrayLike | None, n: int) -> Float:
    """Return one weight per row, non-negative, not all zero."""
    weight: Float = _check_sample_weight(sample_weight, np.empty((n, 0)), dtype=np.float64)
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(
            f"`sample_weight` must be non-negative. Received: {weight[row]} at row {row}."
        )
    if not weight.any():  # scikit-learn checks this from 1.8 on.
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weight
