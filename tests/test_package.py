"""The package as a whole: what importing it loads, what its documents say, what its examples do."""

import doctest
import importlib
import re
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import promissing

ROOT = Path(__file__).parents[1]
HEAVY = {"jax", "keras", "torch", "tensorflow", "sklearn", "pandas", "scipy", "matplotlib", "numpy"}


def python(code, *options):
    return subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, check=False
    )


def test_importing_it_loads_nothing_heavy():
    out = python("import promissing, sys; print(*{m.split('.')[0] for m in sys.modules})")
    assert "promissing" in out.stdout.split(), out.stderr
    assert not HEAVY & set(out.stdout.split())


def test_importing_it_takes_no_time():
    """At most 0.1 s beyond NumPy; it takes about a millisecond."""
    code = (
        "import time, numpy; start = time.perf_counter(); import promissing; "
        "print(time.perf_counter() - start)"
    )
    # The least of a few: what else the machine does must not count.
    assert min(float(python(code).stdout) for _ in range(3)) < 0.1


def test_importing_it_sets_no_environment_variable():
    code = (
        "import os; before = dict(os.environ); import promissing; print(before == dict(os.environ))"
    )
    assert python(code).stdout.strip() == "True"


@pytest.mark.parametrize(
    ("module", "blocked", "message"),
    [
        ("keras", "keras", r"pip install 'promissing\[keras\]'"),
        ("torch", "torch", r"pip install 'promissing\[torch\]'"),
    ],
)
def test_a_missing_extra_says_what_to_install(module, blocked, message):
    code = f"import sys; sys.modules[{blocked!r}] = None; import promissing.{module}"
    error = python(code).stderr.splitlines()[-1]
    assert re.search(rf"ImportError: promissing.{module} needs .*{message}", error)


def test_every_public_name_is_there():
    for name in (*promissing.__all__, *promissing._MODULES):
        assert getattr(promissing, name) is not None
    assert set(promissing.__all__) <= set(dir(promissing))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        promissing.nothing  # noqa: B018


def modules_with_examples():
    """List the modules of the package whose source holds doctests."""
    source = Path(promissing.__file__).parent
    paths = sorted(path for path in source.rglob("*.py") if ">>> " in path.read_text())
    names = [path.relative_to(source.parent).with_suffix("").parts for path in paths]
    return [".".join(name).removesuffix(".__init__") for name in names]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_in_docstrings(name):
    import matplotlib.pyplot as plt

    module = importlib.import_module(name)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    with plt.rc_context({"figure.max_open_warning": 0}):
        result = doctest.testmod(module, optionflags=flags)
    plt.close("all")
    assert result.attempted
    assert not result.failed


DOCUMENTS = ("README.md", *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("docs/*.md"))))


NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


def code_blocks(document):
    """List the Python blocks, each with the output shown below it, if any."""
    text = (ROOT / document).read_text()
    return re.findall(
        r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", text, flags=re.M | re.S
    )


def assert_same_output(found, shown):
    """Compare texts without their spacing, and numbers to two digits."""
    assert NUMBER.sub("#", found).split() == NUMBER.sub("#", shown).split(), found
    for one, other in zip(NUMBER.findall(found), NUMBER.findall(shown), strict=True):
        expected = float(other.replace(",", ""))
        assert float(one.replace(",", "")) == pytest.approx(expected, rel=0.05, abs=0.02), found


@pytest.mark.parametrize(
    ("document", "index"),
    [(d, i) for d in DOCUMENTS for i in range(len(code_blocks(d)))],
)
def test_code_in_documents_runs_and_prints_what_is_shown(
    document, index, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)  # Some of it writes files.
    source, shown = code_blocks(document)[index]
    block = compile(source, f"{document}, block {index}", "exec")
    with warnings.catch_warnings():
        # Short training and others' deprecations may be told of; what will break may not.
        warnings.simplefilter("default")
        warnings.simplefilter("error", FutureWarning)
        exec(block, {"__name__": "__main__"})
    if shown:
        assert_same_output(capsys.readouterr().out, shown)


def test_the_lowest_versions_are_those_that_are_declared():
    """`make lowest` installs what constraints-lowest.txt holds."""
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    pinned = {r.name: r.specifier for r in (Requirement(x) for x in lines if x[0] != "#")}
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for requirement in map(Requirement, declared):
        (least,) = requirement.specifier
        assert least.operator == ">="
        assert pinned[requirement.name].contains(least.version), requirement
