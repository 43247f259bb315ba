"""The middlewares of one run, and how their hooks are asked.

The first is the outermost: hooks before something are asked in order, those after it in reverse,
and `wrap_*` hooks stand around each other. The first hook before something that answers decides,
and none after it is asked. What a hook after something puts in its place the next one is given, and
so it is with what the user says, in order.
Observers are always told, and whatever they say or raise decides nothing. Those at the boundary are
inside all others, but for what the user says and for events, which they see as the world does;
those that say `outermost` stand outside all others.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._logs import LOG
from adk_fluent._words import describe
from adk_fluent.errors import UsageError
from adk_fluent.protocol import check_middleware, fresh, hooks_of
from adk_fluent.protocol._middleware import has_method

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence


#: What a hook gives that puts something in the place of what it is about: what that must have.
_GIVES: Final = {
    "on_user_message": ("a Content", "parts"),
    "before_run": ("a Content", "parts"),
    "before_agent": ("a Content", "parts"),
    "after_agent": ("a Content", "parts"),
    "before_model": ("an LlmResponse", "usage_metadata"),
    "after_model": ("an LlmResponse", "usage_metadata"),
    "on_model_error": ("an LlmResponse", "usage_metadata"),
    "wrap_model_call": ("a ModelReply", "responses"),
    "wrap_model_request": ("a ModelReply", "responses"),
    "wrap_remote_call": ("a RemoteReply", "events"),
    "wrap_agent": ("an AgentReply", "state_delta"),
    "wrap_run": ("an AgentReply", "state_delta"),
    "before_tool": ("a dict", "items"),
}


#: What those at the boundary are asked before all others; events go through a stack in reverse.
_OUTSIDE: Final = frozenset({"on_user_message", "on_event", "see_event"})


def _is_at_boundary(middleware: Any) -> bool:
    return bool(getattr(middleware, "at_boundary", False))


def _depth(middleware: Any) -> int:
    if _is_at_boundary(middleware):
        return 1
    return -1 if getattr(middleware, "outermost", False) else 0


class _Member:
    """A middleware in its place.

    Args:
        middleware: What was given.
        place: Its place in the stack.
    """

    __slots__ = ("failed", "hooks", "middleware", "observes", "place")

    def __init__(self, middleware: Any, place: int) -> None:
        self.middleware = middleware
        self.place = place
        self.hooks = hooks_of(middleware)
        if has_method(middleware, "see_event"):  # no hook, as it is not awaited
            self.hooks |= {"see_event"}
        self.observes = bool(getattr(middleware, "observer", False))
        self.failed = False

    def failing(self, hook: str) -> None:
        """Log what an observer has just raised; the next time, that it has failed is known."""
        if not self.failed:
            self.failed = True
            name = type(self.middleware).__name__
            LOG.exception("%s of observer %s failed; the run goes on", hook, name)


class Stack:
    """The middlewares of one run.

    Args:
        members: The instances of this run, outermost first.
        strict: What they say has to be of the kind that it stands in the place of.
    """

    __slots__ = ("_asked", "_hooks", "_members", "_strict")

    def __init__(self, members: Iterable[Any], *, strict: bool = False) -> None:
        self._strict = strict
        inside = sorted(members, key=_depth)
        self._members = [_Member(each, place) for place, each in enumerate(inside)]
        self._hooks = frozenset[str]().union(*(each.hooks for each in self._members))
        self._asked: dict[str, list[_Member]] = {}

    @classmethod
    def begun(cls, middlewares: Iterable[Any]) -> Stack:
        """The stack of a run that begins: each member as its `new` gives it.

        Raises:
            UsageError: What `new` gave is no middleware.
        """
        return cls((check_middleware(fresh(each)) for each in middlewares), strict=True)

    def inside(self, outer: Stack | None) -> Stack:
        """The same instances, inside those of another stack."""
        if outer is None:
            return self
        return Stack([*outer.members, *self.members], strict=self._strict)

    @property
    def members(self) -> list[Any]:
        """The instances of this run, outermost first."""
        return [each.middleware for each in self._members]

    def has(self, *hooks: str) -> bool:
        """Whether anybody has one of these hooks."""
        return not self._hooks.isdisjoint(hooks)

    async def before(self, hook: str, *args: Any) -> tuple[Any, int]:
        """Ask in order.

        Returns:
            What decides, or None, and the place of who said it: those outside are told of what
            comes of it, the others are not.
        """
        for each in (members := self._with(hook)):
            said = await self._ask(each, hook, args)
            if said is not None:
                self._checked(said, each.middleware, hook)
                for other in members[members.index(each) + 1 :]:
                    if other.observes:
                        await self._ask(other, hook, args)
                return said, each.place
        return None, len(self._members)

    async def hand_in(self, hook: str, *args: Any) -> Any:
        """Ask in order what is to go in; each is given it as the one before has left it.

        Returns:
            What goes in instead, or None.
        """
        decided: Any = None
        for each in self._with(hook):
            said = await self._ask(each, hook, args)
            if said is not None:
                decided = self._checked(said, each.middleware, hook)
                args = (*args[:-1], decided)
        return decided

    async def after(self, hook: str, *args: Any, outside: int | None = None) -> Any:
        """Ask in reverse what stands in the place of something that has happened.

        Args:
            hook: What is asked.
            args: With what; last what has happened, as those asked before have left it.
            outside: Ask only those outside this place.

        Returns:
            What stands in its place, or None.
        """
        decided: Any = None
        for each in reversed(self._with(hook)):
            if outside is not None and each.place >= outside:
                continue
            said = await self._ask(each, hook, args)
            if said is not None:
                decided = self._checked(said, each.middleware, hook)
                args = (*args[:-1], decided)
        return decided

    async def recover(self, hook: str, *args: Any) -> Any:
        """Ask in reverse what makes an error good; the first that says something decides."""
        decided: Any = None
        for each in reversed(self._with(hook)):
            if each.observes or decided is None:
                said = await self._ask(each, hook, args)
                if said is not None:
                    decided = self._checked(said, each.middleware, hook)
        return decided

    async def tell(self, hook: str, *args: Any, outside: int | None = None) -> None:
        """Tell everybody, in reverse, or all outside a place; nobody decides anything."""
        for each in reversed(self._with(hook)):
            if outside is None or each.place < outside:
                await self._ask(each, hook, args)

    def show(self, ctx: Any, event: Any) -> None:
        """Show an event, in reverse, to all who look at events without changing them."""
        for each in reversed(self._with("see_event")):
            try:
                each.middleware.see_event(ctx, event)
            except Exception:
                if not each.observes:
                    raise
                each.failing("see_event")

    def around(self, hook: str, innermost: Callable[[Any], Awaitable[Any]]) -> Any:
        """All `wrap_*` hooks of a name around the thing itself."""
        following: Any = innermost
        for each in reversed(self._with(hook)):
            within = partial(_watched, each, hook) if each.observes else self._within(each, hook)
            following = partial(within, following)
        return following

    def _within(self, each: _Member, hook: str) -> Callable[[Any, Any], Awaitable[Any]]:
        """A member that stands around something; it is given what is inside, and the call."""
        middleware = each.middleware
        _, has = _GIVES.get(hook, ("", "__class__"))  # which everything has

        async def within(following: Any, call: Any) -> Any:
            made = await getattr(middleware, hook)(call, following)
            return made if hasattr(made, has) else self._checked(made, middleware, hook)

        return within

    def _checked(self, made: Any, middleware: Any, hook: str) -> Any:
        """What a hook gave, if it is of the kind that it has to be.

        Raises:
            UsageError: It is not.
        """
        if not self._strict or hook not in _GIVES:
            return made
        what, has = _GIVES[hook]
        if not hasattr(made, has):
            around = hook.startswith("wrap_")
            raise UsageError(
                f"{hook} of {type(middleware).__qualname__} returns {what}"
                + ("" if around else " or None"),
                found=describe(made),
                help="return await next(call)" if around else None,
            )
        return made

    def _with(self, hook: str) -> Sequence[_Member]:
        found = self._asked.get(hook)
        if found is None:
            found = self._asked[hook] = [each for each in self._members if hook in each.hooks]
            if hook in _OUTSIDE:
                found.sort(key=lambda each: not _is_at_boundary(each.middleware))
        return found

    def _ask(self, each: _Member, hook: str, args: Sequence[Any]) -> Awaitable[Any]:
        asked = getattr(each.middleware, hook)
        return _told(each, hook, asked, args) if each.observes else asked(*args)


async def _told(each: _Member, hook: str, asked: Any, args: Sequence[Any]) -> None:
    """Let an observer know, whatever it does."""
    try:
        await asked(*args)
    except Exception:  # noqa: BLE001  # an onlooker's; the log has all of it
        each.failing(hook)


async def _watched(each: _Member, hook: str, following: Any, call: Any) -> Any:
    """Let an observer stand around something that is done once, whatever the observer does."""
    doing: asyncio.Future[Any] | None = None

    async def kept(_: Any) -> Any:
        nonlocal doing
        under_way = doing = doing or asyncio.ensure_future(following(call))
        return await asyncio.shield(under_way)

    try:
        await getattr(each.middleware, hook)(call, kept)
    except Exception:  # noqa: BLE001  # an onlooker's; the log has all of it
        done: asyncio.Future[Any] | None = doing
        if done is None or not done.done() or done.cancelled() or done.exception() is None:
            each.failing(hook)
    except BaseException:
        await _end(doing)
        raise
    try:
        return await kept(call)
    except asyncio.CancelledError:
        await _end(doing)
        raise


async def _end(doing: asyncio.Future[Any] | None) -> None:
    if doing is not None and not doing.done():
        doing.cancel()
        await asyncio.wait([doing])
