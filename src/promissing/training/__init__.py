"""The engine: trains many replicas of a network at once with JAX.

Importing this package does not import JAX; `promissing.training.train` does.
"""
