"""The laws of stacks, over random ones: order, short circuits, errors, cancellation.

A reference says in plain words what happens around one tool call; the call site does the same.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_fluent.backends._stack import Stack
from adk_fluent.backends.adk._hooks._calls import _through
from adk_fluent.protocol import ToolCall

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.adk

Act = Literal["pass", "say", "raise"]
Around = Literal["pass", "say", "raise", "again", "mend", "spoil"]


class Boom(Exception):  # noqa: N818  # short, for the sake of the table
    """What members raise."""


@dataclass(frozen=True)
class Member:
    """What one middleware does; `observer` decides nothing."""

    name: str
    observer: bool
    before: Act
    wrap: Around
    recover: Act
    after: Act


def member(name: str) -> st.SearchStrategy[Member]:
    acts = st.sampled_from(["pass", "pass", "pass", "say", "raise"])
    around = st.sampled_from(["pass", "pass", "say", "raise", "again", "mend", "spoil"])
    return st.builds(Member, st.just(name), st.booleans(), acts, around, acts, acts)


stacks = st.integers(0, 5).flatmap(lambda n: st.tuples(*(member("abcde"[i]) for i in range(n))))
tools = st.sampled_from(["result", "raise"])


# --- what happens --------------------------------------------------------------------------------


def made(each: Member, log: list[str]) -> Any:  # noqa: C901  # a row for each thing it may do
    def said(hook: str, act: Act) -> Any:
        log.append(f"{hook} {each.name}")
        if act == "raise":
            raise Boom(f"{hook} {each.name}")
        return {hook: each.name} if act == "say" else None

    class Made:
        observer = each.observer

        async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> Any:
            return said("before", each.before)

        async def on_tool_error(
            self, ctx: Any, tool_name: str, args: dict[str, Any], error: Exception
        ) -> Any:
            return said("recover", each.recover)

        async def after_tool(
            self, ctx: Any, tool_name: str, args: dict[str, Any], result: Any
        ) -> Any:
            log.append(f"sees {result}")
            return said("after", each.after)

        async def wrap_tool_call(
            self, call: ToolCall, next: Callable[[ToolCall], Awaitable[Any]]
        ) -> Any:
            log.append(f"wrap {each.name}")
            if each.wrap == "say":
                return {"wrap": each.name}
            if each.wrap == "raise":
                raise Boom(f"wrap {each.name}")
            try:
                result = await next(call)
            except Boom:
                if each.wrap == "again":
                    return await next(call)
                if each.wrap == "mend":
                    return {"mended": each.name}
                raise
            if each.wrap == "spoil":
                raise Boom(f"spoil {each.name}")
            return result

    return Made()


async def happens(members: tuple[Member, ...], tool: str, log: list[str]) -> Any:
    async def innermost(call: ToolCall) -> Any:
        log.append("tool")
        if tool == "raise":
            raise Boom("tool")
        return {"tool": "result"}

    stack = Stack(made(each, log) for each in members)
    try:
        return await _through(stack, ToolCall("ping"), innermost)
    except Boom as error:
        return str(error)


# --- what should happen --------------------------------------------------------------------------


def should(members: tuple[Member, ...], tool: str, log: list[str]) -> Any:
    try:
        return _should(members, tool, log)
    except Boom as error:
        return str(error)


def _should(members: tuple[Member, ...], tool: str, log: list[str]) -> Any:
    decided, outside = None, len(members)
    for at, each in enumerate(members):
        if decided is not None and not each.observer:
            continue
        said = _act(each, "before", each.before, log)
        if decided is None and said is not None:
            decided, outside = said, at
    if decided is None:
        try:
            decided = _around(members, tool, log)
        except Boom:
            for each in reversed(members):
                if each.observer or decided is None:
                    said = _act(each, "recover", each.recover, log)
                    decided = said if decided is None else decided
            if decided is None:
                raise
    for each in reversed(members[:outside]):
        log.append(f"sees {decided}")
        said = _act(each, "after", each.after, log)
        decided = decided if said is None else said
    return decided


def _act(each: Member, hook: str, act: Act, log: list[str]) -> Any:
    log.append(f"{hook} {each.name}")
    if each.observer:
        return None
    if act == "raise":
        raise Boom(f"{hook} {each.name}")
    return {hook: each.name} if act == "say" else None


def _around(members: tuple[Member, ...], tool: str, log: list[str]) -> Any:
    if not members:
        log.append("tool")
        if tool == "raise":
            raise Boom("tool")
        return {"tool": "result"}
    each, inside = members[0], members[1:]
    log.append(f"wrap {each.name}")
    if each.observer:  # whatever it does, what is inside happens once
        return _around(inside, tool, log)
    if each.wrap == "say":
        return {"wrap": each.name}
    if each.wrap == "raise":
        raise Boom(f"wrap {each.name}")
    try:
        result = _around(inside, tool, log)
    except Boom:
        if each.wrap == "again":
            return _around(inside, tool, log)
        if each.wrap == "mend":
            return {"mended": each.name}
        raise
    if each.wrap == "spoil":
        raise Boom(f"spoil {each.name}")
    return result


@settings(max_examples=300, deadline=None)
@given(stacks, tools)
def test_order_short_circuits_and_errors(members: tuple[Member, ...], tool: str) -> None:
    log: list[str] = []
    wanted: list[str] = []
    expected = should(members, tool, wanted)
    assert asyncio.run(happens(members, tool, log)) == expected
    assert log == wanted


# --- cancellation --------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=5))
def test_cancellation_goes_through_all_and_nothing_comes_after_it(
    members: list[tuple[bool, bool]],
) -> None:
    """Each is (an observer, swallows errors); `finally` runs from the inside out, nothing else."""
    log: list[str] = []

    def waiting(name: int, observes: bool, swallows: bool) -> Any:
        class Made:
            observer = observes

            async def wrap_tool_call(
                self, call: ToolCall, next: Callable[[ToolCall], Awaitable[Any]]
            ) -> Any:
                try:
                    return await next(call)
                except Exception:
                    if swallows:
                        return {}
                    raise
                finally:
                    log.append(f"left {name}")

            async def on_tool_error(self, *_: Any) -> Any:
                log.append("recover")

            async def after_tool(self, *_: Any) -> Any:
                log.append("after")

        return Made()

    async def main() -> None:
        begun = asyncio.Event()

        async def innermost(call: ToolCall) -> Any:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                log.append("tool left")

        stack = Stack(waiting(at, *each) for at, each in enumerate(members))
        running = asyncio.ensure_future(_through(stack, ToolCall("ping"), innermost))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert sorted(log) == sorted(["tool left", *(f"left {at}" for at in range(len(members)))])
    plain = [at for at, (observes, _) in enumerate(members) if not observes]
    if len(plain) == len(members):
        assert log == ["tool left", *(f"left {at}" for at in reversed(plain))]
