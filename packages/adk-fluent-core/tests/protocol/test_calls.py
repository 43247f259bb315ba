from __future__ import annotations

from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

from adk_fluent.protocol import ModelCall, ModelReply, Sink, Usage


async def test_fragments_are_forwarded_and_remembered() -> None:
    sent: list[Any] = []

    async def forward(response: Any) -> None:
        sent.append(response)

    call = ModelCall("request", stream=True, sink=Sink(forward))
    assert not call.emitted
    await call.emit("partial")
    assert sent == ["partial"]
    assert call.emitted


async def test_a_changed_copy_shares_the_sink_so_an_outer_middleware_knows() -> None:
    outer = ModelCall("request")
    inner = replace(outer, request="other")
    await inner.emit("dropped, for nobody takes it")
    assert outer.emitted
    assert (outer.request, inner.request) == ("request", "other")
    assert not ModelCall("next").emitted


async def test_a_copy_that_is_heard_by_somebody_is_the_same_call() -> None:
    heard: list[Any] = []

    async def hear(response: Any) -> None:
        heard.append(response)

    names = [each.name for each in fields(ModelCall)]
    given: dict[str, Any] = {name: at for at, name in enumerate(names, 1) if name != "sink"}
    outer = ModelCall(**given, sink=Sink(emitted=True))
    inner = outer.heard_by(hear)
    assert [getattr(inner, name) for name in names[:-1]] == list(range(1, len(names)))
    assert names[-1] == "sink"
    assert inner.emitted
    await inner.emit("partial")
    assert heard == ["partial"]


def test_a_reply_tells_its_last_response_and_its_tokens() -> None:
    def response(count: int | None) -> SimpleNamespace:
        usage = None if count is None else SimpleNamespace(prompt_token_count=count)
        return SimpleNamespace(usage_metadata=usage)

    responses = [response(3), response(5), response(None)]
    reply = ModelReply(responses)
    assert reply.final is responses[-1]
    assert reply.usage == Usage(prompt=5)
    assert ModelReply().final is None
    assert ModelReply().usage is None


def test_the_text_of_a_reply_is_what_it_says_without_thoughts() -> None:
    def response(*parts: tuple[str | None, bool]) -> SimpleNamespace:
        made = [SimpleNamespace(text=text, thought=thought) for text, thought in parts]
        return SimpleNamespace(content=SimpleNamespace(parts=made))

    reply = ModelReply([response(("Hm.", True), ("Paid", False)), response((None, False))])
    assert reply.text == "Paid"
    assert ModelReply([SimpleNamespace(content=None)]).text == ""
