"""Pipelines on scripted agents, without ADK."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent
from adk_fluent.config import ExecutionConfig, TelemetryConfig
from adk_fluent.errors import (
    MissingLayerError,
    OutputInvalidError,
    OutputMissingError,
    RemoteError,
    RunError,
    StepTimeoutError,
    UnknownNameError,
    UnsupportedConfigError,
    UnsupportedNodeError,
    UsageError,
)
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    AppNode,
    EdgeSemantics,
    FallbackNode,
    FunctionNode,
    LoopNode,
    MapOverNode,
    Match,
    MiddlewareNode,
    Node,
    ParallelNode,
    RaceNode,
    Ref,
    RemoteAgentNode,
    RouteNode,
    SequenceNode,
    StateFieldRef,
    TransferNode,
    node,
)
from adk_fluent.protocol import Backend, Compiler, Usage, kept_events
from adk_fluent.testing import (
    Call,
    MockBackend,
    Script,
    ScriptExhaustedError,
    Thought,
    Turn,
    mock_backend,
    reply,
    rule,
)

if TYPE_CHECKING:
    from adk_fluent.protocol import AgentEvent, RunResult

A, B, C = (AgentNode(name) for name in "abc")


def seq(*steps: Node) -> SequenceNode:
    return SequenceNode("root", steps)


def writer(name: str, *keys: str | StateFieldRef) -> AgentNode:
    refs = tuple(StateFieldRef(key) if isinstance(key, str) else key for key in keys)
    return AgentNode(name, writes_keys=refs)


async def run(
    backend: MockBackend, node: Node, prompt: Any = "hello", *, config: Any = None, **options: Any
) -> RunResult:
    return await backend.run(backend.compile(node, config), prompt, **options)


# --- what agents answer ------------------------------------------------------------------------


async def test_a_text_is_said_and_written_to_the_output_key() -> None:
    result = await run(mock_backend({"a": "one", "b": "two"}), seq(writer("a", "k"), B))
    assert result.text == "two"
    assert result.state == {"k": "one"}
    assert [event.state_delta for event in result] == [{"k": "one"}, {}]


async def test_a_mapping_is_written_to_state_and_says_nothing() -> None:
    result = await run(mock_backend({"a": {"x": 1, "user:y": [2]}}), seq(writer("a", "x")))
    assert result.state == {"x": 1, "user:y": [2]}
    assert result.text == ""
    assert result[0].content is None


async def test_a_list_is_given_in_order_and_then_exhausted() -> None:
    backend = mock_backend({"a": ["one", {"k": 2}, reply("three")]})
    app = backend.compile(A)
    assert [(await backend.run(app, "q")).text for _ in range(3)] == ["one", "", "three"]
    with pytest.raises(ScriptExhaustedError):
        await backend.run(app, "q")


async def test_a_function_gets_the_text_of_the_prompt() -> None:
    async def later(prompt: str) -> dict[str, str]:
        await asyncio.sleep(0)
        return {"got": prompt}

    result = await run(mock_backend({"a": lambda prompt: prompt.upper(), "b": later}), seq(A, B))
    assert result[0].content == "HELLO"
    assert result.state == {"got": "hello\nFor context:\n[a] said: HELLO"}


async def test_a_script_is_followed_and_records_what_was_asked() -> None:
    script = Script(rules=[rule("hello", reply="hi")], default="what?")
    backend = mock_backend({"a": script})
    assert (await run(backend, A)).text == "hi"
    assert (await run(backend, A, "bye")).text == "what?"
    assert [asked.prompt for asked in script.calls] == ["hello", "bye"]


async def test_an_exception_is_raised_by_the_agent() -> None:
    with pytest.raises(LookupError, match="nothing") as caught:
        await run(mock_backend({"a": LookupError("nothing")}), A)
    assert caught.value.__notes__ == ["in node 'a'"]


async def test_conditions_come_first_and_in_order() -> None:
    backend = mock_backend({"a": "else"})
    made = backend.when("a").given(prompt_contains="Refund").responds("billing")
    assert made is backend
    backend.when("a").given(prompt_contains="refund").responds("never")
    backend.when("a").given(prompt_contains="key").responds_with_state({"k": 1})
    backend.when("b").responds(["first", "second"])
    assert (await run(backend, A, "a REFUND please")).text == "billing"
    assert (await run(backend, A, "my key")).state == {"k": 1}
    assert (await run(backend, A, "what")).text == "else"
    assert (await run(backend, seq(B, B))).text == "second"


async def test_an_agents_own_mock_answers_when_nobody_else_does() -> None:
    own = AgentNode("a", mock=Ref("mine"))
    in_order = AgentNode("b", mock=Ref(("one", "two")))
    asks = AgentNode("c", mock=Ref(backwards))
    backend = mock_backend()
    result = await run(backend, seq(own, in_order, in_order, asks))
    assert [event.content for event in result][:3] == ["mine", "one", "two"]
    assert (await run(backend, seq(in_order))).text == "one"  # anew with each compile
    assert (await run(backend, asks, "abc")).text == "cba"
    assert (await run(mock_backend({"a": "theirs"}), own)).text == "theirs"


def backwards(prompt: str) -> str:
    return prompt[::-1]


async def test_nobody_said_what_an_agent_answers() -> None:
    backend = mock_backend({"classify": "x"})
    backend.when("write").responds("y")
    with pytest.raises(UnknownNameError) as caught:
        await run(backend, seq(AgentNode("clasify")))
    assert caught.value.unknown == "clasify"
    assert caught.value.nearest == "classify"
    assert "did you mean it with 'classify'?" in str(caught.value)
    assert "mock_backend({'clasify': 'text'})" in str(caught.value)
    with pytest.raises(UnknownNameError, match="write") as caught:
        await run(backend, seq(AgentNode("writer")))
    with pytest.raises(UnknownNameError) as caught:
        await run(mock_backend(), A)
    assert "did you mean" not in str(caught.value)


async def test_a_fallback_does_not_cover_up_what_nobody_said() -> None:
    with pytest.raises(UnknownNameError):
        await run(mock_backend({"b": "fine"}), FallbackNode("f", (A, B)))


async def test_an_agent_that_is_never_reached_needs_no_answer() -> None:
    route = RouteNode("r", None, (Match("eq", "k", 1),), (A,), B)
    assert (await run(mock_backend({"b": "fine"}), route)).text == "fine"


async def test_several_keys_or_a_typed_one_want_data() -> None:
    for step in (writer("a", "x", "y"), writer("a", StateFieldRef("x", int))):
        with pytest.raises(OutputInvalidError, match="does not fit its schema"):
            await run(mock_backend({"a": "text"}), step)
        given = {"x": 1, "y": 2}
        assert (await run(mock_backend({"a": given}), step)).state == given


async def test_an_answer_without_content_writes_nothing_an_empty_text_does() -> None:
    with pytest.raises(OutputMissingError, match="a did not write 'k'"):
        await run(mock_backend({"a": reply()}), writer("a", "k"))
    with pytest.raises(OutputMissingError, match="a did not write 'k'"):
        await run(mock_backend({"a": {"other": 1}}), writer("a", "k"))
    assert (await run(mock_backend({"a": ""}), writer("a", "k"))).state == {"k": ""}


@pytest.mark.parametrize("response", [3, None, b"bytes", LookupError, {1: 2}, [1]])
def test_what_is_no_answer_is_refused_at_once(response: Any) -> None:
    with pytest.raises(UsageError):
        mock_backend({"a": response})
    with pytest.raises(UsageError):
        mock_backend().when("a").responds(response)


async def test_a_part_that_only_adk_knows_is_refused() -> None:
    with pytest.raises(UsageError, match="SimpleNamespace"):
        await run(mock_backend({"a": reply(SimpleNamespace(text="x"))}), A)


async def test_thoughts_are_not_said() -> None:
    result = await run(mock_backend({"a": reply(Thought("hm"), "yes")}), writer("a", "k"))
    assert result.text == "yes"
    assert result.state == {"k": "yes"}


async def test_an_error_reply_is_an_event_and_a_failure_only_where_somebody_takes_over() -> None:
    backend = mock_backend({"a": reply(error_code="SAFETY", error_message="no"), "b": "fine"})
    result = await run(backend, seq(A, B))
    assert [str(error) for error in result.errors] == ["SAFETY: no"]
    assert result.text == "fine"
    result = await run(backend, FallbackNode("f", (A, B)))
    assert result.errors == []
    assert result.text == "fine"


async def test_an_http_status_is_an_error_that_says_whether_to_try_again() -> None:
    for status, retriable in ((429, True), (503, True), (400, False)):
        with pytest.raises(RemoteError, match=str(status)) as caught:
            await run(mock_backend({"a": reply(status=status)}), A)
        assert caught.value.retriable is retriable


async def test_there_is_no_connection_that_could_break() -> None:
    with pytest.raises(UsageError, match="no connection for fault='cut' to happen to"):
        await run(mock_backend({"a": reply("x", fault="cut")}), A)


async def test_usage_is_counted() -> None:
    backend = mock_backend({"a": reply("x", usage=Usage(prompt=3, output=2)), "b": "y"})
    result = await run(backend, seq(A, B))
    assert result[0].usage == Usage(prompt=3, output=2)
    assert result.usage.prompt > 3


# --- tools -------------------------------------------------------------------------------------


async def test_a_call_is_reported_and_the_agent_is_asked_again() -> None:
    backend = mock_backend({"a": [reply("let me see", Call("look", {"x": 1})), "seen"]})
    result = await run(backend, writer("a", "k"))
    assert [(call.tool_name, call.args) for call in result[0].tool_calls] == [("look", {"x": 1})]
    assert [event.is_final for event in result] == [False, False, True]
    assert result.text == "seen"
    assert result.state == {"k": "seen"}
    assert backend.calls[1].turns[1] == Turn("model", 'let me see\n[call look {"x": 1}]')
    assert backend.calls[1].prompt.startswith("[result look ")


async def test_exit_loop_ends_the_loop() -> None:
    backend = mock_backend({"a": "again", "b": [Call("look"), Call("exit_loop")], "c": "after"})
    loop = LoopNode("l", seq(A, B, A))
    result = await run(backend, SequenceNode("top", (loop, C)))
    assert [event.node for event in result] == ["a", "b", "b", "b", "b", "c"]
    assert result[4].escalate
    assert result[4].tool_responses[0].tool_name == "exit_loop"


# --- what agents are asked ---------------------------------------------------------------------


async def test_calls_are_recorded_in_order() -> None:
    backend = mock_backend({"a": "one", "b": "two"})
    await run(backend, seq(A, AgentNode("b", instruction="Be kind.")))
    assert [(asked.agent, asked.system) for asked in backend.calls] == [
        ("a", ""),
        ("b", "Be kind."),
    ]


async def test_placeholders_are_filled_as_adk_does() -> None:
    text = "{a} {{b}} {c?} {none} ${a} {not-a-key} {artifact.x} {user:u} {other:v}"
    backend = mock_backend({"x": "ok"})
    state = {"a": 1, "b": "ß", "none": None, "user:u": [2]}
    await run(backend, AgentNode("x", instruction=text), state=state)
    assert backend.calls[0].system == "1 ß   ${a} {not-a-key} {artifact.x} [2] {other:v}"
    with pytest.raises(KeyError, match="absent"):
        await run(backend, AgentNode("x", instruction="{absent}"))


async def test_an_instruction_sees_the_snapshot_of_its_branch() -> None:
    backend = mock_backend({"x": lambda _: "ok"})
    body = AgentNode("x", instruction="about {_item}")
    await run(backend, MapOverNode("m", "list", body), state={"list": ["p", "q"]})
    assert sorted(asked.system for asked in backend.calls) == ["about p", "about q"]


def shown(backend: MockBackend, agent: str) -> list[tuple[str, str]]:
    asked = [each for each in backend.calls if each.agent == agent][-1]
    return [(turn.role, turn.text.removeprefix("For context:\n")) for turn in asked.turns]


async def test_an_agent_sees_the_conversation() -> None:
    backend = mock_backend({"a": "one", "b": "two"})
    app = backend.compile(seq(A, B))
    await backend.run(app, "first", session_id="s")
    await backend.run(app, "second", session_id="s")
    assert shown(backend, "b") == [
        ("user", "first"),
        ("user", "[a] said: one"),
        ("model", "two"),
        ("user", "second"),
        ("user", "[a] said: one"),
    ]
    assert backend.calls[-1].prompt == "second\nFor context:\n[a] said: one"


@pytest.mark.parametrize(
    ("history", "turns"),
    [
        ("transcript", [("user", "hello"), ("user", "[a] said: one"), ("user", "[b] said: two")]),
        ("own", [("user", "hello")]),
        ("input", [("user", "two")]),
        ("none", []),
    ],
)
async def test_history_chooses(history: Any, turns: list[tuple[str, str]]) -> None:
    backend = mock_backend({"a": "one", "b": "two", "c": "three"})
    await run(backend, seq(A, B, AgentNode("c", history=history)))
    assert shown(backend, "c") == turns


async def test_the_input_of_the_first_step_is_the_users() -> None:
    backend = mock_backend({"c": "three"})
    await run(backend, AgentNode("c", history="input"))
    assert shown(backend, "c") == [("user", "hello")]


async def test_what_a_discarded_attempt_said_is_seen_by_nobody_after() -> None:
    backend = mock_backend({"a": "half", "bad": LookupError("x"), "b": "two", "c": "three"})
    attempt = seq(A, AgentNode("bad"))
    await run(backend, SequenceNode("top", (FallbackNode("f", (attempt, B)), C)))
    assert shown(backend, "b") == [("user", "hello")]
    assert shown(backend, "c") == [("user", "hello"), ("user", "[b] said: two")]


async def test_a_branch_sees_nothing_of_one_that_runs_beside_it_and_all_after() -> None:
    slow = [reply("x", latency=0.01)]
    backend = mock_backend({"a": "one", "b": slow, "c": "three", "d": "four"})
    fork = ParallelNode("p", (A, seq(B, C)))
    await run(backend, SequenceNode("top", (fork, AgentNode("d"))))
    assert shown(backend, "c") == [("user", "hello"), ("user", "[b] said: x")]
    assert sorted(shown(backend, "d")[1:]) == [
        ("user", "[a] said: one"),
        ("user", "[b] said: x"),
        ("user", "[c] said: three"),
    ]


# --- the backend -------------------------------------------------------------------------------


def test_it_is_a_backend() -> None:
    backend = mock_backend()
    assert isinstance(backend, Backend)
    assert isinstance(backend, Compiler)


async def test_functions_are_real() -> None:
    result = await run(mock_backend({"a": {"n": 21}}), seq(A, FunctionNode("f", Ref(counting))))
    assert result.state == {"n": 22}


async def test_events_have_the_shape_of_all_backends() -> None:
    backend = mock_backend({"a": "one", "b": [reply("lost"), LookupError("x")], "c": "won"})
    lose = SequenceNode("lose", (B, B))
    race = RaceNode("r", (lose, SequenceNode("win", (FunctionNode("f", Ref(slowly)), C))))
    result = await run(backend, seq(A, race))
    first = result[0]
    assert (first.author, first.node, first.path, first.branch) == ("a", "a", "s0", None)
    assert (first.attempt, first.discarded, first.is_final) == (None, (), True)
    assert first.invocation_id == first.run_id == result.invocation_id
    assert first.timestamp > 0
    lost = next(event for event in result if event.content == "lost")
    assert (lost.path, lost.branch) == ("s1.w0.s0", "r.lose")
    [undo] = [event for event in result if event.discarded]
    assert undo.discarded == (lost.attempt,)
    assert (undo.author, undo.node, undo.metadata["why"]) == ("root", "r", "discarded")
    assert lost not in kept_events(result)
    assert result.text == "won"


async def slowly(state: object) -> dict[str, int]:
    await asyncio.sleep(0.005)
    return {"slow": 1}


async def test_a_transfer_is_an_event() -> None:
    result = await run(mock_backend({"a": "x"}), seq(A, TransferNode("t", "a")))
    assert [event.transfer_to for event in result] == [None, "a", None]


async def test_adk_and_remote_agents_are_answered_by_name_too() -> None:
    built = AdkAgentNode("built", Ref(object()))
    far = RemoteAgentNode("far", "http://far", writes_keys=(StateFieldRef("k"),))
    result = await run(mock_backend({"built": "here", "far": "there"}), seq(built, far))
    assert result.state == {"k": "there"}


async def test_fragments_are_streamed_when_asked_for() -> None:
    backend = mock_backend({"a": reply(chunks=["he", "llo"]), "b": "whole"})
    config = ExecutionConfig(streaming_mode="sse")
    result = await run(backend, seq(writer("a", "k"), B), config=config)
    assert [(e.content, e.is_partial, e.is_final) for e in result] == [
        ("he", True, False),
        ("llo", True, False),
        ("hello", False, True),
        ("whole", True, False),
        ("whole", False, True),
    ]
    assert result.state == {"k": "hello"}
    assert [asked.stream for asked in backend.calls] == [True, True]
    assert len(await run(backend, A)) == 1


async def test_an_error_may_come_after_fragments() -> None:
    backend = mock_backend({"a": reply(chunks=["he"], raises=LookupError("x"), pause=0.001)})
    seen: list[AgentEvent] = []
    app = backend.compile(A, ExecutionConfig(streaming_mode="sse"))
    with pytest.raises(LookupError):
        await collect(backend.stream(app, "hello"), seen)
    assert [event.content for event in seen] == ["he"]


async def collect(events: Any, seen: list[AgentEvent]) -> None:
    async for event in events:
        seen.append(event)  # noqa: PERF401  # what came before an error counts


async def test_the_number_of_model_calls_is_bounded() -> None:
    loop = LoopNode("l", A, 10)
    backend = mock_backend({"a": "again"})
    with pytest.raises(RunError, match="more than 3 model calls"):
        await run(backend, loop, config=ExecutionConfig(max_llm_calls=3))
    assert len(backend.calls) == 3
    for limit in (10, 0, -1):
        await run(backend, loop, config=ExecutionConfig(max_llm_calls=limit))


async def test_the_time_of_a_run_is_bounded() -> None:
    backend = mock_backend({"a": reply("late", latency=60)})
    with pytest.raises(StepTimeoutError) as caught:
        await run(backend, seq(A), config=ExecutionConfig(timeout_seconds=0.01))
    assert caught.value.node == "root"


async def test_custom_metadata_is_on_every_event() -> None:
    config = ExecutionConfig(custom_metadata={"tenant": "t"})
    result = await run(
        mock_backend({"a": "x"}), seq(A, FunctionNode("f", Ref(slowly))), config=config
    )
    assert [event.custom_metadata for event in result] == [{"tenant": "t"}] * 2


async def test_sessions_are_remembered() -> None:
    count = FunctionNode("n", Ref(counting))
    backend = mock_backend()
    app = backend.compile(count)
    first = await backend.run(app, "q", state={"n": 5, "temp:t": 1})
    assert first.state == {"n": 6}
    again = await backend.run(app, "q", session_id=first.session_id, state={"n": 100})
    assert again.state == {"n": 7}
    assert again.session_id == first.session_id
    other = await backend.run(app, "q", user_id="else", session_id=first.session_id)
    assert (other.state, other.user_id, other.app_name) == ({"n": 1}, "else", "adk_fluent_app")


def counting(state: Any) -> dict[str, int]:
    return {"n": (state.get("n") or 0) + 1}


async def test_keys_of_the_user_and_the_app_are_shared() -> None:
    backend = mock_backend({"a": {"user:u": 1, "app:p": 2, "own": 3, "temp:t": 4}, "b": "x"})
    await run(backend, A, user_id="one")
    assert (await run(backend, B, user_id="one")).state == {"user:u": 1, "app:p": 2}
    assert (await run(backend, B, user_id="two")).state == {"app:p": 2}
    other_app = ExecutionConfig(app_name="other")
    assert (await run(backend, B, user_id="one", config=other_app)).state == {}


async def test_temporary_keys_live_as_long_as_the_run() -> None:
    backend = mock_backend({"a": {"temp:t": 4}, "b": "x"})
    see = AgentNode("b", instruction="{temp:t?}")
    await run(backend, seq(A, see), session_id="s")
    await run(backend, see, session_id="s")
    assert [asked.system for asked in backend.calls] == ["", "4", ""]


async def test_a_failed_run_leaves_what_it_wrote() -> None:
    backend = mock_backend({"a": {"k": 1, "temp:t": 1}, "b": LookupError("x"), "c": "y"})
    with pytest.raises(LookupError):
        await run(backend, seq(A, B), session_id="s")
    assert (await run(backend, C, session_id="s")).state == {"k": 1}


async def test_runs_at_the_same_time() -> None:
    backend = mock_backend({"a": lambda prompt: f"to {prompt}"})
    app = backend.compile(writer("a", "k"))
    results = await asyncio.gather(*[backend.run(app, str(i)) for i in range(20)])
    assert [result.state["k"] for result in results] == [f"to {i}" for i in range(20)]


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("hi", "hi"),
        (["a", SimpleNamespace(text="b")], "a\nb"),
        (SimpleNamespace(parts=[SimpleNamespace(text="p"), SimpleNamespace(text="q")]), "p\nq"),
        (SimpleNamespace(text="part"), "part"),
        (SimpleNamespace(text=None, inline_data=b""), ""),
    ],
)
async def test_a_message_in_any_form(prompt: Any, text: str) -> None:
    backend = mock_backend({"a": "ok"})
    await run(backend, A, prompt)
    assert backend.calls[0].prompt == text


@pytest.mark.parametrize("prompt", [3, None, {"text": "x"}, [object()]])
async def test_what_is_no_message_is_refused(prompt: Any) -> None:
    with pytest.raises(UsageError, match="no message"):
        await run(mock_backend({"a": "ok"}), A, prompt)


async def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="'sesion_id'") as caught:
        await run(mock_backend({"a": "x"}), A, sesion_id="s")
    assert caught.value.nearest == "session_id"


# --- compiling ---------------------------------------------------------------------------------


async def test_an_application_brings_its_configuration() -> None:
    app = AppNode("app", A, execution=ExecutionConfig(app_name="mine"))
    assert (await run(mock_backend({"a": "x"}), app)).app_name == "mine"
    own = ExecutionConfig(app_name="own")
    assert (await run(mock_backend({"a": "x"}), app, config=own)).app_name == "own"


class Notes:
    async def before_agent(self, ctx: Any, agent_name: str) -> None:
        """Notice that an agent begins."""


@pytest.mark.parametrize(
    "config",
    [
        ExecutionConfig(streaming_mode="bidi"),
        ExecutionConfig(target="workflow"),
        ExecutionConfig(telemetry=TelemetryConfig()),
        ExecutionConfig(middlewares=(Notes(),)),
    ],
)
def test_what_would_be_ignored_is_refused(config: ExecutionConfig) -> None:
    with pytest.raises(UnsupportedConfigError):
        mock_backend().compile(A, config)


def test_streaming_between_steps_is_refused() -> None:
    chunked = Agent("a").mock("x").stream_to("chunked", chunk_size=3) >> Agent("b").mock("y")
    with pytest.raises(UnsupportedNodeError, match="does not stream between steps"):
        mock_backend().compile(chunked.to_ir())
    merging = SequenceNode("pipe", (A,), (EdgeSemantics(merge="interleave"),))
    with pytest.raises(UnsupportedNodeError, match="edges do not merge"):
        mock_backend().compile(merging)


def test_an_application_with_middlewares_is_refused() -> None:
    with pytest.raises(UnsupportedConfigError):
        mock_backend().compile(AppNode("app", A, middlewares=(Ref(object()),)))


def test_a_node_without_a_meaning_here_is_refused_by_name() -> None:
    app = AppNode("inner", A)
    with pytest.raises(UnsupportedNodeError, match="AppNode") as caught:
        mock_backend().compile(seq(A, app))
    assert caught.value.node == "inner"


def test_a_node_of_an_absent_layer_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    @node
    class Elsewhere(Node):
        layer = "debug"

    monkeypatch.setattr("adk_fluent._registry.found", dict)
    with pytest.raises(MissingLayerError, match="pip install adk-fluent-debug"):
        mock_backend().compile(Elsewhere("m"))


def test_a_part_with_middlewares_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedNodeError, match="no middlewares") as caught:
        mock_backend().compile(seq(A, MiddlewareNode("m", A, (Ref(object()),))))
    assert caught.value.node == "m"


def test_a_deep_pipeline_compiles() -> None:
    node: Node = A
    for _ in range(20_000):
        node = SequenceNode("s", (node,))
    mock_backend().compile(node)


def test_it_needs_no_adk() -> None:
    code = (
        "import sys; from adk_fluent.testing import mock_backend; mock_backend({'a': 'x'}); "
        "needless = ('google.adk', 'google.genai', 'pydantic'); "
        "sys.exit(any(name.startswith(needless) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
