"""Files that people edit: what is refused, and where."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, Field

from adk_fluent.errors import DataFileError, UsageError
from adk_fluent.extend import DataFile, to_yaml_text

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "text", "line", "what"),
    [
        ("a.yaml", "a: [", 1, "invalid YAML"),
        ("a.yaml", "a: 1\na: 2", 2, "duplicate key 'a'"),
        ("a.yaml", "1: 2", 1, "a key must be a text"),
        ("a.yaml", "a:\n\t- b", 2, "spaces, not tabs"),
        ("a.yaml", "!!python/object:os.system {}", 1, "nothing for the tag !!python/object"),
        ("a.yaml", "[" * 5000, None, "nested too deeply"),
        ("a.yaml", "a:\n- ? [b]\n  : c", 2, "a key must be a text: a sequence"),
        ("a.yaml", "a:\n- !!int ''", 2, "'' is no int of JSON"),
        ("a.yaml", "a:\n- !!bool foo", 2, "'foo' is no bool of JSON"),
        ("a.yaml", "a:\n- !!timestamp 2020-01-01", 2, "nothing for the tag !!timestamp"),
        ("a.yaml", "a:\n- !!binary aGk=", 2, "nothing for the tag !!binary"),
        ("a.yaml", "a:\n- -.inf", 2, "'-.inf' is no float of JSON"),
        ("a.json", '{\n"a": }', 2, "invalid JSON"),
        ("a.json", '{"a": 1, "a": 2}', None, "duplicate key 'a'"),
        ("a.json", '{"a": NaN}', None, "NaN is not JSON"),
        ("a.json", '{"a": -1e999}', None, "-1e999 is too large"),
        ("a.json", "", 1, "an empty file"),
    ],
)
def test_a_broken_file_is_refused(
    tmp_path: Path, name: str, text: str, line: int | None, what: str
) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    read: Any = DataFile.read_yaml if name.endswith("yaml") else DataFile.read_json
    with pytest.raises(DataFileError, match=what) as caught:
        read(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_an_error_names_the_line_and_the_field(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('{"rows": [\n{"a b": 1},\n{"count": -1}]}', "utf-8")
    file, value = (DataFile.read_yaml if name == "a.yaml" else DataFile.read_json)(path)
    error = file.error(("rows", 0, "a b"), "no")
    assert (error.line, error.field) == (2, "rows[0]['a b']")
    with pytest.raises(DataFileError, match="below 0") as caught, file.naming(("rows", 1)):
        raise UsageError("row 'x': count= is below 0", found=str(value["rows"][1]["count"]))
    assert (caught.value.line, caught.value.field) == (3, "rows[1].count")
    with pytest.raises(DataFileError, match="did you mean 'count'"):
        file.mapping((), {"cuont": 1}, ("count",), "a row")
    with pytest.raises(DataFileError, match="newer than this version reads"):
        file.check_schema((), 2, 1)
    with pytest.raises(DataFileError, match="valid integer, and 1 more") as caught:
        file.validated(dict[str, int], {"a": "x", "b": None}, ("rows", 1), strict=True)
    assert (caught.value.line, caught.value.field) == (3, "rows[1].a")
    assert file.validated(dict[str, bytes], {"a": "b"}) == {"a": b"b"}


def test_an_error_keeps_its_text_and_names_every_key(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"rates": {\n"a-b": "x",\n"n": [{}]}}', "utf-8")
    file, value = DataFile.read_json(path)
    with pytest.raises(DataFileError, match=r"^rates\['a: b'\] is below 0"), file.naming(()):
        raise UsageError("rates['a: b'] is below 0")
    with pytest.raises(DataFileError, match=r"^no\n"), file.naming(()):
        raise UsageError("""row "it's: a": no""")
    with pytest.raises(DataFileError) as caught:
        file.validated(dict[str, dict[str, int | list[int]]], value)
    assert (caught.value.line, caught.value.field) == (2, "rates['a-b']")
    with pytest.raises(DataFileError) as caught:  # a step of a union is no key
        file.validated(dict[str, int | list[int]], {"n": ["x"]}, ("rates",))
    assert (caught.value.line, caught.value.field) == (3, "rates.n")

    class Row(BaseModel):
        key: int = Field(alias="the key")

    with pytest.raises(DataFileError) as caught:
        file.validated(list[Row], value["rates"]["n"], ("rates", "n"))
    assert (caught.value.line, caught.value.field) == (3, "rates.n[0]['the key']")


@pytest.mark.parametrize("schema", ["abc", None, 1.0, -1, 0, True])
def test_a_schema_is_a_whole_number(schema: object) -> None:
    with pytest.raises(DataFileError, match="whole number from 1 on"):
        DataFile("a.json").check_schema((), schema, 1)


@pytest.mark.parametrize("value", [{"a": b"x"}, {"a": {1}}, [float("nan")]])
def test_what_json_has_not_is_no_data(value: Any) -> None:
    with pytest.raises(DataFileError, match="JSON has no such value"):
        DataFile("a.yaml").validated(object, value)


def test_duplicate_keys_are_looked_for_once_in_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("b: &b {a: 1}\nx: {y: {z: &m {<<: *b, a: 2}}}\ntop: {<<: *m}\n", "utf-8")
    assert DataFile.read_yaml(path)[1]["top"] == {"a": 2}


def test_a_file_is_replaced_when_all_of_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "deep" / "a.txt"
    DataFile.write(path, ["a\n", "b"])
    assert DataFile.read_text(path) == "a\nb"

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(DataFileError, match="No space left"):
        DataFile.write(path, ["c"])
    assert path.read_text("utf-8") == "a\nb"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_what_is_no_plain_file_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    DataFile.write(pipe, ["a", "b"])
    assert os.read(reader, 9) == b"ab"
    os.close(reader)
    assert pipe.is_fifo()


def test_a_page_is_written_over_a_page_alone(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    for text in ("name: mine\n", "<svg/>"):
        path.write_text(text, "utf-8")
        with pytest.raises(DataFileError, match="is not written over"):
            DataFile.write_page(path, ["<html>"])
        assert path.read_text("utf-8") == text
    page = tmp_path / "page.html"
    for text in ("", "\n<!doctype html>1", "<html>2"):
        DataFile.write_page(page, [text])
    assert page.read_text("utf-8") == "<html>2"


def test_yaml_is_read_as_it_was_written(tmp_path: Path) -> None:
    data = {"b": ["x\r\ny\x85z\u2028\ufeff", "2026-01-01", "=", None, 1.5], "a": {"k": True}}
    DataFile.write(tmp_path / "a.yaml", [to_yaml_text(data)])
    assert DataFile.read_yaml(tmp_path / "a.yaml")[1] == data


@pytest.mark.parametrize("path", [None, 3, b"a.json"])
def test_what_is_no_path_is_refused(path: Any) -> None:
    for use in (DataFile.read_json, DataFile.read_yaml, DataFile.check_page):
        with pytest.raises(UsageError, match="by its path"):
            use(path)
    with pytest.raises(UsageError, match="by its path"):
        DataFile.write(path, ["a"])
