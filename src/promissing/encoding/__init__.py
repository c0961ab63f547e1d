"""Encoding of tables as matrices of numbers with NaN."""

from promissing.encoding.table_encoder import TableEncoder, check_weight

__all__ = ["TableEncoder", "check_weight"]
