"""What tools, callbacks and instructions do to state, as their source says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pytest
from effects_cases import Case, Cases, told

from adk_fluent import S
from adk_fluent.contracts._effects import (
    effects_of_callback,
    effects_of_function,
    effects_of_instruction,
    effects_of_node,
    effects_of_tool,
)
from adk_fluent.ir import Ref, StateFieldRef, TransformNode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

if TYPE_CHECKING:
    ToolContext = Any
    Elsewhere = Any
    SchemaState = Any
else:
    ToolContext = type("ToolContext", (), {"__module__": "google.adk.tools.tool_context"})


class Schema:
    """A state schema, as far as core knows one."""

    intent: ClassVar = StateFieldRef("intent", str)
    tier: ClassVar = StateFieldRef("user:tier", str, default="free")
    tags: ClassVar = StateFieldRef("tags", list)
    note: ClassVar = StateFieldRef("note", str)
    more: ClassVar = StateFieldRef("more", list, default=[])
    __state_fields__: ClassVar[Mapping[str, StateFieldRef]] = {
        ref.key: ref for ref in (intent, tier, tags, note, more)
    }

    @classmethod
    def bind(cls, context: Any) -> Any:
        """Bind it."""

    @classmethod
    def delta(cls, **values: Any) -> Any:
        """A delta."""


class Other(Schema):
    """Another one, which says something else of a key."""

    more: ClassVar = StateFieldRef("more", str)
    odd: ClassVar = StateFieldRef("odd", Annotated[int, {"no": "hash"}])
    __state_fields__: ClassVar[Mapping[str, StateFieldRef]] = {"more": more, "odd": odd}


if not TYPE_CHECKING:
    SchemaState = Schema


def helper(*values: object) -> Any:
    return values


tools = Cases()


@tools.told()
def without_a_context(city: str, state: dict[str, Any]) -> str:
    helper(state)
    return state[city]


@tools.told(reads="n?", writes="n last", assumed="last")
def by_items(last: str, tool_context: Any) -> dict[str, Any]:
    """Writes."""
    tool_context.state["n"] = tool_context.state.get("n", 0) + 1
    tool_context.state["last"] = last
    return {"not": "state"}


@tools.told(reads="x", writes="y", assumed="y")
def by_annotation(x: int, context: ToolContext) -> None:
    state = context.state
    state["y"] = state["x"]


@tools.told(writes="x")
def by_an_annotation_of_type_checkers(x: int, ctx: Elsewhere.ToolContext) -> None:
    ctx.state["x"] = 1


@tools.told(writes="a b", may_write="c d", removes="e")
def by_methods(tool_context: Any) -> None:
    tool_context.state.update({"a": 1, "b": "x", "e": None})
    if helper():
        tool_context.state.update({"c": 1})
        tool_context.actions.state_delta["d"] = 2


@tools.told(reads="a? b?", writes="a b", assumed="a b")
def by_setdefault(tool_context: Any) -> list[int]:
    known = tool_context.state.setdefault("a", [])
    tool_context.state.setdefault("b", 1)
    return [tool_context.state["a"], known]


@tools.told(writes="a", may_write="b")
def before_it_may_fail(tool_context: Any) -> str:
    tool_context.state["a"] = 1
    try:
        helper()
        tool_context.state["b"] = 2
    except ValueError:
        return "no"
    return "yes"


@tools.told(writes="a b")
def with_finally(tool_context: Any) -> str:
    try:
        return "yes"
    finally:
        tool_context.state.update({"a": 1, "b": 2})


@tools.told(writes="a", reads="b")
def what_it_wrote_itself(tool_context: Any) -> str:
    tool_context.state["a"] = 1
    return tool_context.state["a"] + tool_context.state["b"]


@tools.told(reads="tags map? x? y", may_write="tags map x")
def in_values_of_it(tool_context: Any) -> None:
    state = tool_context.state
    state["tags"].append("x")
    found = state.get("map")
    if found is not None:
        found["k"] = 1
    known = state.get("x", [])
    del known[0]
    helper(state["y"].count("z"))


@tools.told(reads="n", writes="n")
def in_place(tool_context: Any) -> None:
    tool_context.state["n"] += 1


@tools.told(also="escalates")
def leaving_the_loop(tool_context: Any) -> None:
    tool_context.actions.escalate = True
    tool_context.actions.skip_summarization = True


@tools.told(also="transfers")
def handing_over(agent_name: str, tool_context: Any) -> None:
    tool_context.actions.transfer_to_agent = agent_name
    tool_context.actions.escalate = False


@tools.told(reads="user:tier?", writes="n")
async def with_other_parts_of_the_context(q: str, tool_context: Any) -> None:
    part = await tool_context.load_artifact(q)
    await tool_context.save_artifact(q, part)
    tool_context.request_confirmation(hint=f"{tool_context.function_call_id}")
    if tool_context and tool_context.session.state.get("user:tier"):
        helper(tool_context.user_id, tool_context.session.id)
    tool_context.state["n"] = len(tool_context.session.events)


@tools.told(reads="intent user:tier? note tags", writes="note tags")
def with_a_schema(tool_context: Any) -> str:
    state = Schema.bind(tool_context)
    state.note = f"{state.intent} {state.tier} {state.note}"
    with state.edit("tags") as tags:
        tags.append("x")
    return state.note


@tools.told(reads="more?", may_write="more")
def with_a_field_that_has_a_default(tool_context: Any) -> None:
    with Schema.bind(tool_context).edit("more") as more:
        more.append("x")


@tools.told(reads="intent", writes="note", removes="tags")
def with_a_schema_by_annotation(state: SchemaState) -> str:
    state.note = state.intent.strip()
    state.unset("tags")
    return "ok"


@tools.told(reads="intent?", writes="note")
def with_a_guarded_schema(tool_context: Any) -> None:
    state = Schema.bind(tool_context.state)
    if tool_context.state.get(Schema.intent.key):
        state.note = state.intent
    else:
        state.note = "nothing"


@tools.told(reads="intent?", writes="note", may_write="intent")
def with_functions_inside(tool_context: Any) -> Any:
    def later() -> Any:
        tool_context.state["intent"] = 1

    tool_context.state["note"] = "x"
    return sorted([1], key=lambda _: tool_context.state.get("intent")), later


@tools.told(may_write="a", may_remove="a")
def undone_inside(tool_context: Any) -> None:
    tool_context.state["a"] = 1

    def undo() -> None:
        tool_context.state["a"] = None

    helper(undo)


class Desk:
    """Tools that are methods."""

    def tool(self, x: int, tool_context: Any) -> None:
        """A tool."""
        tool_context.state["x"] = x + 1


tools.told(writes="x")(Desk().tool)

callbacks = Cases()


@callbacks.told(reads="tries?", writes="tries")
def before_agent(callback_context: Any) -> None:
    callback_context.state["tries"] = callback_context.state.get("tries", 0) + 1


@callbacks.told(reads="tier")
def before_model(callback_context: Any, llm_request: Any) -> Any:
    llm_request.config.labels = {"tier": callback_context.state["tier"]}
    return {"not": "state"}


@callbacks.told(writes="seen", assumed="seen")
async def after_tool(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> None:
    tool_context.state["seen"] = args["x"]


@callbacks.told()
def that_takes_the_rest(**rest: Any) -> None:
    """Nothing of it is used."""


@callbacks.told(opaque="it uses `rest` in a way that is not understood in line N")
def that_uses_the_rest(**rest: Any) -> None:
    rest["callback_context"].state["x"] = 1


instructions = Cases()


@instructions.told(reads="topic tone?")
def plain(ctx: Any) -> str:
    return f"Write of {ctx.state['topic']}, {ctx.state.get('tone', 'short')}, {ctx.agent_name}."


@instructions.told(opaque="it writes to `ctx.state`, which is read-only, in line N")
def that_writes(ctx: Any) -> str:
    ctx.state["x"] = 1
    return ""


@pytest.mark.parametrize("case", tools, ids=lambda case: case.fn.__name__)
def test_a_tool(case: Case) -> None:
    expected = {name: text for name, text in case.expected.items() if text}
    assert told(effects_of_tool(Ref.to(case.fn))) == expected


@pytest.mark.parametrize("case", callbacks, ids=lambda case: case.fn.__name__)
def test_a_callback(case: Case) -> None:
    assert told(effects_of_callback(Ref.to(case.fn))) == case.expected


@pytest.mark.parametrize("case", instructions, ids=lambda case: case.fn.__name__)
def test_an_instruction(case: Case) -> None:
    assert told(effects_of_instruction(Ref.to(case.fn))) == case.expected


class TestTypes:
    @staticmethod
    def of(refs: Sequence[StateFieldRef]) -> list[tuple[str, Any]]:
        return [(ref.key, ref.type) for ref in refs]

    def test_those_of_a_schema_are_known(self) -> None:
        found = effects_of_tool(Ref.to(with_a_schema))
        assert self.of(found.reads) == [
            *(("intent", str), ("user:tier", str), ("note", str), ("tags", list)),
        ]
        assert self.of(found.writes) == [("note", str), ("tags", list)]

    def test_a_step_writes_what_it_gives_whatever_it_reads(self) -> None:
        def step(state: Any) -> dict[str, Any]:
            helper(Schema.bind(state).note)
            return {"note": 1}

        found = effects_of_function(Ref.to(step))
        assert self.of(found.reads) == [("note", str)]
        assert self.of(found.writes) == [("note", int)]

    def test_a_tool_writes_what_it_gives_whatever_it_reads(self) -> None:
        def tool(tool_context: Any) -> None:
            helper(Schema.bind(tool_context).note)
            tool_context.state["note"] = 1

        assert self.of(effects_of_tool(Ref.to(tool)).writes) == [("note", int)]

    def test_a_delta_has_the_types_of_its_schema(self) -> None:
        def step(state: Any) -> Any:
            return Schema.delta(note=state["x"], tags=None)

        found = effects_of_function(Ref.to(step))
        assert self.of(found.writes) == [("note", str)]

        def other(state: Any) -> Any:
            return {"note": 1} if state["x"] else Schema.delta(note="x")

        assert self.of(effects_of_function(Ref.to(other)).writes) == [("note", None)]

    def test_a_field_that_is_sometimes_unset_keeps_its_type(self) -> None:
        def tool(tool_context: Any, x: int) -> None:
            state = Schema.bind(tool_context)
            state.unset("note")
            if x:
                state.note = "x"
            else:
                state.unset("note")

        found = effects_of_tool(Ref.to(tool))
        assert self.of(found.may_write) == [("note", str)]

    def test_a_read_as_nothing_special_does_not_hide_a_type(self) -> None:
        def step(state: Any) -> None:
            helper(state.get("note"), state.get("tags", []), Schema.bind(state).note)

        found = effects_of_function(Ref.to(step))
        assert found.reads == (StateFieldRef("note", str), StateFieldRef("tags", default=None))

    def test_two_types_are_two_reads_and_absence_is_an_error_for_both(self) -> None:
        def step(state: Any) -> None:
            helper(Schema.bind(state).more, Other.bind(state).more)

        found = effects_of_function(Ref.to(step))
        assert found.reads == (StateFieldRef("more", list), StateFieldRef("more", str))

    def test_several_functions_keep_the_types_of_each(self) -> None:
        def one(state: Any) -> Any:
            return Schema.bind(state).more

        def two(state: Any) -> Any:
            return Other.bind(state).more

        node = S.compute(x=one, y=two).to_ir()
        assert isinstance(node, TransformNode)
        assert self.of(effects_of_node(node).reads) == [("more", list), ("more", str)]

    def test_a_type_need_not_have_a_hash(self) -> None:
        def tool(tool_context: Any, x: int) -> None:
            state = Other.bind(tool_context)
            value = state.odd if x else 3
            state.odd = value

        assert self.of(effects_of_tool(Ref.to(tool)).writes) == [("odd", Other.odd.type)]


class TestToolsOfADK:
    @staticmethod
    def made(module: str, *names: str) -> Any:
        """A tool whose classes are called as ADK's are, the last one first."""
        kind: Any = object
        for name in names:
            kind = type(name, () if kind is object else (kind,), {"__module__": module})
        return kind()

    def test_a_function_tool_is_its_function(self) -> None:
        tool = self.made("google.adk.tools.function_tool", "FunctionTool")
        tool.func = by_items
        assert effects_of_tool(Ref(tool)) == effects_of_tool(Ref.to(by_items))

    def test_others_are_opaque_and_named(self) -> None:
        tool = self.made("google.adk.tools.base_tool", "BaseTool", "SearchTool")
        assert effects_of_tool(Ref(tool)).opaque == "it is ADK's SearchTool"
        tools = self.made("google.adk.tools.base_toolset", "BaseToolset", "Tools")
        assert effects_of_tool(Ref(tools)).opaque == (
            "it is a toolset, whose tools are known when it runs"
        )

    def test_what_cannot_be_called_is_opaque(self) -> None:
        assert effects_of_tool(Ref(SimpleNamespace())).opaque == "it is no function"
