"""The development log: what is in it, what is not, and whose it is."""

from __future__ import annotations

import asyncio
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types
from kit import SSE, TWO_TOOLS, Time, clerk, search, until

from adk_fluent import Agent, gate
from adk_fluent.backends.adk import ADKBackend
from adk_fluent.errors import UsageError
from adk_fluent.ir import MiddlewareRef
from adk_fluent.middleware import StructuredLogMiddleware, structured_log
from adk_fluent.protocol import Answer, Middleware, Usage
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]


def events(log: StructuredLogMiddleware) -> list[str]:
    return [entry["event"] for entry in log.log]


def of(log: StructuredLogMiddleware, event: str) -> list[dict[str, Any]]:
    return [entry for entry in log.log if entry["event"] == event]


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy() -> None:
    log = structured_log()
    model = ScriptedModel(
        Call("search", {"word": "x"}), reply("done", usage=Usage(prompt=9, output=2))
    )
    result = await Agent("a", model).tool(search).middleware(log).run("Where is it?")
    assert result.text == "done"
    step = ["before_model", "after_model"]
    assert events(log) == [
        *("on_user_message", "before_run", "before_agent", *step),
        *("before_tool", "after_tool", *step, "after_agent", "after_run"),
    ]
    assert log.log[0]["message"] == "Where is it?"
    assert of(log, "before_model")[1]["model"] == "scripted"
    assert of(log, "after_model")[0]["response"] == 'search({"word": "x"})'
    answer = of(log, "after_model")[1]
    assert answer["response"] == "done"
    assert answer["usage"] == {"prompt": 9, "output": 2}
    assert answer["finish_reason"] == "STOP"
    (before,), (after,) = of(log, "before_tool"), of(log, "after_tool")
    assert (before["tool_name"], before["args"]) == ("search", '{"word": "x"}')
    assert "found x" in after["result"]
    assert before["call_id"] == after["call_id"]
    assert {entry["agent_name"] for entry in log.log if "agent" in entry["event"]} == {"a"}
    assert json.loads(json.dumps(log.log)) == log.log


async def test_streamed() -> None:
    """An answer has one entry, however many fragments it comes in."""
    log = structured_log()
    with GeminiEmulator(reply(chunks=["a", "b", "c"])) as gemini:
        await clerk(gemini, log).run("hi", config=SSE)
    (answer,) = of(log, "after_model")
    assert answer["response"] == "abc"
    assert answer["seconds"] >= 0


async def test_parallel_tools() -> None:
    """Each has a duration of its own."""
    time, log = Time(), structured_log()
    log.clock = time

    async def search(word: str) -> str:
        """Look something up."""
        await time.sleep(3)
        return "found"

    async def weather(city: str) -> str:
        """The weather."""
        await time.sleep(1)
        return "sun"

    pipeline = Agent("a", ScriptedModel(*TWO_TOOLS)).tool(search).tool(weather)
    await pipeline.middleware(log).run("hi")
    seconds = {entry["tool_name"]: entry["seconds"] for entry in of(log, "after_tool")}
    assert seconds == {"search": 3.0, "weather": 1.0}


async def test_cancelled() -> None:
    log, model = structured_log(), ScriptedModel(reply("late", latency=60))
    running = asyncio.ensure_future(Agent("a", model).middleware(log).run("hi"))
    await until(lambda: bool(model.calls))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert events(log)[-1] == "before_model"


async def test_error_after_the_first_partial() -> None:
    log = structured_log()
    with GeminiEmulator(reply(chunks=["Half an ", "answer"], fault="cut")) as gemini:
        with pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
            await clerk(gemini, log).run("hi", config=SSE)
        assert len(gemini.requests) == 1
    assert events(log)[-3:] == ["on_model_error", "on_agent_error", "on_run_error"]
    (error,) = of(log, "on_model_error")
    assert error["error_type"]
    assert error["seconds"] >= 0


async def test_concurrent() -> None:
    """One log for all runs, whose entries can be told apart."""
    log = structured_log()

    async def one(n: int) -> Any:
        model = ScriptedModel(reply(f"answer {n}", latency=0.01 * (n % 3)))
        return await Agent("a", model).middleware(log).run(f"question {n}")

    results = await asyncio.gather(*(one(n) for n in range(8)))
    for n, result in enumerate(results):
        mine = [each for each in log.log if each.get("session_id") == result.session_id]
        assert [each["event"] for each in mine] == [
            *("on_user_message", "before_run", "before_agent", "before_model"),
            *("after_model", "after_agent", "after_run"),
        ]
        assert {each["run_id"] for each in mine} == {result[0].metadata["run"]}
        assert {each["invocation_id"] for each in mine} == {result[0].invocation_id}
        assert mine[0]["message"] == f"question {n}"
        assert mine[4]["response"] == f"answer {n}"


# --- what the spec asks for ----------------------------------------------------------------------


def test_structured_log_is_middleware() -> None:
    assert isinstance(StructuredLogMiddleware(), Middleware)
    assert StructuredLogMiddleware.observer


def test_structured_log_captures_events() -> None:
    mw = StructuredLogMiddleware()

    async def run() -> None:
        await mw.before_model(ctx=None, request="test_request")
        await mw.after_model(ctx=None, response="test_response")
        await mw.before_agent(ctx=None, agent_name="agent1")
        await mw.after_agent(ctx=None, agent_name="agent1")

    asyncio.run(run())
    assert len(mw.log) == 4
    assert mw.log[0]["event"] == "before_model"
    assert mw.log[0]["request"] == "test_request"
    assert mw.log[1]["event"] == "after_model"
    assert mw.log[1]["response"] == "test_response"
    assert mw.log[2]["event"] == "before_agent"
    assert mw.log[2]["agent_name"] == "agent1"
    assert all(entry["timestamp"] > 1e9 for entry in mw.log)


def test_structured_log_never_short_circuits() -> None:
    """Log middleware should never return non-None (observation only)."""
    mw: Any = StructuredLogMiddleware()

    async def run() -> list[Any]:
        r1 = await mw.before_model(ctx=None, request="req")
        r2 = await mw.after_model(ctx=None, response="resp")
        r3 = await mw.before_tool(ctx=None, tool_name="t", args={})
        r4 = await mw.after_tool(ctx=None, tool_name="t", args={}, result={})
        r5 = await mw.on_model_error(ctx=None, request="req", error=ValueError("x"))
        r6 = await mw.on_tool_error(ctx=None, tool_name="t", args={}, error=ValueError("x"))
        return [r1, r2, r3, r4, r5, r6]

    assert asyncio.run(run()) == [None] * 6
    assert len(mw.log) == 6


def test_middleware_importable_from_top_level() -> None:
    middleware = import_module("adk_fluent.middleware")
    assert middleware.StructuredLogMiddleware is StructuredLogMiddleware is structured_log


# --- what is kept, and what is not ---------------------------------------------------------------


async def test_the_oldest_entries_go_first() -> None:
    log = structured_log(max_entries=5)
    pipeline = Agent("a").mock("A").middleware(log)
    await pipeline.run("one")
    await pipeline.run("two")
    assert len(log.log) == 5
    assert events(log)[-1] == "after_run"
    log.clear()
    assert log.log == []


async def test_texts_are_cut() -> None:
    def long(word: str) -> str:
        """Look something up."""
        raise ValueError("e" * 500)

    log = structured_log(max_chars=20)
    model = ScriptedModel(Call("long", {"word": "w" * 500}), "done")
    with pytest.raises(ValueError, match="eee"):
        await Agent("a", model).tool(long).middleware(log).run("q" * 500)
    texts = [text for entry in log.log for text in entry.values() if isinstance(text, str)]
    kept = [each["message"] for each in of(log, "on_user_message")]
    kept += [each["args"] for each in of(log, "before_tool")]
    kept += [each["error"] for each in of(log, "on_tool_error")]
    assert [len(each) for each in kept] == [20, 20, 20]
    assert all(each.endswith("…") for each in kept)
    assert not any("q" * 21 in text or "w" * 21 in text or "e" * 21 in text for text in texts)


async def test_content_may_be_left_out() -> None:
    def search(word: str) -> str:
        """Look something up."""
        raise ValueError("a secret place")

    log = structured_log(content=False)
    model = ScriptedModel(reply(Call("search", {"word": "secret"})), "done")
    with pytest.raises(ValueError, match="secret"):
        await Agent("a", model).tool(search).middleware(log).run("tell me the secret")
    assert "secret" not in json.dumps(log.log)
    assert of(log, "on_tool_error")[0]["error_type"] == "ValueError"
    assert of(log, "before_tool")[0]["tool_name"] == "search"
    assert of(log, "after_model")[0]["usage"]


async def test_credentials_are_left_out() -> None:
    def login(user: str, options: dict[str, Any]) -> dict[str, Any]:
        """Log in."""
        headers = [("Authorization", "Bearer hush"), ("Accept", "*/*")]
        more = [{"client_secret": "hush-2"}, {"name": "Cookie", "value": "hush-4"}]
        return {"user": user, "access_token": "hush-1", "more": more, "headers": headers}

    log = structured_log(max_chars=10_000)
    given = {"user": "ann", "options": {"apiKey": "hush-3", "lang": "it"}}
    model = ScriptedModel(Call("login", given), "done")
    await Agent("a", model).tool(login).middleware(log).run("hi")
    told = json.dumps(log.log)
    assert "hush" not in told
    assert "ann" in told
    assert "lang" in told
    assert "Accept" in told


SECRET = f"sk-{'a1B2' * 6}"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"api_key": "hush", "lang": "it"}', '{"lang": "it"}'),
        ('[{"a": "{\\"clientSecret\\": \\"hush\\"}"}]', '[{"a": "{}"}]'),
        ('[["Cookie", "hush"], ["Accept", "*/*"]]', '[["Accept", "*/*"]]'),
        ('{"max_tokens": 5, "price": 1.10}', '{"max_tokens": 5, "price": 1.10}'),
        (f'{{"a": ["use {SECRET}"]}}', '{"a": ["use [CREDENTIAL]"]}'),
        (f"401 for key {SECRET}!", "401 for key [CREDENTIAL]!"),
        ("no route to postgres://ann:hush@db/x", "no route to postgres://[CREDENTIAL]@db/x"),
        ("GET /?access_token=hush&page=2", "GET /?access_token=[CREDENTIAL]&page=2"),
        ("OPENAI_API_KEY=hush x=1", "OPENAI_API_KEY=[CREDENTIAL] x=1"),
        ("{'password': 'hush', 'user': 'ann'}", "{'password': '[CREDENTIAL]', 'user': 'ann'}"),
        ('said "{\\"token\\": \\"hush\\"}"', 'said "{\\"token\\": \\"[CREDENTIAL]\\"}"'),
        ("Authorization: Bearer hush", "Authorization: [CREDENTIAL]"),
        ("it sent Bearer hush-hush-hush", "it sent [CREDENTIAL]"),
        ("-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----", "[CREDENTIAL]"),
        ("max_tokens=5, next_page_token=abc, key: b", "max_tokens=5, next_page_token=abc, key: b"),
        ("{not json, token: hush}", "{not json, token: [CREDENTIAL]}"),
        ("The author: Ann. A bearer of news.", "The author: Ann. A bearer of news."),
    ],
)
async def test_texts_and_errors_have_nothing_that_looks_like_a_credential(
    text: str, kept: str
) -> None:
    log = structured_log(max_chars=10_000)
    await log.on_user_message(None, text)
    await log.on_user_message(None, types.Content(parts=[types.Part(text=text)]))
    await log.on_tool_error(None, "search", {}, ValueError(text))
    await log.after_tool(None, "search", {}, text)
    await log.after_tool(None, "search", {}, {"deep": [text]})
    said = [entry.get("message", entry.get("error")) for entry in log.log[:3]]
    assert said == [kept] * 3
    assert json.loads(log.log[3]["result"]) == kept
    assert json.loads(log.log[4]["result"]) == {"deep": [kept]}


@pytest.mark.parametrize(
    "unit", ["a", "a.", "token=", "token: ", "Bearer ", "a='", "\\", "[", "ä:"]
)
async def test_long_texts_are_looked_through_in_time(unit: str) -> None:
    log = structured_log()
    await log.on_user_message(None, unit * (300_000 // len(unit)))
    assert len(log.log) == 1


async def test_what_is_no_data_is_named_only() -> None:
    class Handle:
        def __repr__(self) -> str:
            return "hush"

    log = structured_log()
    await log.after_tool(None, "open", {}, {"handle": Handle()})
    image = types.Content(parts=[types.Part(inline_data=types.Blob(data=b"x" * 99))])
    await log.on_user_message(None, image)
    assert log.log[0]["result"] == '{"handle": "<Handle>"}'
    assert log.log[1]["message"] == "[media]"


# --- where else it goes --------------------------------------------------------------------------


async def test_a_file_gets_each_entry_as_a_line(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    log = structured_log(path=file)
    pipeline = Agent("a").mock("first\nsecond, ümlaut").middleware(log)
    await pipeline.run("hi")
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [line["event"] for line in lines] == events(log)
    assert "first\nsecond, ümlaut" in [line.get("response") for line in lines]
    await pipeline.run("again")
    assert len(file.read_text("utf-8").splitlines()) == len(log.log) == 2 * len(lines)


async def test_a_logger_is_told(caplog: pytest.LogCaptureFixture) -> None:
    log = structured_log(logger="shop.runs")
    with caplog.at_level(logging.INFO, "shop.runs"):
        await Agent("a").mock("A").middleware(log).run("100%s hi")
    told = [json.loads(each.message)["event"] for each in caplog.records]
    assert told == events(log)


async def test_a_file_that_cannot_be_written_stops_no_run(tmp_path: Path) -> None:
    log = structured_log(path=tmp_path)  # a folder
    assert (await Agent("a").mock("A").middleware(log).run("hi")).text == "A"


def test_no_reference_and_no_file_can_say_where_it_writes(tmp_path: Path) -> None:
    """Else whoever wrote a pipeline's file could have any other file written to."""
    file = tmp_path / "victim"
    ref = MiddlewareRef("structured_log", {"path": str(file)})
    with pytest.raises(UsageError, match="structured_log has no option 'path'"):
        Agent("a").mock("A").middleware(ref).ask("hi")
    assert not file.exists()
    schema = StructuredLogMiddleware.DESC.config_schema or {}
    assert "path" not in schema["properties"]


# --- runs ----------------------------------------------------------------------------------------


def test_threads_share_one_log() -> None:
    log = structured_log()
    pipeline = Agent("a").mock("A").middleware(log).to_ir()

    async def several() -> None:
        backend = ADKBackend()
        compiled = backend.compile(pipeline)
        await asyncio.gather(*(backend.run(compiled, "hi") for _ in range(5)))

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(lambda: asyncio.run(several())) for _ in range(4)]:
            done.result()
    assert len(log.log) == 20 * 7
    assert len({entry["run_id"] for entry in log.log}) == 20


async def test_a_run_that_goes_on_is_the_same_run() -> None:
    log, backend = structured_log(), ADKBackend()
    pipeline = Agent("a").mock("A") >> gate(name="ok") >> Agent("b").mock("B")
    desk = pipeline.middleware(log)
    first = await desk.run("hi", backend=backend)
    answer = Answer(first.pending[0].id, {"approved": True})
    await desk.run(answer, backend=backend, session_id=first.session_id)
    assert len({entry["run_id"] for entry in log.log}) == 1


async def test_steps_have_durations_also_when_they_fail() -> None:
    time = Time()
    log = structured_log(clock=time)

    async def slow(asked: Any) -> str:
        await time.sleep(2)
        raise ConnectionError("reset")

    with pytest.raises(ConnectionError):
        await Agent("a", ScriptedModel(slow)).middleware(log).run("hi")
    failed = {entry["event"]: entry["seconds"] for entry in log.log if "error" in entry}
    assert failed == {"on_model_error": 2.0, "on_agent_error": 2.0, "on_run_error": 2.0}


# --- what it is given ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"max_entries": 0}, "max_entries"),
        ({"max_chars": 0}, "max_chars"),
        ({"content": "no"}, "content"),
        ({"path": 3}, "path"),
        ({"path": "/no/such/folder/log.jsonl"}, "path"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, option: str) -> None:
    with pytest.raises(UsageError, match=rf"structured_log\({option}=\.\.\.\)"):
        structured_log(**options)


async def test_entries_of_a_part_say_which_run_they_are_of() -> None:
    log = structured_log()
    part = Agent("a").mock("A").middleware(log, scope="agent")
    pipeline = part >> Agent("b").mock("B")
    result = await pipeline.run("hi")
    assert events(log) == ["before_agent", "before_model", "after_model", "after_agent"]
    assert {each["agent_name"] for each in log.log} == {"a"}
    assert {each["run_id"] for each in log.log} == {result[0].metadata["run"]}
    assert all(each["invocation_id"] and each["session_id"] for each in log.log)
    assert "seconds" in of(log, "after_agent")[0]
