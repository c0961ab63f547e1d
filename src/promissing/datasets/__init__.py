"""Datasets: the benchmark tables of the paper, a health survey, and generated tables."""

from promissing.datasets.generated import Cohort, Truth, make_cohort, make_xor
from promissing.datasets.loading import Dataset, Loaded, available, load, load_many
from promissing.datasets.nhanes import load_nhanes
from promissing.datasets.registry import DatasetError, Table, UnknownTableError, tables

__all__ = [
    "Cohort",
    "Dataset",
    "DatasetError",
    "Loaded",
    "Table",
    "Truth",
    "UnknownTableError",
    "available",
    "load",
    "load_many",
    "load_nhanes",
    "make_cohort",
    "make_xor",
    "tables",
]
