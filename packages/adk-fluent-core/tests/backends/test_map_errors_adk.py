"""Items of a map that fail, and what items leave behind, on ADK's runners and session services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from adk_fluent import Agent, Pipeline, gate, map_over
from adk_fluent.backends.trace import Trace
from adk_fluent.builders import RunOptions, State
from adk_fluent.errors import UsageError
from adk_fluent.ir import ExecutionConfig, MapOverNode, from_json, to_json
from adk_fluent.testing import Rule, ScriptedModel, mock_backend, reply, rule

if TYPE_CHECKING:
    from google.adk.sessions.base_session_service import BaseSessionService

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")]


class Invoice(BaseModel):
    total: int


def about(word: str, reply: Any) -> Rule:
    return rule(lambda asked: word in asked.system, reply=reply)


def clerk() -> Agent:
    script = ScriptedModel(
        rules=[
            about("good", '{"total": 7}'),
            about("half", '{"total": "many"}'),
            about("down", reply(raises=ConnectionError("down"))),
            about("blocked", reply(error_code="SAFETY", error_message="no")),
        ]
    )
    agent = Agent("clerk", script).instruct("Read {_item}.").history("none")
    return (agent @ Invoice).writes("invoice")


ITEMS = ["good", "half", "down", "blocked", "good"]
CODES = [None, "OutputInvalidError", "ConnectionError", "AgentReportedError", None]


@pytest.mark.parametrize("streaming", ["none", "sse"])
async def test_typed_answers_that_fail_are_collected(
    service: BaseSessionService, streaming: Any
) -> None:
    each = map_over("items", clerk(), result_key="invoice", on_error="collect", concurrency=2)
    config = ExecutionConfig(streaming_mode=streaming)
    start = {"items": ITEMS, "invoice": {"before": {"kept": 1}}}
    result = await each.run("Go.", session_service=service, state=start, config=config)
    totals = [None if each is None else dict(each) for each in result.state["results"]]
    assert totals == [{"total": 7}, None, None, None, {"total": 7}]
    errors = [each and each["code"] for each in result.state["results_errors"]]
    assert errors == CODES
    assert result.status == "completed"
    assert result.errors == []
    assert sorted(each.error.code for each in result.discarded) == sorted(filter(None, CODES))
    stored = await service.get_session(
        app_name=result.app_name, user_id=result.user_id, session_id=result.session_id
    )
    assert stored is not None
    assert stored.state["invoice"] == {"before": {"kept": 1}}  # also where dicts are merged
    assert stored.state["results_errors"] == result.state["results_errors"]


async def test_what_failed_items_said_is_not_told_to_later_agents() -> None:
    body = Agent("says").mock(lambda prompt: f"about {prompt}") >> only_even
    after = ScriptedModel("done")
    each = map_over("items", body, on_error="skip", concurrency=1)
    result = await (each >> Agent("after", after)).run("Go.", state={"items": [1, 2]})
    told = "".join(turn.text for turn in after.calls[0].turns)
    assert told.count("about") == 1
    assert result.state["results"] == [result.state["results"][0]]


def only_even(state: State) -> None:
    if state["_item"] % 2:
        raise ValueError("odd")


async def test_a_gate_in_an_item_beside_one_that_fails(service: BaseSessionService) -> None:
    calls: list[Any] = []

    def work(state: State) -> dict[str, Any]:
        calls.append(state["_item"])
        if state["_item"] == "bad":
            raise ValueError("no")
        return {"r": state["_item"]}

    each = map_over("items", Pipeline(work, gate(name="ok")), result_key="r", on_error="collect")
    pipeline = Pipeline("p", each, lambda s: {"n": len(s["results"])})
    where = RunOptions(session_service=service, session_id="s", state={"items": ["a", "bad"]})
    asked = await pipeline.run("Go.", **where)
    assert asked.status == "waiting"
    assert [each.error.code for each in asked.discarded] == ["ValueError"]
    done = await pipeline.resume(asked.pending[0].answer(True), **where)
    assert done.state["results"] == ["a", None]
    assert done.state["results_errors"] == [None, {"code": "ValueError", "message": "no"}]
    assert (done.state["n"], done.discarded, calls) == (2, [], ["a", "bad"])
    assert "r" not in done.state


async def test_a_run_that_failed_behind_it_does_no_item_again(service: BaseSessionService) -> None:
    calls: list[Any] = []

    def work(state: State) -> dict[str, Any]:
        calls.append(state["_item"])
        return {"r": 1 / state["_item"]}

    def fails_once(state: State) -> dict[str, int]:
        if calls.count("behind") == 0:
            calls.append("behind")
            raise OSError("once")
        return {"n": len(state["results"])}

    each = map_over("items", work, result_key="r", on_error="skip", concurrency=1)
    where = RunOptions(
        session_service=service,
        session_id="s",
        state={"items": [1, 0, 2]},
        config=ExecutionConfig(resumable=True),
    )
    with pytest.raises(OSError, match="once"):
        await (each >> fails_once).run("Go.", **where)
    done = await (each >> fails_once).resume(**where)
    assert (done.state["results"], done.state["n"]) == ([1.0, 0.5], 2)
    assert calls == [1, 0, 2, "behind"]


async def test_the_mock_backend_and_a_trace_agree() -> None:
    each = map_over("items", Agent("says") >> only_even, on_error="skip", concurrency=1)
    backend, trace = mock_backend({"says": "said"}), Trace()
    mocked = await each.run("Go.", backend=backend, state={"items": [1, 2]})
    real = each.clone("real").model(ScriptedModel(default="said"))
    on_adk = await real.run("Go.", state={"items": [1, 2]}, listeners=[trace])
    assert mocked.state == on_adk.state == {"items": [1, 2], "results": ["said"]}
    assert len(mocked.discarded) == len(on_adk.discarded) == 1
    assert [row.discarded for row in trace.rows if row.node == "says"] == [True, False]


def test_how_it_is_told_and_kept() -> None:
    each = map_over("items", Agent("a"), output_key="out", on_error="collect")
    node = each.to_ir()
    loaded = from_json(to_json(node))
    assert loaded == node
    plain = map_over("items", Agent("a"), output_key="out").to_ir()
    assert isinstance(plain, MapOverNode)
    assert node != plain
    assert "on error: collect" in each.explain()
    assert "errors in out_errors" in each.to_mermaid()
    reader = each >> Agent("b").instruct("Say what went wrong: {out_errors}")
    assert reader.contract(inputs={"items": list}).check().ok
    with pytest.raises(UsageError, match="on_error= takes 'raise', 'collect', 'skip'"):
        map_over("items", Agent("a"), on_error="ignore")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
