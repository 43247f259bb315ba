from __future__ import annotations

import asyncio
import copy
import re
import subprocess
import sys
import time

import pytest

from adk_fluent.errors import UsageError
from adk_fluent.protocol import Usage
from adk_fluent.testing import (
    Asked,
    Call,
    Reply,
    Script,
    ScriptExhaustedError,
    Thought,
    Turn,
    reply,
    rule,
)


def ask(text: str = "hi", agent: str | None = None) -> Asked:
    return Asked(turns=(Turn("user", text),), agent=agent)


async def texts(script: Script, *questions: str | Asked) -> list[str]:
    asked = [ask(q) if isinstance(q, str) else q for q in questions]
    return [(await script.answer(q)).text for q in asked]


def test_importing_it_imports_neither_google_nor_pydantic() -> None:
    code = (
        "import sys; before = set(sys.modules); import adk_fluent.testing as t; t.Script('x'); "
        "print({m.split('.')[0] for m in set(sys.modules) - before} & {'google', 'pydantic'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_name_it_does_not_have() -> None:
    import adk_fluent.testing

    with pytest.raises(AttributeError, match="Scripted"):
        _ = adk_fluent.testing.Scripted  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


async def test_replies_come_in_order_then_the_default() -> None:
    script = Script("a", "b", default="c")
    assert await texts(script, "1", "2", "3", "4") == ["a", "b", "c", "c"]
    assert [each.number for each in script.calls] == [0, 1, 2, 3]
    assert [each.prompt for each in script.calls] == ["1", "2", "3", "4"]


async def test_exhaustion_says_what_was_asked() -> None:
    script = Script("a", rules=[rule("refund", reply="billing")])
    await script.answer(ask())
    with pytest.raises(ScriptExhaustedError) as caught:
        await script.answer(ask("where is my parcel" + "?" * 300, agent="classify"))
    message = str(caught.value)
    assert "call 2" in message
    assert "'classify'" in message
    assert "where is my parcel" in message
    assert "?" * 300 not in message
    assert "replies: 1, all given; rules: 1, none applies" in message
    assert caught.value.asked is script.calls[-1]


async def test_rules_come_first_and_do_not_use_up_replies() -> None:
    script = Script(
        "plain",
        rules=[
            rule("REFUND", reply="billing", times=1),
            rule(re.compile(r"\bship(ping)?\b"), reply="logistics"),
            rule(lambda asked: asked.agent == "boss", reply="yes, boss"),
            rule(agent="draft", reply="a draft"),
            rule("refund", agent="review", reply="reviewed"),
        ],
    )
    assert await texts(
        script,
        "a refund, please",
        "when do you ship?",
        ask("refund", agent="boss"),
        ask("x", agent="draft"),
        ask("refund", agent="review"),
        "refund again",
    ) == ["billing", "logistics", "yes, boss", "a draft", "reviewed", "plain"]


async def test_callable_replies_sync_and_async() -> None:
    async def later(asked: Asked) -> str:
        await asyncio.sleep(0)
        return asked.prompt.upper()

    def failing(asked: Asked) -> Exception:
        return ValueError(asked.prompt)

    script = Script(lambda asked: reply(asked.prompt * 2), later, failing)
    assert await texts(script, "ab", "cd") == ["abab", "CD"]
    assert str((await script.answer(ask("ef"))).raises) == "ef"


async def test_latency_of_the_script_and_of_a_reply() -> None:
    start = time.perf_counter()
    await Script("slow", latency=0.05).answer(ask())
    assert time.perf_counter() - start >= 0.045
    hasty = Script(reply("fast", latency=0), latency=3600)
    assert (await asyncio.wait_for(hasty.answer(ask()), 60)).text == "fast"


async def test_usage_is_estimated_when_it_is_not_given() -> None:
    given = Usage(prompt=1)
    script = Script(reply(Thought("12345"), "x" * 8), reply("x", usage=given))
    asked = Asked(turns=(Turn("user", "four"), Turn("model", "four")), system="12345678")
    assert (await script.answer(asked)).usage == Usage(prompt=4, output=2, thoughts=2)
    assert (await script.answer(asked)).usage == given


async def test_concurrent_questions_each_get_their_own_reply() -> None:
    script = Script(*map(str, range(50)), latency=0.001)
    got = await asyncio.gather(*(script.answer(ask()) for _ in range(50)))
    assert [each.text for each in got] == [str(i) for i in range(50)]


def test_threads_share_the_position() -> None:
    from concurrent.futures import ThreadPoolExecutor

    script = Script(*map(str, range(200)))

    def one(_: int) -> str:
        return asyncio.run(script.answer(ask())).text

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(one, range(200)), key=int) == [str(i) for i in range(200)]


async def test_copies_are_the_script_itself() -> None:
    script = Script("a", "b")
    assert copy.copy(script) is script
    assert copy.deepcopy({"x": [script]})["x"][0] is script


async def test_what_stands_in_for_a_model() -> None:
    assert await texts(Script.of("x"), "1", "2") == ["x", "x"]
    assert await texts(Script.of(["x", "y"]), "1", "2") == ["x", "y"]
    assert await texts(Script.of(lambda asked: asked.prompt), "1", "2") == ["1", "2"]
    script = Script("z")
    assert Script.of(script) is script


@pytest.mark.parametrize("answer", [42, 1.5, b"x", {"a": 1}, ["a", "b"], ("a",), {"a"}, True])
def test_what_is_no_reply_is_refused_at_once(answer: object) -> None:
    with pytest.raises(UsageError, match="cannot answer with"):
        Script(answer)
    with pytest.raises(UsageError, match="cannot answer with"):
        Script(rules=[rule(reply=answer)])
    with pytest.raises(UsageError, match="cannot answer with"):
        Script(default=answer)


def test_classes_and_exits_are_refused() -> None:
    with pytest.raises(UsageError, match="not the class ValueError"):
        Script(ValueError)
    with pytest.raises(UsageError, match="KeyboardInterrupt"):
        Script(KeyboardInterrupt())


async def test_a_callable_that_returns_no_reply_is_refused() -> None:
    for nothing, name in ((42, "with 42"), (None, "with None")):
        with pytest.raises(UsageError, match=name):
            await Script(lambda asked, nothing=nothing: nothing).answer(ask())


def test_a_reply_fails_in_one_way_only() -> None:
    with pytest.raises(UsageError, match="raises and status"):
        reply(raises=ValueError(), status=500)
    with pytest.raises(UsageError, match="error_code and parts"):
        reply("text", error_code="SAFETY")
    with pytest.raises(UsageError, match="one text"):
        reply(chunks="abc")


def test_chunks_are_the_text() -> None:
    assert reply(chunks=["a", "b"]).text == "ab"
    made = reply(Thought("hm"), "so", Call("f", {"x": 1}))
    assert made.text == "so"
    assert made == Reply(parts=(Thought("hm"), "so", Call("f", {"x": 1})))


def test_the_prompt_is_what_is_new() -> None:
    asked = Asked(
        turns=(
            Turn("user", "first"),
            Turn("model", "answer"),
            Turn("user", "For context:"),
            Turn("user", "second"),
        )
    )
    assert asked.prompt == "For context:\nsecond"
    assert Asked().prompt == ""
