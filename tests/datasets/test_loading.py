"""Test tables from directories and from OpenML, and the errors if they cannot be loaded."""

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlparse
from urllib.request import ProxyHandler, Request, build_opener

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import _openml

from promissing import datasets
from promissing.datasets import (
    DatasetError,
    UnknownTableError,
    load,
    load_many,
    registry,
    tables,
)


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch):
    monkeypatch.delenv("PROMISSING_DATA", raising=False)


# ---- the registry


def test_all_tables_of_the_paper_are_listed():
    listed = tables()
    assert len(listed) == 52
    assert (len(tables(task="binary")), len(tables(task="regression"))) == (31, 21)
    for field in ("name", "slug", "openml_id"):
        assert len({getattr(t, field) for t in listed}) == 52
    assert {t.name for t in listed if t.excluded} == {
        "pollen",
        "eeg-eye-state",
        "numerai28.6",
        "stock-fardamento02",
        "wine-quality",
        "Bike-Sharing-Demand",
    }
    assert len(tables(excluded=False)) == 46
    assert all(t.slug.replace("_", "").isalnum() and t.slug.isascii() for t in listed)
    assert all((t.positive is None) == (t.task == "regression") for t in listed)


def test_reasons_are_those_of_the_paper():
    why = {t.name: t.excluded for t in tables()}
    assert why["pollen"] == "net and random forest are near chance on the complete table"
    assert why["wine-quality"] == "net and random forest have an SMSE above 1 on the complete table"


@pytest.mark.parametrize("key", ["bng_breast_w", "BNG(breast-w)", "bng-breast-w", 251, "251"])
def test_a_table_goes_by_slug_name_or_id(key):
    assert registry.find(key) == (
        "BNG(breast-w)", "bng_breast_w", 251, "binary", 39366, 9, "malignant", ""
    )  # fmt: skip


def test_every_key_finds_its_own_table():
    for table in tables():
        assert {registry.find(k) for k in (table.name, table.slug, table.openml_id)} == {table}


def test_an_unknown_task_is_refused():
    with pytest.raises(ValueError, match="`task` must be 'binary', 'regression' or None."):
        tables(task="ranking")


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("electricty", r"Did you mean 'electricity'\?"),
        ("Brazilian house", r"Did you mean 'brazilian_houses'\?"),
        ("run-or-walk-info", r"Did you mean 'run_or_walk'"),
        (99999, r"See datasets.tables\(\)."),
    ],
)
def test_an_unknown_table_is_told_what_it_may_be(key, hint):
    with pytest.raises(UnknownTableError, match=rf"^There is no table {key!r}. {hint}"):
        load(key)


# ---- a directory


def numbers(n=12, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.integers(0, 9, n)})
    return frame.assign(c=pd.Categorical(["x", "y"] * (n // 2)))


def write(directory, **told):
    """A directory with two tables, one of the paper and one of its own, and an index."""
    directory.mkdir(parents=True, exist_ok=True)
    wind = numbers().assign(target=np.array([0, 1] * 6, np.int8))
    wind.to_parquet(directory / "wind.parquet")
    ward = numbers(seed=1).assign(day=range(12), target=np.array([1, 0] * 6, np.int8))
    ward.loc[3, ["a", "c"]] = None
    ward.to_parquet(directory / "ward.parquet")
    index = [
        {
            "slug": "wind",
            "file": "wind.parquet",
            "paper_name": "wind",
            "openml_id": 847,
            "task": "binary",
            "categorical_columns": {"b": 9, "c": 2},
        },
        {
            "slug": "ward",
            "file": "ward.parquet",
            "title": "A ward",
            "task": "binary",
            "n_samples": 13,
            "n_features": 3,
            "metadata_columns": ["day"],
            "modalities": {"blood": ["a", "b"], "history": ["c"]},
        },
    ]
    index[0] |= told
    (directory / "index.json").write_text(json.dumps({"datasets": index}))
    return directory


def test_a_table_of_the_paper_from_a_directory(tmp_path):
    wind = load("Wind", data=write(tmp_path))
    assert (wind.name, wind.slug, wind.openml_id, wind.task) == ("wind", "wind", 847, "binary")
    pd.testing.assert_frame_equal(wind.X, numbers())
    assert wind.y.tolist() == [0, 1] * 6
    assert wind.y.dtype == "int8"
    assert wind.nominal == ["b", "c"]
    assert wind.modalities == {}
    assert wind.source == str(tmp_path / "wind.parquet")


def test_a_table_of_another_size_says_so(tmp_path):
    assert load(847, data=write(tmp_path)).notes == (
        "12 rows instead of the 6574 of the paper",
        "3 features instead of the 14 of the paper",
    )
    assert load("ward", data=tmp_path).notes == ("12 rows instead of the 13 of the index",)


def test_a_table_of_its_own_with_modalities_and_columns_that_are_no_features(tmp_path):
    ward = load("ward", data=write(tmp_path))
    assert (ward.name, ward.openml_id) == ("A ward", None)
    assert list(ward.X) == ["a", "b", "c"]
    assert ward.modalities == {"blood": ["a", "b"], "history": ["c"]}
    assert ward.nominal == ["c"]
    assert ward.X.isna().sum().tolist() == [1, 0, 1]


def test_a_regression_has_a_target_of_floats(tmp_path):
    directory = write(tmp_path, task="regression")
    assert load("wind", data=directory).y.dtype == "float64"


def test_the_environment_names_the_directory_above(tmp_path, monkeypatch):
    write(tmp_path / "datasets")
    write(tmp_path / "clinical", slug="elsewhere", paper_name="", openml_id=None)
    monkeypatch.setenv("PROMISSING_DATA", str(tmp_path))
    assert datasets.available() == ["wind", "ward", "elsewhere"]
    assert load("wind").source == str(tmp_path / "datasets" / "wind.parquet")
    assert load("elsewhere").source == str(tmp_path / "clinical" / "wind.parquet")
    assert len(datasets.available(data="openml")) == 52


def test_a_directory_named_is_the_only_source(tmp_path, no_network):
    with pytest.raises(DatasetError, match=f"^Table 'wilt' is not in '{tmp_path}'.$"):
        load("wilt", data=write(tmp_path))
    assert no_network == []


def test_an_unknown_name_may_mean_a_table_of_the_directory(tmp_path):
    with pytest.raises(UnknownTableError, match=r"no table 'wardd'. Did you mean 'ward'\?"):
        load("wardd", data=write(tmp_path))


def test_a_directory_without_an_index(tmp_path):
    with pytest.raises(DatasetError, match=f"^{tmp_path} has no index.json. Name a directory"):
        load("wind", data=tmp_path)
    with pytest.raises(DatasetError, match=f"^{tmp_path / 'no'} is not a directory. Name"):
        load("wind", data=tmp_path / "no")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting property name"),
        ("{}", "a list 'datasets' is missing"),
        ("[]", "list indices must be integers"),
        ('{"datasets": 3}', "not iterable"),
        ('{"datasets": [3]}', "not iterable"),
    ],
)
def test_an_index_that_cannot_be_read(tmp_path, text, why):
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(DatasetError, match=rf"^{tmp_path}/index.json cannot be read: .*{why}") as e:
        load("wind", data=tmp_path)
    assert "\n" not in str(e.value)


def test_an_index_with_an_incomplete_entry(tmp_path):
    with pytest.raises(DatasetError, match="index.json has no 'file' in entry 0 of its list."):
        load("wind", data=write(tmp_path, file=None))


@pytest.mark.parametrize("damage", [b"", b"no table at all", "half"])
def test_a_corrupt_file_is_named_and_the_rest_goes_on(tmp_path, damage):
    path = write(tmp_path) / "wind.parquet"
    path.write_bytes(path.read_bytes()[:500] if damage == "half" else damage)
    with pytest.raises(DatasetError, match=f"^Table 'wind': {path} cannot be read: [^\n]+\\.$"):
        load("wind", data=tmp_path)
    loaded = load_many(data=tmp_path)
    assert [d.slug for d in loaded.datasets] == ["ward"]
    assert list(loaded.skipped) == ["wind"]
    assert loaded.skipped["wind"].startswith(f"Table 'wind': {path} cannot be read: ")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DatasetError, match="'wind': .*x.parquet cannot be read: there is no such"):
        load("wind", data=write(tmp_path, file="x.parquet"))


def test_nothing_is_read_outside_the_directory(tmp_path):
    write(tmp_path)
    with pytest.raises(DatasetError, match="the file '../wind.parquet' is not in its directory"):
        load("wind", data=write(tmp_path / "inner", file="../wind.parquet"))


@pytest.mark.parametrize(
    ("told", "change", "message"),
    [
        ({}, lambda f: f.drop(columns="target"), "has no column 'target'"),
        ({}, lambda f: f.assign(target=range(12)), "the target of .* must be 0 and 1"),
        (
            {"task": "regression"},
            lambda f: f.assign(target=np.nan),
            "must be numbers without missing",
        ),
        ({"task": "ranking"}, lambda f: f, r"the task is 'ranking', not one of \('binary', 'reg"),
        ({"modalities": {"m": ["z"]}}, lambda f: f, "has no column 'z'"),
    ],
)
def test_a_table_that_is_not_what_it_should_be(tmp_path, told, change, message):
    path = write(tmp_path, **told) / "wind.parquet"
    change(pd.read_parquet(path)).to_parquet(path)
    with pytest.raises(DatasetError, match=f"^Table 'wind': .*{message}"):
        load("wind", data=tmp_path)


def test_many_tables_at_once_each_of_them_once(tmp_path):
    loaded = load_many(["ward", 847, "wind", "wilt"], data=write(tmp_path))
    assert [d.slug for d in loaded.datasets] == ["ward", "wind"]
    assert loaded.skipped == {"wilt": f"Table 'wilt' is not in '{tmp_path}'."}


def test_what_is_a_mistake_is_not_skipped(tmp_path):
    with pytest.raises(UnknownTableError, match="no table 'wynd'"):
        load_many(["wind", "wynd"], data=write(tmp_path))
    with pytest.raises(DatasetError, match="has no index.json"):
        load_many(["wind"], data=tmp_path.parent)


# ---- OpenML


DIRECTLY = build_opener(ProxyHandler({})).open  # Whatever proxy the environment names.


class FakeOpenML(ThreadingHTTPServer):
    """Answers like OpenML to what scikit-learn's loader asks for a table."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.pages, self.broken = [], {}, False

    def add(self, id_, name, features, rows, target, **description):
        """Serve a table, given as columns (name, ARFF type) and rows of text."""
        kinds = [kind if kind[0] == "{" else kind.upper() for _, kind in features]
        head = [f"@ATTRIBUTE {n} {k}" for (n, _), k in zip(features, kinds, strict=True)]
        arff = "\n".join([f"@RELATION {name}", *head, "@DATA", *rows]).encode()
        path = f"/data/v1/download/{id_}/{name}.arff"
        self.pages[path] = arff
        about = {
            "id": str(id_),
            "name": name,
            "version": "1",
            "format": "ARFF",
            "status": "active",
            "description": "made up",
            "file_id": str(id_),
            "url": f"http://localhost{path}",
            "md5_checksum": hashlib.md5(arff).hexdigest(),
        }
        columns = [
            {
                "index": str(i),
                "name": n,
                "data_type": "nominal" if kind[0] == "{" else kind,
                "is_target": str(n == target).lower(),
                "is_ignore": str(n == "ignored").lower(),
                "is_row_identifier": "false",
                "number_of_missing_values": "0",
            }
            for i, (n, kind) in enumerate(features)
        ]
        qualities = [{"name": "NumberOfInstances", "value": str(float(len(rows)))}]
        api = "/api/v1/json/data"
        self.pages[f"{api}/{id_}"] = {"data_set_description": about | description}
        self.pages[f"{api}/features/{id_}"] = {"data_features": {"feature": columns}}
        self.pages[f"{api}/qualities/{id_}"] = {"data_qualities": {"quality": qualities}}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        page = self.server.pages.get(self.path)
        if self.server.broken:
            status, body = 503, b""
        elif page is None:
            status, body = 412, json.dumps({"error": {"message": "Unknown dataset"}}).encode()
        else:
            status, body = 200, page if isinstance(page, bytes) else json.dumps(page).encode()
        body = gzip.compress(body)
        self.send_response(status)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def no_network(monkeypatch):
    """Whatever asks for a host is refused by this one, at a port where nobody listens."""
    asked = []

    def refuse(request):
        asked.append(request.full_url)
        return DIRECTLY(Request("http://127.0.0.1:9" + urlparse(request.full_url).path))

    monkeypatch.setattr(_openml, "urlopen", refuse)
    monkeypatch.setattr(_openml.time, "sleep", lambda seconds: None)  # Between its attempts.
    return asked


@pytest.fixture
def openml(monkeypatch):
    """A server in place of OpenML: scikit-learn's loader has no option for the host."""
    server = FakeOpenML()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()

    def redirect(request):
        url = f"http://127.0.0.1:{server.server_port}{urlparse(request.full_url).path}"
        return DIRECTLY(Request(url, headers=dict(request.header_items())))

    monkeypatch.setattr(_openml, "urlopen", redirect)
    monkeypatch.setattr(_openml.time, "sleep", lambda seconds: None)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


WIND = [
    ("height", "numeric"),
    ("year", "integer"),
    ("side", "{N, S, 'far off'}"),
    ("day", "string"),
]
ROWS = ["1.5,61,N,mo,P", "2.5,62,S,tu,N", "?,63,'far off',mo,N", "4.5,64,N,we,P"]


def serve_wind(server, rows=ROWS, labels="{P, N}", **description):
    columns = [*WIND, ("binaryClass", labels)]
    server.add(847, "wind", columns, rows, "binaryClass", **description)


def test_a_table_from_openml(openml, tmp_path):
    serve_wind(openml)
    wind = load("wind", data_home=tmp_path)
    assert (wind.name, wind.slug, wind.openml_id, wind.task) == ("wind", "wind", 847, "binary")
    assert wind.source == "OpenML 847"
    assert wind.y.tolist() == [1, 0, 0, 1]
    assert (wind.y.dtype, wind.y.name) == ("int8", "target")
    expected = {
        "height": [1.5, 2.5, np.nan, 4.5],
        "year": [61.0, 62.0, 63.0, 64.0],
        "side": pd.Categorical(["N", "S", "far off", "N"], categories=["N", "S", "far off"]),
        "day": pd.Categorical(["mo", "tu", "mo", "we"]),
    }
    pd.testing.assert_frame_equal(wind.X, pd.DataFrame(expected), check_categorical=False)
    assert wind.nominal == ["side", "day"]
    assert wind.notes == (
        "4 rows instead of the 6574 of the paper",
        "4 features instead of the 14 of the paper",
    )


def test_once_fetched_it_is_there_offline(openml, tmp_path):
    serve_wind(openml)
    before = load("wind", data_home=tmp_path)
    asked = len(openml.asked)
    assert asked == 4
    openml.shutdown()
    openml.server_close()
    after = load("wind", data_home=tmp_path)
    pd.testing.assert_frame_equal(after.X, before.X)
    assert_array_equal(after.y, before.y)
    with pytest.raises(DatasetError, match="Connection refused"):
        load("wilt", data_home=tmp_path)
    assert len(openml.asked) == asked


def test_the_registry_says_which_label_is_1(openml, tmp_path):
    columns = [("a", "numeric"), ("class", "{yes, no}")]
    openml.add(1489, "phoneme", [columns[0], ("class", "{2, 1}")], ["5,2", "6,1"], "class")
    openml.add(847, "wind", columns, ["5,yes", "6,no"], "class")
    phoneme, wind = load_many(["phoneme", "wind"], data_home=tmp_path).datasets
    assert phoneme.y.tolist() == wind.y.tolist() == [1, 0]
    assert "there is no label 'P'; 'yes' is 1" in wind.notes
    assert not any("label" in note for note in phoneme.notes)


def test_numbers_as_labels(openml, tmp_path):
    rows = [f"{x},{y}" for x, y in [(0.5, -1), (1.5, 1), (2.5, -1)]]
    openml.add(310, "mammography", [("a", "numeric"), ("class", "numeric")], rows, "class")
    assert load(310, data_home=tmp_path).y.tolist() == [0, 1, 0]


def test_three_labels_are_no_binary_target(openml, tmp_path):
    serve_wind(openml, [*ROWS, "1,65,N,mo,Q"], "{P, N, Q}")
    message = r"^Table 'wind' \(OpenML 847\): the target has 3 different values instead of 2.$"
    with pytest.raises(DatasetError, match=message):
        load("wind", data_home=tmp_path)


def test_a_regression_from_openml(openml, tmp_path):
    columns = [("a", "numeric"), ("ignored", "numeric"), ("price", "numeric")]
    openml.add(218, "house_8L", columns, ["1,2,3", "4,5,6"], "price")
    house = load("house-8L", data_home=tmp_path)
    assert house.task == "regression"
    assert house.y.tolist() == [3.0, 6.0]
    assert house.y.dtype == "float64"
    assert list(house.X) == ["a"]


def test_what_openml_warns_of_is_a_note(openml, tmp_path):
    serve_wind(openml, status="deactivated")
    assert load("wind", data_home=tmp_path).notes[0].startswith("Version 1 of dataset wind is inac")


def test_a_table_openml_does_not_have(openml, tmp_path):
    message = r"^Table 'wind' \(OpenML 847\) cannot be loaded: Dataset with data_id 847 not found.$"
    with pytest.raises(DatasetError, match=message):
        load("wind", data_home=tmp_path)


def test_a_wrong_checksum(openml, tmp_path):
    serve_wind(openml, md5_checksum="0" * 32)
    message = r"^Table 'wind' \(OpenML 847\) cannot be loaded: The md5 checksum of [^\n]*$"
    with pytest.raises(DatasetError, match=message):
        load("wind", data_home=tmp_path)
    serve_wind(openml)
    with pytest.raises(DatasetError, match="md5"):  # What OpenML said of it is in the cache too.
        load("wind", data_home=tmp_path)


def test_a_damaged_cache_is_fetched_anew(openml, tmp_path):
    serve_wind(openml)
    load("wind", data_home=tmp_path)
    (path,) = tmp_path.rglob("wind.arff.gz")
    path.write_bytes(gzip.compress(b"nonsense"))
    assert load("wind", data_home=tmp_path).y.tolist() == [1, 0, 0, 1]


def test_an_openml_that_is_down(openml, tmp_path):
    openml.broken = True
    with pytest.raises(DatasetError, match=r"^Table 'wind' \(OpenML 847\): OpenML answers 503, "):
        load("wind", data_home=tmp_path)


def test_no_network_and_no_cache(no_network, tmp_path):
    with pytest.raises(DatasetError) as error:
        load("wind", data_home=tmp_path)
    assert re.fullmatch(
        rf"Table 'wind' \(OpenML 847\) is not in scikit-learn's cache \({tmp_path}\) and cannot be "
        r"downloaded: .*refused. Connect to the internet, or name a directory that has it.",
        str(error.value),
    )
    assert no_network


def test_a_cache_that_cannot_be_written(openml, tmp_path):
    serve_wind(openml)
    (tmp_path / "openml").write_text("a file where a directory should be")
    with pytest.raises(
        DatasetError, match=r"^Table 'wind' \(OpenML 847\) cannot be loaded: [^\n]*$"
    ):
        load("wind", data_home=tmp_path)


def test_tables_that_cannot_be_had_are_skipped_and_listed(openml, tmp_path):
    serve_wind(openml)
    loaded = load_many(["wind", "wilt"], data_home=tmp_path)
    assert [d.slug for d in loaded.datasets] == ["wind"]
    assert list(loaded.skipped) == ["wilt"]
    assert "Dataset with data_id 40983 not found" in loaded.skipped["wilt"]


# ---- what is at hand


AT_HAND = os.environ.get("PROMISSING_DATA")  # Read before the fixture above forgets it.
needs_data = pytest.mark.skipif(not AT_HAND, reason="PROMISSING_DATA names no directory of tables")


@needs_data
def test_every_table_at_hand_loads():
    loaded = load_many(data=AT_HAND)
    assert loaded.datasets
    assert not loaded.skipped
    for d in loaded.datasets:
        assert len(d.X) == len(d.y)
        assert not set(d.X) & {"target"}
        assert set(d.nominal) <= set(d.X)
        assert d.y.nunique() == 2 or d.task == "regression"
        if d.modalities:
            assert sorted(c for cols in d.modalities.values() for c in cols) == sorted(d.X)
        # The paper counts the target, or the numbers only, as features of these two.
        assert bool(d.notes) == (d.slug in ("wine_quality", "bike_sharing_demand")), d.notes


# ---- the module


def test_importing_it_loads_no_framework_and_no_scikit_learn():
    code = "import promissing.datasets, sys; print(*{m.split('.')[0] for m in sys.modules})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"jax", "keras", "torch", "sklearn", "matplotlib"} & set(out.stdout.split())
    assert set(datasets.__all__) <= set(dir(datasets))
