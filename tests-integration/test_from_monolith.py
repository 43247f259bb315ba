"""The page ``from-monolith.md``: the programs of ``monolith.py`` on adk-fluent-core, its tables.

``--monolith PYTHON`` names a Python that has the monolith ``adk-fluent`` 0.18.0; what the page says
about that is measured again then.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import adk_fluent
from adk_fluent import Agent, Route, S, builders, gate, map_over, race, until
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import OutputMissingError, StepTimeoutError
from adk_fluent.protocol import AgentEvent, RunResult
from adk_fluent.testing import AgentHarness, Call, ScriptedModel, mock_backend, reply

if TYPE_CHECKING:
    from adk_fluent.builders import Builder, State
    from adk_fluent.testing import Reply

runs_on_adk = pytest.mark.adk

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "packages" / "adk-fluent-core" / "docs" / "from-monolith.md"

#: What comes of each program of ``monolith.py``.
THERE: dict[str, Any] = {
    "function_writes_are_kept": {},
    "transform_writes_are_kept": {},
    "async_function": "n=",
    "map_over_results": "['p', 'q']",
    "until_in_an_app": ["1", "2", "3"],
    "predicate_of_a_loop_fails": [["1", "2", "3"], None],
    "predicate_of_a_route_fails": [["B"], None],
    "fallback_on_a_reported_error": [],
    "fallback_takes_writes_back": {"w": "wrong"},
    "race_with_a_failure": [[], "RuntimeError: down"],
    "parallel_writes_of_one_key": {"k": "first"},
    "missing_write": [["went on"], None],
    "inject": [["db", "order"], ["error"]],
    "limits_of_the_config": [["1", "2"], None],
    "timeout_of_the_config": [["1"], None],
    "history_in_an_app": 2,
    "mock_backend_arrangements": "[no mock for 'route_k']",
    "middleware_is_called": 0,
    "gate_stops": ["asks", "May I?", "did it"],
}

#: Which programs each row of the page is about.
ROWS: dict[str, tuple[str, ...]] = {
    "what `a >> fn` and `S` write": ("function_writes_are_kept", "transform_writes_are_kept"),
    "`a >> fn` with an async `fn`": ("async_function",),
    '`map_over(..., output_key="k")`': ("map_over_results",),
    "`* until(test)` under `.to_app()`": ("until_in_an_app",),
    "a predicate of a loop raises": ("predicate_of_a_loop_fails",),
    "a predicate of a route raises": ("predicate_of_a_route_fails",),
    "`a // b` when `a` reports an error, such as a blocked answer": (
        "fallback_on_a_reported_error",
    ),
    "`a // b` when `a` fails half-way": ("fallback_takes_writes_back",),
    "`race(a, b)` when `a` fails first": ("race_with_a_failure",),
    "`a / b` where both write one key": ("parallel_writes_of_one_key",),
    "an agent that does not write its `.writes` key": ("missing_write",),
    "`.inject(db=...)`": ("inject",),
    "`ExecutionConfig(max_llm_calls=, timeout_seconds=)` for `.to_app`": (
        "limits_of_the_config",
        "timeout_of_the_config",
    ),
    "`.context(C.none())` under `.to_app()`": ("history_in_an_app",),
    "`mock_backend` with a route": ("mock_backend_arrangements",),
    "`.ask()` with `.middleware(...)`": ("middleware_is_called",),
    "`gate(fn, message=...)`": ("gate_stops",),
}


def agent(name: str, *replies: str | Reply | Exception) -> Agent:
    return Agent(name, ScriptedModel(*replies)).instruct("Go.")


def late(text: str) -> Reply:
    return reply(text, latency=0.1)


def run(pipeline: Builder, **state: object) -> RunResult:
    return asyncio.run(pipeline.run("Go.", state=state))


def said(events: list[AgentEvent]) -> list[str]:
    return [event.content for event in events if event.content]


def system(model: ScriptedModel) -> str:
    """The first line of the instruction that the model got."""
    return model.calls[0].system.split("\n", 1)[0]


def fails(state: State) -> bool:
    return bool(state["no such key"])


# --- the programs ---------------------------------------------------------------------------------


@runs_on_adk
def test_function_writes_are_kept() -> None:
    def count(state: State) -> dict[str, int]:
        return {"n": state.get("n", 0) + 1}

    counted = count >> agent("a", "hello", "hello")
    first = run(counted)
    second = asyncio.run(counted.run("Go.", session_id=first.session_id))
    assert second.state == {"n": 2}


@runs_on_adk
def test_transform_writes_are_kept() -> None:
    assert run(S.set(n=1) >> agent("a", "hello")).state == {"n": 1}


@runs_on_adk
def test_async_function() -> None:
    async def step(_: State) -> dict[str, int]:
        await asyncio.sleep(0)
        return {"n": 1}

    model = ScriptedModel("hello")
    run(step >> Agent("a", model).instruct("n={n?}"))
    assert system(model) == "n=1"


@runs_on_adk
def test_map_over_results() -> None:
    model = ScriptedModel("hello")
    each = map_over("items", agent("each", "one", "two"), output_key="results", concurrency=1)
    run(each >> Agent("after", model).instruct("{results}"), items=["p", "q"])
    assert system(model) == "['one', 'two']"


@runs_on_adk
def test_until_in_an_app() -> None:
    loop = agent("a", "1", "2", "3").writes("n") * until(lambda state: state["n"] == "2", max=3)
    assert said(run(loop)) == ["1", "2"]


@runs_on_adk
def test_predicate_of_a_loop_fails() -> None:
    with pytest.raises(KeyError, match="no such key"):
        run(agent("a", "1", "2", "3") * until(fails, max=3))


@runs_on_adk
def test_predicate_of_a_route_fails() -> None:
    with pytest.raises(KeyError, match="no such key"):
        run(Route("k").when(fails, agent("a", "A")).otherwise(agent("b", "B")))


@runs_on_adk
def test_fallback_on_a_reported_error() -> None:
    assert run(agent("a", reply(error_code="SAFETY")) // agent("b", "backup")).text == "backup"


@runs_on_adk
def test_fallback_takes_writes_back() -> None:
    first = agent("w", "wrong").writes("w") >> agent("f", RuntimeError("down"))
    assert run(first // agent("b", "backup")).state == {}


@runs_on_adk
def test_race_with_a_failure() -> None:
    assert run(race(agent("a", RuntimeError("down")), agent("b", late("fine")))).text == "fine"


@runs_on_adk
def test_parallel_writes_of_one_key() -> None:
    both = agent("a", late("first")).writes("k") | agent("b", "last").writes("k")
    assert run(both).state == {"k": "last"}


@runs_on_adk
def test_missing_write() -> None:
    blocked = agent("a", reply(error_code="SAFETY")).writes("k")
    with pytest.raises(OutputMissingError, match="a did not write 'k'"):
        run(blocked >> agent("b", "went on"))


@runs_on_adk
def test_inject() -> None:
    def look_up(order: str, db: dict[str, str]) -> str:
        """Look up."""
        return db[order]

    model = ScriptedModel(Call("look_up", {"order": "A1"}), "done")
    run(Agent("a", model).instruct("Go.").tool(look_up).inject(db={"A1": "on its way"}))
    asked, told = (each.raw.model_dump() for each in model.calls)
    (declared,) = asked["config"]["tools"][0]["function_declarations"]
    schema = declared["parameters_json_schema"] or declared["parameters"]
    assert list(schema["properties"]) == ["order"]
    answer = told["contents"][-1]["parts"][0]["function_response"]["response"]
    assert answer == {"result": "on its way"}


@runs_on_adk
def test_limits_of_the_config() -> None:
    from google.adk.agents.invocation_context import LlmCallsLimitExceededError

    config = ExecutionConfig(max_llm_calls=1)
    with pytest.raises(LlmCallsLimitExceededError):
        (agent("a", "1") >> agent("b", "2")).ask("Go.", config=config)


@runs_on_adk
def test_timeout_of_the_config() -> None:
    with pytest.raises(StepTimeoutError):
        agent("a", reply("1", latency=30)).ask("Go.", config=ExecutionConfig(timeout_seconds=0.05))


@runs_on_adk
def test_history_in_an_app() -> None:
    model = ScriptedModel("hello")
    run(agent("notes", "three notes") >> Agent("a", model).instruct("Go.").history("none"))
    told = [turn.text for turn in model.calls[0].turns]  # what ADK says where nobody does
    assert told in ([], ["Handle the requests as specified in the System Instruction."])


def test_mock_backend_arrangements() -> None:
    pair = agent("a").writes("k") >> Route("k").eq("x", agent("b"))
    backend = mock_backend({"a": "x", "b": "answer of b"})
    assert AgentHarness(pair, backend=backend).send_sync("Go.").final_text == "answer of b"


@runs_on_adk
def test_middleware_is_called() -> None:
    class Spy:
        calls = 0

        async def before_model(self, ctx: Any, request: Any) -> None:
            self.calls += 1

    spy = Spy()
    assert agent("a", "hello").middleware(spy).ask("Go.") == "hello"
    assert spy.calls == 1


@runs_on_adk
async def test_gate_stops() -> None:
    ask = gate(lambda state: True, message="May I?")
    pipeline = agent("a", "asks") >> ask >> agent("b", "did it")
    asked = await pipeline.run("Go.")
    assert asked.text == "asks"
    (question,) = asked.pending
    done = await pipeline.resume(question.answer(True), session_id=asked.session_id)
    assert done.text == "did it"


# --- the page -------------------------------------------------------------------------------------


def tables() -> dict[str, list[list[str]]]:
    """The rows below each heading of the page that has a table, without its head."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("#"):
            heading = line.strip("# ")
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.replace("\\|", "/").split("|")[1:-1]]
            found.setdefault(heading, []).append(cells)
    return {heading: rows[2:] for heading, rows in found.items()}


def test_every_row_was_measured_and_every_program_is_here() -> None:
    rows = [cells[0] for cells in tables()["What did nothing, and does now"]]
    assert rows == list(ROWS)
    measured = {name for names in ROWS.values() for name in names}
    assert measured == set(THERE)
    assert {f"test_{name}" for name in THERE} <= set(globals())


NAMES = ("Agents", "Arrangements", "State", "Running, looking, testing")


@pytest.mark.parametrize("heading", NAMES)
def test_what_is_to_be_written_here_exists(heading: str) -> None:
    kinds: list[Any] = [getattr(builders, name) for name in builders.__all__]
    known = {name for kind in (*kinds, S, AgentEvent, AgentHarness) for name in dir(kind)}
    for _, here in tables()[heading]:
        for code in re.findall(r"`([^`]+)`", here):
            for name in re.findall(r"\.(\w+)(?=\()", code):
                assert name in known, f"{heading}: {here}"


@pytest.fixture(scope="module")
def there(request: pytest.FixtureRequest) -> dict[str, Any]:
    python = request.config.option.monolith
    if python is None:
        pytest.skip("--monolith PYTHON names none that has adk-fluent 0.18.0")
    command = (python, "-I", str(HERE / "monolith.py"))
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_monolith_does_what_the_page_says(there: dict[str, Any]) -> None:
    page = PAGE.read_text("utf-8")
    assert f"adk-fluent {there['adk-fluent']} on google-adk {there['google-adk']}" in page
    assert there["programs"] == THERE


def test_every_method_of_the_monolith_has_a_place_on_the_page(there: dict[str, Any]) -> None:
    page = PAGE.read_text("utf-8")
    for kind, methods in there["methods"].items():
        ours: Any = getattr(adk_fluent, kind)
        absent = {name for name in methods if not hasattr(ours, name) and not name.endswith("_if")}
        assert [name for name in sorted(absent) if not re.search(rf"\b{name}\b", page)] == [], kind


BLOCK = r"<!-- monolith -->\n```{kind}\n(.*?)```\n"
PAIR = re.compile(BLOCK.format(kind="python") + r"\n" + BLOCK.format(kind="text"), re.DOTALL)
HERE_TOO = re.compile(r"\n```python\n.*?```\n\n```text\n", re.DOTALL)


def test_every_old_program_of_the_page_is_followed_by_a_new_one() -> None:
    page = PAGE.read_text("utf-8")
    pairs = list(PAIR.finditer(page))
    assert len(pairs) * 2 == page.count("<!-- monolith -->") > 0
    for pair in pairs:
        assert HERE_TOO.match(page, pair.end()), f"what is the new side of {pair[1]}"


def test_old_programs_of_the_page_print_what_it_says(
    there: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    assert there["programs"]
    for program, printed in PAIR.findall(PAGE.read_text("utf-8")):
        command = (request.config.option.monolith, "-I", "-W", "ignore", "-c", program)
        done = subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == printed
