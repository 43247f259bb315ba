"""Pipelines that are served: called by the SDK's client and by our own remote agents."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest
from a2a.client.errors import A2AClientError
from a2a.types import Part
from a2a.utils.errors import A2AError, InvalidParamsError, TaskNotCancelableError
from google.adk.agents.llm_agent import LlmAgent
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from serve_kit import BINDINGS, calling, name_of, post, rpc, said, serving

from adk_fluent import Agent, FanOut, RemoteAgent, gate
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import ContractError, SessionError, UsageError
from adk_fluent.ir import StateFieldRef
from adk_fluent.serve import A2AServer, BearerAuth, Limits
from adk_fluent.serve._handler import Handler
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from adk_fluent.builders import State

pytestmark = pytest.mark.adk


def agent(answer: str = "done", name: str = "desk") -> Agent:
    return Agent(name, ScriptedModel(default=answer))


def asks() -> Any:
    """Pays after a person has agreed."""
    return gate(message="Pay it?", name="ok") >> agent("paid")


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("streaming", [True, False])
async def test_the_sdk_s_client_is_answered(binding: str, streaming: bool) -> None:
    async with (
        serving(agent("Hello.")) as server,
        calling(server, binding, streaming=streaming) as caller,
    ):
        told = await caller.send("Hi.")
        assert (told.state, told.text) == ("completed", "Hello.")
        again = await caller.send("Hi.", context=told.task.context_id)
        assert again.task.context_id == told.task.context_id
        assert {each.id for each in await caller.list()} == {told.task.id, again.task.id}


async def test_a_context_is_one_conversation() -> None:
    model = ScriptedModel("first", "second")
    async with serving(Agent("desk", model)) as server, calling(server) as caller:
        told = await caller.send("One.")
        await caller.send("Two.", context=told.task.context_id)
        contents = [each.text for each in model.calls[-1].turns]
    assert contents == ["One.", "first", "Two."]


async def test_our_own_remote_agent_sends_inputs_and_gets_outputs() -> None:
    pay = agent("R1").instruct("Pay {order}.").outputs("receipt")
    async with serving(pay, inputs=["order"], outputs=["receipt"]) as server:
        bank = RemoteAgent("bank", endpoint=server.url, inputs="order", outputs="receipt")
        result = await bank.run("Pay.", state={"order": "A7"})
    assert result.state["receipt"] == "R1"


async def test_data_writes_declared_state_alone() -> None:
    seen: list[dict[str, Any]] = []

    def look(state: State) -> Mapping[str, Any]:
        seen.append({key: state[key] for key in ("order", "admin") if key in state})
        return {}

    model = ScriptedModel(default="ok")
    data = Part(data=ParseDict({"order": "A7", "admin": True}, Value()))
    pipeline = look >> Agent("desk", model)
    async with serving(pipeline, inputs=["order"]) as server, calling(server) as caller:
        first = await caller.send("Go.", data)
        data = Part(data=ParseDict({"order": "B8"}, Value()))
        await caller.send("Go.", data, context=first.task.context_id)
    assert seen == [{"order": "A7"}, {"order": "B8"}]
    shown = [part.text for part in model.calls[0].raw.contents[0].parts]
    assert shown == ["Go.", '{"admin": true}']


async def test_typed_inputs_are_validated_before_anything_runs() -> None:
    seen: list[Any] = []

    def look(state: State) -> Mapping[str, Any]:
        seen.append(state["user:limit"])
        return {}

    pipeline, limit = look >> agent(), StateFieldRef("user:limit", int)
    async with serving(pipeline, inputs=limit) as server, calling(server) as caller:
        assert (await caller.send(Part(data=ParseDict({"limit": "12"}, Value())))).text == "done"
        with pytest.raises(InvalidParamsError, match="'limit' does not fit"):
            await caller.send(Part(data=ParseDict({"limit": "much"}, Value())))
    assert seen == [12]


async def test_text_is_streamed_in_pieces_and_kept_whole() -> None:
    model = ScriptedModel(reply(chunks=["Once ", "upon ", "a ", "time."]))
    config = ExecutionConfig(streaming_mode="sse")
    pipeline = agent("SECRET PLAN", "plan") >> Agent("tell", model)
    async with serving(pipeline, config=config) as server, calling(server) as caller:
        told = await caller.send("Tell.")
    assert told.text == "".join(told.pieces) == "Once upon a time."
    assert "PLAN" not in str(told)


@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_gate_is_answered_over_the_wire(binding: str) -> None:
    async with serving(asks()) as server, calling(server, binding) as caller:
        told = await caller.send("Pay.")
        assert (told.state, told.said) == ("input_required", "Pay it?")
        (data,) = [part.data for part in told.task.status.message.parts if part.HasField("data")]
        (question,) = MessageToDict(data)["questions"]
        assert (question["kind"], question["name"]) == ("gate", "ok")
        wrong = await caller.send("perhaps", task=told.task.id)
        assert wrong.state == "input_required"
        assert wrong.said.startswith("'perhaps' is no answer to gate 'ok'")
        done = await caller.send("yes", task=told.task.id)
        assert (done.state, done.text) == ("completed", "paid")


async def test_of_two_answers_at_once_one_counts() -> None:
    paid: list[bool] = []

    async def pay(state: State) -> Mapping[str, Any]:
        await asyncio.sleep(0)
        paid.append(True)
        return {}

    pipeline = gate(message="Pay it?", name="ok") >> pay >> agent()
    async with serving(pipeline) as server, calling(server) as caller:
        told = await caller.send("Pay.")
        await asyncio.gather(*(caller.send("yes", task=told.task.id) for _ in range(2)))
        assert name_of((await caller.get(told.task.id)).status.state) == "completed"
    assert paid == [True]


async def test_an_answer_is_none_to_a_question_that_was_asked_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, admitted, admit = Held(), asyncio.Event(), Handler.admit

    async def admits(self: Handler, params: Any, context: Any) -> None:
        await admit(self, params, context)
        if held.entered.is_set():
            admitted.set()

    monkeypatch.setattr(Handler, "admit", admits)
    pipeline = gate(message="One?", name="one") >> held >> gate(message="Two?", name="two")
    async with serving(pipeline >> agent()) as server, calling(server) as caller:
        told = await caller.send("Go.")
        first = asyncio.ensure_future(caller.send("yes", task=told.task.id))
        await held.entered.wait()
        body = rpc("SendMessage", message=said("yes", taskId=told.task.id))
        second = asyncio.ensure_future(post(server.url, body))
        await admitted.wait()
        held.go.set()
        await asyncio.gather(first, second)
        task = await caller.get(told.task.id)
        assert name_of(task.status.state) == "input_required"
        assert (await caller.send("yes", task=task.id)).state == "completed"


@pytest.mark.parametrize("split", [False, True])
async def test_what_was_said_before_a_gate_is_in_the_answer(split: bool) -> None:
    ask = gate(message="Say it?", name="ok")
    pipeline: Any = agent("one", "a") >> ask
    if split:
        pipeline = FanOut(agent("one", "a"), ask >> agent("two", "b"))
    async with serving(pipeline) as server, calling(server) as caller:
        context = ""
        for _ in range(2):  # the answer of a task is its own
            told = await caller.send("Go.", context=context)
            context = told.task.context_id
            done = await caller.send("yes", task=told.task.id)
            assert (done.state, done.text) == ("completed", "one\n\ntwo" if split else "one")


async def test_a_refused_gate_is_a_rejected_task() -> None:
    async with serving(asks()) as server, calling(server) as caller:
        told = await caller.send("Pay.")
        data = Part(data=ParseDict({"approved": False, "note": "Too much."}, Value()))
        refused = await caller.send(data, task=told.task.id)
        assert refused.state == "rejected"
        assert refused.text == ""


async def test_several_questions_are_answered_by_name() -> None:
    both = gate(message="Legal?", name="legal") | gate(message="Tech?", name="tech")
    async with serving(both >> agent("out")) as server, calling(server) as caller:
        told = await caller.send("Go.")
        assert told.said == "Legal?\nTech?"
        data = Part(data=ParseDict({"legal": True, "tech": "yes"}, Value()))
        done = await caller.send(data, task=told.task.id)
        assert (done.state, done.text) == ("completed", "out")
        told = await caller.send("Go.")
        left = await caller.send("yes", task=told.task.id)
        assert (left.state, left.said) == ("input_required", "Tech?")


def pay_back(order: str) -> str:
    """Pay an order back."""
    return f"paid {order}"


async def test_a_tool_s_confirmation_is_answered_over_the_wire() -> None:
    model = ScriptedModel(Call("pay_back", {"order": "A7"}), "It is paid.")
    clerk = Agent("clerk", model).tool(pay_back, require_confirmation=True)
    async with serving(clerk) as server, calling(server) as caller:
        told = await caller.send("Pay.")
        assert told.state == "input_required"
        done = await caller.send("yes", task=told.task.id)
        assert (done.state, done.text) == ("completed", "It is paid.")


async def test_a_question_that_clients_may_not_answer_fails_the_task() -> None:
    async with serving(asks(), answers=["input"]) as server, calling(server) as caller:
        told = await caller.send("Pay.")
        assert told.state == "failed"
        assert told.said == "The agent waits for something that cannot be answered here."


async def test_a_context_that_waits_takes_no_other_task_until_it_is_cancelled() -> None:
    async with serving(asks()) as server, calling(server) as caller:
        told = await caller.send("Pay.")
        context = told.task.context_id
        other = await caller.send("Pay more.", context=context)
        assert (other.state, other.said) == (
            "rejected",
            "Another task of this context waits for an answer.",
        )
        await caller.cancel(told.task.id)
        with pytest.raises(A2AError):
            await caller.send("yes", task=told.task.id)
        again = await caller.send("Pay.", context=context)
        assert again.state == "input_required"
        assert (await caller.send("yes", task=again.task.id)).text == "paid"


async def test_a_remote_agent_of_ours_answers_gates_and_hears_refusals() -> None:
    async with serving(asks()) as server:
        far = RemoteAgent("far", endpoint=server.url)
        asked = await far.run("Pay.", session_id="s")
        done = await far.resume(asked.pending[0].answer(True), session_id="s")
        assert done.text == "paid"
        after = ScriptedModel("after")
        backup = Agent("backup", after)
        for whole in (far, RemoteAgent("far", endpoint=server.url, outputs="x") // backup):
            desk = whole >> Agent("after", after)
            asked = await desk.run("Pay.", session_id="t")
            no = asked.pending[0].answer({"approved": False, "note": "Too much."})
            refused = await desk.resume(no, session_id="t")
            assert (refused.status, refused.step, refused.text) == ("rejected", "far", "")
            assert refused.reason == "ok was refused: Too much. Nothing after it was run."
        assert not after.calls  # nothing is run in its place, as where the gate is here


class Held:
    """A step that waits until it is let go on."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.go = asyncio.Event()
        self.ended = asyncio.Event()

    async def __call__(self, state: State) -> Mapping[str, Any]:
        self.entered.set()
        try:
            await self.go.wait()
        finally:
            self.ended.set()
        return {}


@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_task_is_cancelled_where_it_runs(binding: str) -> None:
    held = Held()
    async with serving(held >> agent()) as server, calling(server, binding) as caller:
        sending = asyncio.ensure_future(caller.send("Go."))
        await held.entered.wait()
        (task,) = await caller.list()
        assert (await caller.cancel(task.id)).id == task.id
        await held.ended.wait()
        assert (await sending).state == "canceled"
        held.go.set()
        assert (await caller.send("Go.", context=task.context_id)).text == "done"
        with pytest.raises((TaskNotCancelableError, A2AClientError)):
            await caller.cancel(task.id)


@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_stream_that_broke_off_is_taken_up_again(binding: str) -> None:
    held = Held()
    async with serving(held >> agent("late")) as server, calling(server, binding) as caller:
        events = cast("AsyncGenerator[Any]", caller.events("Go."))
        task = (await anext(events)).task
        await held.entered.wait()
        await events.aclose()
        again = aiter(caller.subscribe(task.id))
        assert (await anext(again)).task.id == task.id
        held.go.set()
        rest = [each async for each in again]
        texts = [p.text for each in rest for p in each.artifact_update.artifact.parts]
        assert texts == ["late"]


async def test_stopping_lets_tasks_end_and_fails_those_that_do_not() -> None:
    held, other = Held(), Held()
    for step, state in ((held, "completed"), (other, "failed")):
        async with serving(step >> agent()) as server, calling(server) as caller:
            sending = asyncio.ensure_future(anext_states(caller))
            await step.entered.wait()
            stopping = asyncio.ensure_future(server.stop(grace=30 if step is held else 0))
            if step is held:
                step.go.set()
            await stopping
            assert (await sending)[-1] == state
    with pytest.raises(httpx.ConnectError):
        await post(server.url, rpc("GetTask", id="t"))


async def anext_states(caller: Any) -> list[str]:
    found = [each async for each in caller.events("Go.")]
    updates = [each.status_update for each in found if each.HasField("status_update")]
    return [name_of(each.status.state) for each in updates]


async def test_a_failure_tells_nothing_of_itself() -> None:
    def burst(state: State) -> Mapping[str, Any]:
        raise ValueError("PASSWORD hunter2")

    async with serving(agent() >> burst) as server, calling(server) as caller:
        told = await caller.send("Go.")
        assert (told.state, told.said) == ("failed", "The agent failed.")
        assert "hunter2" not in str(told)


@pytest.mark.parametrize("kind", [UsageError, SessionError])
async def test_a_failure_after_an_answer_is_not_taken_for_one_of_the_answer(kind: Any) -> None:
    def burst(state: State) -> Mapping[str, Any]:
        raise kind("PASSWORD hunter2")

    async with serving(asks() >> burst) as server, calling(server) as caller:
        told = await caller.send("Pay.")
        done = await caller.send("yes", task=told.task.id)
        assert (done.state, done.said) == ("failed", "The agent failed.")
        assert "hunter2" not in str(done)


async def test_no_state_and_no_session_id_are_on_the_wire() -> None:
    def keep(state: State) -> Mapping[str, Any]:
        return {"canary": "CANARY"}

    bodies: list[str] = []
    pipeline = keep >> agent("fine")
    async with serving(pipeline, auth=BearerAuth({"t0k": "ann@example"})) as server:
        headers = {"authorization": "Bearer t0k"}
        for method in ("SendMessage", "SendStreamingMessage"):
            response = await post(server.url, rpc(method, message=said("Go.")), **headers)
            bodies.append(response.text)
        response = await post(server.url, rpc("ListTasks", includeArtifacts=True), **headers)
        bodies.append(response.text)
    for body in bodies:
        assert "fine" in body
        for secret in ("CANARY", "ann@example", "t0k", "adk_", "session"):
            assert secret not in body, secret


async def test_health_and_readiness() -> None:
    async with serving(agent()) as server, httpx.AsyncClient() as http:
        assert (await http.get(f"{server.url}/healthz")).json() == {"status": "ok"}
        assert (await http.get(f"{server.url}/readyz")).json() == {"status": "ready"}


async def test_a_store_that_fails_is_not_ready_and_the_log_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def check(_: object) -> None:
        raise ConnectionError("the disk is gone")

    monkeypatch.setattr("adk_fluent.serve._stores_adk.Stores.check", check)
    async with serving(agent()) as server, httpx.AsyncClient() as http:
        response = await http.get(f"{server.url}/readyz")
    assert (response.status_code, response.json()) == (503, {"status": "no store"})
    assert "the disk is gone" in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        {"card": {"name": "x"}},
        {"auth": "token"},
        {"limits": 3},
        {"push": True},
        {"task_store": "tasks.db"},
        {"task_store": "sqlite://"},
        {"task_store": "oracle://x/y"},
        {"inputs": [3]},
        {"inputs": 3},
        {"inputs": ["app:prices"]},
        {"outputs": ["a", "user:a"]},
    ],
)
def test_arguments_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        A2AServer(agent(), **options)


async def test_starting_twice_is_refused_and_app_needs_a_card() -> None:
    server = A2AServer(agent())
    with pytest.raises(UsageError, match="needs a card"):
        _ = server.app
    async with serving(agent()) as server:
        with pytest.raises(UsageError, match="started already"):
            await server.start(port=0)
    for port in ("80", 70000, -1):
        with pytest.raises(UsageError, match="port= is a whole number"):
            await A2AServer(agent()).start(port=cast("Any", port))


async def test_requests_that_meet_at_the_end_of_a_task_are_told_that_it_has_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Answers, cancels and reads of one task at the same time; none is our fault."""
    desk = gate(lambda _state: True, message="Pay?", name="ok") >> Agent("desk").mock("Paid.")
    limits = Limits(requests_per_second=1e6, burst=10**6)
    async with serving(desk, limits=limits) as server, httpx.AsyncClient(timeout=120) as http:

        async def told(body: Any) -> Any:
            return (await http.post(server.url, json=body, headers={"a2a-version": "1.0"})).json()

        for at in range(12):
            made = await told(rpc("SendMessage", message=said("Hi.")))
            id = made["result"]["task"]["id"]
            answers = [
                rpc("SendMessage", message={**said("yes", taskId=id), "messageId": f"{at}.{n}"})
                for n in range(3)
            ]
            asked = [*answers, *[rpc("CancelTask", id=id)] * 2, *[rpc("GetTask", id=id)] * 2]
            came = await asyncio.gather(*map(told, asked))
            errors = [each["error"] for each in came if "error" in each]
            assert all(each["code"] != -32603 for each in errors), errors
    assert "a request to a served pipeline failed" not in caplog.text


# --- state ---------------------------------------------------------------------------------------


def test_state_that_nobody_writes_is_found_before_anything_is_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pays = agent().instruct("Pay {order} back.")
    with pytest.raises(ContractError, match="needs `order`") as caught:
        A2AServer(pays)
    assert [each.code for each in caught.value.report] == ["FLW001"]
    A2AServer(pays, inputs=["order"])
    A2AServer(agent("A7", "find").writes("order") >> pays)
    A2AServer(agent().instruct("Pay {order?} back."))
    assert not caplog.messages
    A2AServer(pays, session_service=InMemorySessionService())  # somebody else may have written it
    assert "a session that is new has no value there" in caplog.text


def test_what_a_contract_says_that_callers_give_is_what_messages_may_write() -> None:
    pays = agent().instruct("Pay {order} back to {user:name}.")
    pays.contract(inputs=["order", "user:name", StateFieldRef("note", default=None)])
    assert pays.check().ok
    with pytest.raises(ContractError) as caught:
        A2AServer(pays)
    (found,) = caught.value.report
    assert found.code == "FLW001"
    assert found.message == (
        "`desk` needs its input `order`, which its caller has to give, and no message may"
    )
    assert found.help == 'let messages write it: A2AServer(..., inputs=["order"])'
    A2AServer(pays, inputs=["order"])


def test_what_is_told_has_to_be_written_by_something() -> None:
    pays = agent("R1").writes("receipt")
    with pytest.raises(ContractError) as caught:
        A2AServer(pays, outputs=["reciept"])
    (found,) = caught.value.report
    assert (found.code, found.help) == ("FLW001", "did you mean `receipt`?")
    A2AServer(pays, outputs=["receipt", StateFieldRef("note", default=None)])
    A2AServer(pays, inputs=["order"], outputs=["order"])


@pytest.mark.parametrize("given", [LlmAgent(name="native"), "desk"])
def test_what_is_no_pipeline_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=r"A2AServer\(\.\.\.\) takes a pipeline"):
        A2AServer(given)
