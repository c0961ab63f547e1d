"""Strategies for missing values, and how to compare them."""

from promissing.compare.comparison import Comparison, compare
from promissing.compare.gain import GAINImputer

__all__ = ["Comparison", "GAINImputer", "compare"]
