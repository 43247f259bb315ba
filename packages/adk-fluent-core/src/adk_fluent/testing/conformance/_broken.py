"""Steps that fail, and steps that never end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.builders import Pipeline, S, expect, tap
from adk_fluent.testing.conformance._leaves import function
from adk_fluent.testing.conformance._parts import Part, then
from adk_fluent.testing.conformance._program import Raised

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adk_fluent.builders import StepLike
    from adk_fluent.testing.conformance._bench import Bench, End
    from adk_fluent.testing.conformance._leaves import Leaf

    Build = Callable[[Bench], StepLike]


def bad(name: str) -> Raised:
    """The error of steps that raise."""
    return Raised("ValueError", text=f"{name} is bad", node=name)


def _fails(name: str, build: Build, raises: Raised | None = None) -> Part:
    return Part(build=build, calls=(name,), ends="fails", raises=raises or bad(name))


def _stuck(name: str, build: Build) -> Part:
    return Part(build=build, calls=(name,), ends="hangs")


# --- steps that fail ------------------------------------------------------------------------------


def agent_raises(name: str) -> Part:
    """An agent whose model raises."""
    return _fails(name, lambda p: p.agent(name, ends="raises"))


def function_raises(name: str) -> Part:
    """A function that raises."""
    return _fails(name, lambda p: p.fn(name, ends="raises"))


def expect_fails(name: str) -> Part:
    """An expectation that does not hold."""
    return _fails(
        name,
        lambda p: expect(p.test(name, holds=False), "it must hold", name=name),
        Raised("ExpectationError", "ADKF302", "it must hold", name),
    )


def transform_raises(name: str) -> Part:
    """A change to state whose function raises."""
    inner = f"{name}_fn"
    raises = Raised("ValueError", text=f"{inner} is bad", node=name)
    return _fails(inner, lambda p: _computes(p, name, "raises"), raises)


def guard_fails(name: str) -> Part:
    """A key that must be there and is not."""
    raised = Raised("ExpectationError", "ADKF302", "missing", name)
    return Part(build=lambda _: S.guard("missing").named(name), ends="fails", raises=raised)


def reports(name: str) -> Part:
    """An agent that reports an error where nothing makes it good: the run goes on."""
    return Part(
        build=lambda p: p.agent(name, ends="reports"),
        calls=(name,),
        events=(f". {name} !SAFETY: {name} says no",),
    )


def reports_in_attempt(name: str) -> Part:
    """The same in a fallback or race, where it is a failure."""
    raised = Raised("AgentReportedError", "ADKF305", node=name)
    part = reports(name)
    return Part(build=part.build, calls=part.calls, events=part.events, ends="fails", raises=raised)


def reports_instead(name: str) -> Part:
    """An agent that reports an error instead of writing what it declares."""
    return Part(
        build=lambda p: p.agent(name, ends="reports", writes="k"),
        calls=(name,),
        events=(f". {name} !SAFETY: {name} says no",),
        ends="fails",
        raises=Raised("OutputMissingError", "ADKF303", node=name),
    )


#: Steps that fail, by how. A predicate that raises is not one that does not hold.
FAILURES: Final[Mapping[str, Leaf]] = {
    "agent raises": agent_raises,
    "native agent raises": lambda name: _fails(name, lambda p: p.native(name, ends="raises")),
    "function raises": function_raises,
    "async function raises": lambda name: _fails(
        name, lambda p: p.fn(name, ends="raises", later=True)
    ),
    "transform raises": transform_raises,
    "tap raises": lambda name: _fails(name, lambda p: tap(p.fn(name, ends="raises"))),
    "expect raises": lambda name: _fails(name, lambda p: _expects(p, name, "raises")),
    "expect fails": expect_fails,
    "guard fails": guard_fails,
    "agent reports instead of writing": reports_instead,
}


# --- steps that never end -------------------------------------------------------------------------


def hangs(name: str) -> Part:
    """An agent that never answers."""
    return _stuck(name, lambda p: p.agent(name, ends="hangs"))


#: Steps that never end, by kind.
STUCK: Final[Mapping[str, Leaf]] = {
    "agent": hangs,
    "native agent": lambda name: _stuck(name, lambda p: p.native(name, ends="hangs")),
    "async function": lambda name: _stuck(name, lambda p: p.fn(name, ends="hangs")),
    "transform": lambda name: _stuck(f"{name}_fn", lambda p: _computes(p, name, "hangs")),
    "async tap": lambda name: _stuck(name, lambda p: tap(p.fn(name, ends="hangs"))),
    "async expect": lambda name: _stuck(name, lambda p: _expects(p, name, "hangs")),
}


def _expects(p: Bench, name: str, ends: End) -> StepLike:
    return expect(p.test(name, ends=ends, later=True), "it must hold", name=name)


def _computes(p: Bench, name: str, ends: End) -> StepLike:
    return S.compute(k=p.fn(f"{name}_fn", ends=ends)).named(name)


def after_a_write(last: Part) -> Part:
    """A function that writes the key ``k``, then something else."""
    first = function("w0")
    total = then(first.at("s0"), last.at("s1"))
    return Part(
        build=lambda p: Pipeline("body", first.build(p), last.build(p)),
        calls=total.calls,
        events=total.events,
        text=total.text,
        writes=total.writes,
        ends=total.ends,
        raises=total.raises,
    )
