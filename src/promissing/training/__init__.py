"""The engine: trains many replicas of a network at once with JAX."""

__all__ = ["LAWS", "RATES", "SOLVERS"]

SOLVERS = ("sgd", "adam", "adamw")
RATES = ("constant", "cosine")
LAWS = ("number", "subset")
