"""Tables from files and back."""

import gzip
import io
import os
import sys
import time

import numpy as np
import pandas as pd
import pytest

from promissing.io.files import FileError, check_target, read_table, write_table, write_text

FRAME = pd.DataFrame(
    {
        "age": [34.0, np.nan, 51.0],
        "ward": ["north", None, "say, so"],
        "smoker": pd.array([True, None, False], dtype="boolean"),
    }
)


@pytest.fixture
def write(tmp_path):
    def file(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return file


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found(write, separator):
    rows = [["age", "ward"], ["34", '"a,b;c"'], ["", "d"]]
    frame = read_table(write("\n".join(separator.join(row) for row in rows)))
    assert frame["ward"].tolist() == ["a,b;c", "d"]
    np.testing.assert_array_equal(frame["age"], [34, np.nan])


def test_any_other_separator_can_be_given(write):
    path = write("a^b\n1^2\n")
    assert read_table(path, separator="^").to_dict("list") == {"a": [1], "b": [2]}
    assert read_table(write("a\tb\n1\t2\n"), separator="tab").shape == (1, 2)
    with pytest.raises(FileError, match="must be one character or 'tab'. Received: '::'"):
        read_table(path, separator="::")


def test_one_column_is_a_table_and_its_empty_line_a_gap(write):
    np.testing.assert_array_equal(read_table(write("a\n1\n\n3\n"))["a"], [1, np.nan, 3])


def test_decimal_commas_are_numbers(write):
    frame = read_table(write("a;b\n1,5;x\n2;y\n"))
    assert frame["a"].tolist() == [1.5, 2.0]


def test_every_column_has_its_own_decimal_sign(write):
    frame = read_table(write("a;b;c;d\n1,5;2.1;x 2.1;1.234,5\n2;3;y;-0,25\n"))
    assert frame["a"].tolist() == [1.5, 2.0]
    assert frame["b"].tolist() == [2.1, 3.0]
    assert frame["d"].tolist() == [1234.5, -0.25]


def test_one_point_among_decimal_commas_is_read_and_said(write):
    path = write("a;b\n1,5;0,1\n2.1;0,2\n3;0,3\n")
    with pytest.warns(UserWarning, match="'a' has decimal commas and decimal points, such as"):
        frame = read_table(path)
    assert frame["a"].tolist() == [1.5, 2.1, 3.0]
    assert frame["b"].tolist() == [0.1, 0.2, 0.3]


def test_thousands_are_told_from_fractions_by_the_other_columns(write):
    path = write("a;b\n1,5;7.200\n2,5;950\n")
    with pytest.warns(UserWarning, match="'b' holds numbers such as '7.200', .* read as 7200"):
        assert read_table(path)["b"].tolist() == [7200, 950]
    assert read_table(path, decimal=".")["b"].tolist() == [7.2, 950]
    assert read_table(path, decimal=",")["b"].tolist() == [7200, 950]
    points = write("a;b\n1.5;7.200\n2.5;950\n")
    assert read_table(points)["b"].tolist() == [7.2, 950]


def test_commas_in_a_file_that_commas_separate_are_numbers_only_if_declared(write):
    path = write('a,b\n1.5,"1,200"\n2.5,950\n')
    assert read_table(path)["b"].tolist() == ["1,200", "950"]
    assert read_table(path, decimal=".")["b"].tolist() == [1200, 950]
    assert read_table(path, decimal=",")["b"].tolist() == [1.2, 950]
    with pytest.raises(FileError, match="`decimal` must be '.' or ','. Received: ';'"):
        read_table(path, decimal=";")


def test_a_line_that_names_the_separator_is_no_header(write):
    assert read_table(write("sep=;\na;b\n1;2\n")).columns.tolist() == ["a", "b"]


def test_signs_for_missing_may_have_spaces_around_them(write):
    frame = read_table(write("a,b\n1, NA \n2,3\nn/a ,?\n"), missing_values=["?"])
    np.testing.assert_array_equal(frame["a"], [1, 2, np.nan])
    np.testing.assert_array_equal(frame["b"], [np.nan, 3, np.nan])


@pytest.mark.parametrize(
    ("cells", "kind", "found"),
    [
        (["$1,200", "$950", "-$3.50"], "number", [1200, 950, -3.5]),
        (["12 EUR", "1.200,50 EUR", "7"], "number", [12, 1200.5, 7]),
        (["45 %", "7,5%"], "number", [45, 7.5]),
        (["75 kg", "101kg"], "number", [75, 101]),
        (["1 234,5", "2 000 000"], "number", [1234.5, 2e6]),
        (["007", "1"], "category", ["007", "1"]),
        (["Ja", "nein", "1"], "boolean", [True, False, True]),
    ],
)
def test_declared_kinds(write, cells, kind, found):
    path = write("a;b\n" + "".join(f"{cell};1\n" for cell in cells))
    assert read_table(path, kinds={"a": kind})["a"].tolist() == found


def test_declared_kinds_of_parquet(tmp_path):
    frame = pd.DataFrame({"code": [1.0, np.nan], "cost": ["$5", "$6"]})
    frame.to_parquet(tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet", kinds={"code": "category", "cost": "number"})
    assert found["code"][0] == "1"
    assert found["code"].isna()[1]
    assert found["cost"].tolist() == [5, 6]


def test_decimal_commas_in_parquet(tmp_path):
    pd.DataFrame({"a": ["1,5", None, "2"], "b": ["x", "1,5", "y"]}).to_parquet(
        tmp_path / "t.parquet"
    )
    frame = read_table(tmp_path / "t.parquet", decimal=",")
    np.testing.assert_array_equal(frame["a"], [1.5, np.nan, 2])
    assert frame["b"].tolist() == ["x", "1,5", "y"]


def test_cells_that_are_not_of_the_declared_kind_are_named(write):
    path = write("a,b\n$5,x\n-,y\n")
    with pytest.raises(FileError, match=r"'a' must hold numbers, and holds '-' \(1 of 2 cells .*"):
        read_table(path, kinds={"a": "number"})
    assert read_table(path, kinds={"a": "number"}, missing_values=["-"])["a"][0] == 5
    with pytest.raises(FileError, match="`kinds`: 'a' must be one of .* Received: 'money'"):
        read_table(path, kinds={"a": "money"})


def test_dates_in_text(write):
    path = write("a;b;c\n31.01.2024;03/04/2024;2024-01-03\n;01/02/2024;03.02.2024 10:30\n")
    frame = read_table(path, dates=["a", "c"])
    assert frame["a"].tolist() == [pd.Timestamp("2024-01-31"), pd.NaT]
    assert frame["c"].astype(str).tolist() == ["2024-01-03 00:00:00", "2024-02-03 10:30:00"]
    with pytest.raises(FileError, match="'03/04/2024' may mean the day first or the month first"):
        read_table(path, dates=["b"])
    frame = read_table(path, dates={"b": "%d/%m/%Y"})
    assert frame["b"].astype(str).tolist() == ["2024-04-03", "2024-02-01"]


def test_the_unpacked_size_is_bounded(write, tmp_path):
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 10_000)
    path = write(packed, "t.csv.gz")
    with pytest.raises(FileError, match="unpacks to more than 10,000 bytes.*`max_bytes=40000`"):
        read_table(path, max_bytes=10_000)
    assert len(read_table(path, max_bytes=50_000)) == 10_000
    pd.DataFrame({"a": np.zeros(10_000)}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(FileError, match="unpacks to more than 10,000 bytes"):
        read_table(tmp_path / "t.parquet", max_bytes=10_000)


def test_a_table_of_many_empty_columns_is_read_quickly(write):
    start = time.perf_counter()
    frame = read_table(write(",".join(f"c{i}" for i in range(5000)) + "\n" + "," * 4999 + "\n"))
    assert frame.shape == (1, 5000)
    assert time.perf_counter() - start < 20


def test_quoted_cells_may_hold_lines_and_quotes(write):
    frame = read_table(write('a,"b ""c"""\n"one\ntwo",2\n'))
    assert frame.columns.tolist() == ["a", 'b "c"']
    assert frame["a"].tolist() == ["one\ntwo"]


def test_kinds_survive_gaps(write):
    frame = read_table(write("f,d,t,e\nTrue,2024-01-03,x,\n,,NA,\nFalse,2024-02-01,,\n"))
    assert frame["f"].dtype == "boolean"
    assert frame["d"].dtype.kind == "M"
    assert frame["e"].dtype == float  # Empty: unknown numbers.
    assert frame.isna().to_numpy().tolist()[1] == [True] * 4


def test_usual_signs_of_missing_and_given_ones(write):
    path = write("a,b\nNA,x\n-999,?\n1,null\n-999.0,y\n")
    assert read_table(path)["a"].isna().sum() == 1
    frame = read_table(path, missing_values=["-999", "?"])
    np.testing.assert_array_equal(frame["a"], [np.nan, np.nan, 1, np.nan])
    assert frame["b"].isna().tolist() == [False, True, True, False]


def test_a_sign_in_a_column_of_numbers_leaves_it_one_of_numbers(write):
    path = write("a,b\n1,x\n?,y\n3,z\n")
    assert read_table(path)["a"].tolist() == ["1", "?", "3"]
    np.testing.assert_array_equal(read_table(path, missing_values=["?"])["a"], [1, np.nan, 3])


def test_columns_can_be_kept_as_text(write):
    assert read_table(write("zip,n\n007,1\n"), text=["zip"])["zip"].tolist() == ["007"]


def test_names_are_trimmed_and_given_where_there_are_none(write):
    assert read_table(write(",a , b\n1,2,3\n")).columns.tolist() == ["unnamed_1", "a", "b"]


@pytest.mark.parametrize(
    ("name", "encoding", "given"),
    [
        ("t.csv", "utf-8-sig", None),
        ("t.csv", "utf-16", None),
        ("t.csv", "latin-1", "latin-1"),
        ("t.tsv", "utf-8", None),
        ("t.txt", "cp1252", "cp1252"),
    ],
)
def test_encodings(write, name, encoding, given):
    separator = "\t" if name.endswith("tsv") else ","
    path = write(f"größe{separator}ort\n1{separator}Köln\n".encode(encoding), name)
    frame = read_table(path, encoding=given)
    assert frame.columns.tolist() == ["größe", "ort"]
    assert frame["ort"].tolist() == ["Köln"]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet"])
def test_what_is_written_can_be_read(tmp_path, name):
    write_table(FRAME, tmp_path / name)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), FRAME, check_dtype=False)
    assert os.listdir(tmp_path) == [name]


def test_standard_streams(monkeypatch, capsys):
    for content in (b"a,b\n1,2\n", gzip.compress(b"a;b\n1;2\n"), _parquet()):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert read_table("-").shape == (1, 2)
    write_table(FRAME[["age"]], "-")
    write_text("-", "end")
    assert capsys.readouterr().out == 'age\n34.0\n""\n51.0\nend'


def _parquet():
    made = io.BytesIO()
    pd.DataFrame({"a": [1], "b": [2]}).to_parquet(made)
    return made.getvalue()


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        ("", "t.csv", "is empty."),
        (" \n\n", "t.csv", "is empty."),
        ("a,b\n", "t.csv", "is empty: it has a header and no rows."),
        ("a,b,a,c,c\n1,2,3,4,5\n", "t.csv", "more than one column called 'a', 'c'. Rename them"),
        ("größe,a\n1,2\n".encode("latin-1"), "t.csv", "is not utf-8 text. Pass its `encoding`"),
        (b"a,ort\n1,M\xfcnchen\n", "t.csv", "not utf-8 text"),
        # Beyond the part from which the separator is detected.
        (b"a,b\n" + (b"1," + 100 * b"x" + b"\n") * 12_000 + b"1,\xfc\n", "t.csv", "in column 'b'"),
        (b"\x00\x01\x02", "t.csv", "is not a text file"),
        ("a,b\n1,2\n1,2,3\n", "t.csv", "Expected 2 columns, got 3"),
        ("a,b\n1,2\n", "t.docx", "unknown suffix '.docx'. Known: .csv, .tsv"),
        ("a,b\n1,2\n", "table", "has no suffix. Known: .csv"),
        ("nonsense", "t.parquet", "is not Parquet, or is damaged"),
        ("nonsense", "t.csv.gz", "cannot be read: Not a gzipped file"),
    ],
)
def test_bad_files_are_refused_in_one_line(write, content, name, said):
    with pytest.raises(FileError) as caught:
        read_table(write(content, name))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there(tmp_path, write):
    write("a\n1\n", "patients.csv")
    with pytest.raises(FileError, match="There is no file .*patient.csv. Did you mean .*patients"):
        read_table(tmp_path / "patient.csv")
    with pytest.raises(FileError, match="is a directory, not a table"):
        read_table(tmp_path)
    with pytest.raises(FileError, match="There is no encoding 'klingon'. Usual ones: utf-8"):
        read_table(write("a\n1\n"), encoding="klingon")


def test_nested_cells_are_refused_by_column(tmp_path):
    pd.DataFrame({"a": [[1, 2]]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(FileError, match="column 'a' holds list.* Split it into several columns"):
        read_table(tmp_path / "t.parquet")


def test_excel_says_what_it_needs(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(FileError, match="needs openpyxl: `pip install"):
        read_table(write("nonsense", "t.xlsx"))


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("before")

    def fail(self, target, **options):
        with open(target, "w") as file:
            file.write("half")
        raise OSError("No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    with pytest.raises(OSError, match="No space left"):
        write_table(FRAME, path)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["t.csv"]


def test_where_nothing_can_be_written(tmp_path):
    with pytest.raises(FileError, match="There is no directory .*nowhere to write t.csv in"):
        write_table(FRAME, tmp_path / "nowhere" / "t.csv")
    with pytest.raises(FileError, match="is a directory"):
        write_text(tmp_path, "text")
    with pytest.raises(FileError, match="unknown suffix '.csv'. Known: .safetensors"):
        check_target(tmp_path / "t.csv", (".safetensors",))
    check_target("-")


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("before")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_text(tmp_path / "link.txt", "after")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "after"


def test_links_that_lead_nowhere_are_refused(tmp_path):
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    with pytest.raises(FileError, match="loop.csv is a symbolic link that leads back to itself"):
        write_table(FRAME, tmp_path / "loop.csv")
    (tmp_path / "lost.csv").symlink_to(tmp_path / "none" / "t.csv")
    with pytest.raises(FileError, match="There is no directory .*none to write t.csv in"):
        write_table(FRAME, tmp_path / "lost.csv")


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "-"])
@pytest.mark.parametrize("place", ["name", "cell"])
def test_text_that_is_not_valid_unicode_is_refused_by_column(tmp_path, monkeypatch, suffix, place):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    texts = {"name": ("a\ud800", "b"), "cell": ("a", "b\ud800")}[place]
    names = pd.Index([texts[0], "c"], dtype=object)
    frame = pd.DataFrame(np.array([[1, texts[1]]], object), columns=names, dtype=object)
    target = "-" if suffix == "-" else tmp_path / f"t.{suffix}"
    column = {"name": r"'a\\ud800'", "cell": "'c'"}[place]
    with pytest.raises(FileError, match=f"cannot be written: in column {column}, .* is not valid"):
        write_table(frame, target)
    with pytest.raises(FileError, match=r"cannot be written: '.*\\ud800.*' is not valid utf-8"):
        write_text("-" if suffix == "-" else tmp_path / "t.txt", "a\ud800")
    assert not os.listdir(tmp_path)
