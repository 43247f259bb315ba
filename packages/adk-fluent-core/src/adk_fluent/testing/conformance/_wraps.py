"""The kinds of steps that hold others: what becomes of a part inside each of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from adk_fluent.builders import (
    Fallback,
    FanOut,
    Loop,
    Pipeline,
    Route,
    map_over,
    race,
    tap,
    timeout,
    transfer,
)
from adk_fluent.testing.conformance._broken import agent_raises, hangs
from adk_fluent.testing.conformance._leaves import function, looks, says
from adk_fluent.testing.conformance._order import beside
from adk_fluent.testing.conformance._parts import Part, but, compensation, of_engine, then
from adk_fluent.testing.conformance._program import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.builders import Race, StepLike


class Wrap(Protocol):
    """Puts a part into an arrangement.

    The arrangement is called `name`; what else is in it has names that end in `n`.
    """

    def __call__(self, x: Part, name: str, n: str, /) -> Part:
        """Make it."""
        ...


def sequence(x: Part, name: str, n: str) -> Part:
    """Between two agents."""
    a, z = says(f"a{n}"), says(f"z{n}")
    total = then(a.at("s0"), x.at("s1"), z.at("s2"))
    return but(total, build=lambda p: Pipeline(name, a.build(p), x.build(p), z.build(p)))


def parallel(x: Part, name: str, n: str) -> Part:
    """Beside an agent, which never ends where the part does not come to its end."""
    o = says(f"o{n}") if x.ends == "done" else hangs(f"o{n}")
    first = _waits(x, o, n)
    calls = beside(first.calls, o.calls)
    events = beside(first.at("p0").events, o.at("p1").events)
    text = "\n\n".join(each for each in (x.text, o.text) if each)
    return but(
        first,
        build=lambda p: FanOut(name, first.build(p), o.build(p)),
        calls=calls,
        events=events,
        text=text,
    )


def racing(x: Part, name: str, n: str) -> Part:
    """Against a branch that never ends; against one that fails where the part does."""
    return _against(x, name, n, lambda name, *steps: race(*steps, name=name))


def first_complete(x: Part, name: str, n: str) -> Part:
    """The same in a parallel that keeps the first branch to succeed."""
    return _against(x, name, n, lambda name, *steps: FanOut(name, *steps, merge="first_complete"))


def plain_race(x: Part, name: str, n: str) -> Part:
    """Against a branch that never ends and has written nothing."""
    o = hangs(f"o{n}")
    last = _waits(x, o, n)
    return but(
        last.at("w1"),
        build=lambda p: race(o.build(p), last.build(p), name=name),
        calls=beside(o.calls, last.calls),
    )


class _Racing(Protocol):
    def __call__(self, name: str, /, *steps: StepLike) -> Race | FanOut: ...


def _against(x: Part, name: str, n: str, made: _Racing) -> Part:
    o = agent_raises(f"o{n}") if x.ends == "fails" else _lost(n)
    last = _waits(x, o, n)
    total = but(
        last,
        build=lambda p: made(name, o.build(p), last.build(p)),
        calls=beside(o.calls, last.calls),
    )
    ours, theirs = last.at("w1"), o.at("w0")
    if x.ends == "hangs":  # whoever ends it, it has no losers
        return but(
            total,
            events=beside(theirs.events, ours.events),
            writes={**theirs.writes, **ours.writes},
        )
    if x.ends == "done":
        events = beside(_only_dropped(theirs), ours.events)
        undone = dict.fromkeys(theirs.writes)
        return but(total, events=(*events, *compensation(name, undone)))
    lost = ours.dropped(name)
    raises = replace(x.raises, before=o.raises) if x.raises else None
    return but(total, events=lost.events, writes=lost.writes, text="", raises=raises)


def _lost(n: str) -> Part:
    """A branch that writes and never ends."""
    write, stuck = function(f"l{n}", {f"lost{n}": 1}), hangs(f"o{n}")
    total = then(write.at("s0"), stuck.at("s1"))
    return but(total, build=lambda p: Pipeline(f"branch_o{n}", write.build(p), stuck.build(p)))


def _only_dropped(part: Part) -> tuple[str, ...]:
    return tuple(f"~{line}" for line in part.events if isinstance(line, str))


def _waits(x: Part, other: Part, n: str) -> Part:
    """The part behind a step that waits until the branch beside it has come to its last step."""
    last = str(other.calls[-1])
    wait = looks(f"wait{n}")
    total = then(wait.at("s0"), x.at("s1"))
    return but(
        total,
        build=lambda p: Pipeline(f"branch_x{n}", tap(p.awaits(f"wait{n}", last)), x.build(p)),
    )


def fallback_first(x: Part, name: str, n: str) -> Part:
    """The first attempt, with another one behind it."""
    b = says(f"b{n}")
    tried = x.at("f0")
    if x.ends == "fails":
        tried = then(but(tried.dropped(name), ends="done", raises=None), b.at("f1"))
    return but(tried, build=lambda p: Fallback(name, x.build(p), b.build(p)))


def fallback_last(x: Part, name: str, n: str) -> Part:
    """The second attempt, behind one that fails."""
    b = agent_raises(f"b{n}")
    calls, raises = (*b.calls, *x.calls), x.raises and replace(x.raises, before=b.raises)
    tried = x.at("f1")
    if x.ends == "fails":
        tried = tried.dropped(name)
    return but(
        tried,
        build=lambda p: Fallback(name, b.build(p), x.build(p)),
        calls=calls,
        raises=raises,
    )


def loop(x: Part, name: str, n: str) -> Part:
    """Twice, if it comes to its end."""
    return but(then(x.at("l0"), x.at("l1")), build=lambda p: Loop(name, x.build(p), max=2))


def route(x: Part, name: str, n: str) -> Part:
    """The branch of the second test, whose test holds."""
    no, yes = looks(f"no{n}"), looks(f"yes{n}")
    total = then(no, yes, x.at("r1"))
    return but(
        total,
        build=lambda p: (
            Route()
            .when(p.test(f"no{n}", holds=False), p.agent(f"u{n}"))
            .when(p.test(f"yes{n}", later=True), x.build(p))
            .named(name)
        ),
    )


def otherwise(x: Part, name: str, n: str) -> Part:
    """What runs when no test holds."""
    return but(
        x.at("r1"),
        build=lambda p: (
            Route("missing").eq("x", p.agent(f"u{n}")).otherwise(x.build(p)).named(name)
        ),
    )


def mapped(x: Part, name: str, n: str) -> Part:
    """Once for each of two items, one after the other."""
    total = then(x.at("m0"), x.at("m1"))
    if x.ends == "done":
        results = {f"results{n}": [x.text, x.text]}
        before = {key: x.start.get(key) for key in total.writes}
        undone = {key: value for key, value in before.items() if value != total.writes[key]}
        line = f". {of_engine(name)} {shown({**undone, **results})}"
        text = f"{x.text}\n\n{x.text}" if x.text else ""
        total = but(total, events=(*total.events, line), writes={**before, **results}, text=text)
    return but(
        total,
        build=lambda p: map_over(
            f"items{n}", x.build(p), output_key=f"results{n}", concurrency=1, name=name
        ),
        start={**x.start, f"items{n}": ["é", None]},
    )


def limited(x: Part, name: str, n: str) -> Part:
    """In good time."""
    return but(x.at("t0"), build=lambda p: timeout(x.build(p), 60, name=name))


def handed_over(x: Part, name: str, n: str) -> Part:
    """The target of a transfer, which stands behind it in a branch that does not run."""
    target, hand = f"target{n}", f"hand{n}"
    inner = x.at("s0.x0.s0")
    line = f"s0 {hand}@root ->{target}"
    return but(
        inner,
        build=lambda p: Pipeline(
            name,
            transfer(target, name=hand),
            Route("missing").eq("x", Pipeline(target, x.build(p))),
        ),
        events=(line, *inner.events),
    )


#: Arrangements, by kind.
WRAPS: Final[Mapping[str, Wrap]] = {
    "sequence": sequence,
    "parallel": parallel,
    "first_complete": first_complete,
    "race": racing,
    "fallback": fallback_first,
    "last fallback": fallback_last,
    "loop": loop,
    "route": route,
    "otherwise": otherwise,
    "map_over": mapped,
    "timeout": limited,
    "transfer": handed_over,
}

#: The capability that each of them stands for.
WRAP_CAPABILITIES: Final[Mapping[str, str]] = {
    "last fallback": "fallback",
    "first_complete": "race",
    "otherwise": "route",
}

#: Those inside which an error that an agent reports is a failure.
ATTEMPTS: Final = frozenset({"first_complete", "race", "fallback", "last fallback"})
