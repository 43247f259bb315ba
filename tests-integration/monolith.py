"""What the monolith ``adk-fluent`` does; run by a Python that has it, so it is imported untyped.

The page ``from-monolith.md`` says what came of each function; ``test_from_monolith.py`` has the
same programs for adk-fluent-core. Run as a program, it prints as JSON what came of each, the
versions, and the methods that its users may have written.
"""

from __future__ import annotations

import asyncio
import json
import logging
import warnings
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, FunctionCall, Part

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from google.adk.models.llm_request import LlmRequest

monolith: Any = import_module("adk_fluent")
Agent, S, C = monolith.Agent, monolith.S, monolith.C

Reply = str | Part | LlmResponse | Exception


class Script(BaseLlm):
    """A model that gives its replies in order, the last one again and again."""

    model: str = "script"
    replies: list[Any]
    seconds: float = 0
    seen: list[Any]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        await asyncio.sleep(self.seconds)
        reply = self.replies[min(len(self.seen), len(self.replies) - 1)]
        self.seen.append(llm_request)
        if isinstance(reply, Exception):
            raise reply
        if not isinstance(reply, LlmResponse):
            part = Part(text=reply) if isinstance(reply, str) else reply
            reply = LlmResponse(content=Content(role="model", parts=[part]))
        yield reply


def script(*replies: Reply, seconds: float = 0) -> Script:
    return Script(replies=list(replies), seconds=seconds, seen=[])


def agent(name: str, *replies: Reply, seconds: float = 0) -> Any:
    return Agent(name, script(*replies, seconds=seconds)).instruct("Go.")


def under_runner(
    runner: InMemoryRunner, messages: int = 1, state: dict[str, Any] | None = None
) -> tuple[list[str], dict[str, Any], str | None]:
    """What was said, the state that is kept, and the error."""

    async def run() -> tuple[list[str], dict[str, Any], str | None]:
        where: dict[str, Any] = {"app_name": runner.app_name, "user_id": "ann"}
        sessions = runner.session_service
        session = await sessions.create_session(**where, state=state)
        said: list[str] = []
        error = None
        try:
            for _ in range(messages):
                new = Content(role="user", parts=[Part(text="Go.")])
                async for event in runner.run_async(
                    user_id="ann", session_id=session.id, new_message=new
                ):
                    parts = event.content.parts if event.content else None
                    said += [part.text for part in parts or () if part.text]
        except Exception as raised:  # noqa: BLE001  # it is the outcome
            error = f"{type(raised).__name__}: {raised}"
        kept = await sessions.get_session(**where, session_id=session.id)
        return said, dict(kept.state) if kept else {}, error

    return asyncio.run(run())


def built(builder: Any, **options: Any) -> tuple[list[str], dict[str, Any], str | None]:
    return under_runner(InMemoryRunner(builder.build(), app_name="demo"), **options)


def as_app(builder: Any, config: Any = None) -> tuple[list[str], dict[str, Any], str | None]:
    return under_runner(InMemoryRunner(app=builder.to_app(config)))


def asked_with(model: Script) -> str:
    """The first line of the instruction that the model got."""
    instruction: Any = model.seen[0].model_dump()["config"]["system_instruction"]
    return str(instruction).split("\n", 1)[0]


def fails(state: Any) -> bool:
    return bool(state["no such key"])


def second(state: Any) -> bool:
    return state["n"] == "2"


def always(state: Any) -> bool:
    return True


def function_writes_are_kept() -> object:
    def count(state: Any) -> dict[str, int]:
        return {"n": state.get("n", 0) + 1}

    return built(count >> agent("a", "hello"), messages=2)[1]


def transform_writes_are_kept() -> object:
    return built(S.set(n=1) >> agent("a", "hello"))[1]


def async_function() -> object:
    async def step(state: Any) -> dict[str, int]:
        return {"n": 1}

    model = script("hello")
    built(step >> Agent("a", model).instruct("n={n?}"))
    return asked_with(model)


def map_over_results() -> object:
    model = script("hello")
    each = monolith.map_over("items", agent("each", "one", "two"), output_key="results")
    built(each >> Agent("after", model).instruct("{results}"), state={"items": ["p", "q"]})
    return asked_with(model)


def until_in_an_app() -> object:
    loop = agent("a", "1", "2", "3").writes("n") * monolith.until(second, max=3)
    return as_app(loop)[0]


def predicate_of_a_loop_fails() -> object:
    return built(agent("a", "1", "2", "3") * monolith.until(fails, max=3))[::2]


def predicate_of_a_route_fails() -> object:
    route = monolith.Route("k").when(fails, agent("a", "A")).otherwise(agent("b", "B"))
    return under_runner(InMemoryRunner(route.build(), app_name="demo"))[::2]


def fallback_on_a_reported_error() -> object:
    blocked = LlmResponse(error_code="SAFETY", error_message="blocked")
    return built(agent("a", blocked) // agent("b", "backup"))[0]


def fallback_takes_writes_back() -> object:
    first = agent("w", "wrong").writes("w") >> agent("f", RuntimeError("down"))
    return built(first // agent("b", "backup"))[1]


def race_with_a_failure() -> object:
    race = monolith.race(agent("a", RuntimeError("down")), agent("b", "fine", seconds=0.1))
    return built(race)[::2]


def parallel_writes_of_one_key() -> object:
    both = agent("a", "first", seconds=0.1).writes("k") | agent("b", "last").writes("k")
    return built(both)[1]


def missing_write() -> object:
    blocked = LlmResponse(error_code="SAFETY", error_message="blocked")
    return built(agent("a", blocked).writes("k") >> agent("b", "went on"))[::2]


def inject() -> object:
    def look_up(order: str, db: Any) -> str:
        """Look up."""
        return db[order]

    call = Part(function_call=FunctionCall(name="look_up", args={"order": "A1"}))
    model = script(call, "done")
    built(Agent("a", model).instruct("Go.").tool(look_up).inject(db={"A1": "on its way"}))
    first, second = (request.model_dump() for request in model.seen)
    (declared,) = first["config"]["tools"][0]["function_declarations"]
    response = second["contents"][-1]["parts"][0]["function_response"]["response"]
    return sorted(declared["parameters_json_schema"]["properties"]), sorted(response)


def limits_of_the_config() -> object:
    config = monolith.ExecutionConfig(max_llm_calls=1)
    return as_app(agent("a", "1") >> agent("b", "2"), config)[::2]


def timeout_of_the_config() -> object:
    config = monolith.ExecutionConfig(timeout_seconds=0.1)
    return as_app(agent("a", "1", seconds=0.3), config)[::2]


def history_in_an_app() -> object:
    model = script("hello")
    as_app(agent("notes", "three notes") >> Agent("a", model).instruct("Go.").context(C.none()))
    return len(model.seen[0].contents)


def mock_backend_arrangements() -> object:
    pair = agent("a", "").writes("k") >> monolith.Route("k").eq("x", agent("b", ""))
    backend = monolith.mock_backend({"a": "x", "b": "answer of b"})
    response = asyncio.run(monolith.AgentHarness(pair, backend=backend).send("Go."))
    return response.final_text


def middleware_is_called() -> object:
    class Spy:
        calls = 0

        async def before_model(self, ctx: Any, request: Any) -> None:
            Spy.calls += 1

    agent("a", "hello").middleware(Spy()).ask("Go.")
    return Spy.calls


def gate_stops() -> object:
    gate = monolith.gate(always, message="May I?")
    return built(agent("a", "asks") >> gate >> agent("b", "did it"))[0]


PROGRAMS: tuple[Callable[[], object], ...] = (
    function_writes_are_kept,
    transform_writes_are_kept,
    async_function,
    map_over_results,
    until_in_an_app,
    predicate_of_a_loop_fails,
    predicate_of_a_route_fails,
    fallback_on_a_reported_error,
    fallback_takes_writes_back,
    race_with_a_failure,
    parallel_writes_of_one_key,
    missing_write,
    inject,
    limits_of_the_config,
    timeout_of_the_config,
    history_in_an_app,
    mock_backend_arrangements,
    middleware_is_called,
    gate_stops,
)
BUILDERS = ("Agent", "Pipeline", "FanOut", "Loop", "Route", "Fallback", "S")


def methods(name: str) -> list[str]:
    return [each for each in dir(getattr(monolith, name)) if not each.startswith("_")]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable()
    print(
        json.dumps(
            {
                "adk-fluent": version("adk-fluent"),
                "google-adk": version("google-adk"),
                "programs": {program.__name__: program() for program in PROGRAMS},
                "methods": {name: methods(name) for name in BUILDERS},
            }
        )
    )
