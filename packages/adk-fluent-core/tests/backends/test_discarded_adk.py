"""What a result tells of attempts that fallbacks discarded, and the mistakes that none covers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, Fallback, Pipeline, expect
from adk_fluent.testing import Call, ScriptedModel, mock_backend

if TYPE_CHECKING:
    from adk_fluent.builders import Builder

pytestmark = pytest.mark.adk

BACKENDS = ("adk", "mock")


def _said(name: str, *words: str) -> Agent:
    return Agent(name, ScriptedModel(*words)).instruct("Answer.")


async def _run(step: Builder, backend: str, **kwargs: Any) -> Any:
    if backend == "mock":
        answers = mock_backend()
        for name, text in (("good", "fine"), ("other", "hm")):
            answers.when(name).responds(text)
        kwargs["backend"] = answers
    return await step.run("hi", **kwargs)


def broken(state: Any) -> None:
    raise ConnectionError("no line")


def mistaken(state: Any) -> dict[str, Any]:
    return {"total": state["prise"]}


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_result_tells_of_each_discarded_attempt(backend: str) -> None:
    first = Pipeline("first", _said("other", "hm"), broken)
    unmet = expect(lambda state: False, "there is a price", name="unmet")
    result = await _run(Fallback("reply", first, unmet, _said("good", "fine")), backend)
    assert result.text == "fine"
    told = [(each.fallback, each.step, each.error.code) for each in result.discarded]
    assert told == [("reply", "first", "ConnectionError"), ("reply", "unmet", "ExpectationError")]
    assert result.discarded[0].error.message == "no line"
    assert "in node 'broken'" in result.discarded[0].place
    assert "test_discarded_adk.py" in result.discarded[1].place
    assert isinstance(result.discarded[0].exception, ConnectionError)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_run_that_discards_nothing_tells_of_nothing(backend: str) -> None:
    assert (await _run(_said("good", "fine") // broken, backend)).discarded == []


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_mistake_ends_the_run(backend: str) -> None:
    attempts = Pipeline("sum", mistaken) // _said("good", "fine")
    with pytest.raises(KeyError, match="prise"):
        await _run(attempts, backend)
    named = Fallback(mistaken, _said("good", "fine"), on=KeyError)
    result = await _run(named, backend)
    assert result.text == "fine"
    assert result.discarded[0].error.code == "KeyError"


@pytest.mark.parametrize("backend", BACKENDS)
async def test_other_errors_than_those_named_end_the_run(backend: str) -> None:
    line = Fallback(broken, _said("good", "fine"), on=(ConnectionError, TimeoutError))
    assert (await _run(line, backend)).text == "fine"
    with pytest.raises(ConnectionError):
        await _run(Fallback(broken, _said("good", "fine"), on=TimeoutError), backend)


async def test_what_a_tool_raises_is_made_good() -> None:
    """Whatever it is: a model chose the arguments."""

    def price(of: str) -> str:
        """Tell a price."""
        return {"tea": "2"}[of]

    asks = Agent("asks", ScriptedModel(Call("price", {"of": "milk"}))).instruct("Ask.").tool(price)
    result = await (asks // _said("good", "fine")).run("hi")
    assert (result.text, result.discarded[0].error.code) == ("fine", "KeyError")
