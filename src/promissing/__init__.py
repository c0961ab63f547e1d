"""Neural networks that learn from tables with holes.

Estimators: `NanMLPClassifier`, `NanMLPRegressor`, and `NanFusionClassifier`, `NanFusionRegressor`
for tables of several modalities. Layers: `promissing.keras`, `promissing.torch`,
`promissing.jax`. Importing this package imports no other library: names are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from promissing.fusion import NanFusionClassifier as NanFusionClassifier
    from promissing.fusion import NanFusionRegressor as NanFusionRegressor
    from promissing.gain import GAINImputer as GAINImputer
    from promissing.mlp import NanMLPClassifier as NanMLPClassifier
    from promissing.mlp import NanMLPRegressor as NanMLPRegressor
    from promissing.persist import load as load
    from promissing.pruner import Pruner as Pruner
    from promissing.tables import TableEncoder as TableEncoder

import_module("promissing._engine.processes")  # Notices forks from now on.

__version__ = "0.1.0"

_HOME = {
    "GAINImputer": "promissing.gain",
    "NanFusionClassifier": "promissing.fusion",
    "NanFusionRegressor": "promissing.fusion",
    "NanMLPClassifier": "promissing.mlp",
    "NanMLPRegressor": "promissing.mlp",
    "Pruner": "promissing.pruner",
    "TableEncoder": "promissing.tables",
    "load": "promissing.persist",
}
_MODULES = (
    "checks",
    "comparison",
    "datasets",
    "description",
    "displays",
    "experiments",
    "explain",
    "files",
    "fusion",
    "gain",
    "jax",
    "keras",
    "knowing",
    "missingness",
    "mlp",
    "persist",
    "problem",
    "pruner",
    "report",
    "strategies",
    "tables",
    "torch",
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
    if name in _MODULES:
        return import_module(f"promissing.{name}")
    raise AttributeError(f"module 'promissing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
