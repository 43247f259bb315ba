"""Cases in CSV and JSON lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.eval import (
    EvalError,
    EvalFileError,
    FluentEvalSuite,
    ToolCall,
    Turn,
)

if TYPE_CHECKING:
    from pathlib import Path

CSV = """question,id,tags,tools,contains,max_tokens,mock_tool_outputs,metadata.team
"Where is ""A1""?
please",a,orders|urgent,look_up,way,300,"{""look_up"": {""call"": ""fake""}}",blue

Hi,b,,"[{""tool"": ""look_up"", ""args"": {""order"": ""A1""}}]","[""a"", {""regex"": ""b+""}]",,,
"""
COLUMNS = {
    "question": "input",
    "tools": "expected_trajectory",
    "contains": "expected_response_contains",
}


def fake(order: str) -> str:
    return order


def load(path: Path, text: str, **more: Any) -> FluentEvalSuite:
    path.write_text(text, "utf-8")
    return FluentEvalSuite.from_table(path, **more)


def test_rows_of_csv_are_cases(tmp_path: Path) -> None:
    suite = load(tmp_path / "desk.csv", CSV, map=COLUMNS, registry={"fake": fake}, num_runs=2)
    assert (suite.name, suite.num_runs) == ("desk", 2)
    first, second = suite.cases
    assert first.input == 'Where is "A1"?\nplease'
    assert (first.id, first.tags, first.max_tokens) == ("a", ["orders", "urgent"], 300)
    assert (first.expected_trajectory, first.mock_tool_outputs) == (["look_up"], {"look_up": fake})
    assert first.metadata == {"team": "blue"}
    assert first.place == f"{tmp_path / 'desk.csv'}:2"
    assert second.expected_trajectory == [ToolCall("look_up", {"order": "A1"})]
    assert second.expected_response_contains == ["a", re.compile("b+")]
    assert second.place == f"{tmp_path / 'desk.csv'}:5"


def test_lines_of_json_are_cases(tmp_path: Path) -> None:
    text = (
        '{"input": "Hi\\u2028", "id": "a", "expected_trajectory": []}\n\n'
        '{"q": ["x", {"input": "y", "state_assertions": {"n": 1}}], "metadata.m": 2}\n'
    )
    first, second = load(tmp_path / "d.jsonl", text, map={"q": "input"}).cases
    assert (first.input, first.id, first.expected_trajectory) == ("Hi\u2028", "a", [])
    assert second.input == ["x", Turn("y", state_assertions={"n": 1})]
    assert second.metadata == {"m": 2}


@pytest.mark.parametrize(
    ("name", "text", "what", "line"),
    [
        ("c.csv", "", "has no cases", None),
        ("c.csv", "input\n", "has no cases", None),
        ("c.csv", "inputt\nhi\n", "column 'inputt' is not a field", 1),
        ("c.csv", "input,metadata.\nhi,1\n", "column 'metadata.' is not a field", 1),
        ("c.csv", "input,input\nhi,ho\n", "two columns are the field", 1),
        ("c.csv", "input,id\nhi\n", "the row has 1 cells", 2),
        ("c.csv", "input,max_tokens\nhi,1\nho,many\n", "invalid JSON", 3),
        ("c.csv", 'input\nhi\n"ho', "invalid CSV", 3),
        ("c.csv", "input,skip\nhi,\nho,FALSE\n", "skip is a reason", 3),
        ("c.csv", "input,id\nhi,a\nho,a\n", "two cases have the id 'a'", 3),
        ("c.csv", 'input,mock_tool_outputs\nhi,"{""t"": {""call"": ""os:x""}}"\n', "registry", 2),
        ("c.jsonl", '{"input": "hi"}\n{"input": \n', "invalid JSON", 2),
        ("c.jsonl", "[1]\n", "expected a mapping", 1),
        ("c.jsonl", '{"input": "hi", "max_tokens": -1}\n', "max_tokens= must be", 1),
        ("c.txt", "hi", "a table is .csv or .jsonl", None),
    ],
)
def test_errors_name_the_line(tmp_path: Path, name: str, text: str, what: str, line: Any) -> None:
    with pytest.raises(EvalFileError, match=what) as caught:
        load(tmp_path / name, text)
    assert caught.value.line == line
    assert "max_tokens" not in text or caught.value.field.endswith("max_tokens")
    assert caught.value.path == str(tmp_path / name)


def test_a_map_of_no_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match="map= names column 'q'"):
        load(tmp_path / "c.csv", "input\nhi\n", map={"q": "input"})


def test_semicolons_of_spreadsheets_are_read(tmp_path: Path) -> None:
    text = "\ufeffinput;id;max_tokens\r\nHi, you;a;3\r\n"
    [case] = load(tmp_path / "d.csv", text).cases
    assert (case.input, case.id, case.max_tokens) == ("Hi, you", "a", 3)
