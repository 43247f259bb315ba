"""What a model's service refuses or breaks: the error says what, where and what to do.

The errors are those of Google's client, over ADK's own Gemini class and the emulator. What was
committed before stays, and the next run of the session works.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from google.adk.runners import Runner
from google.genai import errors as genai
from google.genai import types

from adk_fluent import Agent, map_over, timeout
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import AgentReportedError, StepTimeoutError, UsageError
from adk_fluent.protocol import classify
from adk_fluent.testing import Call, GeminiEmulator, Reply, Script, reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from google.adk.models.llm_request import LlmRequest
    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.builders import Builder

pytestmark = [
    pytest.mark.adk,
    # 1.x says so when it streams
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
    # Google's client leaves connections of calls that were cancelled to the collector
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

APP, USER, SESSION = "adk_fluent_app", "user", "s"
SECRET = "secret-key-0123456789"  # not one
STREAMED = pytest.mark.parametrize("mode", ["none", "sse"])
HALF = ("Half an ", "answer")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def gemini() -> Iterator[GeminiEmulator]:
    with GeminiEmulator(default="fine") as emulator:
        yield emulator


def text_of(error: BaseException) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


async def session_of(service: BaseSessionService) -> Any:
    session = await service.get_session(app_name=APP, user_id=USER, session_id=SESSION)
    assert session is not None
    return session


# --- every failure, streamed and not, in the middle of a sequence --------------------------------


class Failure(NamedTuple):
    """How the service fails, and what the error says."""

    answer: Reply
    kind: tuple[type[Exception], ...] | type[Exception]
    says: str
    helps: str


FAILURES = {
    "401": Failure(reply(status=401), genai.ClientError, "401", "was rejected: check it"),
    "403": Failure(reply(status=403), genai.ClientError, "403", "its restrictions"),
    "429": Failure(reply(status=429), genai.ClientError, "429", "the quota is used up"),
    "500": Failure(reply(status=500), genai.ServerError, "500", "a fallback (a // b)"),
    "503": Failure(reply(status=503), genai.ServerError, "503", "a fallback (a // b)"),
    "503 half way": Failure(
        reply(chunks=HALF, status=503), genai.ServerError, "503", "a fallback (a // b)"
    ),
    "400": Failure(
        reply(status=400, error_message="no such field"),
        genai.ClientError,
        "no such field",
        "the same request will fail again",
    ),
    "a page of a proxy": Failure(
        reply(fault="html"), ValueError, "", "no answer of a model, and nothing of it was kept"
    ),
    "a page of a proxy with a status": Failure(
        reply(status=503, fault="html"), genai.ServerError, "from a proxy", "a fallback (a // b)"
    ),
    "malformed JSON": Failure(
        reply(chunks=HALF, fault="bad_json"), ValueError, "", "nothing of it was kept"
    ),
    "truncated": Failure(
        reply(chunks=HALF, fault="truncated"), ValueError, "", "nothing of it was kept"
    ),
    "cut": Failure(reply(chunks=HALF, fault="cut"), Exception, "complete", "the connection broke"),
}


@STREAMED
@pytest.mark.parametrize("name", FAILURES)
async def test_a_failure_says_what_where_and_what_to_do_and_loses_nothing(
    name: str, mode: Any, sqlite: BaseSessionService, gemini: GeminiEmulator
) -> None:
    failure = FAILURES[name]
    gemini.script = Script(failure.answer, default="fine")
    first = Agent("first").mock("one").writes("kept")
    desk = first >> Agent("asked", gemini.model()).writes("reply") >> Agent("after").mock("bye")
    config = ExecutionConfig(streaming_mode=mode)
    options: dict[str, Any] = {"session_service": sqlite, "session_id": SESSION, "config": config}

    with pytest.raises(failure.kind) as caught:
        await desk.run("hi", **options)
    error, text = caught.value, text_of(caught.value)
    assert type(error).__module__.partition(".")[0] not in ("adk_fluent", "builtins")
    assert failure.says in text
    assert "model 'gemini-2.5-flash' of agent 'asked', named by the agent itself" in text
    assert f"\n  help: {failure.helps}" in text or failure.helps in text
    assert "in node 'asked' at " in text
    assert "test_bad_input.py:" in text
    assert gemini.key not in text
    assert len(error.__notes__) == 2

    session = await session_of(sqlite)
    assert session.state == {"kept": "one"}
    assert [event.author for event in session.events] == ["user", "first"]
    again = await desk.run("again", **options)
    assert again.text == "bye"
    assert again.state == {"kept": "one", "reply": "fine"}


def test_errors_that_may_pass_are_told_from_those_that_will_not() -> None:
    kinds = {
        name: classify(genai.APIError(failure.answer.status, {}))
        for name, failure in FAILURES.items()
        if failure.answer.status is not None
    }
    assert [name for name, kind in kinds.items() if kind == "permanent"] == ["401", "403", "400"]


# --- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["GOOGLE_API_KEY", "GEMINI_API_KEY"])
@pytest.mark.parametrize(
    ("emulator", "helps"),
    [({"keys": ["good"]}, "was rejected"), ({"denied": [SECRET]}, "may not do this")],
    ids=["unknown", "denied"],
)
async def test_a_key_that_is_refused(
    emulator: dict[str, Any], helps: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GeminiEmulator("never", **emulator) as gemini:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.url)
        monkeypatch.setenv(variable, SECRET)
        with pytest.raises(genai.ClientError) as caught:
            await Agent("desk", "gemini-2.5-flash").run("hi")
    text = text_of(caught.value)
    assert f"it was called with the key in {variable}, which {helps}" in text
    assert SECRET not in text


async def test_a_key_that_a_client_was_made_with() -> None:
    with (
        GeminiEmulator("never", denied=["emulator-key"]) as gemini,
        pytest.raises(genai.ClientError) as caught,
    ):
        await Agent("desk", gemini.model()).run("hi")
    assert "with the key that the model's client was made with, which may" in text_of(caught.value)


async def test_no_key_at_all() -> None:
    with pytest.raises(ValueError, match=r"No API key|[Mm]issing key") as caught:
        await Agent("desk", "gemini-2.5-flash").run("hi")
    assert "help: set GOOGLE_API_KEY (or GOOGLE_GENAI_USE_VERTEXAI=true" in text_of(caught.value)
    assert "in node 'desk' at " in text_of(caught.value)


# --- models that do not exist: who named them ----------------------------------------------------


def renamed(name: str) -> Callable[..., None]:
    def callback(callback_context: Any, llm_request: LlmRequest) -> None:
        llm_request.model = name

    return callback


NAMED: dict[str, tuple[Callable[[Any], Builder], str]] = {
    "by itself": (lambda model: Agent("desk", model), "named by the agent itself"),
    "by a builder": (
        (Agent("desk") >> Agent("after").mock("x")).model,
        "named by its pipeline",
    ),
    "by an agent above": (
        lambda model: (
            Agent("above", model)
            .mock(Call("transfer_to_agent", {"agent_name": "desk"}))
            .delegates(Agent("desk", model))
        ),
        "named by the agent itself",
    ),
    "by a callback": (
        lambda model: Agent("desk", model).before_model(renamed("gemini-2.5-other")),
        "named by a callback",
    ),
}


@STREAMED
@pytest.mark.parametrize("how", NAMED)
async def test_a_model_that_does_not_exist(how: str, mode: Any) -> None:
    build, named = NAMED[how]
    with GeminiEmulator("never", models=["gemini-2.5-flash"]) as gemini:
        pipeline = build(gemini.model("gemini-2.5-flesh"))
        with pytest.raises(genai.ClientError, match="is not found") as caught:
            await pipeline.run("hi", config=ExecutionConfig(streaming_mode=mode))
    text = text_of(caught.value)
    asked = "gemini-2.5-other" if how == "by a callback" else "gemini-2.5-flesh"
    assert f"model {asked!r} of agent 'desk', {named}\n  help: check the name" in text


async def test_a_placeholder_that_nothing_has_written() -> None:
    with pytest.raises(KeyError, match="Context variable not found") as caught:
        await Agent("desk").instruct("Use {missing}.").mock("never").run("hi")
    assert "help: {missing} in an instruction is a key of state" in text_of(caught.value)
    assert "{missing?}" in text_of(caught.value)


async def test_a_model_that_the_configuration_names(monkeypatch: pytest.MonkeyPatch) -> None:
    gone, call = reply(status=404), Call("transfer_to_agent", {"agent_name": "kid"})
    with GeminiEmulator(gone, gone, call, gone) as gemini:
        for name, value in gemini.env.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(genai.ClientError) as caught:
            await Agent("desk").run("hi", config=ExecutionConfig(default_model="gemini-9"))
        assert "'gemini-9' of agent 'desk', named by config.default_model" in text_of(caught.value)
        with pytest.raises(genai.ClientError) as caught:
            await Agent("desk").run("hi")
        assert "of agent 'desk', named by ADK's default" in text_of(caught.value)
        with pytest.raises(genai.ClientError) as caught:
            await Agent("above", "gemini-2.5-flash").delegates(Agent("kid")).run("hi")
        assert "'gemini-2.5-flash' of agent 'kid', named by " in text_of(caught.value)


def test_a_name_that_adk_does_not_know() -> None:
    with pytest.raises(UsageError, match="ADK knows no model 'gemni'") as caught:
        Agent("desk", "gemni").ask("hi")
    assert "node 'desk' at " in str(caught.value)


# --- every way of running, every arrangement ------------------------------------------------------


async def by_ask(pipeline: Builder, **options: Any) -> str:
    return await pipeline.ask_async("hi", **options)


async def by_run(pipeline: Builder, **options: Any) -> str:
    return (await pipeline.run("hi", **options)).text


async def by_stream(pipeline: Builder, **options: Any) -> str:
    async with aclosing(pipeline.stream("hi", **options)) as events:
        return [e.content or "" async for e in events if not e.is_partial][-1]


async def by_map(pipeline: Builder, **options: Any) -> str:
    return (await pipeline.map_async(["hi"], **options))[0]


async def by_runner(
    pipeline: Builder,
    *,
    session_service: BaseSessionService,
    session_id: str,
    config: ExecutionConfig | None = None,
) -> str:
    runner = Runner(app=pipeline.to_app(config), session_service=session_service)
    name: dict[str, Any] = {"app_name": APP, "user_id": USER, "session_id": session_id}
    if await session_service.get_session(**name) is None:
        await session_service.create_session(**name)
    message = types.Content(role="user", parts=[types.Part(text="hi")])
    running = runner.run_async(user_id=USER, session_id=session_id, new_message=message)
    async with aclosing(running) as events:
        said = [event.content async for event in events if not event.partial]
    return "".join(part.text or "" for part in (said[-1] and said[-1].parts) or ())


WAYS = {each.__name__: each for each in (by_ask, by_run, by_stream, by_map, by_runner)}


@STREAMED
@pytest.mark.parametrize("way", WAYS)
async def test_by_every_way_of_running(
    way: str, mode: Any, service: BaseSessionService, gemini: GeminiEmulator
) -> None:
    gemini.script = Script(reply(chunks=HALF, status=503), default="fine")
    desk = Agent("first").mock("one").writes("kept") >> Agent("asked", gemini.model())
    config = ExecutionConfig(streaming_mode=mode)
    options: dict[str, Any] = {
        "session_service": service,
        "session_id": SESSION,
        "config": config,
    }
    with pytest.raises(genai.ServerError, match="503") as caught:
        await WAYS[way](desk, **options)
    text = text_of(caught.value)
    assert "model 'gemini-2.5-flash' of agent 'asked'" in text
    assert "in node 'asked' at " in text
    assert (await session_of(service)).state == {"kept": "one"}
    assert await WAYS[way](desk, **options) == "fine"


ARRANGEMENTS: dict[str, Callable[[Agent, Agent], Builder]] = {
    "alone": lambda asked, other: asked,
    "in a parallel": lambda asked, other: other | asked,
    "in a fallback": lambda asked, other: (other >> asked) // asked,
    "in a map": lambda asked, other: map_over("items", asked),
    "in a timeout": lambda asked, other: other >> timeout(asked, 30),
}


@STREAMED
@pytest.mark.parametrize("where", ARRANGEMENTS)
async def test_in_every_arrangement(
    where: str, mode: Any, sqlite: BaseSessionService, gemini: GeminiEmulator
) -> None:
    gemini.script = Script(default=reply(status=429))
    asked = Agent("asked", gemini.model())
    desk = Agent("first").mock("one").writes("kept") >> ARRANGEMENTS[where](
        asked, Agent("other").mock("x")
    )
    options: dict[str, Any] = {
        "session_service": sqlite,
        "session_id": SESSION,
        "config": ExecutionConfig(streaming_mode=mode),
    }
    with pytest.raises(genai.ClientError, match="429") as caught:
        await desk.run("hi", state={"items": [1, 2]}, **options)
    text = text_of(caught.value)
    assert text.count("model 'gemini-2.5-flash' of agent 'asked'") == 1
    assert "in node 'asked' at " in text
    assert ("in item " in text) == (where == "in a map")
    assert (await session_of(sqlite)).state["kept"] == "one"
    gemini.script = Script(default="fine")
    assert (await desk.run("again", **options)).text


# --- answers that were blocked or cut off --------------------------------------------------------


@STREAMED
@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        (reply(error_code="SAFETY", error_message="no"), "SAFETY", ""),
        (reply(error_code="PROHIBITED_CONTENT"), "PROHIBITED_CONTENT", ""),
        (reply(error_code="RECITATION"), "RECITATION", ""),
        (reply(finish_reason="MALFORMED_FUNCTION_CALL"), "MALFORMED_FUNCTION_CALL", ""),
        (reply(finish_reason="MAX_TOKENS"), "MAX_TOKENS", ""),
        (reply("Half", finish_reason="MAX_TOKENS"), "MAX_TOKENS", "Half"),
        (reply("Half", finish_reason="SAFETY"), "SAFETY", "Half"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_an_answer_that_is_blocked_or_cut_off(
    answer: Reply, code: str, text: str, mode: Any, gemini: GeminiEmulator
) -> None:
    gemini.script = Script(default=answer)
    asked, config = Agent("asked", gemini.model()), ExecutionConfig(streaming_mode=mode)
    result = await asked.run("hi", config=config)
    assert ([each.code for each in result.errors], result.text) == ([code], text)
    backed = await (asked // Agent("backup").mock("sorry")).run("hi", config=config)
    assert (backed.text, backed.errors) == ("sorry", [])
    if text:
        assert await asked.ask_async("hi", config=config) == text
        return
    with pytest.raises(AgentReportedError, match=f"there is no answer: asked reported {code}") as e:
        await asked.ask_async("hi", config=config)
    assert "node 'asked' at " in str(e.value)
    assert e.value.error_code == code
    with pytest.raises(AgentReportedError):
        await asked.map_async(["hi"], config=config)


async def test_a_reported_error_that_was_made_good_is_no_lack_of_an_answer() -> None:
    blocked = Agent("blocked").mock(reply(error_code="SAFETY"))
    assert await (blocked >> Agent("next").mock("went on")).ask_async("hi") == "went on"
    assert await (blocked // Agent("silent").mock("")).ask_async("hi") == ""


# --- what is sent --------------------------------------------------------------------------------


@STREAMED
async def test_a_kind_of_data_that_the_model_does_not_take(
    mode: Any, gemini: GeminiEmulator
) -> None:
    refusal = reply(status=400, error_message="Unsupported MIME type: image/png")
    gemini.script = Script(refusal)
    message: list[Any] = [
        "what is",
        types.Part.from_bytes(data=b"12345", mime_type="image/png"),
        types.Part.from_uri(file_uri="gs://a/b", mime_type="image/png"),
    ]
    with pytest.raises(genai.ClientError, match="Unsupported MIME type") as caught:
        await Agent("desk", gemini.model()).run(
            message, config=ExecutionConfig(streaming_mode=mode)
        )
    sent = "it was sent image/png (5 bytes), image/png (gs://a/b): does it take that?"
    assert sent in text_of(caught.value)


async def test_an_answer_that_is_too_late_for_the_client(gemini: GeminiEmulator) -> None:
    gemini.script = Script(reply("late", latency=30))
    options = types.GenerateContentConfig(http_options=types.HttpOptions(timeout=300))
    desk = Agent("desk", gemini.model()).configure(generate_content_config=options)
    with pytest.raises(Exception) as caught:  # noqa: PT011  # of the library that is installed
        await desk.run("hi")
    assert classify(caught.value) == "retriable"
    assert "the connection broke or was too slow, and nothing of" in text_of(caught.value)


async def test_an_answer_that_is_too_late_for_the_step(gemini: GeminiEmulator) -> None:
    gemini.script = Script(reply("late", latency=30))
    with pytest.raises(StepTimeoutError, match=r"no result within 0.2 s") as caught:
        await timeout(Agent("desk", gemini.model()), 0.2).run("hi")
    assert "test_bad_input.py:" in str(caught.value)


# --- conversations that were cut off in the middle of a tool call --------------------------------


def breaks() -> str:
    """Break."""
    raise KeyError("the tool broke")


@STREAMED
async def test_a_tool_that_failed_spoils_no_later_run(
    mode: Any, service: BaseSessionService, gemini: GeminiEmulator
) -> None:
    gemini.script = Script(reply("Let me see.", Call("breaks")), default="fine")
    desk = Agent("desk", gemini.model()).tool(breaks)
    options: dict[str, Any] = {
        "session_service": service,
        "session_id": SESSION,
        "config": ExecutionConfig(streaming_mode=mode),
    }
    with pytest.raises(KeyError, match="the tool broke") as caught:
        await desk.run("hi", **options)
    assert caught.value.__notes__[-1].startswith("in node 'desk' at ")
    for message in ("again", "and again"):  # Gemini refuses calls that have no result
        assert (await desk.run(message, **options)).text == "fine"
    sent = json.dumps(gemini.requests[-1].body)
    assert "Let me see." in sent
    assert '"functionCall"' not in sent
    calls = [call for e in (await session_of(service)).events for call in e.get_function_calls()]
    assert [call.name for call in calls] == ["breaks"]  # what was committed stays


async def test_an_answer_of_a_tool_that_no_model_can_be_told(gemini: GeminiEmulator) -> None:
    gemini.script = Script(Call("give"), default="fine")

    def give() -> dict[str, Any]:
        """Give."""
        return {"ids": {1}, "at": [1.5, float("nan")]}

    result = await Agent("desk", gemini.model()).tool(give).run("hi")
    assert result.text == "fine"
    (sent,) = gemini.requests[-1].results
    assert sent["response"] == {"ids": [1], "at": [1.5, None]}
