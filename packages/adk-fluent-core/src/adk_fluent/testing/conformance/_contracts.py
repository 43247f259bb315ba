"""Programs about what runs hold to: state schemas, inputs, declared effects."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar, Final

from adk_fluent.builders import Fallback, FanOut, Pipeline, S, effects, map_over, race, tap
from adk_fluent.errors import StateTypeError
from adk_fluent.ir import ExecutionConfig, Ref, StateFieldRef
from adk_fluent.testing.conformance._agent_tools import calls
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._delegates import handing, hands_over
from adk_fluent.testing.conformance._order import beside
from adk_fluent.testing.conformance._program import Raised

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adk_fluent.builders import StepLike
    from adk_fluent.testing.conformance._program import Program

#: What goes wrong here in runs, checks know before.
_UNCHECKED: Final = ExecutionConfig(contracts="off")
_DAY: Final = date(2020, 1, 2)
_STORED: Final = "2020-01-02"
_ABOUT: Final = "state contract"


def _joined(one: list[str], other: list[str]) -> list[str]:
    return [*one, *other]


class Desk:
    """A state schema: a number, a text, a date that is stored as text, a list that is merged."""

    __state_fields__: ClassVar[Mapping[str, StateFieldRef]] = {
        "n": StateFieldRef("n", int),
        "word": StateFieldRef("word", str),
        "day": StateFieldRef("day", date),
        "seen": StateFieldRef("seen", list, reducer=Ref.to(_joined)),
    }

    @classmethod
    def __state_encode__(cls, delta: Mapping[str, Any], where: str, /) -> dict[str, Any]:
        """A write as it is stored.

        Raises:
            StateTypeError: A value is none that its key takes.
        """
        return {key: cls._stored(key, value, where) for key, value in delta.items()}

    @classmethod
    def _stored(cls, key: str, value: Any, where: str) -> Any:
        if value is None or key not in cls.__state_fields__:
            return value
        if isinstance(value, date):
            value = value.isoformat()
        kind = cls.__state_fields__[key].type
        if isinstance(value, str if kind is date else kind):
            return value
        raise StateTypeError(f"{key} is no {kind.__name__}, as {where} has it", key=key)


def contracts() -> Iterator[Program]:
    """All of them."""
    yield from _stored()
    yield from _refused()
    yield from _beginnings()
    yield from _declared()
    yield from _below()


def _held(*steps: StepLike, **options: Any) -> Pipeline:
    return Pipeline("root", *steps).state(Desk, **options)


def _stored() -> Iterator[Program]:
    yield case(
        "contract/what is written is stored as the schema says",
        _ABOUT,
        lambda p: _held(
            p.agent("a", writes="word"),
            p.fn("f", {"day": _DAY, "n": 1}),
            S.compute(day=lambda _: _DAY).named("c"),
            tap(p.fn("look", {"never": lambda state: state["day"].upper()})),
        ),
        end={"word": "A", "n": 1, "day": _STORED},
        text="A",
        calls=("a", "f", "look"),
        events=(
            "s0 a 'A' {'word': 'A'}",
            f"s1 f@root {{'day': '{_STORED}', 'n': 1}}",
            f"s2 c@root {{'day': '{_STORED}'}}",
        ),
    )
    yield case(
        "contract/branches merge what the schema says",
        _ABOUT,
        lambda p: _held(FanOut("y", p.fn("f", {"seen": ["f"]}), p.fn("g", {"seen": ["g"]}))),
        end={"seen": ["f", "g"]},
        calls=beside(("f",), ("g",)),
        events=(
            *beside(("s0.p0 f@root {'seen': ['f']}",), ("s0.p1 g@root {'seen': ['g']}",)),
            "s0 y@root {'seen': ['f', 'g']}",
        ),
    )
    yield case(
        "contract/behind the part nothing is held to it",
        _ABOUT,
        lambda p: Pipeline(
            "root", _held(p.fn("f", {"n": 1})).named("part"), p.fn("g", {"n": "one", "other": 1})
        ),
        end={"n": "one", "other": 1},
        calls=("f", "g"),
        events=("s0.s0 f@root {'n': 1}", "s1 g@root {'n': 'one', 'other': 1}"),
        config=_UNCHECKED,
    )
    for enforce in ("warn", "off"):
        yield case(
            f"contract/a schema that is not enforced lets it be: {enforce}",
            _ABOUT,
            lambda p, enforce=enforce: _held(p.fn("f", {"n": "one", "other": 1}), enforce=enforce),
            end={"n": "one", "other": 1},
            calls=("f",),
            events=("s0 f@root {'n': 'one', 'other': 1}",),
            config=_UNCHECKED,
        )
    yield case(
        "contract/other keys may be allowed",
        _ABOUT,
        lambda p: _held(p.fn("f", {"other": 1}), extra="allow"),
        end={"other": 1},
        calls=("f",),
        events=("s0 f@root {'other': 1}",),
    )


def _refused() -> Iterator[Program]:
    yield case(
        "contract/an answer of another type ends the run",
        _ABOUT,
        lambda p: _held(p.fn("f", {"n": 1}), p.agent("a", writes="n"), p.agent("b")),
        end={"n": 1},
        calls=("f", "a"),
        events=("s0 f@root {'n': 1}",),
        raises=Raised("StateTypeError", "ADKF313", "n is no int", node="a"),
        config=_UNCHECKED,
    )
    yield case(
        "contract/a key that is not declared ends the run",
        _ABOUT,
        lambda p: _held(p.fn("f", {"dya": 1}), p.agent("b")),
        calls=("f",),
        raises=Raised("StateTypeError", "ADKF313", "'dya', which Desk does not declare", node="f"),
        config=_UNCHECKED,
    )
    yield case(
        "contract/results of a map are held to it",
        _ABOUT,
        lambda p: _held(map_over("items", p.agent("a"), output_key="n", name="m")),
        start={"items": [1]},
        calls=("a",),
        events=("s0.m0 a 'A'",),
        raises=Raised("StateTypeError", "ADKF313", "n is no int", node="m"),
        config=_UNCHECKED,
    )
    yield case(
        "contract/a fallback takes it for a failure",
        _ABOUT,
        lambda p: _held(
            Fallback(
                "o",
                Pipeline("one", p.fn("f", {"word": "x"}), p.agent("a", writes="n")),
                p.agent("b", writes="word"),
            )
        ),
        end={"word": "B"},
        text="B",
        calls=("f", "a", "b"),
        events=(
            "~s0.f0.s0 f@root {'word': 'x'}",
            "s0 o@root {'word': None}",
            "s0.f1 b 'B' {'word': 'B'}",
        ),
        config=_UNCHECKED,
    )
    yield case(
        "contract/a race takes it for a failure",
        _ABOUT,
        lambda p: _held(
            race(
                p.agent("a", writes="n"),
                Pipeline("two", p.awaits("wait", "a"), p.fn("f", {"n": 1})),
                name="w",
            )
        ),
        end={"n": 1},
        calls=beside(("a",), ("wait", "f")),
        events=("s0.w1.s1 f@root {'n': 1}",),
        config=_UNCHECKED,
    )


def _beginnings() -> Iterator[Program]:
    yield case(
        "contract/a session that does not fit begins nothing",
        _ABOUT,
        lambda p: _held(p.agent("a")),
        start={"n": "one", "other": 1},
        calls=(),
        raises=Raised("StateTypeError", "ADKF313", "n is no int", node="root"),
    )
    yield case(
        "contract/an input that is missing begins nothing",
        _ABOUT,
        lambda p: Pipeline("root", p.agent("a")).contract(inputs=["topic"]),
        start={"other": 1},
        calls=(),
        raises=Raised("StateKeyError", "ADKF312", "begins without 'topic'", node="root"),
    )
    yield case(
        "contract/what is there begins",
        _ABOUT,
        lambda p: _held(p.agent("a")).contract(inputs=["word"]),
        start={"word": "x", "n": 1, "other": 1},
        text="A",
        calls=("a",),
        events=("s0 a 'A'",),
    )


def _declared() -> Iterator[Program]:
    yield case(
        "contract/a function keeps to what is declared of it",
        _ABOUT,
        lambda p: Pipeline("root", effects(writes="k", may_write="m")(p.fn("f", {"k": 0}))),
        end={"k": 0},
        calls=("f",),
        events=("s0 f@root {'k': 0}",),
    )
    yield case(
        "contract/a declared write that did not happen is missed at the writer",
        _ABOUT,
        lambda p: Pipeline("root", effects(writes="k")(p.fn("f", {"k": None}))),
        calls=("f",),
        raises=Raised("OutputMissingError", "ADKF303", "'k'", node="f"),
    )
    yield case(
        "contract/a key that is not among the declared ones is refused",
        _ABOUT,
        lambda p: Pipeline("root", effects(may_write="k")(p.fn("f", {"other": 1}))),
        calls=("f",),
        raises=Raised("UsageError", "ADKF101", "'other', which it is not declared", node="f"),
    )


def _below() -> Iterator[Program]:
    """Agents and pipelines below agents."""
    yield case(
        "contract/a delegate is held to what stands around, and to what it says itself",
        "delegation",
        lambda p: _held(
            hands_over(p, "d", "e").delegates(
                p.agent("e", writes="word").state(Desk, extra="allow")
            )
        ),
        end={"word": "E"},
        text="E",
        calls=("d", "e"),
        events=(*handing("d", "s0", "e"), "s0 d@e 'E' {'word': 'E'}"),
    )
    yield case(
        "contract/a delegate that breaks what it says itself",
        "delegation",
        lambda p: Pipeline(
            "root", hands_over(p, "d", "e").delegates(p.agent("e", writes="n").state(Desk))
        ),
        calls=("d", "e"),
        events=handing("d", "s0", "e"),
        raises=Raised("StateTypeError", "ADKF313", "n is no int", node="d"),
        config=_UNCHECKED,
    )
    yield case(
        "contract/a pipeline below may write what stands around declares",
        "delegation",
        lambda p: _held(
            hands_over(p, "d", "inner").delegates(
                Pipeline("inner", p.fn("f", {"word": "x"}), p.fn("g", {"n": 1})).state(_Number)
            )
        ),
        end={"word": "x", "n": 1},
        calls=("d", "f", "g"),
        events=(
            *handing("d", "s0", "inner"),
            "s0.s0 f@inner {'word': 'x'}",
            "s0.s1 g@inner {'n': 1}",
        ),
    )
    yield case(
        "contract/a pipeline below begins with its inputs",
        "delegation",
        lambda p: Pipeline(
            "root",
            hands_over(p, "d", "inner").delegates(
                Pipeline("inner", p.agent("e")).contract(inputs=["topic"])
            ),
        ),
        calls=("d",),
        events=handing("d", "s0", "inner"),
        raises=Raised("StateKeyError", "ADKF312", "inner begins without 'topic'"),
        config=_UNCHECKED,
    )
    yield case(
        "contract/a pipeline that is a tool begins with its inputs",
        "agent tool",
        lambda p: Pipeline(
            "root",
            calls(p, "inner", "go").agent_tool(
                Pipeline("inner", p.agent("e")).contract(inputs=["topic"])
            ),
        ),
        calls=("d",),
        events=("s0 d calls inner({'request': 'go'})",),
        raises=Raised("StateKeyError", "ADKF312", "inner begins without 'topic'"),
        config=_UNCHECKED,
    )
    yield case(
        "contract/a pipeline that is a tool is held to what it says itself",
        "agent tool",
        lambda p: Pipeline(
            "root",
            calls(p, "inner", "go").agent_tool(
                Pipeline("inner", p.fn("f", {"n": "one"})).state(Desk)
            ),
        ),
        calls=("d", "f"),
        events=("s0 d calls inner({'request': 'go'})",),
        raises=Raised("StateTypeError", "ADKF313", "n is no int"),
        config=_UNCHECKED,
    )
    yield case(
        "contract/an agent that is a tool cannot be held to a schema of its own",
        "agent tool",
        lambda p: Pipeline("root", calls(p, "e", "go").agent_tool(p.agent("e").state(Desk))),
        raises=Raised("UnsupportedNodeError", text="e runs as a tool", node="e"),
        config=_UNCHECKED,
    )


class _Number(Desk):
    """A schema of the number alone."""

    __state_fields__: ClassVar[Mapping[str, StateFieldRef]] = {"n": StateFieldRef("n", int)}
