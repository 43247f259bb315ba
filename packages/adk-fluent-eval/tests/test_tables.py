from __future__ import annotations

import csv
import json
import shlex
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.eval import EvalError, EvalFileError, FluentCase, ToolCall, Turn
from adk_fluent.eval._files._content import SuiteData
from adk_fluent.eval._files._table import dump_jsonl, load_csv, load_jsonl

if TYPE_CHECKING:
    from pathlib import Path


def _file(tmp_path: Path, text: str | bytes, name: str = "cases.csv") -> Path:
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def _csv(tmp_path: Path, text: str | bytes, **options: Any) -> SuiteData:
    return load_csv(_file(tmp_path, text), **options)


# --- CSV ---------------------------------------------------------------------------------------


def test_a_table(tmp_path: Path) -> None:
    suite = _csv(
        tmp_path,
        "id,input,expected_trajectory,tags,max_tokens,max_cost_usd,metadata.owner\n"
        'bill,"My bill is $200, too high",classify|ticket,billing | dispute,100,0.5,me\n'
        "bye,bye,[],,,,\n"
        "\n"
        ",,,,,,\n"
        'two,"first line\nsecond line",,,,,"say ""hi"""\n'
        "last,x,,,,,\n",
    )
    bill, bye, two, last = suite.cases
    assert suite.name == "cases"
    assert bill == FluentCase(
        "My bill is $200, too high",
        id="bill",
        expected_trajectory=["classify", "ticket"],
        tags=["billing", "dispute"],
        max_tokens=100,
        max_cost_usd=0.5,
        metadata={"owner": "me"},
    )
    assert bye.expected_trajectory == []
    assert last.expected_trajectory is None
    assert two.input == "first line\nsecond line"
    assert two.metadata == {"owner": 'say "hi"'}
    path = str(tmp_path / "cases.csv")
    assert [case.location for case in suite.cases] == [(path, 2), (path, 3), (path, 6), (path, 8)]


def test_cells_of_json(tmp_path: Path) -> None:
    row = {
        "input": "[not a list",
        "expected_trajectory": json.dumps(["a", {"tool": "b", "args": {"n": 1}}]),
        "expected_response_contains": json.dumps({"regex": "T-[0-9]+"}),
        "state_assertions": json.dumps({"sure": {"call": "shlex:quote"}}),
        "initial_state": json.dumps({"n": 1}),
        "mock_tool_outputs": json.dumps({"b": {"raise": "ValueError: no"}}),
    }
    cells = ",".join('"' + cell.replace('"', '""') + '"' for cell in row.values())
    suite = _csv(tmp_path, f"{','.join(row)}\r\n{cells}\r\n", registry={"shlex:quote": shlex.quote})
    (case,) = suite.cases
    assert case.input == "[not a list"
    assert case.expected_trajectory == ["a", ToolCall("b", {"n": 1})]
    assert case.state_assertions == {"sure": shlex.quote}
    assert case.mock_tool_outputs is not None
    assert isinstance(case.mock_tool_outputs["b"], ValueError)


def test_columns_are_mapped(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbfquestion,answer,team\nhi,hello,red\n"
    suite = _csv(
        tmp_path,
        text,
        map={"question": "input", "answer": "reference_response", "team": "metadata.team"},
    )
    (case,) = suite.cases
    assert case == FluentCase("hi", reference_response="hello", metadata={"team": "red"})


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        ("input,tags\na\n", 2, "", "cut off"),
        ("input,tags\na,b\nc,d,e\n", 3, "", "too long"),
        ('input,tags\na,b\n"c,d\n', 3, "", "broken CSV"),
        ('input,tags\n"a"b,c\n', 2, "", "written twice"),
        ("input,tgas\na,b\n", 1, "tgas", "did you mean 'tags'"),
        ("input,question\na,b\n", 1, "question", "metadata.question"),
        ("input,\na,b\n", 1, "", "metadata."),
        ("input,metadata.\na,b\n", 1, "metadata", "no field"),
        ("input,input\na,b\n", 1, "input", "two columns"),
        ("input;tags\na;b\n", 1, "", "commas"),
        ("tags\na\n", 2, "", "input"),
        ("input,max_tokens\na,many\n", 2, "max_tokens", "number"),
        ("input,max_tokens\na,nan\n", 2, "max_tokens", "number"),
        ("input,max_tokens\na,1.5\n", 2, "max_tokens", "whole"),
        ("input,tags\na,b||c\n", 2, "tags[1]", "empty"),
        ("input,tags\na,[b\n", 2, "tags", "broken JSON"),
        ('input,tags\na,"[""b"", 3]"\n', 2, "tags[1]", "quotes"),
        ("input,metadata\na,b\n", 2, "metadata", "broken JSON"),
        ('input,metadata,metadata.x\na,"[]",y\n', 2, "metadata", "mapping"),
        ("input,id\na,x\nb,y\nc,x\n", 4, "id", "line 2"),
        ("", None, "", "empty"),
    ],
)
def test_tables_that_have_no_meaning(
    tmp_path: Path, text: str, line: int | None, field: str, words: str
) -> None:
    with pytest.raises(EvalFileError) as caught:
        _csv(tmp_path, text)
    assert caught.value.line == line
    assert field in caught.value.field
    assert words in str(caught.value)


@pytest.mark.parametrize("load", [load_csv, load_jsonl])
def test_maps_that_have_no_meaning(tmp_path: Path, load: Any) -> None:
    text = "question\nhi\n" if load is load_csv else '{"question": "hi"}\n'
    file = _file(tmp_path, text)
    with pytest.raises(EvalError, match="no such column"):
        load(file, {"qestion": "input"})
    with pytest.raises(EvalFileError, match="did you mean 'input'"):
        load(file, {"question": "inptu"})


# --- JSON lines --------------------------------------------------------------------------------


def test_json_lines(tmp_path: Path) -> None:
    suite = load_jsonl(
        _file(
            tmp_path,
            '{"question": "hi\u2028there", "team": "red", "metadata": {"a": 1}}\r\n'
            "\r\n"
            '{"question": ["a", {"input": "b", "reference_response": "c"}], "team": null}',
        ),
        map={"question": "input", "team": "metadata.team"},
    )
    one, two = suite.cases
    assert one == FluentCase("hi\u2028there", metadata={"a": 1, "team": "red"})
    assert two.input == ["a", Turn("b", reference_response="c")]
    assert two.location == (str(tmp_path / "cases.csv"), 3)


def test_functions_in_json_lines(tmp_path: Path) -> None:
    data = SuiteData("s", (FluentCase("a", state_assertions={"x": shlex.quote}),))
    file = _file(tmp_path, dump_jsonl(data))
    assert load_jsonl(file, registry={"shlex:quote": shlex.quote}).cases == data.cases
    with pytest.raises(EvalFileError, match="registry="):
        load_jsonl(file)


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        ('{"input": "a"}\n{"input": }', 2, "", "column 11"),
        ('{"input": "a", "input": "b"}', 1, "", "twice"),
        ('{"input": "a", "metadata": {"n": NaN}}', 1, "", "NaN"),
        ('{"input": "a", "max_tokens": ' + "9" * 5000 + "}", 1, "", "broken JSON"),
        ('{"input": ' + "[" * 100_000, 1, "", "nested"),
        ('"a"', 1, "", "mapping"),
        ('{"input": "a"}\n{"tags": ["b"]}', 2, "", "input"),
        ('{"input": "a", "tgas": []}', 1, "tgas", "'tags'"),
        ('{"input": "a", "rubrics": "x"}', 1, "rubrics", "[x]"),
        ('{"input": "a", "id": "x"}\n\n{"input": "b", "id": "x"}', 3, "id", "line 1"),
        ('{"input": {"parts": [{"txt": "a"}]}}', 1, "input.parts[0].txt", ""),
        ('{"input": {"parts": []}}', 1, "input.parts", "nothing"),
    ],
)
def test_lines_that_have_no_meaning(
    tmp_path: Path, text: str, line: int, field: str, words: str
) -> None:
    with pytest.raises(EvalFileError) as caught:
        load_jsonl(_file(tmp_path, text))
    assert caught.value.line == line
    assert field in caught.value.field
    assert words in str(caught.value)


def test_cells_of_any_length_are_read_and_the_limit_stays(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    file = tmp_path / "long.csv"
    file.write_text(f"input,id\n{'a' * (before + 9)},long\n", "utf-8")
    (case,) = load_csv(file).cases
    assert len(str(case.input)) == before + 9
    assert csv.field_size_limit() == before
    file.write_text(f'input,id\n{"a" * (before + 9)},"x"y\n', "utf-8")
    with pytest.raises(EvalFileError, match="broken CSV"):
        load_csv(file)
    assert csv.field_size_limit() == before


def test_files_read_at_the_same_time_leave_the_limit(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    file = tmp_path / "long.csv"
    rows = "".join(f"{'a' * (before + n)},{n}\n" for n in range(1, 9))
    file.write_text(f"input,id\n{rows}", "utf-8")
    with ThreadPoolExecutor(4) as threads:
        read = list(threads.map(load_csv, [file] * 12))
    assert {len(each.cases) for each in read} == {8}
    assert csv.field_size_limit() == before
