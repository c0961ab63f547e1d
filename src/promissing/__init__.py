"""Neural networks that learn from tables with holes.

Layers: `promissing.keras`, `promissing.torch`, `promissing.jax`. Importing this package imports
none of them, nor anything else: names are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from promissing.pruner import Pruner as Pruner

__version__ = "0.1.0"

_HOME = {"Pruner": "promissing.pruner"}
_MODULES = ("checks", "jax", "keras", "torch")
__all__ = ["Pruner", "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(f"promissing.{name}")
    raise AttributeError(f"module 'promissing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
