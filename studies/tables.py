"""Small tables as Markdown, how results were made, and files that appear whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from promissing.io.files import write_text
from studies.store import FILE, read_about

__all__ = ["describe", "markdown", "write"]


def markdown(frame: pd.DataFrame, formats: Mapping[str, str] | None = None) -> str:
    """A frame as a Markdown table; its index is not shown. Numbers are right-aligned."""
    formats = formats or {}

    def cell(name: str, value: Any) -> str:
        if value is None or value != value:
            return ""
        text = format(value, formats.get(name, "")) if name in formats else str(value)
        return text.replace("|", "\\|")

    lines = ["| " + " | ".join(map(str, frame.columns)) + " |"]
    marks = ["---:" if pd.api.types.is_numeric_dtype(frame[c]) else "---" for c in frame]
    lines.append("|" + "|".join(marks) + "|")
    for row in frame.itertuples(index=False):
        cells = [cell(name, value) for name, value in zip(frame.columns, row, strict=True)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def describe(out: Path, command: str) -> None:
    """Write how the results in `out` were made: about.md."""
    about = read_about(out / FILE)
    facts = {
        "command": f"`{command}`",
        "seconds, all runs together": f"{about['seconds']:.0f}",
        "worker processes": about["jobs"],
        "machine": ", ".join(f"{key} {value}" for key, value in about["platform"].items()),
        "finished": str(about["finished"])[:10],
    }
    facts |= {f"version of {name}": version for name, version in about["versions"].items()}
    facts |= {f"left out: {name}": reason for name, reason in about["skipped"].items()}
    frame = pd.DataFrame({"what": list(facts), "value": [str(value) for value in facts.values()]})
    write(out / "about.md", markdown(frame))


def write(path: Path, text: str) -> None:
    """Write a text file in one move; its directory is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
