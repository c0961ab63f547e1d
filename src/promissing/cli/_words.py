"""Messages of the library in terms of the command line.

The library writes code between backticks. Code that names an option of a command becomes that
option; what else there is of code is left out, so that no message prescribes Python.
"""

from __future__ import annotations

import ast
import csv
import io
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

import click

__all__ = ["in_shell_words", "joined", "split"]

_CODE = re.compile(r"`([^`]*)`")
_LEFT = "\0"  # Stands around code that no option has a name for.
# Options that are called otherwise than the parameter.
_OTHERWISE = {"max_iter": "epochs", "n_members": "members", "random_state": "seed"}


def in_shell_words(text: str) -> str:
    """Put a message of the library in terms of the command line."""
    if "`" not in text:
        return text
    known = _options()
    text = _CODE.sub(lambda found: _translated(found[1], known), text)
    if _LEFT not in text:
        return text
    first, *others = re.split(r"(?<=[.!?]) (?=[A-Z])", text)
    # The first sentence says what is the matter; the others say what to do.
    kept = [first.replace(_LEFT, ""), *(_without_code(sentence) for sentence in others)]
    return " ".join(sentence for sentence in kept if sentence)


def split(text: str) -> list[str]:
    """Split a list at its commas; a value in double quotes may hold commas."""
    parts = next(csv.reader([text], skipinitialspace=True), [])
    return [part.strip() for part in parts if part.strip()]


def joined(values: Iterable[Any]) -> str:
    """Write a list as `split` reads it."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def _options() -> dict[str, click.Option]:
    """The options of the running command and of `fit`, by the name of a parameter."""
    from promissing.cli.fit import fit

    context = click.get_current_context(silent=True)
    commands = [fit] if context is None else [fit, context.command]
    return {
        flag.removeprefix("--").replace("-", "_"): option
        for command in commands
        for option in command.params
        if isinstance(option, click.Option)
        for flag in option.opts
    }


def _translated(code: str, known: Mapping[str, click.Option]) -> str:
    if code.startswith("pip "):
        return f"`{code}`"
    found = re.fullmatch(r"(\w+)(?:=(.*))?", code, re.DOTALL)
    name = "" if found is None else _OTHERWISE.get(found[1], found[1])
    if found is None or name not in known:
        return f"{_LEFT}{code}{_LEFT}"
    flag = "--" + name.replace("_", "-")
    if found[2] is None:
        return flag
    try:
        value = ast.literal_eval(found[2])
    except (ValueError, SyntaxError):
        value = found[2]
    if isinstance(value, bool):
        return flag if value else (known[name].secondary_opts or [flag])[0]
    return f"{flag} {_quoted(_listed(value))}"


def _quoted(text: str) -> str:
    """Text as a word of the shell, in quotes unless it is plain."""
    if re.fullmatch(r"[\w=]+", text):
        return text
    return text if (text := shlex.quote(text)).startswith("'") else f"'{text}'"


def _listed(value: Any) -> str:
    if isinstance(value, Mapping):
        value = [str(key) if one is None else f"{key}={one}" for key, one in value.items()]
    return joined(value) if isinstance(value, list | tuple) else str(value)


def _without_code(sentence: str) -> str:
    """A sentence without the clauses that hold code."""
    if _LEFT not in sentence:
        return sentence
    kept = [part for part in re.split(r"; |, or ", sentence) if _LEFT not in part]
    return "; ".join(kept).rstrip(".") + "." if kept else ""
