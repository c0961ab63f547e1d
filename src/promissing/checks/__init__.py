"""The NaN contract: what NaN must mean to a layer or an estimator, as checks to be run on it.

scikit-learn's `allow_nan` tag switches checks off, and no framework says what NaN means. These
checks do, for layers and estimators of ours or of anybody's.
"""

from promissing.checks._estimators import ESTIMATOR_CHECKS, check_estimator
from promissing.checks._layers import (
    DTYPES,
    LAYER_CHECKS,
    LayerUnderTest,
    check_layer,
    tolerance,
)

__all__ = [
    "DTYPES",
    "ESTIMATOR_CHECKS",
    "LAYER_CHECKS",
    "LayerUnderTest",
    "check_estimator",
    "check_layer",
    "tolerance",
]
