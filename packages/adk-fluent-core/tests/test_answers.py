"""What answers of agents write: text, data of a schema, fields of their own; what does not fit."""

from __future__ import annotations

from datetime import date  # noqa: TC003  # pydantic looks it up
from typing import Any

import pytest
from pydantic import BaseModel, Field

from adk_fluent import Agent
from adk_fluent.backends._answers import Answer, answer_of
from adk_fluent.errors import OutputInvalidError, OutputMissingError, UsageError
from adk_fluent.ir import AgentNode, Ref, StateFieldRef
from adk_fluent.testing import Call, ScriptedModel, mock_backend, reply


class Line(BaseModel):
    name: str
    amount: int = Field(ge=1)


class Invoice(BaseModel):
    number: str
    total: float
    due: date | None = None
    lines: list[Line] = []


SCORE, TIER = StateFieldRef("score", float), StateFieldRef("user:tier", str)
GOOD = '{"number": "A1", "total": 3, "due": "2026-11-21"}'
READ: dict[str, Any] = {"number": "A1", "total": 3.0, "due": "2026-11-21", "lines": []}
NONE_OF_IT = '{"number": "1", "total": 1, "lines": [{"name": "x", "amount": 0}]}'


def agent(*keys: str | StateFieldRef, schema: Any = None, mock: Any = "text") -> Agent:
    made = Agent("reader").mock(mock)
    if keys:
        made.writes(*keys)
    return made if schema is None else made @ schema


class Opaque:
    """What pydantic knows nothing about."""


@pytest.fixture(params=["mock", pytest.param("adk", marks=pytest.mark.adk)])
def run(request: pytest.FixtureRequest) -> Any:
    async def run(pipeline: Any) -> Any:
        backend = mock_backend() if request.param == "mock" else None
        return await pipeline.run("go", backend=backend)

    return run


async def test_bytes_are_read_and_kept_as_state_schemas_do(run: Any) -> None:
    raw = agent(StateFieldRef("raw", bytes), mock='{"raw": "AP_-"}')
    assert (await run(raw)).state["raw"] == "AP_-"
    with pytest.raises(OutputInvalidError, match="raw: Data should be valid base64"):
        await run(agent(StateFieldRef("raw", bytes), mock='{"raw": "?!"}'))


@pytest.mark.parametrize(
    ("made", "field"),
    [
        (agent(SCORE, mock='{"score": NaN}'), "score"),
        (agent(SCORE, TIER, mock='{"score": -Infinity, "tier": "x"}'), "score"),
        (agent(StateFieldRef("all", list[float]), mock='{"all": [1, NaN]}'), "all.1"),
        (agent("k", schema=Invoice, mock='{"number": "1", "total": NaN}'), "total"),
    ],
)
async def test_what_json_has_no_word_for_is_no_answer(run: Any, made: Agent, field: str) -> None:
    with pytest.raises(OutputInvalidError, match=rf"{field}: is .*, for which JSON") as caught:
        await run(made)
    assert caught.value.fields == (field,)
    assert (await run(made // Agent("other").mock("fine"))).text == "fine"


async def test_an_answer_that_nothing_keeps_may_be_anything(run: Any) -> None:
    assert (await run(agent(schema=Invoice, mock='{"number": "1", "total": NaN}'))).state == {}


@pytest.mark.parametrize(
    ("made", "state"),
    [
        (agent("k"), {"k": "text"}),
        (agent("k", mock=""), {"k": ""}),
        (agent(StateFieldRef("k", str)), {"k": "text"}),
        (agent("k", schema=Invoice, mock=GOOD), {"k": READ}),
        (agent(StateFieldRef("k", Invoice), schema=Invoice, mock=GOOD), {"k": READ}),
        (agent(StateFieldRef("k", Invoice | None), schema=Invoice, mock=GOOD), {"k": READ}),
        (agent(schema=Invoice, mock=GOOD), {}),
        (
            agent("number", "user:total", schema=Invoice, mock=GOOD),
            {"number": "A1", "user:total": 3.0},
        ),
        (agent(SCORE, mock='{"score": 0.5}'), {"score": 0.5}),
        (
            agent(SCORE, TIER, mock='{"score": 1, "tier": "gold"}'),
            {"score": 1.0, "user:tier": "gold"},
        ),
        (agent("a", "b", mock='{"a": "x", "b": "y"}'), {"a": "x", "b": "y"}),
    ],
)
async def test_what_is_written(run: Any, made: Agent, state: dict[str, Any]) -> None:
    result = await run(made)
    assert result.state == state
    assert len([event for event in result if event.state_delta]) == bool(state)  # in one delta


async def test_any_type_may_be_a_schema() -> None:  # for ADK 1.25, only a model
    made = agent("k", schema=list[Line], mock='[{"name": "x", "amount": 2}]')
    result = await made.run("go", backend=mock_backend())
    assert result.state == {"k": [{"name": "x", "amount": 2}]}


async def test_a_default_stands_in_for_a_field_that_is_left_out(run: Any) -> None:
    ref = StateFieldRef("tier", str, default="basic")
    assert (await run(agent("name", ref, mock='{"name": "Ann"}'))).state == {
        "name": "Ann",
        "tier": "basic",
    }


async def test_a_value_that_is_none_is_written_as_none(run: Any) -> None:
    result = await run(agent("number", "due", schema=Invoice, mock='{"number": "1", "total": 1}'))
    assert result.state == {"number": "1"}  # due is None, which is as good as absent


@pytest.mark.parametrize(
    ("made", "fields", "says"),
    [
        (agent("k", schema=Invoice, mock="no json"), (), "Invalid JSON"),
        (agent(schema=Invoice, mock="no json"), (), "Invalid JSON"),
        (agent(schema=Invoice, mock=""), (), "Invalid JSON"),
        (agent("k", schema=Invoice, mock='{"total": "x"}'), ("number", "total"), "Field required"),
        (agent(SCORE, mock='{"score": "high"}'), ("score",), "valid number"),
        (agent("a", "b", mock='{"a": "x"}'), ("b",), "Field required"),
        (
            agent("k", schema=Invoice, mock=NONE_OF_IT),
            ("lines.0.amount",),
            "greater than or equal to 1",
        ),
    ],
)
async def test_what_does_not_fit(run: Any, made: Agent, fields: tuple[str, ...], says: str) -> None:
    with pytest.raises(OutputInvalidError, match="the answer of reader does not fit") as caught:
        await run(made)
    assert caught.value.fields == fields
    assert says in str(caught.value.what)
    assert caught.value.node == "reader"
    assert "test_answers.py" in str(caught.value)
    shape = (
        ""
        if getattr(made.to_ir(), "output_schema", None)
        else "typed keys are fields of one JSON object"
    )
    assert str(caught.value.help).startswith(shape)
    assert "say in the instruction what the answer has to look like" in str(caught.value.help)


async def test_a_fallback_makes_up_for_it(run: Any) -> None:
    bad = agent(SCORE, mock="no idea")
    good = Agent("backup").mock('{"score": 1}').writes(SCORE)
    result = await run(bad // good)
    assert result.state == {"score": 1.0}
    assert result.text == '{"score": 1}'


async def test_an_empty_answer_is_missing(run: Any) -> None:
    for made in (
        agent(SCORE, mock=reply()),
        agent(SCORE, mock=" "),
        agent("k", schema=Invoice, mock=""),
    ):
        with pytest.raises(OutputMissingError):
            await run(made)


@pytest.mark.adk
async def test_the_model_is_told_the_shape() -> None:
    model = ScriptedModel('{"score": 0.5, "tier": "gold"}')
    await Agent("reader", model).writes(SCORE, TIER).run("go")
    schema = model.calls[0].config.response_schema
    assert sorted(schema.model_fields) == ["score", "tier"]
    assert schema.model_fields["score"].annotation is float


@pytest.mark.adk
async def test_what_is_said_beside_a_call_that_waits_is_no_answer() -> None:
    from google.adk.tools.long_running_tool import LongRunningFunctionTool

    def approve() -> None:
        """Ask a person."""

    model = ScriptedModel(reply("Let me ask.", Call("approve")))
    made = Agent("reader", model).writes(SCORE).tool(LongRunningFunctionTool(approve))
    result = await made.run("go")
    assert [each.name for each in result.pending] == ["approve"]
    assert result.state == {}


@pytest.mark.adk
async def test_the_answer_that_does_not_fit_is_kept_in_the_session() -> None:
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    service = InMemorySessionService()
    with pytest.raises(OutputInvalidError):
        await agent(SCORE, mock="no idea").run("go", session_service=service, session_id="s")
    session = await service.get_session(app_name="adk_fluent_app", user_id="user", session_id="s")
    assert session is not None
    said = [
        part.text
        for event in session.events
        for part in (event.content.parts or [] if event.content else [])
    ]
    assert "no idea" in said


# --- what cannot be ------------------------------------------------------------------------------


def node(*keys: str, schema: Any = None) -> AgentNode:
    refs = tuple(map(StateFieldRef, keys))
    return AgentNode("a", writes_keys=refs, output_schema=schema and Ref.to(schema))


def test_two_keys_of_one_name() -> None:
    with pytest.raises(UsageError, match="a writes 2 keys called 'tier'"):
        Answer(node("tier", "user:tier"))


def test_a_key_that_is_no_name_of_a_field() -> None:
    with pytest.raises(UsageError, match="'first name' cannot be the name of a field"):
        Answer(node("first name", "b"))
    assert Answer(node("first name")).text_key == "first name"


def test_keys_that_the_schema_does_not_have() -> None:
    with pytest.raises(
        UsageError, match="writes 'colour', and its answer has no such field"
    ) as caught:
        Answer(node("number", "colour", schema=Invoice))
    assert "number, total, due, lines" in str(caught.value.found)
    with pytest.raises(UsageError, match="its answer has no such field"):
        Answer(node("a", "b", schema=list[int]))


@pytest.mark.parametrize(
    "wrong",
    [
        agent("number", "colour", schema=Invoice),
        agent("tier", "user:tier"),
        agent("first name", "b"),
        agent("a").output_retries(2),
    ],
)
def test_check_finds_what_compiling_refuses(wrong: Agent) -> None:
    with pytest.raises(UsageError) as caught:
        answer_of(wrong.to_ir())
    (found,) = (each for each in (wrong >> Agent("b")).check() if each.code == "FLW143")
    assert (found.node, found.help) == ("reader", caught.value.help)
    assert found.message.startswith(caught.value.what)
    assert str(caught.value.found or "") in found.message


def test_check_finds_nothing_where_answers_are_read() -> None:
    whole, fields = agent("number", schema=Invoice), agent("number", "total", schema=Invoice)
    right = (whole, fields.output_retries(2), agent(SCORE, TIER).output_retries(1))
    assert not [each for one in right for each in one.check() if each.code == "FLW143"]


def test_an_agent_that_declares_nothing() -> None:
    assert answer_of(AgentNode("a")) is None


@pytest.mark.parametrize("reader", [agent("it", schema=Opaque), agent(StateFieldRef("it", Opaque))])
async def test_a_type_that_pydantic_cannot_read_is_refused(run: Any, reader: Agent) -> None:
    with pytest.raises(UsageError, match="cannot read answers of this type") as caught:
        await run(reader)
    assert (caught.value.found, caught.value.node) == ("the class Opaque", "reader")
    assert caught.value.help is not None
    assert caught.value.help.startswith("Unable to generate pydantic-core schema")


FENCES = ["```json\n{}\n```", "```\n{}\n```", " ```JSON {}```\n", "```json\r\n{}\r\n```\n\n"]


@pytest.mark.parametrize("fence", FENCES)
async def test_json_in_a_fence_is_read(run: Any, fence: str) -> None:
    fenced = fence.replace("{}", GOOD)
    assert (await run(agent("invoice", schema=Invoice, mock=fenced))).state["invoice"] == READ
    several = agent(SCORE, TIER, mock=fence.replace("{}", '{"score": 1, "tier": "gold"}'))
    assert (await run(several)).state == {"score": 1.0, "user:tier": "gold"}


@pytest.mark.parametrize("text", [f"Here: ```json\n{GOOD}\n```", "```", "``````", "```json\n```"])
async def test_what_is_no_fence_around_all_of_it_is_not(run: Any, text: str) -> None:
    with pytest.raises(OutputInvalidError, match="Invalid JSON"):
        await run(agent("invoice", schema=Invoice, mock=text))


async def test_a_text_keeps_its_fence(run: Any) -> None:
    assert (await run(agent("code", mock="```\nx\n```"))).state["code"] == "```\nx\n```"
