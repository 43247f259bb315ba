"""Programs about agents that are tools of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent._scripts._replies import Call, reply
from adk_fluent.builders import Fallback, Loop, Pipeline, S
from adk_fluent.testing.conformance._case import case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent._scripts._replies import Asked, Reply
    from adk_fluent.builders import Agent
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._program import Program


def agent_tools() -> Iterator[Program]:
    """All of them."""
    yield case(
        "agent tool/its answer is the result, and what it writes is written",
        "agent tool",
        lambda p: Pipeline(
            "root",
            S.set(a="é"),
            calls(p, "e", "what?").agent_tool(
                p.agent(
                    "e", lambda asked: f"{asked.turns[-1].text} {_shown(asked)}", writes="k"
                ).instruct("«{a}»")
            ),
        ),
        end={"a": "é", "k": "what? é"},
        text='{"result": "what? é"}',
        calls=("d", "e", "d"),
        events=(
            "s0 set@root {'a': 'é'}",
            "s1 d calls e({'request': 'what?'})",
            "s1 d {'k': 'what? é'} result of e",
            """s1 d '{"result": "what? é"}'""",
        ),
    )
    yield case(
        "agent tool/a pipeline",
        "agent tool",
        lambda p: Pipeline(
            "root",
            calls(p, "pipe", "go").agent_tool(
                (p.agent("e") >> p.agent("f") >> p.fn("g", {"k": 1})).named("pipe")
            ),
            p.agent("z"),
        ),
        end={"k": 1},
        text="Z",
        calls=("d", "e", "f", "g", "d", "z"),
        events=(
            "s0 d calls pipe({'request': 'go'})",
            "s0 d {'k': 1} result of pipe",
            """s0 d '{"result": "F"}'""",
            "s1 z 'Z'",
        ),
    )
    yield case(
        "agent tool/one that reports an error does not end its caller",
        "agent tool",
        lambda p: _alwayscalls(p).agent_tool(p.agent("e", ends="reports")),
        text="told",
        calls=("d", "e", "d"),
        events=(". d calls e({'request': 'go'})", ". d result of e", ". d 'told'"),
    )
    yield case(
        "agent tool/one that raises is the caller's failure",
        "agent tool",
        lambda p: Fallback(
            "root", calls(p, "e", "go").agent_tool(p.agent("e", ends="raises")), p.agent("b")
        ),
        text="B",
        calls=("d", "e", "b"),
        events=("~f0 d calls e({'request': 'go'})", "f1 b 'B'"),
    )
    yield case(
        "agent tool/nobody else sees what it says",
        "agent tool",
        lambda p: Pipeline(
            "root",
            calls(p, "e", "go").agent_tool(p.agent("e", "SECRET")),
            p.agent("z", lambda asked: str(sum("[e] said" in t.text for t in asked.turns))),
        ),
        text="0",
        calls=("d", "e", "d", "z"),
        events=(
            "s0 d calls e({'request': 'go'})",
            "s0 d result of e",
            """s0 d '{"result": "SECRET"}'""",
            "s1 z '0'",
        ),
    )
    yield case(
        "agent tool/in a loop",
        "agent tool",
        lambda p: Loop("root", _alwayscalls(p).agent_tool(p.agent("e")), max=2),
        text="told",
        calls=("d", "e", "d") * 2,
        events=tuple(
            f"l{n} d {each}"
            for n in range(2)
            for each in ("calls e({'request': 'go'})", "result of e", "'told'")
        ),
    )


def calls(p: Bench, tool: str, request: str) -> Agent:
    """An agent that calls another one, and then says what it was told."""

    def says(asked: Asked) -> str | Reply:
        told = [t.text for t in asked.turns if t.text.startswith(f"[result {tool} ")]
        if not told:
            return reply(Call(tool, {"request": request}))
        return told[-1].removeprefix(f"[result {tool} ").removesuffix("]")

    return p.agent("d", says)


def _alwayscalls(p: Bench) -> Agent:
    def says(asked: Asked) -> str | Reply:
        told = asked.turns[-1].text.startswith("[result e")
        return "told" if told else reply(Call("e", {"request": "go"}))

    return p.agent("d", says)


def _shown(asked: Asked) -> str:
    return asked.system.partition("«")[2].partition("»")[0]
