"""Neural networks for tables with missing values.

Estimators: `NanMLPClassifier`, `NanMLPRegressor`, and `NanFusionClassifier`, `NanFusionRegressor`
for tables of several modalities. Layers: `promissing.keras`, `promissing.torch`,
`promissing.jax`. Importing this package imports no other library: names are loaded on first use.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from promissing._deprecated import MOVED, OldNames

if TYPE_CHECKING:
    from promissing.compare.imputers import GAINImputer as GAINImputer
    from promissing.encoding.table_encoder import TableEncoder as TableEncoder
    from promissing.estimators.fusion import NanFusionClassifier as NanFusionClassifier
    from promissing.estimators.fusion import NanFusionRegressor as NanFusionRegressor
    from promissing.estimators.mlp import NanMLPClassifier as NanMLPClassifier
    from promissing.estimators.mlp import NanMLPRegressor as NanMLPRegressor
    from promissing.estimators.persistence import load as load
    from promissing.pruner import Pruner as Pruner

import_module("promissing.training.processes")  # Notices forks from now on.
sys.meta_path.append(OldNames)

__version__ = "0.2.0.dev0"

_HOME = {
    "GAINImputer": "promissing.compare.imputers",
    "NanFusionClassifier": "promissing.estimators.fusion",
    "NanFusionRegressor": "promissing.estimators.fusion",
    "NanMLPClassifier": "promissing.estimators.mlp",
    "NanMLPRegressor": "promissing.estimators.mlp",
    "Pruner": "promissing.pruner",
    "TableEncoder": "promissing.encoding.table_encoder",
    "load": "promissing.estimators.persistence",
}
_MODULES = (
    "checks",
    "compare",
    "datasets",
    "encoding",
    "estimators",
    "export",
    "inspection",
    "io",
    "jax",
    "keras",
    "metrics",
    "missingness",
    "networks",
    "pruner",
    "report",
    "torch",
    "training",
    "uncertainty",
)
__all__ = [
    "GAINImputer",
    "NanFusionClassifier",
    "NanFusionRegressor",
    "NanMLPClassifier",
    "NanMLPRegressor",
    "Pruner",
    "TableEncoder",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES or name in MOVED:
        return import_module(f"promissing.{name}")
    raise AttributeError(f"module 'promissing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
