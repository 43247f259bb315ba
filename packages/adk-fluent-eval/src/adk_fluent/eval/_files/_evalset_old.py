"""ADK's eval sets of before 1.0: lists of queries, or of cases with lists of queries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from adk_fluent._words import describe
from adk_fluent.eval._files._content import SuiteData
from adk_fluent.eval._files._evalset_block import call_of, folded
from adk_fluent.eval._files._read import distinct

if TYPE_CHECKING:
    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._files._place import At
    from adk_fluent.eval._files._read import Reader


def read_old(reader: Reader, items: list[Any]) -> SuiteData:
    """The suite of an old file.

    Args:
        reader: Knows the file.
        items: What the file holds: queries, which are one conversation, or cases.

    Raises:
        EvalFileError: It holds something else.
    """
    name = set_name(reader.source.path)
    if any(isinstance(each, Mapping) and "query" in each for each in items):
        case = reader.build((), {**_conversation(reader, (), items), "id": name})
        return SuiteData(name, (case,))
    apps: list[str] = []
    cases = distinct(
        (reader.source, (n,), _case(reader, (n,), each, apps)) for n, each in enumerate(items)
    )
    return SuiteData(name, cases, app_name=apps[0] if apps else None)


def set_name(path: str) -> str:
    """The name of an eval set in a file: the file's, without what says that it is one."""
    name = Path(path).name
    for ending in (".evalset.json", ".test.json", ".json"):
        if name.endswith(ending) and name != ending:
            return name.removesuffix(ending)
    return name


def _case(reader: Reader, at: At, value: Any, apps: list[str]) -> FluentCase:
    case = reader.mapping(at, value, "a case")
    if "data" not in case:
        raise reader.source.error(
            at,
            "this is no eval set of ADK's",
            help="an old one is a list of {name, data}, or of {query}",
        )
    data = reader.items((*at, "data"), case["data"])
    fields = _conversation(reader, (*at, "data"), data)
    fields["id"] = reader.named((*at, "name"), case.get("name"))
    session = reader.mapping((*at, "initial_session"), case.get("initial_session") or {})
    if state := session.get("state"):
        fields["initial_state"] = reader.mapping((*at, "initial_session", "state"), state)
    if app := session.get("app_name"):
        apps.append(reader.text((*at, "initial_session", "app_name"), app))
    return reader.build(at, fields)


def _conversation(reader: Reader, at: At, items: list[Any]) -> dict[str, Any]:
    if not items:
        raise reader.source.error(at, "the conversation is empty", found="an empty list")
    answers: dict[str, list[Any]] = {}
    turns = [_turn(reader, (*at, n), each, answers) for n, each in enumerate(items)]
    fields = folded(turns)
    if answers:
        fields["mock_tool_outputs"] = {
            tool: given[0] if len(given) == 1 and not isinstance(given[0], list) else given
            for tool, given in answers.items()
        }
    return fields


def _turn(reader: Reader, at: At, value: Any, answers: dict[str, list[Any]]) -> dict[str, Any]:
    turn = reader.mapping(at, value, "a turn")
    made: dict[str, Any] = {"input": reader.named((*at, "query"), turn.get("query"))}
    if (uses := turn.get("expected_tool_use")) is not None:
        where = (*at, "expected_tool_use")
        made["expected_trajectory"] = [
            _use(reader, (*where, n), use, answers)
            for n, use in enumerate(reader.items(where, uses))
        ]
    if reference := turn.get("reference"):
        made["reference_response"] = reader.text((*at, "reference"), reference)
    return made


def _use(reader: Reader, at: At, value: Any, answers: dict[str, list[Any]]) -> Any:
    use = reader.mapping(at, value, "a use of a tool")
    name = reader.named((*at, "tool_name"), use.get("tool_name"))
    args = use.get("tool_input")
    if args is not None and not isinstance(args, Mapping):
        raise reader.source.error(
            (*at, "tool_input"), "tool_input: is no mapping", found=describe(args)
        )
    if "mock_tool_output" in use:
        answers.setdefault(name, []).append(use["mock_tool_output"])
    return call_of(name, cast("Mapping[str, Any] | None", args))
