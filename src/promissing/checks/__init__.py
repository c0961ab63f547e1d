"""The NaN contract: checks of how a layer or an estimator must treat missing values.

scikit-learn's `allow_nan` tag only switches checks off, and no framework defines what NaN means.
These checks define it. They run on the layers and estimators of this package and on any others.
"""

from promissing.checks.estimators import ESTIMATOR_CHECKS, check_estimator
from promissing.checks.layers import (
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
