"""The agent builder: what each setter puts into the node."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import (
    Agent,
    Fallback,
    FanOut,
    Loop,
    Pipeline,
    Route,
    map_over,
    race,
    timeout,
)
from adk_fluent.errors import BuildError, UsageError
from adk_fluent.ir import (
    UNSET,
    AgentNode,
    AppNode,
    ExecutionConfig,
    FunctionNode,
    Node,
    Ref,
    StateFieldRef,
    ToolSpec,
)
from adk_fluent.testing import Call, Script, reply

if TYPE_CHECKING:
    from collections.abc import Callable


def search(query: str) -> str:
    return query


def look_up(key: str) -> str:
    return key


def sensitive(key: str) -> bool:
    return key == "x"


def hook(**_: Any) -> None:
    return None


async def slow_hook(**_: Any) -> None:
    return None


def built(agent: Agent) -> AgentNode:
    node = agent.build()
    assert isinstance(node, AgentNode)
    return node


def test_only_what_is_set_is_stored() -> None:
    assert Agent("a").build() == AgentNode("a")


def test_every_setter_returns_the_builder_it_was_called_on() -> None:
    agent = Agent("a")
    for result in (
        agent.model("m"),
        agent.instruct("x"),
        agent.static_instruct("x"),
        agent.description("x"),
        agent.history("own"),
        agent.tool(search),
        agent.agent_tool(Agent("b")),
        agent.delegates(Agent("c")),
        agent.sub_agents(Agent("d")),
        agent.reads("r"),
        agent.writes("w"),
        agent.outputs("o"),
        agent.input_schema(int),
        agent.output_schema(int),
        agent.before_agent(hook),
        agent.after_agent(hook),
        agent.before_model(hook),
        agent.after_model(hook),
        agent.on_model_error(hook),
        agent.before_tool(hook),
        agent.after_tool(hook),
        agent.on_tool_error(hook),
        agent.mock("x"),
        agent.configure(include_contents="none"),
        agent.named("again"),
    ):
        assert result is agent


def test_every_setter_has_its_field() -> None:
    agent = (
        Agent("a", "m")
        .instruct("do")
        .static_instruct("be")
        .description("for")
        .history("input")
        .input_schema(int)
        .output_schema(str)
    )
    assert built(agent) == AgentNode(
        "a",
        "m",
        instruction="do",
        static_instruction="be",
        description="for",
        history="input",
        input_schema=Ref.to(int),
        output_schema=Ref.to(str),
    )


def test_the_last_value_of_a_setting_counts_and_lists_grow() -> None:
    agent = Agent("a").instruct("x").instruct("y").tool(search).tool(look_up)
    assert built(agent).instruction == "y"
    assert built(agent).tools == (ToolSpec(Ref.to(search)), ToolSpec(Ref.to(look_up)))


def test_an_instruction_may_be_a_function() -> None:
    def personal(context: Any) -> str:
        return f"You serve {context}"

    assert built(Agent("a").instruct(personal)).instruction == Ref.to(personal)
    assert built(Agent("a").instruct(personal)).reads_keys == ()


# --- tools and agents ----------------------------------------------------------------------------


def test_confirmation_is_a_flag_or_a_function() -> None:
    agent = Agent("a").tool(search, require_confirmation=True)
    agent.tool(look_up, require_confirmation=sensitive)
    first, second = built(agent).tools
    assert first.require_confirmation is True
    assert second.require_confirmation == Ref.to(sensitive)


def test_agents_below_are_snapshots() -> None:
    kid, helper = Agent("kid"), Agent("helper")
    boss = Agent("boss").delegates(kid).agent_tool(helper)
    kid.instruct("later")
    helper.named("renamed")
    assert built(boss).delegates == (AgentNode("kid"),)
    assert built(boss).agent_tools == (AgentNode("helper"),)


def test_a_pipeline_may_be_a_delegate_and_a_tool() -> None:
    line = (Agent("a") >> Agent("b")).named("line")
    boss = built(Agent("boss").delegates(line).agent_tool(line))
    assert boss.delegates == boss.agent_tools == (line.build(),)


# --- state keys ----------------------------------------------------------------------------------


def keys(refs: tuple[StateFieldRef, ...]) -> list[str]:
    return [ref.key for ref in refs]


def test_reads_and_writes_accumulate_each_key_once() -> None:
    agent = Agent("a").reads("x", "user:y").reads("x", "z").writes("o").outputs("o", "p")
    assert keys(built(agent).reads_keys) == ["x", "user:y", "z"]
    assert keys(built(agent).writes_keys) == ["o", "p"]
    assert built(agent).reads_keys[1].scope == "user"


def test_what_tools_write_is_kept_apart() -> None:
    agent = Agent("a").writes("answer").writes("ticket_id", via="tool")
    assert keys(built(agent).writes_keys) == ["answer"]
    assert keys(built(agent).tool_writes) == ["ticket_id"]


def test_any_field_reference_is_taken_with_its_type_and_default() -> None:
    class Field:
        key = "user:tier"
        type = str
        scope = "user"
        default = "free"

    expected = StateFieldRef("user:tier", str, "user", "free")
    assert built(Agent("a").reads(Field())).reads_keys == (expected,)
    assert built(Agent("a").writes(expected)).writes_keys == (expected,)


def test_placeholders_are_read_and_declared_types_win() -> None:
    typed = StateFieldRef("score", float)
    agent = Agent("a").instruct("{score} of {user:name}, {note?}").reads(typed, "more")
    refs = built(agent).reads_keys
    assert keys(refs) == ["score", "more", "user:name", "note"]
    assert refs[0].type is float
    assert [ref.default for ref in refs] == [UNSET, UNSET, UNSET, ""]


def test_placeholders_of_a_replaced_instruction_are_forgotten() -> None:
    agent = Agent("a").instruct("{old}")
    assert keys(built(agent).reads_keys) == ["old"]
    assert keys(built(agent.instruct("{new}")).reads_keys) == ["new"]


# --- callbacks -----------------------------------------------------------------------------------


def test_callbacks_are_one_or_a_list_sync_or_async_in_order_of_call() -> None:
    agent = Agent("a").before_model(hook).on_tool_error(hook).before_model([slow_hook, hook])
    assert built(agent).callbacks == (
        ("before_model", (Ref.to(hook), Ref.to(slow_hook), Ref.to(hook))),
        ("on_tool_error", (Ref.to(hook),)),
    )


@pytest.mark.parametrize(
    "when",
    [
        "before_agent",
        "after_agent",
        "before_model",
        "after_model",
        "on_model_error",
        "before_tool",
        "after_tool",
        "on_tool_error",
    ],
)
def test_each_callback_setter_has_adks_name(when: str) -> None:
    agent = Agent("a")
    setter: Callable[[Any], Agent] = getattr(agent, when)
    setter(hook)
    assert built(agent).callbacks == ((when, (Ref.to(hook),)),)


# --- mock and other fields -----------------------------------------------------------------------


def test_equal_texts_make_equal_mocks() -> None:
    assert Agent("a").mock("x").build() == Agent("a").mock("x").build()
    assert Agent("a").mock(["x", "y"]).build() == Agent("a").mock(["x", "y"]).build()
    assert Agent("a").mock("x").build() != Agent("a").mock(["x"]).build()
    assert Agent("a").mock("x").build() != Agent("a").mock("y").build()


def test_everything_a_script_takes_is_a_mock() -> None:
    def answer(prompt: str) -> str:
        return prompt

    script, slow = Script(default="x"), reply("x", latency=1)
    for given, held in (
        ("text", "text"),
        (["a", "b"], ("a", "b")),
        (answer, answer),
        (script, script),
        ([slow, Call("f"), ValueError("x")], None),
    ):
        mock = built(Agent("a").mock(given)).mock
        assert mock is not None
        assert mock.value == held or held is None


def test_other_fields_are_sorted() -> None:
    agent = Agent("a").timeout(3).configure(planner=None, include_contents="none")
    assert built(agent.disallow_transfer_to_peers()).settings == (
        ("disallow_transfer_to_peers", True),
        ("include_contents", "none"),
        ("planner", None),
        ("timeout", 3),
    )


# --- copies --------------------------------------------------------------------------------------


def test_a_clone_is_independent() -> None:
    agent = Agent("a", "m").instruct("x").tool(search).before_model(hook).include_contents("none")
    before = agent.build()
    clone = agent.clone("b")
    clone.instruct("y").tool(look_up).before_model(hook).include_contents("default")
    assert agent.build() is before
    assert built(clone).name == "b"
    assert built(agent.clone()) == before
    agent.instruct("z")
    assert built(clone).instruction == "y"


def test_with_changes_a_copy() -> None:
    agent = Agent("a", "m").instruct("x")
    other = agent.with_(
        name="b", model="n", instruct="y", description="d", history="none", output_schema=int
    )
    assert built(agent) == AgentNode("a", "m", instruction="x")
    assert built(other) == AgentNode(
        "b",
        "n",
        instruction="y",
        description="d",
        history="none",
        output_schema=Ref.to(int),
    )


def test_the_schema_operator_changes_a_copy() -> None:
    agent = Agent("a")
    assert built(agent @ int).output_schema == Ref.to(int)
    assert built(agent).output_schema is None


def test_copy_and_deepcopy_are_clones() -> None:
    agent = Agent("a").tool(search)
    for twin in (copy.copy(agent), copy.deepcopy(agent)):
        twin.tool(look_up)
        assert len(built(twin).tools) == 2
    assert len(built(agent).tools) == 1


# --- IR ------------------------------------------------------------------------------------------


def test_ir_is_made_once_until_something_changes() -> None:
    agent = Agent("a")
    first = agent.build()
    assert agent.to_ir() is agent.build() is first
    assert agent.instruct("x").build() is not first


def test_ir_pickles() -> None:
    node = Agent("a", "m").instruct("{x}").tool(search).mock("y").build()
    assert pickle.loads(pickle.dumps(node)) == node


def test_the_location_is_the_line_of_the_call() -> None:
    line = test_the_location_is_the_line_of_the_call.__code__.co_firstlineno + 2
    location = Agent("a").instruct("x").build().location
    assert str(location) == f"{__file__}:{line}"


def test_middlewares_make_an_app_and_travel_to_whatever_encloses_them() -> None:
    class Log:
        async def before_model(self, ctx: Any, request: Any) -> None:
            """Note the request."""

    outer, inner, third = Log(), Log(), Log()
    agent = Agent("a").middleware(inner)
    assert agent.build() == AppNode("a", AgentNode("a"), middlewares=(Ref.to(inner),))

    line = (agent >> Agent("b").middleware(third)).middleware(outer)
    app = line.build()
    assert isinstance(app, AppNode)
    assert app.middlewares == (Ref.to(inner), Ref.to(third), Ref.to(outer))
    assert not any(isinstance(node, AppNode) for node in app.root.children)


def test_middlewares_survive_every_arrangement() -> None:
    class Log:
        async def before_model(self, ctx: Any, request: Any) -> None:
            """Note the request."""

    log = Log()
    part, other = Agent("part").middleware(log), Agent("other")
    for whole in (
        part >> other >> other,
        other >> part,
        other | part | other,
        part // other,
        part * 3,
        part @ int,
        Agent("w").writes("k") >> {"x": other, "y": part},
        Pipeline("p", other).step(part),
        FanOut("f", other, part),
        Fallback("b", other).attempt(part),
        Loop("l", other, part),
        race(other, part),
        Route("k").eq("x", part),
        Route("k").when(lambda s: True, other).otherwise(part),
        timeout(part, 3),
        map_over("k", part),
        Agent("boss").delegates(other, part),
        Agent("boss").agent_tool(other, part),
        part.clone("copy"),
    ):
        app = whole.build()
        assert isinstance(app, AppNode)
        assert app.middlewares == (Ref.to(log),)


def test_the_same_middleware_is_there_once() -> None:
    class Log:
        async def before_model(self, ctx: Any, request: Any) -> None:
            """Note the request."""

    log = Log()
    part = Agent("a").middleware(log)
    app = (part >> part | part).build()
    assert isinstance(app, AppNode)
    assert len(app.middlewares) == 1


def test_an_app_as_a_part_gives_its_root_and_its_middlewares() -> None:
    class Log:
        async def before_model(self, ctx: Any, request: Any) -> None:
            """Note the request."""

    app = Agent("a").middleware(Log()).build()
    again = (app >> Agent("b")).build()
    assert isinstance(again, AppNode)
    assert again.root.children == (AgentNode("a"), AgentNode("b"))
    assert len(again.middlewares) == 1


def test_an_app_that_says_more_cannot_be_a_part() -> None:
    app = AppNode("app", AgentNode("a"), execution=ExecutionConfig())
    with pytest.raises(UsageError, match="the app 'app' cannot be a step"):
        _ = app >> Agent("b")


def test_wrong_nodes_below_an_agent_are_left_to_the_checks() -> None:
    node: Node = FunctionNode("f", Ref.to(search))
    assert built(Agent("a").delegates(node)).delegates == (node,)


def test_two_tools_of_one_name_are_refused_whatever_they_are() -> None:
    agent = Agent("a").agent_tool(Agent("search"))
    with pytest.raises(BuildError, match="has a tool called 'search' already"):
        agent.tool(search)
