"""What type checkers know of the value that a pipeline answers with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, assert_type

from pydantic import BaseModel

from adk_fluent import (
    Agent,
    Fallback,
    Loop,
    Pipeline,
    S,
    expect,
    gate,
    map_over,
    race,
    tap,
    timeout,
    until,
)
from adk_fluent.builders import Builder, MapOver, Race, State, Timeout
from adk_fluent.protocol import RunResult

if TYPE_CHECKING:
    from collections.abc import Mapping


class Invoice(BaseModel):
    total: float


class Order(BaseModel):
    number: str


def note(state: State) -> Mapping[str, Any]:
    return {"seen": True}


plain = Agent("plain")
invoice = Agent("reader") @ Invoice
order = Agent("clerk").output_schema(Order)

assert_type(plain, Agent[Any])
assert_type(invoice, Agent[Invoice])
assert_type(order, Agent[Order])
assert_type(invoice @ Order, Agent[Order])
assert_type(Agent("many") @ list[Invoice], Agent[list[Invoice]])
assert_type(plain.output_schema(Literal["a", "b"]), Agent[Literal["a", "b"]])
assert_type(plain.output_schema(Invoice | None), Agent[Invoice | None])
assert_type(plain.output_schema(dict[str, int]), Agent[dict[str, int]])
assert_type(plain @ Literal["a", "b"], Agent[Any])
topic: Pipeline[Any] = plain >> plain @ Literal["a", "b"]
either: Builder[Invoice | Order | None] = plain @ (Invoice | Order)
maybe: Builder[Invoice | None] = plain @ (Invoice | None)
plain.input_schema(Invoice | Order)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
plain.with_(output_schema=Literal["a"])
plain.configure(output_schema=Invoice | None)
assert_type(invoice.named("again").clone("more").writes("k"), Agent[Invoice])

# the last step that can answer does
assert_type(plain >> invoice, Pipeline[Invoice])
assert_type(note >> plain >> invoice, Pipeline[Invoice])
assert_type(order >> invoice, Pipeline[Invoice])
assert_type(invoice >> note, Pipeline[Invoice])
assert_type(invoice >> gate() >> tap(print) >> S.set(n=1), Pipeline[Invoice])
assert_type(invoice >> expect(lambda state: True), Pipeline[Invoice])

# what is not known is Any
assert_type(invoice >> plain, Pipeline[Any])
assert_type(invoice >> {"a": order}, Pipeline[Any])
assert_type(Pipeline("named", invoice), Pipeline[Any])
assert_type((plain >> invoice).step(order), Pipeline[Any])

assert_type(invoice * 3, Loop[Invoice])
assert_type(invoice * until(lambda state: True), Loop[Invoice])
assert_type(invoice // order, Fallback[Invoice | Order])
assert_type(timeout(invoice, 3), Timeout[Invoice])
assert_type(race(invoice, invoice.clone("other")), Race[Invoice])
assert_type(map_over("items", invoice), MapOver[list[Invoice]])
assert_type(map_over("items", plain >> invoice) >> note, Pipeline[list[Invoice]])


async def runs(anything: Builder) -> float:
    result = await (plain >> invoice).run("x")
    assert_type(result, RunResult[Invoice])
    assert_type(result.output, Invoice | None)
    assert_type((await map_over("items", invoice).run("x")).output, list[Invoice] | None)
    assert_type((await plain.run("x")).output, Any | None)
    found = (await anything.run("x")).output_as(Invoice)
    assert_type(found, Invoice)
    assert_type((await anything.run("x")).output_as(Literal["a", "b"]), Literal["a", "b"])
    assert_type((await anything.run("x")).output_as(Invoice | None), Invoice | None)
    resumed = await (plain >> invoice).resume(session_id="s")
    assert_type(resumed.output, Invoice | None)
    print(result.output.total)  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
    return found.total if result.output is None else result.output.total


def takes(pipeline: Pipeline[Invoice]) -> None:
    print(pipeline)


ordered = plain >> order
takes(ordered)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
takes(plain >> plain)
