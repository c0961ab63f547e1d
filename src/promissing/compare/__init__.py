"""Strategies for missing values, imputers among them, and their comparison on one table."""

from promissing.compare import strategies
from promissing.compare.comparison import Comparison, compare
from promissing.compare.imputers import GAINImputer

__all__ = ["Comparison", "GAINImputer", "compare", "strategies"]
