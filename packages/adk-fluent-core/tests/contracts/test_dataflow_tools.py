"""Data flow through agents that are tools: each runs in a session of its own."""

from __future__ import annotations

from adk_fluent import Agent, S
from adk_fluent.contracts import (
    ContractReport,
    Diagnostic,
    MaybeUndefined,
    ReadBeforeWrite,
    Severity,
    check_all,
    check_runs,
)


def inside(key: str = "temp:x") -> Agent:
    return Agent("boss").agent_tool(Agent("tool").instruct(f"{{{key}}}"))


def only(report: ContractReport) -> Diagnostic:
    [found] = report
    return found


def test_a_temporary_key_is_not_there_inside() -> None:
    found = only(check_all(S.temp.set(x=1).named("start") >> inside()))
    assert isinstance(found, ReadBeforeWrite)
    assert found.severity is Severity.ERROR
    assert found.message == (
        "the instruction of `tool` needs `temp:x`, which an agent that is a tool does not share"
    )
    assert [each.message for each in found.related] == ["`start` writes it in another session"]
    assert found.help == "use a key without `temp:`, or read it as `{temp:x?}`"


def test_nor_is_one_that_is_given_to_the_run() -> None:
    assert isinstance(only(check_all(inside(), inputs=["temp:x"])), ReadBeforeWrite)
    assert isinstance(only(check_runs(inside().to_ir())), ReadBeforeWrite)


def test_other_keys_are_there_inside() -> None:
    assert not list(check_all(S.set(x=1) >> inside("x")))
    assert not list(check_all(S.user.set(x=1) >> inside("user:x")))


def test_a_temporary_key_of_its_own_is_there_inside_and_not_behind() -> None:
    pipe = (S.temp.set(x=1).named("start") >> Agent("a").instruct("{temp:x}")).named("pipe")
    boss = Agent("boss").agent_tool(pipe)
    assert not list(check_all(boss))
    found = only(check_all(boss >> Agent("z").instruct("{temp:x}")))
    assert (type(found), found.node) == (ReadBeforeWrite, "z")
    assert found.message.endswith("which an agent that is a tool does not share")


def test_a_key_that_a_call_keeps_to_itself_is_not_there_for_the_next() -> None:
    one = Agent("one").writes("temp:x").description("First.")
    boss = Agent("boss").agent_tool(one, Agent("two").instruct("{temp:x}"))
    assert only(check_all(boss)).node == "two"


def test_an_agent_that_is_a_tool_and_a_step_may_lack_it() -> None:
    reader = Agent("r").instruct("{temp:x}")
    pipeline = S.temp.set(x=1) >> reader >> Agent("boss").agent_tool(reader)
    assert isinstance(only(check_all(pipeline)), MaybeUndefined)


def test_what_may_be_absent_may_be_so_there() -> None:
    assert not list(check_all(S.temp.set(x=1) >> inside("temp:x?")))
