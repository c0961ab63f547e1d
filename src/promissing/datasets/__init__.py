"""Tables to try things on: the paper's own, from a directory or OpenML, and generated ones."""

from promissing.datasets.cohort import Cohort, Truth, make_cohort
from promissing.datasets.dataset import Dataset, DatasetError
from promissing.datasets.loading import Loaded, available, load, load_many
from promissing.datasets.registry import Table, UnknownTableError, tables
from promissing.datasets.xor import make_xor

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
    "make_cohort",
    "make_xor",
    "tables",
]
