"""`S` in files: what each transform does is data, so that no one has to bring it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import S
from adk_fluent.builders._state_functions import Apply
from adk_fluent.errors import IRFormatError
from adk_fluent.ir import (
    FunctionNode,
    Ref,
    content_hash,
    from_data,
    from_json,
    registry_of,
    structure_hash,
    to_data,
    to_json,
)
from adk_fluent.testing import mock_backend

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.builders import Builder


def both(one: Any, other: Any) -> list[Any]:
    return [one, other]


def count(state: Mapping[str, Any]) -> int:
    return len(state)


def is_full(state: Mapping[str, Any]) -> bool:
    return bool(state)


#: By method; every one of them but for those that call a function of the user's.
PLAIN: dict[str, Builder] = {
    "set": S.set(k=1, d={"x": [1, 2.5, None, True, -0.0]}, t='ü \U0001f600 \\ " \n', e={}),
    "default": S.default(k=1, n=None),
    "drop": S.drop("k", "n"),
    "rename": S.rename(k="n", n="k"),
    "merge": S.merge("k", "user:n", into="m"),
    "pick": S.pick("k"),
    "guard": S.guard("k", "no k"),
    "log": S.log("k", "user:n", logger="mine", level=logging.DEBUG),
}
MORE: list[Builder] = [
    S.log(),
    S.guard("k"),
    *(
        step
        for s in (S.user, S.app, S.temp)
        for step in (
            s.set(k=[1]),
            s.default(k={}),
            s.drop("k"),
            s.rename(k="n"),
            s.merge("k", "app:x", into="m"),
        )
    ),
]
#: The others, with functions that can be imported.
CALLING: dict[str, Builder] = {
    "merge": S.merge("k", "n", into="m", fn=both),
    "transform": S.transform("k", json.dumps),
    "compute": S.compute(k=count, n=json.dumps).reads("k"),
    "guard": S.guard(is_full, "empty"),
}
MORE_CALLING: list[Builder] = [
    step
    for s in (S.user, S.app, S.temp)
    for step in (
        s.merge("k", into="m", fn=both),
        s.transform("k", json.dumps),
        s.compute(k=count, n=count),
    )
]
ALLOWED = [__name__, "json"]


def test_every_method_of_s_is_here() -> None:
    methods = {name for name in dir(type(S)) if not name.startswith("_")}
    assert methods - {"app", "user", "temp"} == PLAIN.keys() | CALLING.keys()


@pytest.mark.parametrize("step", [*PLAIN.values(), *MORE], ids=repr)
def test_data_needs_no_permission(step: Builder) -> None:
    node = step.build()
    text = to_json(node)
    again = from_json(text)
    assert again == node
    assert structure_hash(again) == structure_hash(node)
    assert content_hash(again) == content_hash(node)
    assert to_json(again) == text
    assert registry_of(node) == {}


@pytest.mark.parametrize("step", [*CALLING.values(), *MORE_CALLING], ids=repr)
def test_functions_inside_need_theirs(step: Builder) -> None:
    node = step.build()
    text = to_json(node)
    with pytest.raises(IRFormatError, match="may not be imported"):
        from_json(text)
    with pytest.raises(IRFormatError, match="may not be imported"):
        from_json(text, allow_imports=["adk_fluent"])
    for again in (from_json(text, registry_of(node)), from_json(text, allow_imports=ALLOWED)):
        assert again == node
        assert structure_hash(again) == structure_hash(node)
        assert content_hash(again) == content_hash(node)


def test_functions_without_a_path_come_from_the_registry() -> None:
    root = (S.transform("k", lambda v: v) >> S.compute(n=lambda s: 1, m=lambda s: 2)).build()
    assert list(registry_of(root)) == ["<lambda>", "<lambda>#2", "<lambda>#3"]
    assert from_json(to_json(root), registry_of(root)) == root
    with pytest.raises(IRFormatError, match=r"record\.parts\[0\]\[1\]: '<lambda>#2' cannot be"):
        from_json(to_json(root), {"<lambda>": count}, ALLOWED)


def test_how_it_is_written() -> None:
    (row,) = to_data(S.default(k=[1]).build())["nodes"]
    assert row["data"]["fn"] == {
        "ref": "default",
        "record": {"$": "Assign", "constants": '{"k":[1]}', "missing": True},
    }
    (row,) = to_data(S.compute(k=json.dumps).build())["nodes"]
    dumps = {"ref": "dumps", "path": "json:dumps"}
    assert row["data"]["fn"] == {
        "ref": "compute k by dumps",
        "record": {"$": "Derive", "parts": [["k", dumps]]},
    }


def test_a_digest_stays() -> None:
    fn: Any = S.set(k=1).build()
    node = FunctionNode("f", Ref(fn.fn.value, "x", "d"))
    again = from_json(to_json(node))
    assert again == node
    assert isinstance(again, FunctionNode)
    assert (again.fn.digest, again.fn.value) == ("d", node.fn.value)


async def test_what_was_loaded_does_the_same() -> None:
    whole = (
        S.set(a="A", d={"x": [1]})
        >> S.default(a="no", b="B")
        >> S.merge("a", "b", into="c")
        >> S.transform("c", json.dumps)
        >> S.compute(n=count)
        >> S.rename(d="e")
        >> S.user.set(tier="gold")
        >> S.drop("b")
        >> S.guard("c")
        >> S.log("c")
    )
    again: Any = from_json(to_json(whole.build()), allow_imports=ALLOWED)
    assert again == whole.build()
    ran = await whole.run("hi", backend=mock_backend({}))
    same = {"a": "A", "c": '"A\\nB"', "e": {"x": [1]}, "n": 4, "user:tier": "gold"}
    assert ran.state == same
    state: dict[str, Any] = {}
    for step in again.steps[:7]:
        state |= step.fn.value(state)
    gone = {"d": None}
    assert state == {**same, "b": "B", **gone}


PROGRAM = """
import sys
import adk_fluent.ir as ir
text = sys.stdin.buffer.read()
try:
    ir.from_json(text)
except ir.from_json.__globals__["IRFormatError"] as error:
    print(str(error).partition(": ")[2].partition("\\n")[0])
root = ir.from_json(text, allow_imports=sys.argv[1:])
print(ir.structure_hash(root), ir.content_hash(root), ir.to_json(root).encode() == text)
"""


def in_a_fresh_process(root: Any, *allowed: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *allowed],
        input=to_json(root).encode(),
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().splitlines()


def test_in_a_fresh_process_that_imports_only_the_ir() -> None:
    steps = [*PLAIN.values(), *MORE]
    root = steps[0]
    for step in steps[1:]:
        root = root >> step
    node: Any = root.build()
    said = f"{structure_hash(node)} {content_hash(node)} True"
    assert in_a_fresh_process(node) == [said]


def test_in_a_fresh_process_with_functions() -> None:
    root = S.transform("k", json.dumps) >> S.compute(n=json.loads) >> S.set(k=1)
    node = root.build()
    said = f"{structure_hash(node)} {content_hash(node)} True"
    refused = "'json:dumps' may not be imported"
    assert in_a_fresh_process(node, "json") == [refused, said]


# --- hostile files -------------------------------------------------------------------------------


def refused(fn: Any, registry: Mapping[str, object] | None = None) -> str:
    row = {"kind": "FunctionNode", "data": {"name": "f", "fn": fn}}
    with pytest.raises(IRFormatError) as caught:
        from_data({"format": "adk-fluent-ir", "version": 1, "nodes": [row]}, registry)
    return str(caught.value)


def deep(levels: int) -> Any:
    fn: Any = {"ref": "f", "path": "os:system"}
    for _ in range(levels):
        fn = {"ref": "f", "record": {"$": "Apply", "key": "k", "fn": fn}}
    return fn


MODULE = "adk_fluent.builders._state_functions"
RECORDS: list[tuple[Any, str]] = [
    (3, "fn.record: it is not a JSON object"),
    (None, "fn.record: it is not a JSON object"),
    ([{"$": "Log"}], "fn.record: it is not a JSON object"),
    ({}, "there is no function None"),
    ({"$": 3}, "there is no function 3"),
    ({"$": ["Assign"]}, "there is no function list"),
    ({"$": "Assing", "constants": "{}"}, "did you mean 'Assign'?"),
    ({"$": f"{MODULE}:Assign", "constants": "{}"}, "there is no function"),
    ({"$": "os:system"}, "there is no function 'os:system'"),
    ({"$": "ToolSpec", "tool": {"ref": "f"}}, "there is no function 'ToolSpec'"),
    ({"$": "AgentNode", "name": "a"}, "there is no function 'AgentNode'"),
    ({"$": "Ref", "value": 3}, "there is no function 'Ref'"),
    ({"$": "list", "items": []}, "there is no function 'list'"),
    ({"ref": "f"}, "there is no function None"),
    ({"$": "Assign"}, "Assign needs 'constants'"),
    ({"$": "Assign", "constants": "{}", "more": 1}, "there is no field 'more' here"),
    ({"$": "Assign", "constants": "{}", "__class__": 1}, "there is no field '__class__' here"),
    ({"$": "Assign", "constants": {"k": 1}}, "its kind is not text"),
    ({"$": "Assign", "constants": 3}, "constants holds int, not str"),
    ({"$": "Assign", "constants": "{}", "missing": 1}, "missing holds int, not bool"),
    ({"$": "Assign", "constants": "nonsense"}, "Assign refuses its values"),
    ({"$": "Assign", "constants": ""}, "Assign refuses its values"),
    ({"$": "Assign", "constants": "[]"}, "Assign refuses its values"),
    ({"$": "Assign", "constants": "null"}, "Assign refuses its values"),
    ({"$": "Assign", "constants": "[" * 100_000}, "Assign refuses its values"),
    ({"$": "Assign", "constants": '{"k":' * 500 + "1" + "}" * 500}, "Assign refuses its values"),
    ({"$": "Assign", "constants": '{"k":NaN}'}, "Assign refuses its values"),
    ({"$": "Assign", "constants": '{"k":1e999}'}, "Assign refuses its values"),
    ({"$": "Assign", "constants": '{"k":"\\u0000"}'}, "Assign refuses its values"),
    ({"$": "Assign", "constants": '{"k":"\\ud800"}'}, "Assign refuses its values"),
    ({"$": "Assign", "constants": '{"k":' + "1" * 5000 + "}"}, "Assign refuses its values"),
    ({"$": "Assign", "constants": '{"k": 1}'}, "not JSON as S.set(...) writes it"),
    ({"$": "Assign", "constants": '{"k":1,"k":2}'}, "not JSON as S.set(...) writes it"),
    ({"$": "Rename", "names": "ab"}, "names holds str"),
    ({"$": "Rename", "names": [["a"]]}, "names holds tuple"),
    ({"$": "Rename", "names": [["a", "b", "c"]]}, "names holds tuple"),
    ({"$": "Rename", "names": [["a", 3]]}, "names holds tuple"),
    ({"$": "Log", "keys": [], "level": 20}, "Log needs 'logger'"),
    ({"$": "Log", "keys": "k", "logger": "x", "level": 20}, "keys holds str"),
    ({"$": "Log", "keys": [], "logger": "x", "level": True}, "level holds bool"),
    ({"$": "Log", "keys": [], "logger": {"ref": "x"}, "level": 20}, "'x' cannot be imported"),
    ({"$": "Apply", "key": "k"}, "Apply needs 'fn'"),
    ({"$": "Apply", "key": "k", "fn": None}, "fn holds NoneType, not Ref"),
    ({"$": "Apply", "key": "k", "fn": "os:system"}, "fn holds str, not Ref"),
    ({"$": "Apply", "key": "k", "fn": {"$": "Rename", "names": []}}, "no kind 'Rename'"),
    ({"$": "Apply", "key": "k", "fn": {"ref": "f", "path": "os:system"}}, "may not be imported"),
    ({"$": "Apply", "key": 3, "fn": {"ref": "f", "record": {"$": "Rename", "names": []}}}, "key"),
    ({"$": "Combine", "keys": [1], "into": "k"}, "keys holds tuple"),
    ({"$": "Combine", "keys": [], "into": "k", "fn": 3}, "fn holds int"),
    ({"$": "Derive", "parts": {"k": {"ref": "f"}}}, "its kind is not text"),
    ({"$": "Derive", "parts": [["k", 3]]}, "parts holds tuple"),
    ({"$": "Derive", "parts": [["k", {"ref": "f", "path": "os:system"}]]}, "may not be imported"),
]


@pytest.mark.parametrize(("record", "message"), RECORDS, ids=lambda x: repr(x)[:60])
def test_records_that_are_wrong(record: Any, message: str) -> None:
    said = refused({"ref": "f", "record": record})
    assert message in said
    assert "nodes[0].data.fn" in said
    assert len(said) < 600


@pytest.mark.parametrize("name", ["path", "key", "value", "$"])
def test_a_record_is_all_there_is_in_its_ref(name: str) -> None:
    data = {"ref": "f", "record": {"$": "Assign", "constants": "{}"}, name: "json:dumps"}
    assert f"there is no field {name!r} here" in refused(data, {"json:dumps": json.dumps})


def test_a_record_stands_in_a_ref() -> None:
    record = {"$": "Assign", "constants": "{}"}
    assert "there is no kind 'Assign'" in refused(record)
    assert "its kind is not text" in refused({"record": record})


def test_the_registry_makes_no_record() -> None:
    """Neither the name nor the path of a class of the reader's leads to it."""
    for tag in ("Mine", "shop:Mine"):
        said = refused({"ref": "f", "record": {"$": tag}}, {"Mine": dict, "shop:Mine": dict})
        assert f"there is no function {tag!r}" in said


def test_records_that_are_nested_too_deep() -> None:
    assert "nested deeper than 50 levels" in refused(deep(300))
    assert "'os:system' may not be imported" in refused(deep(20))
    fn: Any = json.dumps
    for _ in range(60):
        fn = Apply("k", Ref.to(fn))
    node = S.transform("k", fn).build()
    with pytest.raises(IRFormatError, match="nested deeper than 50 levels"):
        to_json(node)
