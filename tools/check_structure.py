"""Check the limits on the size of functions, signatures and the package.

`python tools/check_structure.py` prints what exceeds a limit and the lines of code in the wheel.
Lines of code are lines that hold more than a docstring or a comment.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import promissing

ROOT = Path(__file__).parents[1]
MAX_FUNCTION_LINES = 80  # without the docstring
MAX_PARAMETERS = 12  # without self
MAX_CODE_LINES = 15_000  # Without the packages of CAPABILITIES, which each have their own purpose.
CAPABILITIES = ("uncertainty", "export")
# Constructors with the parameters of scikit-learn's MLP and Keras's Dense, and no other code.
EXEMPT = {f"{name}.__init__" for name in (*promissing.__all__, "NanDense")}

Function = ast.FunctionDef | ast.AsyncFunctionDef
LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


def docstring_lines(node: ast.AST) -> set[int]:
    """Return the numbers of the lines that the docstring of this node takes."""
    if not isinstance(node, Function | ast.ClassDef | ast.Module) or not ast.get_docstring(node):
        return set()
    return set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))


def code_lines(source: str, tree: ast.Module) -> int:
    """Count lines without docstrings, comments and blank lines."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines.difference(*map(docstring_lines, ast.walk(tree))))


def functions(node: ast.AST, path: str = "") -> Iterator[tuple[str, Function]]:
    """Yield every function below a node with its dotted name."""
    for child in ast.iter_child_nodes(node):
        name = f"{path}.{child.name}" if isinstance(child, Function | ast.ClassDef) else path
        if isinstance(child, Function):
            yield name.lstrip("."), child
        yield from functions(child, name)


def excesses(tree: ast.Module) -> Iterator[str]:
    """Yield a sentence for every function that is too long or has too many parameters."""
    for name, function in functions(tree):
        if name in EXEMPT:
            continue
        length = (function.end_lineno or 0) - function.lineno + 1 - len(docstring_lines(function))
        if length > MAX_FUNCTION_LINES:
            yield f"{function.lineno}: {name} has {length} lines, more than {MAX_FUNCTION_LINES}."
        given = function.args
        parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        n = len([p for p in parameters if p.arg not in ("self", "cls")])
        if n > MAX_PARAMETERS:
            yield f"{function.lineno}: {name} has {n} parameters, more than {MAX_PARAMETERS}."


def main() -> int:
    """Print what exceeds a limit, and the size of the package."""
    wrong, lines = 0, [0, 0]
    for folder in ("src", "studies"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            source = path.read_text()
            tree = ast.parse(source)
            for sentence in excesses(tree):
                print(f"{path.relative_to(ROOT)}:{sentence}")
                wrong += 1
            if folder == "src":
                package = path.relative_to(ROOT / "src" / "promissing").parts[0]
                lines[package in CAPABILITIES] += code_lines(source, tree)
    total, more = lines
    print(f"{total:,} lines of code in src; the limit is {MAX_CODE_LINES:,}.", end=" ")
    print(f"{more:,} more in {', '.join(CAPABILITIES)}.")
    return int(wrong > 0 or total > MAX_CODE_LINES)


if __name__ == "__main__":
    sys.exit(main())
