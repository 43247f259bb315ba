"""The value that a run answers with: its type in each arrangement, and when there is none."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pydantic import BaseModel, Field, RootModel

from adk_fluent import Agent, Pipeline, Route, gate, map_over, race, tap, timeout
from adk_fluent.errors import OutputInvalidError, OutputMissingError, UsageError
from adk_fluent.ir import StateFieldRef
from adk_fluent.protocol import AgentEvent, RunResult
from adk_fluent.testing import AgentHarness, Call, mock_backend, reply

if TYPE_CHECKING:
    from adk_fluent.builders import Builder


class Invoice(BaseModel):
    total: float = Field(alias="sum")


class Maybe(RootModel[Invoice | None]):
    """An invoice, or null."""


class Order(BaseModel):
    number: str


def invoice(total: float = 3, name: str = "reader") -> Agent[Invoice]:
    return Agent(name).mock(f'{{"sum": {total}}}') @ Invoice


def order() -> Agent[Order]:
    return Agent("clerk").mock('```json\n{"number": "A1"}\n```') @ Order


def words(name: str = "writer") -> Agent[Any]:
    return Agent(name).mock("words")


def items(state: Any) -> dict[str, Any]:
    return {"items": ["a", "b"]}


THREE = Invoice(sum=3)


@pytest.fixture(params=["mock", pytest.param("adk", marks=pytest.mark.adk)])
def run(request: pytest.FixtureRequest) -> Any:
    async def run(pipeline: Any) -> Any:
        backend = mock_backend() if request.param == "mock" else None
        return await pipeline.run("go", backend=backend)

    return run


TWO_KEYS = Agent("r").writes("a", "b").mock('{"a": "1", "b": "2"}')
PIPELINES: dict[str, tuple[Builder, Any]] = {
    "agent": (invoice(), THREE),
    "fenced": (order(), Order(number="A1")),
    "several keys": (TWO_KEYS, {"a": "1", "b": "2"}),
    "typed key": (Agent("r").writes(StateFieldRef("n", int)).mock('{"n": "2"}'), {"n": 2}),
    "last": (words() >> order() >> invoice(), THREE),
    "then a function": (invoice() >> items >> tap(print), THREE),
    "then words": (invoice() >> words(), None),
    "words": (words(), None),
    "nobody": (Pipeline(items), None),
    "loop": (invoice() * 2, THREE),
    "timeout": (timeout(invoice(), 9), THREE),
    "fallback": (words().mock(ValueError("x")) // invoice(), THREE),
    "race": (race(invoice(), invoice(4, "slow").mock(reply('{"sum": 4}', latency=9))), THREE),
    "route": (items >> Route("items").when(lambda _: True, invoice()), THREE),
    "at the same time": (order() | invoice(), [Order(number="A1"), THREE]),
    "some in words": (words() | invoice(), ["words", THREE]),
    "map": (items >> map_over("items", invoice()), [THREE, THREE]),
    "nested": (
        items >> map_over("items", order() | invoice()),
        [[Order(number="A1"), THREE]] * 2,
    ),
    "named, in a sequence": (Pipeline("first", order()) >> Pipeline("second", invoice()), THREE),
    "for a part": (words() >> invoice().inject(x=1), THREE),
}


@pytest.mark.parametrize("name", PIPELINES)
async def test_output_is_the_answer_as_a_value(run: Any, name: str) -> None:
    pipeline, expected = PIPELINES[name]
    result = await run(pipeline)
    assert result.output == expected
    assert type(result.output) is type(expected)


async def test_events_carry_the_data_on_every_version(run: Any) -> None:
    result = await run(words() >> invoice())
    assert [each.output for each in result if each.is_final] == [None, {"total": 3.0}]
    assert AgentEvent.from_dict(result[-1].to_dict()).output == {"total": 3.0}


async def test_a_map_over_a_typed_step_gives_validated_values(run: Any) -> None:
    typed = await run(items >> map_over("items", words("a") >> invoice()))
    assert typed.state["results"] == [{"total": 3.0}] * 2
    plain = await run(items >> map_over("items", words()))
    assert plain.state["results"] == ["words"] * 2
    both = await run(items >> map_over("items", words() | invoice()))
    assert both.state["results"] == [["words", {"total": 3.0}]] * 2
    chosen = await run(items >> map_over("items", invoice().writes("k"), result_key="k"))
    assert chosen.state["results"] == [{"total": 3.0}] * 2


async def test_null_is_data(run: Any) -> None:
    nothing = Agent("reader").mock("null") @ Maybe
    result = await run(items >> map_over("items", nothing))
    assert (result.state["results"], result.output) == ([None] * 2, [Maybe(None)] * 2)


@pytest.mark.parametrize("role", ["step", "delegate", "tool"])
async def test_each_field_goes_to_the_key_of_its_name(run: Any, role: str) -> None:
    """Also where ADK runs the agent by itself."""
    several = Agent("several").writes("a", StateFieldRef("n", int)).mock('{"a": "x", "n": 2}')
    produces = Agent("produces").produces(Order).mock('{"number": "A1"}')
    typed = Agent("typed").writes(StateFieldRef("total", float)).mock('{"total": 3}')
    wrote: dict[str, Any] = {}
    for below in (several, produces, typed):
        name = below.to_ir().name
        hands_over = Call("transfer_to_agent", {"agent_name": name})
        match role:
            case "delegate":
                whole = Agent("top").mock([hands_over]).delegates(below)
            case "tool":
                whole = Agent("top").mock([Call(name, {"request": "x"}), "done"]).agent_tool(below)
            case _:
                whole = below
        result = await run(whole)
        wrote |= result.state
        if role != "tool":
            assert [e.output for e in result if e.author == name] != [None]
    assert wrote == {"a": "x", "n": 2, "number": "A1", "total": 3.0}


async def test_a_map_in_a_map(run: Any) -> None:
    inner = map_over("items", invoice(), item_key="inner", output_key="found")
    result = await run(items >> map_over("items", inner))
    assert result.output == [[THREE, THREE]] * 2
    assert result.state["results"] == [[{"total": 3.0}] * 2] * 2


async def test_where_a_run_is_not_completed_there_is_none(run: Any) -> None:
    waits = await run(invoice() >> gate(message="ok?"))
    assert (waits.status, waits.output) == ("waiting", None)
    with pytest.raises(OutputMissingError, match="there is no answer: the run is waiting"):
        waits.output_as(Invoice)
    silent = await run(Pipeline(items))
    with pytest.raises(OutputMissingError, match="nobody answered"):
        silent.output_as(Invoice)


@pytest.mark.adk
async def test_after_a_gate_it_is_the_answer_behind_it() -> None:
    pipeline = order() >> gate(message="ok?") >> invoice()
    first = await pipeline.run("go")
    assert first.output is None
    answer = first.pending[0].answer(value=True)
    assert (await pipeline.resume(answer, session_id=first.session_id)).output == THREE


@pytest.mark.adk
async def test_half_a_map_that_waits_gives_all_values() -> None:
    pipeline = items >> map_over("items", invoice() >> gate(message="ok?"))
    result = await pipeline.run("go")
    while result.pending:
        answers = [each.answer(value=True) for each in result.pending]
        result = await pipeline.resume(*answers, session_id=result.session_id)
    assert result.state["results"] == [{"total": 3.0}] * 2


async def test_a_step_that_ends_without_an_answer_gives_no_other_value() -> None:
    """An order is no answer where an invoice is expected."""
    leaves = Agent("reader").mock(Call("exit_loop")).tool(exit_loop) @ Invoice
    result = await (order() >> leaves * 2).run("go", backend=mock_backend())
    assert (result.status, result.output) == ("completed", None)


def exit_loop() -> None:
    """End the loop."""


async def test_whom_a_typed_agent_hands_over_to_answers_for_itself(run: Any) -> None:
    other = Agent("other").mock("words")
    host = Agent("host").mock(Call("transfer_to_agent", {"agent_name": "other"})).delegates(other)
    assert (await run(host @ Invoice)).output is None


async def test_output_as_names_the_type_where_it_is_not_known(run: Any) -> None:
    assert (await run(invoice())).output_as(Invoice) == THREE
    assert (await run(invoice() | invoice(4, "b"))).output_as(list[Invoice])[1].total == 4
    assert (await run(TWO_KEYS)).output_as(dict[str, int]) == {"a": 1, "b": 2}
    assert (await run(Agent("r").mock('```\n{"sum": 3}\n```'))).output_as(Invoice) == THREE
    assert (await run(words())).output_as(str) == "words"
    with pytest.raises(OutputInvalidError, match="is no Order: number: Field required") as raised:
        (await run(invoice())).output_as(Order)
    assert raised.value.fields == ("number",)
    with pytest.raises(OutputInvalidError, match="Invalid JSON"):
        (await run(words())).output_as(Invoice)


async def test_other_ways_to_have_a_result() -> None:
    harness = AgentHarness(order() | invoice(), backend=mock_backend())
    sent = await harness.send("go")
    assert sent.output == [Order(number="A1"), THREE]
    assert sent.status == "completed"
    made = RunResult([AgentEvent("a", '{"n": 1}', is_final=True, output={"n": 1})])
    assert made.output == {"n": 1}
    for again in (pickle.loads(pickle.dumps(sent)), copy.deepcopy(sent), copy.copy(sent)):
        assert (again.text, again.output) == (sent.text, sent.output)


async def test_a_result_of_a_type_that_pickle_cannot_name_is_pickled_too() -> None:
    class Local(BaseModel):
        n: int

    backend = mock_backend()
    result = await (Agent("a").mock('{"n": 1}') @ Local).run("go", backend=backend)
    assert copy.deepcopy(result).output == Local(n=1)
    there = pickle.loads(pickle.dumps(result))
    assert there.output == {"n": 1}
    assert there.output_as(Local) == Local(n=1)


@pytest.mark.parametrize("schema", ["Invoice", 5])
async def test_output_as_refuses_what_is_no_type(schema: Any) -> None:
    result = await words().run("go", backend=mock_backend())
    with pytest.raises(UsageError, match="takes a type that pydantic can read") as raised:
        result.output_as(schema)
    assert raised.value.help


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        (list[Invoice], '[{"sum": 3}]', [THREE]),
        (list[Invoice], "[]", []),
        (int, "0", 0),
        (Literal["yes", "no"], '"yes"', "yes"),
        (Invoice | None, "null", None),
    ],
)
async def test_types_that_are_no_models(run: Any, schema: Any, text: str, expected: Any) -> None:
    try:
        result = await run(Agent("r").mock(text) @ schema)
    except UsageError as error:  # of google-adk 1.25
        pytest.skip(error.what)
    assert result.output == expected


def test_checks_know_that_a_map_over_a_typed_step_gives_no_texts() -> None:
    found = StateFieldRef("results", list[dict[str, Any]])
    typed = Pipeline(items, map_over("items", words("a") >> invoice())).contract(outputs=[found])
    assert not typed.check().errors
    plain = Pipeline(items, map_over("items", words())).contract(outputs=[found])
    assert [each.code for each in plain.check().errors] == ["FLW003"]
