"""Old names of modules, which work for one release with a `FutureWarning`."""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["MOVED", "OldNames"]

# The modules of release 0.1.0 that moved, and where their names are now.
MOVED = {
    "comparison": ("compare.comparison",),
    "description": ("io",),
    "displays": ("inspection",),
    "explain": ("inspection",),
    "files": ("io",),
    "fusion": ("estimators.fusion",),
    "gain": ("compare.imputers",),
    "knowing": ("metrics",),
    "mlp": ("estimators.mlp",),
    "persist": ("estimators.persistence",),
    "problem": ("io", "io.task", "estimators.fusion"),
    "strategies": ("compare.strategies",),
    "tables": ("encoding",),
}


class OldNames:
    """A finder of the old modules: their names are looked up in the new ones."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Describe an old module, or return None for any other."""
        package, _, module = name.partition(".")
        if package != "promissing" or module.split(".")[0] not in (*MOVED, "experiments"):
            return None
        if module.split(".")[0] == "experiments":
            raise ModuleNotFoundError(
                "promissing.experiments is no longer part of the package. The studies are in the "
                "folder `studies` of the source repository: run `python -m studies --help` there.",
                name=name,
            )
        return ModuleSpec(name, OldNames)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType | None:
        """Use an ordinary module."""
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Let the old module look its names up in the new ones."""
        old = module.__name__
        homes = [f"promissing.{home}" for home in MOVED[old.partition(".")[2]]]

        def public() -> list[str]:
            return sorted({name for home in homes for name in import_module(home).__all__})

        def look_up(name: str) -> Any:
            if name == "__all__":  # For `from promissing.explain import *`.
                return public()
            if name.startswith("__"):
                raise AttributeError(name)
            for home in homes:
                found = getattr(import_module(home), name, sys)
                if found is not sys:
                    import warnings

                    new = getattr(found, "__name__", name)  # Some were renamed, too.
                    warnings.warn(
                        f"{old}.{name} is now {home}.{new}. The old name will be removed in "
                        "release 0.3.",
                        FutureWarning,
                        stacklevel=2,
                    )
                    return found
            raise AttributeError(f"module {old!r} has no attribute {name!r}")

        module.__getattr__ = look_up  # type: ignore[method-assign]
        module.__dir__ = public  # type: ignore[method-assign]
