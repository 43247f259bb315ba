from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.google_llm import Gemini
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types

from adk_fluent import ir
from adk_fluent.backends.adk._lowering._values import At, resolve_model, to_content, to_tool
from adk_fluent.errors import UsageError
from adk_fluent.testing import Script, ScriptedModel

pytestmark = pytest.mark.adk
NODE = At(ir.AgentNode("desk", location=ir.Location("shop.py", 7)))


def spec(tool: Any, *, confirm: Any = False) -> ir.ToolSpec:
    return ir.ToolSpec(ir.Ref.to(tool), confirm)


def refund(order: str) -> str:
    """Pays an order back."""
    return order


def nameless(order: str) -> str:
    return order


nameless.__name__ = "<lambda>"


class Toolset(BaseToolset):
    async def get_tools(self, readonly_context: Any = None) -> list[Any]:
        return []

    async def close(self) -> None:
        self.closed = True


# --- models --------------------------------------------------------------------------------------


def test_a_model_stays_itself() -> None:
    model = ScriptedModel("x")
    assert resolve_model(model) is model
    assert resolve_model(ir.Ref.to(model)) is model


def test_a_name_is_looked_up_in_adks_registry() -> None:
    model = resolve_model("gemini-2.5-flash")
    assert isinstance(model, Gemini)
    assert model.model == "gemini-2.5-flash"
    assert isinstance(resolve_model(ir.Ref("gemini-2.5-flash", "m")), Gemini)


async def test_a_script_becomes_a_model() -> None:
    script = Script("x")
    model = resolve_model(ir.Ref.to(script))
    assert isinstance(model, ScriptedModel)
    assert model.script is script


def test_a_name_adk_does_not_know() -> None:
    with pytest.raises(UsageError) as caught:
        resolve_model("no-such-model", NODE)
    message = str(caught.value)
    assert "ADK knows no model 'no-such-model'" in message
    assert "node 'desk' at shop.py:7" in message
    assert "\n  help: " in message
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_name_that_needs_another_package() -> None:
    with pytest.raises(UsageError, match="pip install") as caught:
        resolve_model("nobody/nothing")
    assert "\n\n" not in str(caught.value)


def test_what_is_no_model() -> None:
    with pytest.raises(UsageError, match="cannot use int as a model"):
        resolve_model(42)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="a model name or an instance"):
        resolve_model(ir.Ref.to(Gemini))


# --- tools ---------------------------------------------------------------------------------------


def test_a_function_becomes_a_tool() -> None:
    tool = to_tool(spec(refund))
    assert isinstance(tool, FunctionTool)
    assert (tool.name, tool.description, tool.func) == ("refund", "Pays an order back.", refund)


def test_a_method_and_a_wrapped_partial_are_functions() -> None:
    class Shop:
        def cancel(self, order: str) -> str:
            return order

    tool = to_tool(spec(Shop().cancel))
    assert isinstance(tool, FunctionTool)
    assert tool.name == "cancel"
    wrapped = functools.update_wrapper(functools.partial(refund, order="A1"), refund)
    named = to_tool(spec(wrapped))
    assert isinstance(named, FunctionTool)
    assert named.name == "refund"


@pytest.mark.parametrize("tool", [FunctionTool(refund), LongRunningFunctionTool(refund), Toolset()])
def test_adks_tools_stay_themselves(tool: Any) -> None:
    assert to_tool(spec(tool)) is tool


async def confirms(tool: Any, args: dict[str, Any]) -> bool:
    """Whether ADK would ask before this call, by ADK's own attribute."""
    asks = tool._require_confirmation
    return bool(asks(**args) if callable(asks) else asks)


async def test_confirmation_by_flag_and_by_predicate() -> None:
    def is_big(order: str) -> bool:
        return order.startswith("big")

    plain = to_tool(spec(refund, confirm=True))
    by_call = to_tool(spec(refund, confirm=ir.Ref.to(is_big)))
    rebuilt = to_tool(spec(FunctionTool(refund), confirm=True))
    assert await confirms(plain, {"order": "x"})
    assert await confirms(rebuilt, {"order": "x"})
    assert await confirms(by_call, {"order": "big one"})
    assert not await confirms(by_call, {"order": "small one"})
    assert not await confirms(to_tool(spec(refund)), {"order": "x"})


@pytest.mark.parametrize("tool", [LongRunningFunctionTool(refund), Toolset()])
def test_tools_that_cannot_ask_for_confirmation(tool: Any) -> None:
    with pytest.raises(UsageError, match="cannot be told to ask for confirmation") as caught:
        to_tool(spec(tool, confirm=True), NODE)
    assert "node 'desk'" in str(caught.value)


NO_TOOLS: list[tuple[Any, str]] = [
    (42, "cannot use int as a tool"),
    (LongRunningFunctionTool, "cannot use the class LongRunningFunctionTool"),
    (nameless, "needs a name"),
    (functools.partial(refund, order="x"), "needs a name"),
    (LlmAgent(name="kid"), r"\.agent_tool\("),
]


@pytest.mark.parametrize(("tool", "says"), NO_TOOLS)
@pytest.mark.parametrize("confirm", [False, True])
def test_what_is_no_tool(tool: Any, says: str, confirm: bool) -> None:
    if confirm and not callable(tool):
        says = "cannot be told"
    with pytest.raises(UsageError, match=says) as caught:
        to_tool(spec(tool, confirm=confirm), NODE)
    assert "desk" in str(caught.value)


def test_adks_exit_loop_is_a_function() -> None:
    tool = to_tool(spec(exit_loop))
    assert isinstance(tool, FunctionTool)
    assert tool.name == "exit_loop"


# --- messages ------------------------------------------------------------------------------------


def test_a_text_and_a_part() -> None:
    assert to_content("hi") == types.Content(role="user", parts=[types.Part(text="hi")])
    part = types.Part.from_bytes(data=b"x", mime_type="image/png")
    assert to_content(part) == types.Content(role="user", parts=[part])


def test_a_list_of_texts_and_parts() -> None:
    part = types.Part.from_bytes(data=b"x", mime_type="image/png")
    got = to_content(["what is", part, ["this?"]])
    assert got == types.Content(
        role="user", parts=[types.Part(text="what is"), part, types.Part(text="this?")]
    )


def test_a_content_stays_itself_but_for_its_role() -> None:
    content = types.Content(role="user", parts=[types.Part(text="hi")])
    assert to_content(content) is content
    bare = types.Content(parts=[types.Part(text="hi")])
    assert to_content(bare) == content
    assert bare.role is None


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (42, "cannot use int as a message"),
        (None, "cannot use NoneType as a message"),
        ({"text": "hi"}, "cannot use dict as a message"),
        (b"png", "mime_type"),
        ([], "the message is empty"),
        ("", "the message is empty"),
        (" \n", "the message is empty"),
        (["", " "], "the message is empty"),
        (types.Part(text=" "), "the message is empty"),
        ([b"png"], "mime_type"),
        (types.Content(role="user", parts=[]), "the message is empty"),
        (["a", types.Content(role="user", parts=[types.Part(text="b")])], "at position 1"),
    ],
)
def test_what_is_no_message(message: object, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        to_content(message)


def test_a_layer_may_add_a_kind_of_message(monkeypatch: pytest.MonkeyPatch) -> None:
    from adk_fluent._registry import Found, Offer
    from adk_fluent.backends._tables import ValueTable
    from adk_fluent.backends.adk._lowering import _values
    from adk_fluent.protocol import Entry

    point = EntryPoint("desk", "desk:LAYER", "adk_fluent.layers")
    offer = Offer("desk", Entry("desk:VALUES"), Found("desk", "acme-desk", "0.3", point))

    @dataclass
    class Ticket:
        number: int

    class Layers:
        def require(self, name: str, what: str, node: object) -> None: ...

        def provided(self, slot: str) -> list[tuple[Offer, Any]]:
            return [(offer, theirs)] if slot == "values" else []

        def watch(self, forget: object) -> None: ...

    theirs: ValueTable[Any] = ValueTable()
    theirs.rule(_values.MESSAGE, Ticket)(lambda ticket, cx: to_content(f"ticket {ticket.number}"))
    table: ValueTable[Any] = ValueTable(layers=Layers())
    table.include(_values.values)
    monkeypatch.setattr(_values, "values", table)
    assert to_content(Ticket(7)) == to_content("ticket 7")
