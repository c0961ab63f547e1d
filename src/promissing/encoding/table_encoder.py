"""The transformer from tables with missing values to matrices with NaN."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from math import prod
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

from promissing._validation import expect, few, is_whole, warn
from promissing.encoding import columns as _columns
from promissing.encoding.columns import KINDS, Float, Key, Learned, Scalar, Table

__all__ = ["KINDS", "TableEncoder", "aligned", "check_weight"]

# n_fine_bins="auto" means 32 bins if at most ten numbers get them.
_AUTO_FINE_BINS, _MOST_FINE_NUMBERS = 32, 10
_BLOCK = 2**17  # Cells encoded at a time: 1 MB, which fits into the cache.


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode numbers, booleans, categories and dates as a float matrix with NaN.

    The encoder accepts pandas and polars frames, NumPy arrays, SciPy sparse matrices and lists of
    rows. A cell is missing if it is None, NaN, pd.NA, NaT or a polars null. It is then NaN in every
    output column of its feature; nothing is imputed. The zeros of a sparse matrix are observed
    zeros, and the result is always dense. A feature without an observed value in training is NaN in
    all later results.

    ========== ============================ ==================================================
    kind       inferred for                 output
    ========== ============================ ==================================================
    "number"   numbers                      one column with mean 0 and standard deviation 1 of
                                            the observed values (unless `scale=False`), and
                                            the bins of `n_bins`
    "boolean"  True and False               one column of 0 and 1
    "category" text, pandas and polars      one 0/1 column for every value
               categories, mixed cells
    "date"     points in time, durations    the number of seconds, encoded as a number
    ========== ============================ ==================================================

    The kind of an object column is inferred from its cells. A NumPy array of text is all text.
    Dates without a time zone are taken as UTC. Text declared as a date must be ISO 8601. A column
    with dates in training cannot hold durations later, and vice versa. Text in a column of numbers
    is an error, even if it looks like a number.

    Categories of new rows match those of training in any spelling: pandas, Arrow and polars
    categories match text, and 1, 1.0, "1", "1.0", True and "true" match each other. If training
    had two of these spellings, each is a category of its own and no third spelling matches them.
    Text such as "01" or "1.50" may be a code and matches only itself. If most values of a column
    are unknown, `transform` warns.

    Parameters
    ----------
    kinds : mapping of str or int to str, optional
        Kinds of some columns, by name or position, instead of the inferred ones.
    n_bins : int, default=0
        Number of quantile bins for the piecewise-linear encoding of numbers and dates: one column
        per bin, 0 below it, 1 above it and linear inside, minus its mean. Equal bins are merged.
        The standardized number itself is then clipped at three standard deviations, and a second
        column, "far", is ten times coarser and clipped at 300 standard deviations.
    n_fine_bins : int or "auto", default=0
        Number of finer quantile bins in addition to `n_bins`, for numbers and dates for which they
        are more than those of `n_bins`. `"auto"` means 32 if `n_bins` is positive and at most ten
        columns would get them, otherwise 0.
    max_categories : int, default=64
        Maximum number of output columns of a category. If it has more values, the most frequent
        `max_categories - 1` have their own column and all others share the column "(other)".
    unknown_categories : {"ignore", "error"}, default="ignore"
        Treatment of a category that did not occur in training. With "ignore" all its columns are
        0: it carries no information, and it is not treated as missing. The estimators do not count
        it as known (`known_share`). In a column with "(other)", a new value is one of the others
        and never an error.
    scale : bool, default=True
        Whether to standardize numbers and dates. Otherwise they keep their units, as imputation
        requires, and `transform` returns float64.
    fine_bins : int or "auto", default="deprecated"
        Old name of `n_fine_bins`, to be removed in release 0.3.
    unseen : {"ignore", "error"}, default="deprecated"
        Old name of `unknown_categories`, to be removed in release 0.3.

    Attributes
    ----------
    kinds_ : list of str
        The kind of every input column.
    categories_ : list
        The values of every input column of kind "category" that have their own output column, in
        this order; None for other kinds.
    groups_ : ndarray of int (q,)
        The input column of each output column.
    first_columns_ : ndarray of int (p,)
        The first output column of each input column.
    fine_ : ndarray of bool (q,)
        Whether an output column is a fine bin.
    observed_ : ndarray of bool (p,)
        Whether an input column has an observed value in training.
    gaps_in_training_ : ndarray of bool (p,)
        Whether an input column has a missing value in training.
    n_columns_out_ : int
        The number of output columns, q.
    n_features_in_ : int
        The number of input columns, p.
    feature_names_in_ : ndarray of str
        The names of the input columns, if all are strings.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.encoding import TableEncoder
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
        """Learn kinds, means, standard deviations, bins and categories of the columns of X.

        Parameters
        ----------
        X : frame or array (n, p)
            The training table. The order of its rows has no effect.
        y : object, optional
            Ignored.
        sample_weight : array (n,), optional
            Weights of the rows; only their ratios matter. Rows with weight 0 are left out.

        Returns
        -------
        TableEncoder
            The fitted encoder.

        Examples
        --------
        >>> from promissing.encoding import TableEncoder
        >>> TableEncoder().fit([[1.0, "a"], [2.0, "b"]]).kinds_
        ['number', 'category']
        """
        self._check_parameters()
        table = _columns.open_table(X, self, accept_sparse=True)
        validate_data(self, table.named, reset=True, skip_check_array=True)
        n, p = table.shape
        declared = self._declared_kinds(list(getattr(X, "columns", ())))
        weight = check_weight(sample_weight, n)
        rows = slice(None) if weight.all() else weight > 0
        weight = weight[rows] / weight.max()

        kinds, learned, durations = [], [], []
        for j in range(p):
            column, key = table.column(j, slice(None))[rows], self.feature_key(j)
            try:
                kinds.append(declared.get(j) or _columns.infer_kind(column))
                durations.append(_columns.is_duration(column) if kinds[j] == "date" else None)
                learned.append(self._learn(column, kinds[j], weight, key))
            except UnicodeEncodeError as error:
                _columns.refuse_text(error, key)
            if learned[j].doubt and j not in declared:
                warn(
                    f"Column {key!r} is text and is used as a category, but {learned[j].doubt}. "
                    f"To keep it without this warning, pass `kinds={{{key!r}: 'category'}}`."
                )
        n_fine = sum(bool(one.fine) for one in learned)
        if self._n_fine_bins == "auto" and n_fine > _MOST_FINE_NUMBERS:
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
        """Encode X as float32, or as float64 if `scale` is False.

        Parameters
        ----------
        X : frame or array (n, p)
            A table with the columns of the training table.

        Returns
        -------
        ndarray of float (n, q)
            The encoded table.

        Warns
        -----
        UserWarning
            If most values of a column are categories that did not occur in training.

        Examples
        --------
        >>> from promissing.encoding import TableEncoder
        >>> TableEncoder().fit([["a"], ["b"]]).transform([["b"], [None]])
        array([[ 0.,  1.],
               [nan, nan]], dtype=float32)
        """
        return self.encode(X, np.float32 if self.scale else np.float64)

    def encode(self, X: Any, dtype: DTypeLike = np.float32) -> NDArray[Any]:
        """Encode X in the given dtype, always as a NumPy array.

        Parameters
        ----------
        X : frame or array (n, p)
            A table with the columns of the training table.
        dtype : dtype, default=np.float32
            Floating dtype of the result.

        Returns
        -------
        ndarray (n, q)
            The encoded table.

        Warns
        -----
        UserWarning
            If most values of a column are categories that did not occur in training.

        Examples
        --------
        >>> from promissing.encoding import TableEncoder
        >>> TableEncoder().fit([[1.0], [3.0]]).encode([[2.0]], "float64")
        array([[0.]])
        """
        table = self._open(X)
        if not len(self._hot):
            return self.encode_table(table, dtype=dtype)
        unknown = np.zeros(table.shape, bool)
        out = self.encode_table(table, dtype=dtype, unknown=unknown)
        self.warn_of_unknown_categories(table, unknown)
        return out

    def read(self, X: Any) -> Float:
        """Read X as numbers in their own units, one column per feature.

        Parameters
        ----------
        X : frame or array (n, p)
            A table with the columns of the training table.

        Returns
        -------
        ndarray of float (n, p)
            A category is its index in `categories_`, the next index for "(other)" and -1 if
            unknown. Missing values, and features without an observed value in training, are NaN.

        Warns
        -----
        UserWarning
            If most values of a column are categories that did not occur in training.

        Examples
        --------
        >>> from promissing.encoding import TableEncoder
        >>> TableEncoder().fit([[1.0, "a"], [3.0, "b"]]).read([[5.0, "b"]])
        array([[5., 1.]])
        """
        table = self._open(X)
        readings, unknown = self._read_rows(table, slice(0, table.shape[0]))
        self.warn_of_unknown_categories(table, unknown)
        return readings

    def _check_parameters(self) -> None:
        """Check the parameters, and read those that have an old name."""
        self._n_fine_bins = self._renamed("fine_bins", "n_fine_bins")
        self._unknown_categories = self._renamed("unseen", "unknown_categories")
        n_bins, n_fine, most = self.n_bins, self._n_fine_bins, self.max_categories
        unknown = self._unknown_categories
        auto = isinstance(n_fine, str) and n_fine == "auto"
        counted = auto or (is_whole(n_fine) and n_fine >= 0)
        expect(is_whole(n_bins) and n_bins >= 0, "n_bins", "a whole number >= 0", n_bins)
        expect(counted, "n_fine_bins", "a whole number >= 0, or 'auto'", n_fine)
        expect(is_whole(most) and most >= 1, "max_categories", "a whole number >= 1", most)
        known = unknown in ("ignore", "error")
        expect(known, "unknown_categories", '"ignore" or "error"', unknown)
        expect(auto or n_bins > 0 or n_fine == 0, "n_fine_bins", "0 if `n_bins` is 0", n_fine)

    def _renamed(self, old: str, new: str) -> Any:
        """Return the value of a parameter, which may have been given by its old name."""
        value = getattr(self, old)
        if isinstance(value, str) and value == "deprecated":
            return getattr(self, new)
        warn(
            f"The parameter `{old}` of TableEncoder is now `{new}`. The old name will be removed "
            "in release 0.3.",
            FutureWarning,
        )
        return value

    def _open(self, X: Any) -> Table:
        """Open a table and check that it has the columns of the training table."""
        if not hasattr(self, "groups_"):  # `check_is_fitted` is slower than encoding a row.
            check_is_fitted(self)
        table = _columns.open_table(X, self, accept_sparse=True)
        named = table.matrix is None or hasattr(self, "feature_names_in_")
        if named or table.shape[1] != self.n_features_in_:
            validate_data(self, table.named, reset=False, skip_check_array=True)
        return table

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the names of the output columns, such as `age_far`, `age_bin0` and `city_Ulm`.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the input columns; by default those of `fit`, or "x0", "x1", ...

        Returns
        -------
        ndarray of str (q,)
            Unique names: a repeated name gets the suffix "_2", "_3" and so on.

        Examples
        --------
        >>> from promissing.encoding import TableEncoder
        >>> TableEncoder(n_bins=2).fit([[1.0], [2.0], [3.0]]).get_feature_names_out().tolist()
        ['x0', 'x0_far', 'x0_bin0', 'x0_bin1']
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
        """Return the fitted encoder as a dict that JSON can hold and named arrays.

        Returns
        -------
        meta : dict
            Parameters, names, kinds and categories.
        arrays : dict of str to ndarray
            The arrays of the learned encodings.

        Examples
        --------
        >>> from promissing.encoding import TableEncoder
        >>> meta, arrays = TableEncoder().fit([[1.0], [2.0]]).get_state()
        >>> meta["kinds"], sorted(arrays)
        (['number'], ['fine', 'gaps', 'groups', 'maps'])
        """
        check_is_fitted(self)
        kinds = self.kinds and [
            [key if isinstance(key, str) else int(key), kind] for key, kind in self.kinds.items()
        ]  # Pairs, because JSON has only text as keys.
        names, fine = getattr(self, "feature_names_in_", None), self._n_fine_bins
        meta = {
            "params": {
                "kinds": kinds,
                "n_bins": int(self.n_bins),
                # Files keep the old names of two parameters.
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
        """Build a fitted encoder from the result of `get_state`.

        Parameters
        ----------
        meta : mapping
            Parameters, names, kinds and categories.
        arrays : mapping of str to ndarray
            The arrays of the learned encodings.

        Returns
        -------
        TableEncoder
            The fitted encoder.

        Raises
        ------
        ValueError
            If the parts are inconsistent.

        Examples
        --------
        >>> from promissing.encoding import TableEncoder
        >>> encoder = TableEncoder().fit([[1.0], [3.0]])
        >>> TableEncoder.from_state(*encoder.get_state()).transform([[2.0]])
        array([[0.]], dtype=float32)
        """
        kinds, groups, maps = meta["kinds"], arrays["groups"], arrays["maps"]
        features = np.arange(len(kinds))
        # Earlier files do not distinguish dates from durations.
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
        encoder.n_features_in_ = len(kinds)
        if meta["names"] is not None:
            encoder.feature_names_in_ = np.asarray(meta["names"], dtype=object)
        return encoder._set_fitted(kinds, meta["categories"], meta["other"], durations, **arrays)

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
        """Set all attributes of a fitted encoder."""
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
        self._is_category = np.array([kind == "category" for kind in kinds])
        self._hot = np.flatnonzero(self._is_category[groups])
        return self

    def linear_columns(self) -> tuple[NDArray[np.intp], Float]:
        """Return output columns that are linear in the values far beyond the training range.

        They are all columns of booleans and categories and, for each number and date, the column
        with the widest range: "far", or the only column.

        Returns
        -------
        columns : ndarray of int (m,)
            The output columns.
        units : ndarray of float (m,)
            Factors that convert the columns of numbers to standard deviations; 1 for others.

        Examples
        --------
        >>> from promissing.encoding import TableEncoder
        >>> TableEncoder(n_bins=2).fit([[1.0], [2.0], [3.0]]).linear_columns()
        (array([1]), array([10.]))
        """
        number = np.array([self.kinds_[j] in ("number", "date") for j in self.groups_])
        first = self.first_columns_[self.groups_]
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
        """Return the declared kinds by position, given the column names of X."""
        good = self.kinds is None or isinstance(self.kinds, Mapping)
        expect(good, "kinds", "a mapping such as {'age': 'number'}", self.kinds)
        by_number = any(is_whole(key) for key in self.kinds or ())
        if by_number and any(is_whole(n) and n != j for j, n in enumerate(names)):
            raise ValueError(
                "`kinds` names columns by position, but the column names of X are other numbers: "
                f"{names[:8]}. Rename the columns to text, and use these names."
            )
        position = {self.feature_key(j): j for j in range(self.n_features_in_)}
        position |= {j: j for j in range(self.n_features_in_)}
        declared = {}
        for key, kind in (self.kinds or {}).items():
            if key not in position:
                raise ValueError(f"`kinds` names column {key!r}, which X does not have.")
            expect(kind in KINDS, f"kinds[{key!r}]", f"one of {KINDS}", kind)
            declared[position[key]] = kind
        return declared

    def _learn(self, column: Any, kind: str, weight: Float, key: Key) -> Learned:
        """Learn the encoding of one column."""
        if kind == "category":
            return _columns.learn_category(column, weight, self.max_categories, key)
        x = _columns.READ[kind](column, key)
        if kind == "boolean":
            return _columns.learn_boolean(x)
        fine = _AUTO_FINE_BINS if self._n_fine_bins == "auto" else int(self._n_fine_bins)
        return _columns.learn_number(
            x, weight, self.n_bins, key, n_fine_bins=fine, scale=self.scale
        )

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
        """Read some rows as numbers (n, p), and return which of them are unknown categories."""
        if table.sparse is not None and self._only_numbers:
            readings = np.asarray(table.sparse[rows].toarray(), np.float64)
            readings[:, ~self.observed_] = np.nan
            return readings, np.zeros(readings.shape, bool)
        readings = np.full((rows.stop - rows.start, table.shape[1]), np.nan)
        for j in np.flatnonzero(self.observed_).tolist():
            try:
                readings[:, j] = self._read(table, j, rows)
            except UnicodeEncodeError as error:
                _columns.refuse_text(error, self.feature_key(j))
        return readings, (readings == -1) & self._is_category

    def _read(self, table: Table, j: int, rows: slice) -> Float:
        """Read column j as numbers: a category as its index, -1 if unknown."""
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
        return np.array([*places, np.nan])[codes]  # Missing cells have code -1, the last item.

    def _place(self, value: Scalar, j: int) -> float:
        """Return the index of a value among the categories of column j; -1 if it is unknown."""
        place = self._lookup[j].get(value)
        if place is not None:
            return place
        elsewhere = float(len(self._lookup[j])) if self._other[j] else -1.0
        known, place = self._forms[j].get(_columns.common_form(value), (None, elsewhere))
        # With rare categories, this spelling may have been a rare category of its own.
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
                f"such as {value!r}. They carry no information. Known categories are "
                f"{few(self.categories_[j] or [])}. Spell the values as in training, or fit on "
                "data that contains them."
            )

    def _write(self, readings: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the encoding of readings (n, p) into `out`, a block of rows at a time.

        All output columns have the same formula: shift, scale, clip, centre. A 0/1 column of a
        category has its index as shift, is clipped to -1..1 and becomes 1 - |value|, which is exact
        and keeps NaN.
        """
        shift, scale, low, high, mean = self._maps
        step = max(1, _BLOCK // self.n_columns_out_)
        for start in range(0, len(out), step):
            rows = slice(start, start + step)
            values = readings[rows] if self._one_to_one else readings[rows].take(self.groups_, 1)
            if self._bounded:  # Clipping would hide infinity.
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
                    # `np.clip` with arrays is twice as slow.
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _forms(lookup: Mapping[Scalar, float]) -> dict[Scalar | None, tuple[Scalar, float]]:
    """Return the categories and their indices by common form, if only one has this form."""
    forms: dict[Scalar | None, list[tuple[Scalar, float]]] = {}
    for value, place in lookup.items():
        forms.setdefault(_columns.common_form(value), []).append((value, place))
    return {form: found[0] for form, found in forms.items() if form is not None and len(found) == 1}


def aligned(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an empty array that starts at a multiple of 64 bytes, so that JAX need not copy it."""
    size = prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -int(memory.__array_interface__["data"][0]) % 64
    out: NDArray[Any] = memory[start : start + size].view(dtype).reshape(shape)
    return out


def check_weight(sample_weight: ArrayLike | None, n: int) -> Float:
    """Check sample weights: one per row, non-negative and not all zero.

    Parameters
    ----------
    sample_weight : array (n,) or None
        The weights. None means 1 for every row.
    n : int
        The number of rows.

    Returns
    -------
    ndarray of float (n,)
        The weights.

    Examples
    --------
    >>> from promissing.encoding import check_weight
    >>> check_weight(None, 3)
    array([1., 1., 1.])
    """
    weight: Float = _check_sample_weight(sample_weight, np.empty((n, 0)), dtype=np.float64)
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(
            f"`sample_weight` must be non-negative. Received: {weight[row]} at row {row}."
        )
    if not weight.any():  # scikit-learn checks this from 1.8 on.
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weight
