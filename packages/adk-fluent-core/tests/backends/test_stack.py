"""How the hooks of a stack are asked: in which order, who decides, and who is only told."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from adk_fluent.backends._stack import Stack


class Says:
    """Notes what it is asked, and says something or not."""

    def __init__(self, tag: str, log: list[str], *, observer: bool = False, **says: Any) -> None:
        self.tag, self.log, self.observer, self.says = tag, log, observer, says

    async def before_model(self, ctx: Any, request: Any) -> Any:
        return self._asked("before_model", request)

    async def after_model(self, ctx: Any, response: Any) -> Any:
        return self._asked("after_model", response)

    async def on_model_error(self, ctx: Any, request: Any, error: Exception) -> Any:
        return self._asked("on_model_error", error)

    async def wrap_model_call(self, call: Any, next: Any) -> Any:
        self.log.append(f"{self.tag}>")
        try:
            return await next(call)
        finally:
            self.log.append(f"<{self.tag}")

    def _asked(self, hook: str, what: Any) -> Any:
        self.log.append(f"{self.tag}.{hook}({what})")
        said = self.says.get(hook)
        if isinstance(said, Exception):
            raise said
        return said


async def test_before_in_order_around_each_other_and_after_in_reverse() -> None:
    log: list[str] = []
    stack = Stack([Says("a", log), Says("b", log)])

    async def model(call: str) -> str:
        log.append(f"model({call})")
        return "reply"

    assert await stack.before("before_model", None, "q") == (None, 2)
    assert await stack.around("wrap_model_call", model)("q") == "reply"
    assert await stack.after("after_model", None, "r") is None
    assert log == [
        *("a.before_model(q)", "b.before_model(q)", "a>", "b>", "model(q)", "<b", "<a"),
        *("b.after_model(r)", "a.after_model(r)"),
    ]


async def test_who_says_something_decides_and_only_those_outside_are_told_what_comes_of_it() -> (
    None
):
    log: list[str] = []
    stack = Stack(
        [Says("a", log), Says("b", log, before_model="no"), Says("c", log, before_model="never")]
    )
    said, place = await stack.before("before_model", None, "q")
    assert (said, place) == ("no", 1)
    assert await stack.after("after_model", None, said, outside=place) is None
    assert log == ["a.before_model(q)", "b.before_model(q)", "a.after_model(no)"]


async def test_what_one_puts_in_the_place_of_an_outcome_the_next_is_given() -> None:
    log: list[str] = []
    stack = Stack(
        [Says("a", log, after_model="A"), Says("b", log, after_model="B"), Says("c", log)]
    )
    assert await stack.after("after_model", None, "r") == "A"
    assert log == ["c.after_model(r)", "b.after_model(r)", "a.after_model(B)"]


async def test_the_innermost_that_makes_an_error_good_decides() -> None:
    log: list[str] = []
    stack = Stack([Says("a", log, on_model_error="A"), Says("b", log, on_model_error="B")])
    assert await stack.recover("on_model_error", None, "q", "boom") == "B"
    assert log == ["b.on_model_error(boom)"]


async def test_observers_are_always_told_and_decide_nothing() -> None:
    log: list[str] = []
    stack = Stack(
        [
            Says("o1", log, observer=True, before_model="ignored"),
            Says("a", log, before_model="no", after_model="A", on_model_error="made good"),
            Says("o2", log, observer=True),
        ]
    )
    assert await stack.before("before_model", None, "q") == ("no", 1)
    assert await stack.after("after_model", None, "r") == "A"
    assert await stack.recover("on_model_error", None, "q", "boom") == "made good"
    assert log == [
        *("o1.before_model(q)", "a.before_model(q)", "o2.before_model(q)"),
        *("o2.after_model(r)", "a.after_model(r)", "o1.after_model(A)"),
        *("o2.on_model_error(boom)", "a.on_model_error(boom)", "o1.on_model_error(boom)"),
    ]


async def test_what_an_observer_raises_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    broken = Says("o", [], observer=True, before_model=ValueError("its own"))
    stack = Stack([broken])
    with caplog.at_level(logging.ERROR, "adk_fluent"):
        for _ in range(3):
            assert await stack.before("before_model", None, "q") == (None, 1)
    assert [each.message for each in caplog.records] == [
        "before_model of observer Says failed; the run goes on"
    ]


class Watches:
    observer = True

    def __init__(self, what: str) -> None:
        self.what = what

    async def wrap_model_call(self, call: Any, next: Any) -> Any:
        if self.what == "never calls":
            return "its own"
        if self.what == "fails before":
            raise ValueError
        reply = await next("another call")
        if self.what == "fails after":
            raise ValueError
        if self.what == "calls twice":
            assert await next(call) is reply
        return "its own"


@pytest.mark.parametrize(
    "what", ["watches", "never calls", "fails before", "fails after", "calls twice"]
)
async def test_an_observer_around_a_call_changes_nothing_of_it(what: str) -> None:
    seen: list[str] = []

    async def model(call: str) -> str:
        seen.append(call)
        return "reply"

    assert await Stack([Watches(what)]).around("wrap_model_call", model)("call") == "reply"
    assert seen == ["call"]


@pytest.mark.parametrize("what", ["watches", "calls twice"])
async def test_an_observer_around_a_call_that_fails_hides_no_error(what: str) -> None:
    calls: list[str] = []

    async def model(call: str) -> str:
        calls.append(call)
        raise KeyError("the model's")

    with pytest.raises(KeyError, match="the model's"):
        await Stack([Watches(what)]).around("wrap_model_call", model)("call")
    assert calls == ["call"]


async def test_a_hook_that_is_put_in_the_place_of_another_is_the_one_that_is_asked() -> None:
    class Learns:
        async def wrap_model_call(self, call: str, next: Any) -> Any:
            self.wrap_model_call = self.knows
            return await next(call)

        async def knows(self, call: str, next: Any) -> str:
            return f"known {call}"

    async def model(call: str) -> str:
        return f"new {call}"

    around = Stack([Learns()]).around("wrap_model_call", model)
    assert [await around("a"), await around("b")] == ["new a", "known b"]


async def test_each_run_has_an_instance_of_its_own() -> None:
    class Counts:
        def __init__(self) -> None:
            self.runs = 0

        def new(self) -> Counts:
            return Counts()

        async def before_run(self, ctx: Any) -> None:
            self.runs += 1

    given = Counts()
    stacks = [Stack.begun([given]) for _ in range(2)]
    for stack in stacks:
        await stack.before("before_run", None)
    assert [stack.members[0].runs for stack in stacks] == [1, 1]
    assert given.runs == 0
    outer = Stack([Says("outer", [])])
    assert stacks[0].inside(outer).members == [*outer.members, *stacks[0].members]


async def test_the_outermost_stands_outside_those_of_the_run() -> None:
    log: list[str] = []

    class Outer(Says):
        outermost = True

    async def model(call: str) -> str:
        return call

    stack = Stack([Outer("outer", log)]).inside(Stack([Says("first", log)]))
    await stack.around("wrap_model_call", model)("q")
    assert log == ["outer>", "first>", "<first", "<outer"]


async def test_who_is_at_the_boundary_sees_what_comes_in_and_what_goes_out() -> None:
    log: list[str] = []

    class Edge(Says):
        at_boundary = True

        async def on_event(self, ctx: Any, event: Any) -> Any:
            return self._asked("on_event", event)

        async def on_user_message(self, ctx: Any, message: Any) -> Any:
            return self._asked("on_user_message", message)

    class Inner(Edge):
        at_boundary = False

    edge = Edge("edge", log)
    inner = Inner("inner", log, on_event="changed", on_user_message="changed")
    stack = Stack([inner]).inside(Stack([edge]))

    async def model(call: str) -> str:
        return call

    await stack.around("wrap_model_call", model)("q")
    assert log == ["inner>", "edge>", "<edge", "<inner"]
    log.clear()
    assert await stack.hand_in("on_user_message", None, "said") == "changed"
    assert await stack.after("on_event", None, "event") == "changed"
    assert log == [
        *("edge.on_user_message(said)", "inner.on_user_message(said)"),
        *("inner.on_event(event)", "edge.on_event(changed)"),
    ]


async def test_who_only_looks_at_events_is_told_at_once_and_onlookers_do_no_harm(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log: list[str] = []

    class Looks(Says):
        def see_event(self, ctx: Any, event: Any, /) -> None:
            self._asked("see_event", event)

    class Edge(Looks):
        at_boundary = True

    fails = Looks("observer", log, observer=True, see_event=ValueError("no"))
    stack = Stack([Edge("edge", log), Says("blind", log), Looks("inner", log), fails])
    assert stack.has("see_event")
    assert not Stack([Says("blind", log)]).has("see_event")
    stack.show(None, "event")
    assert log == ["observer.see_event(event)", "inner.see_event(event)", "edge.see_event(event)"]
    assert "see_event of observer Looks failed" in caplog.text
    with pytest.raises(ValueError, match="no"):
        Stack([Looks("raises", log, see_event=ValueError("no"))]).show(None, "event")
