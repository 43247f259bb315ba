"""Every kind of step in every situation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adk_fluent.builders import Fallback, FanOut, Pipeline, race, tap, timeout
from adk_fluent.testing.conformance._broken import (
    FAILURES,
    STUCK,
    after_a_write,
    bad,
    function_raises,
    hangs,
    reports,
    reports_in_attempt,
)
from adk_fluent.testing.conformance._leaves import LEAF_CAPABILITIES, LEAVES, says, writes
from adk_fluent.testing.conformance._order import beside, flat
from adk_fluent.testing.conformance._parts import Part, but, compensation, program, then
from adk_fluent.testing.conformance._program import Program, Raised
from adk_fluent.testing.conformance._wraps import (
    ATTEMPTS,
    WRAP_CAPABILITIES,
    WRAPS,
    mapped,
    plain_race,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.builders import StepLike
    from adk_fluent.testing.conformance._bench import Bench


def matrix() -> Iterator[Program]:
    """The programs of all situations."""
    yield from _alone()
    yield from _nested()
    yield from _reused()
    yield from _failing()
    yield from _cancelled()
    yield from _timed_out()
    yield from _closed()
    yield from _at_once()


def capability(kind: str) -> str:
    """What a backend must be capable of to run a kind of step."""
    return LEAF_CAPABILITIES.get(kind) or WRAP_CAPABILITIES.get(kind, kind)


def _both(kind: str, leaf: str) -> str:
    """The capability of an arrangement, unless the leaf in it asks for more."""
    return capability(leaf) if leaf == "native agent" else capability(kind)


def _alone() -> Iterator[Program]:
    for kind, leaf in LEAVES.items():
        yield program(f"alone/{kind}", capability(kind), _only(leaf("x")))
    for kind, wrap in WRAPS.items():
        yield program(f"alone/{kind}", capability(kind), wrap(writes("x"), "root", "1"))


def _nested() -> Iterator[Program]:
    for outer, wrap in WRAPS.items():
        for kind, leaf in LEAVES.items():
            if kind != "agent":  # which is `alone`
                part = wrap(leaf("x"), "root", "1")
                yield program(f"nested/{kind} in {outer}", _both(outer, kind), part)
        for inner, within in WRAPS.items():
            part = wrap(within(writes("x"), f"{inner.replace(' ', '_')}2", "2"), "root", "1")
            yield program(f"nested/{inner} in {outer}", capability(outer), part)


def _reused() -> Iterator[Program]:
    """The very same step in two places."""
    parts = {kind: leaf("x") for kind, leaf in LEAVES.items()}
    parts |= {kind: wrap(writes("x"), "inner", "1") for kind, wrap in WRAPS.items()}
    # whoever ends last takes back what both wrote
    alike = {
        "race": plain_race(writes("x"), "inner", "1"),
        "map_over": mapped(says("x"), "inner", "1"),
    }
    for kind, part in parts.items():
        twice = but(then(part.at("s0"), part.at("s1")), build=_same_twice(part, in_sequence=True))
        yield program(f"reused/{kind}, one after the other", capability(kind), twice)
        one = alike.get(capability(kind), part)
        beside_itself = but(
            one,
            build=_same_twice(one, in_sequence=False),
            calls=beside(one.calls, one.calls),
            events=beside(one.at("p0").events, one.at("p1").events),
            text=f"{one.text}\n\n{one.text}" if one.text else "",
        )
        yield program(f"reused/{kind}, beside itself", capability(kind), beside_itself)


class _same_twice:  # noqa: N801  # a function that keeps its arguments
    def __init__(self, part: Part, *, in_sequence: bool) -> None:
        self.part, self.in_sequence = part, in_sequence

    def __call__(self, bench: Bench) -> StepLike:
        step = self.part.build(bench)
        return (Pipeline if self.in_sequence else FanOut)("root", step, step)


def _failing() -> Iterator[Program]:
    for kind, leaf in FAILURES.items():
        yield program(f"failing/{kind}", _failing_capability(kind), _only(leaf("x")))
    for outer, wrap in WRAPS.items():
        for kind in ("agent raises", "function raises", "expect fails", "transform raises"):
            part = wrap(FAILURES[kind]("x"), "root", "1")
            yield program(f"failing/{kind} in {outer}", capability(outer), part)
        part = wrap(after_a_write(function_raises("x")), "root", "1")
        yield program(f"failing/after a write in {outer}", capability(outer), part)
        leaf = reports_in_attempt("x") if outer in ATTEMPTS else reports("x")
        part = wrap(leaf, "root", "1")
        made = program(f"failing/agent reports in {outer}", capability(outer), part)
        told = 0 if outer in ATTEMPTS else list(flat(part.calls)).count("x")
        yield with_errors(made, ("SAFETY: x says no",) * told)


def _cancelled() -> Iterator[Program]:
    for kind, leaf in STUCK.items():
        part = _only(leaf("x"))
        yield program(f"cancelled/{kind}", capability(kind), part, way="cancel")
    for outer, wrap in WRAPS.items():
        stuck = after_a_write(hangs("x"))
        part = wrap(stuck, "root", "1")
        yield program(f"cancelled/{outer}, from outside", capability(outer), part, way="cancel")
        inner = wrap(stuck, "inner", "1")
        yield program(
            f"cancelled/{outer}, by a failure beside it", capability(outer), _beside(inner)
        )
        yield program(f"cancelled/{outer}, as a loser", capability(outer), _losing(inner))


def _timed_out() -> Iterator[Program]:
    for kind, leaf in STUCK.items():
        part = _late(leaf("x"))
        yield program(f"timed out/{kind}", capability(kind), part, timed=True)
    for outer, wrap in WRAPS.items():
        inner = wrap(after_a_write(hangs("x")), "inner", "1")
        part = _late(inner)
        yield program(f"timed out/{outer}", capability(outer), part, timed=True)
        part = _made_good(inner)
        yield program(f"timed out/{outer}, made good", capability(outer), part, timed=True)


def _closed() -> Iterator[Program]:
    for outer, wrap in WRAPS.items():
        part = wrap(after_a_write(hangs("x")), "root", "1")
        yield program(f"closed early/{outer}", capability(outer), part, way="close")


def _at_once() -> Iterator[Program]:
    for outer, wrap in WRAPS.items():
        part = wrap(writes("x"), "root", "1")
        yield program(f"at once/{outer}", capability(outer), part, copies=2)


# --- what stands around them ----------------------------------------------------------------------


def _only(x: Part) -> Part:
    """The part as the only step of a pipeline."""
    return but(x.at("s0"), build=lambda p: Pipeline("root", x.build(p)))


def _beside(x: Part) -> Part:
    """Beside a branch that fails as soon as the part has come to its last step."""
    wait = _reacts(x)
    return Part(
        build=lambda p: FanOut(
            "root", x.build(p), Pipeline("other", wait.build(p), p.fn("y", ends="raises"))
        ),
        calls=(*beside(x.calls, wait.calls), "y"),
        events=x.at("p0").events,
        writes=x.writes,
        start=x.start,
        ends="fails",
        raises=bad("y"),
    )


def _losing(x: Part) -> Part:
    """Against a branch that wins as soon as the part has come to its last step."""
    wait, y = _reacts(x), says("y")
    lost = x.at("w0").dropped("root")
    undone = compensation("root", {key: x.start.get(key) for key in x.writes})
    events = lost.events[: len(lost.events) - len(undone)]
    return Part(
        build=lambda p: race(x.build(p), Pipeline("other", wait.build(p), y.build(p)), name="root"),
        calls=(*beside(x.calls, wait.calls), "y"),
        events=(*events, *y.at("w1.s1").events, *undone),
        text=y.text,
        writes=lost.writes,
        start=x.start,
    )


def _reacts(x: Part) -> Part:
    """Waits until the part has come to its last step."""
    return Part(build=lambda p: tap(p.awaits("wait", "x")), calls=("wait",))


def _late(x: Part) -> Part:
    """With too little time, behind an agent."""
    return but(
        then(says("a").at("s0"), x.at("s1.t0")),
        build=lambda p: Pipeline(
            "root", p.agent("a"), timeout(x.build(p), p.short, name="limit"), p.agent("z")
        ),
        ends="fails",
        raises=Raised("StepTimeoutError", "ADKF301", node="limit"),
    )


def _made_good(x: Part) -> Part:
    """With too little time, but with another attempt behind it."""
    lost = but(x.at("f0.t0").dropped("root"), ends="done")
    return but(
        then(lost, says("b").at("f1")),
        build=lambda p: Fallback("root", timeout(x.build(p), p.short, name="limit"), p.agent("b")),
    )


# --- small helpers --------------------------------------------------------------------------------


def with_errors(made: Program, errors: tuple[str, ...]) -> Program:
    """The program, whose agents also report errors that nothing makes good."""
    (turn,) = made.turns
    return replace(made, turns=(replace(turn, expects=replace(turn.expects, errors=errors)),))


def _failing_capability(kind: str) -> str:
    name = kind.removeprefix("async ").split(" raises")[0].split(" fails")[0]
    if kind.startswith("native"):
        return "native agent"
    return {"guard": "transform", "agent reports instead of writing": "agent"}.get(name, name)
