"""Settings shared by all tests."""

from hypothesis import settings

# Compiling dominates the first example of a framework, so no deadline; derandomised, so that the
# same commit gives the same verdict.
settings.register_profile("promissing", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("promissing")
