"""What findings about state advise: whoever does it gets rid of the finding."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pytest

from adk_fluent import Agent, FanOut, Loop, Pipeline, Route, S, expect, gate, map_over, tap
from adk_fluent.builders import Builder, State, effects, race
from adk_fluent.contracts import check_all
from adk_fluent.ir import Ref, StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Notes:
    """What core knows of a state schema."""

    __state_fields__: ClassVar[Mapping[str, StateFieldRef]] = {
        "draft": StateFieldRef("draft", str),
        "score": StateFieldRef("score", float),
    }

    @classmethod
    def __state_encode__(cls, delta: Mapping[str, Any], where: str, /) -> dict[str, Any]:
        return dict(delta)


def look_up(query: str, tool_context: Any) -> str:
    """Look it up."""
    tool_context.state["source"] = query
    return query


def joined(one: list[str], other: list[str]) -> list[str]:
    """Both."""
    return [*one, *other]


@effects(reads=["text"], writes=["size"])
def size(state: State) -> dict[str, Any]:
    """How long a text is."""
    return {"size": len(state["text"])}


@effects(reads=[StateFieldRef("text", default=None)], writes=["size"])
def size_if_any(state: State) -> dict[str, Any]:
    """How long a text is, if there is one."""
    return {"size": len(state.get("text") or "")}


def reader(text: str, **options: Any) -> Agent:
    return Agent("reader", **options).instruct(text)


WRITE: Final = Agent("write").instruct("Write.").writes("draft")
NOTE: Final = Agent("note").instruct("Note.").writes("note")
READ: Final = reader("Read {draft}")
LIST: Final = Agent("list").instruct("List.").writes(StateFieldRef("items", list[str]))
EACH: Final = Agent("each").instruct("Do {item}.")
TOOL: Final = Agent("find").instruct("Find.").tool(look_up)


@dataclass(frozen=True)
class Advice:
    """A pipeline, what it is told, and what it is then."""

    code: str
    help: str
    wrong: Callable[[], Builder]
    mended: Callable[[], Builder]
    inputs: list[str] = field(default_factory=list[str])


def _list(kind: Any) -> Agent:
    return Agent("list").instruct("List.").writes(StateFieldRef("items", kind))


ADVICE: Final = [
    # --- no value
    Advice(
        "FLW001",
        "did you mean `draft`?",
        lambda: WRITE >> reader("{drafts}"),
        lambda: WRITE >> READ,
    ),
    Advice("FLW001", "write it in a step before", lambda: READ, lambda: WRITE >> READ),
    Advice(
        "FLW001",
        'declare it: .contract(inputs=["draft"])',
        lambda: Pipeline("p", READ),
        lambda: Pipeline("p", READ).contract(inputs=["draft"]),
    ),
    Advice("FLW001", "read it as `{draft?}`", lambda: READ, lambda: reader("Read {draft?}")),
    Advice(
        "FLW001",
        'read it with state.get("draft")',
        lambda: expect(lambda s: s["draft"] != "", "a draft"),
        lambda: expect(lambda s: s.get("draft") != "", "a draft"),
    ),
    Advice(
        "FLW001",
        'read it with state.get("draft")',
        lambda: NOTE >> tap(lambda s: print(s["draft"])) >> reader("{note}"),
        lambda: NOTE >> tap(lambda s: print(s.get("draft"))) >> reader("{note}"),
    ),
    Advice(
        "FLW001",
        'read it with state.get("draft")',
        lambda: Loop("l", NOTE, reader("{note}"), until=lambda s: s["draft"] == "ok", max=2),
        lambda: Loop("l", NOTE, reader("{note}"), until=lambda s: s.get("draft") == "ok", max=2),
    ),
    Advice(
        "FLW001",
        'read it with state.get("draft")',
        lambda: gate(lambda s: s["draft"] == "", message="So?"),
        lambda: gate(lambda s: s.get("draft") == "", message="So?"),
    ),
    Advice(
        "FLW001",
        "S.default(tier=...)",
        lambda: Route("tier").eq("gold", NOTE).otherwise(WRITE),
        lambda: S.default(tier="none") >> Route("tier").eq("gold", NOTE).otherwise(WRITE),
    ),
    Advice(
        "FLW001",
        "S.default(items=...)",
        lambda: map_over("items", EACH, item_key="item", output_key="done"),
        lambda: S.default(items=[]) >> map_over("items", EACH, item_key="item", output_key="done"),
    ),
    Advice(
        "FLW001",
        "S.temp.default(draft=...)",
        lambda: Agent("a").reads("temp:draft"),
        lambda: S.temp.default(draft="none") >> Agent("a").reads("temp:draft"),
    ),
    Advice(
        "FLW001",
        'StateFieldRef("text", default=None)',
        lambda: Pipeline("p", size),
        lambda: Pipeline("p", size_if_any),
    ),
    Advice(
        "FLW001",
        "move what writes `draft` before this",
        lambda: READ >> WRITE,
        lambda: WRITE >> READ,
    ),
    Advice(
        "FLW001",
        "write `draft` before `route`",
        lambda: Route("k").eq(1, WRITE).otherwise(READ),
        lambda: WRITE >> Route("k").eq(1, NOTE).otherwise(READ),
        ["k"],
    ),
    Advice(
        "FLW001",
        "write `draft` before `fallback`",
        lambda: WRITE // READ,
        lambda: WRITE >> NOTE // READ,
    ),
    Advice(
        "FLW001",
        "write `draft` before `race`",
        lambda: race(WRITE, READ),
        lambda: WRITE >> race(NOTE, READ),
    ),
    Advice(
        "FLW001",
        "write `draft` before the loop",
        lambda: Loop("l", READ, WRITE, max=2),
        lambda: WRITE >> Loop("l", READ, WRITE, max=2),
    ),
    Advice(
        "FLW001",
        "read it inside `map_over`",
        lambda: LIST >> map_over("items", NOTE, item_key="item", output_key="done") >> EACH,
        lambda: LIST >> map_over("items", EACH, item_key="item", output_key="done"),
    ),
    Advice(
        "FLW001",
        "write `summary` in the body of `map_over`",
        lambda: (
            LIST
            >> map_over("items", EACH, item_key="item", output_key="done", result_key="summary")
        ),
        lambda: (
            LIST
            >> map_over(
                "items",
                Agent("each").instruct("Do {item}.").writes("summary"),
                item_key="item",
                output_key="done",
                result_key="summary",
            )
        ),
    ),
    Advice(
        "FLW001",
        "read it before it is removed",
        lambda: WRITE >> S.drop("draft") >> READ,
        lambda: WRITE >> READ >> S.drop("draft"),
    ),
    Advice(
        "FLW001",
        "let `pick` keep it",
        lambda: WRITE >> NOTE >> S.pick("note") >> reader("{draft} {note}"),
        lambda: WRITE >> NOTE >> S.pick("note", "draft") >> reader("{draft} {note}"),
    ),
    Advice(
        "FLW001",
        "let `drop` keep it",
        lambda: (WRITE >> READ >> S.drop("draft")).contract(outputs=["draft"]),
        lambda: (WRITE >> READ).contract(outputs=["draft"]),
    ),
    Advice(
        "FLW001",
        "take it out of the outputs",
        lambda: Pipeline("p", Agent("a")).contract(outputs=["draft"]),
        lambda: Pipeline("p", Agent("a")).contract(outputs=[]),
    ),
    Advice(
        "FLW001",
        'let it be absent: StateFieldRef("text", default=None)',
        lambda: Agent("a") >> Pipeline("p", Agent("b")).contract(inputs=["text"]),
        lambda: (
            Agent("a")
            >> Pipeline("p", Agent("b")).contract(inputs=[StateFieldRef("text", default=None)])
        ),
    ),
    # --- a value on some ways
    Advice(
        "FLW002",
        "write `draft` on every way that leads here",
        lambda: Route("k").eq(1, WRITE).otherwise(Agent("b")) >> READ,
        lambda: Route("k").eq(1, WRITE).otherwise(Agent("b").writes("draft")) >> READ,
        ["k"],
    ),
    Advice(
        "FLW002",
        "on every way through the body of `map_over`",
        lambda: (
            LIST
            >> map_over(
                "items",
                Route("item").eq("x", Agent("a").writes("done")),
                item_key="item",
                output_key="all",
                result_key="done",
            )
        ),
        lambda: (
            LIST
            >> map_over(
                "items",
                Route("item").eq("x", Agent("a").writes("done")).otherwise(S.set(done="")),
                item_key="item",
                output_key="all",
                result_key="done",
            )
        ),
    ),
    Advice(
        "FLW002",
        '.writes("source", via="tool")',
        lambda: TOOL >> reader("{source}"),
        lambda: (
            Agent("find").instruct("Find.").tool(look_up).writes("source", via="tool")
            >> reader("{source}")
        ),
    ),
    Advice(
        "FLW002",
        'let it be absent: StateFieldRef("draft", default=None)',
        lambda: Pipeline("p", Route("k").eq(1, WRITE)).contract(inputs=["k"], outputs=["draft"]),
        lambda: Pipeline("p", Route("k").eq(1, WRITE)).contract(
            inputs=["k"], outputs=[StateFieldRef("draft", default=None)]
        ),
    ),
    Advice(
        "FLW002",
        "write `draft` again after it is removed",
        lambda: WRITE >> Route("k").eq(1, S.drop("draft")).otherwise(NOTE) >> READ,
        lambda: WRITE >> Route("k").eq(1, S.drop("draft")).otherwise(NOTE) >> WRITE >> READ,
        ["k"],
    ),
    Advice(
        "FLW001",
        "give what it is made of a value",
        lambda: S.merge("a", "b", into="draft") >> READ,
        lambda: S.set(a="1", b="2") >> S.merge("a", "b", into="draft") >> READ,
    ),
    # --- types
    Advice(
        "FLW003",
        '.writes(StateFieldRef("items", list[str]))',
        lambda: (
            Agent("list").writes("items")
            >> map_over("items", EACH, item_key="item", output_key="done")
        ),
        lambda: LIST >> map_over("items", EACH, item_key="item", output_key="done"),
    ),
    Advice(
        "FLW003",
        '.writes(StateFieldRef("score", float))',
        lambda: Agent("a").writes("score") >> Route("score").gt(2, WRITE).otherwise(NOTE),
        lambda: (
            Agent("a").writes(StateFieldRef("score", float))
            >> Route("score").gt(2, WRITE).otherwise(NOTE)
        ),
    ),
    Advice(
        "FLW003",
        "let `set` write `score` as a number",
        lambda: S.set(score="3") >> Route("score").gt(2, WRITE).otherwise(NOTE),
        lambda: S.set(score=3) >> Route("score").gt(2, WRITE).otherwise(NOTE),
    ),
    Advice(
        "FLW003",
        "declare `items` as a list",
        lambda: map_over("items", EACH, item_key="item", output_key="done").contract(
            inputs=[StateFieldRef("items", str)]
        ),
        lambda: map_over("items", EACH, item_key="item", output_key="done").contract(
            inputs=[StateFieldRef("items", list)]
        ),
    ),
    Advice(
        "FLW003",
        "declare one type for `items` in both places",
        lambda: _list(list[int]) >> Agent("a").reads(StateFieldRef("items", list[str])),
        lambda: _list(list[str]) >> Agent("a").reads(StateFieldRef("items", list[str])),
    ),
    # --- at the same time
    Advice(
        "FLW004",
        "run `write` before `both`",
        lambda: FanOut("both", WRITE, READ),
        lambda: WRITE >> FanOut("both", NOTE, READ),
    ),
    Advice(
        "FLW007",
        "write different keys",
        lambda: FanOut("both", WRITE, Agent("b").writes("draft")) >> READ,
        lambda: FanOut("both", WRITE, NOTE) >> reader("{draft} {note}"),
    ),
    Advice(
        "FLW007",
        "say how to join them",
        lambda: (
            FanOut("both", _list(list[str]), Agent("b").writes(StateFieldRef("items", list[str])))
            >> reader("{items}")
        ),
        lambda: (
            FanOut(
                "both",
                *(
                    Agent(name).writes(StateFieldRef("items", list[str], reducer=Ref.to(joined)))
                    for name in "ab"
                ),
            )
            >> reader("{items}")
        ),
    ),
    # --- scopes
    Advice(
        "FLW005",
        "read `user:draft`, or write `draft`",
        lambda: Agent("a").writes("user:draft") >> READ,
        lambda: Agent("a").writes("user:draft") >> reader("{user:draft}"),
    ),
    Advice(
        "FLW005",
        "or write `draft`",
        lambda: Agent("a").writes("user:draft") >> READ,
        lambda: WRITE >> READ,
    ),
    Advice(
        "FLW005",
        "promise `temp:draft`, or write `draft`",
        lambda: Pipeline("p", Agent("a").writes("temp:draft")).contract(outputs=["draft"]),
        lambda: Pipeline("p", WRITE).contract(outputs=["draft"]),
    ),
    Advice(
        "FLW006",
        'declare it: .contract(inputs=["user:name"])',
        lambda: Pipeline("p", reader("{user:name}")),
        lambda: Pipeline("p", reader("{user:name}")).contract(inputs=["user:name"]),
    ),
    Advice(
        "FLW006",
        "S.user.default(name=...)",
        lambda: Agent("a").reads("user:name"),
        lambda: S.user.default(name="you") >> Agent("a").reads("user:name"),
    ),
    # --- nobody reads it
    Advice(
        "FLW008",
        "declare it: .contract(outputs=[...])",
        lambda: Pipeline("p", WRITE),
        lambda: Pipeline("p", WRITE).contract(outputs=["draft"]),
    ),
    Advice("FLW008", "read it", lambda: WRITE >> Agent("a"), lambda: WRITE >> READ),
    Advice(
        "FLW008",
        "read it before that, or write another key",
        lambda: WRITE >> Agent("b").writes("draft") >> READ,
        lambda: NOTE >> Agent("b").writes("draft") >> reader("{draft} {note}"),
    ),
    # --- schemas
    Advice(
        "FLW009",
        "did you mean `draft`?",
        lambda: (Agent("a").writes("drafts") >> reader("{drafts}")).state(Notes),
        lambda: (WRITE >> READ).state(Notes),
    ),
    Advice(
        "FLW009",
        '.state(Notes, extra="allow")',
        lambda: (Agent("a").writes("reply") >> reader("{reply}")).state(Notes),
        lambda: (Agent("a").writes("reply") >> reader("{reply}")).state(Notes, extra="allow"),
    ),
    Advice(
        "FLW009",
        "write it as float, or change Notes",
        lambda: (Agent("a").writes(StateFieldRef("score", list[str])) >> reader("{score}")).state(
            Notes
        ),
        lambda: (Agent("a").writes(StateFieldRef("score", float)) >> reader("{score}")).state(
            Notes
        ),
    ),
    Advice(
        "FLW009",
        "read it as str, or change Notes",
        lambda: (WRITE >> Agent("a").reads(StateFieldRef("draft", bytes))).state(Notes),
        lambda: (WRITE >> Agent("a").reads(StateFieldRef("draft", str))).state(Notes),
    ),
]


@pytest.mark.parametrize("advice", ADVICE, ids=lambda each: f"{each.code}: {each.help}")
def test_advice_that_is_followed_mends_what_it_was_given_for(advice: Advice) -> None:
    report = check_all(advice.wrong(), inputs=advice.inputs)
    told = [each for each in report if each.code == advice.code]
    assert told, report.render()
    assert any(advice.help in (each.help or "") for each in told), report.render()
    mended = check_all(advice.mended(), inputs=advice.inputs)
    assert [each for each in mended if each.code == advice.code or each.doubtful] == []


def test_of_very_many_findings_the_last_ones_say_less_and_are_all_there() -> None:
    parts = [
        Route("k").eq(1, Agent(f"w{at}").writes(f"k{at}")) >> Agent(f"r{at}").reads(f"k{at}")
        for at in range(300)
    ]
    report = check_all(Pipeline("p", *parts), inputs=["k"])
    told = [each for each in report if each.code == "FLW002"]
    assert len(told) == 300
    notes = [each.related[0].message for each in told]
    short = [note for note in notes if note.endswith("writes it on some ways only")]
    full = [note for note in notes if note.endswith("writes it in a branch of `route`")]
    assert len(short) + len(full) == 300
    assert min(len(short), len(full)) >= 50
