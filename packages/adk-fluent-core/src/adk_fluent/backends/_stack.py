"""The middlewares of one run, and how their hooks are asked.

The first is the outermost: hooks before something are asked in order, those after it in reverse,
and `wrap_*` hooks stand around each other. The first hook that says something decides, and none
after it is asked. Observers are always told, and whatever they say or raise decides nothing.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.protocol import fresh, hooks_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

_LOG: Final = logging.getLogger("adk_fluent")


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
        self.observes = bool(getattr(middleware, "observer", False))
        self.failed = False

    def failing(self, hook: str) -> None:
        """Log what an observer has just raised; the next time, that it has failed is known."""
        if not self.failed:
            self.failed = True
            name = type(self.middleware).__name__
            _LOG.exception("%s of observer %s failed; the run goes on", hook, name)


class Stack:
    """The middlewares of one run.

    Args:
        members: The instances of this run, outermost first.
    """

    __slots__ = ("_asked", "_members")

    def __init__(self, members: Iterable[Any]) -> None:
        self._members = [_Member(each, place) for place, each in enumerate(members)]
        self._asked: dict[str, list[_Member]] = {}

    @classmethod
    def begun(cls, middlewares: Iterable[Any]) -> Stack:
        """The stack of a run that begins: each member as its `new` gives it."""
        return cls(fresh(each) for each in middlewares)

    def inside(self, outer: Stack | None) -> Stack:
        """The same instances, inside those of another stack."""
        return self if outer is None else Stack([*outer.members, *self.members])

    @property
    def members(self) -> list[Any]:
        """The instances of this run, outermost first."""
        return [each.middleware for each in self._members]

    def has(self, *hooks: str) -> bool:
        """Whether anybody has one of these hooks."""
        return any(self._with(hook) for hook in hooks)

    async def before(self, hook: str, *args: Any) -> tuple[Any, int]:
        """Ask in order.

        Returns:
            What decides, or None, and the place of who said it: those outside are told of what
            comes of it, the others are not.
        """
        for each in (members := self._with(hook)):
            said = await self._ask(each, hook, args)
            if said is not None:
                for other in members[members.index(each) + 1 :]:
                    if other.observes:
                        await self._ask(other, hook, args)
                return said, each.place
        return None, len(self._members)

    async def after(self, hook: str, *args: Any, outside: int | None = None) -> Any:
        """Ask in reverse.

        Args:
            hook: What is asked.
            args: With what; last what came of it, or the error. Who is only told is told of what
                was put in the place of what came of it.
            outside: Ask only those outside this place.

        Returns:
            What decides, or None.
        """
        decided: Any = None
        for each in reversed(self._with(hook)):
            if outside is not None and each.place >= outside:
                continue
            if each.observes:
                replaced = decided is not None and hook.startswith("after_")
                await self._ask(each, hook, (*args[:-1], decided) if replaced else args)
            elif decided is None:
                decided = await self._ask(each, hook, args)
        return decided

    async def tell(self, hook: str, *args: Any, outside: int | None = None) -> None:
        """Tell everybody, in reverse, or all outside a place; nobody decides anything."""
        for each in reversed(self._with(hook)):
            if outside is None or each.place < outside:
                await self._ask(each, hook, args)

    def around(self, hook: str, innermost: Callable[[Any], Awaitable[Any]]) -> Any:
        """All `wrap_*` hooks of a name around the thing itself."""
        following: Any = innermost
        for each in reversed(self._with(hook)):
            call = getattr(each.middleware, hook)
            following = partial(_watched if each.observes else _call, call, following)
            if each.observes:
                following = partial(following, each)
        return following

    def _with(self, hook: str) -> Sequence[_Member]:
        found = self._asked.get(hook)
        if found is None:
            found = self._asked[hook] = [each for each in self._members if hook in each.hooks]
        return found

    async def _ask(self, each: _Member, hook: str, args: Sequence[Any]) -> Any:
        asked = getattr(each.middleware, hook)
        if not each.observes:
            return await asked(*args)
        try:
            await asked(*args)
        except Exception:  # noqa: BLE001  # an onlooker's; the log has all of it
            each.failing(hook)
        return None


def _call(hook: Any, following: Any, call: Any) -> Awaitable[Any]:
    return hook(call, following)


async def _watched(hook: Any, following: Any, each: _Member, call: Any) -> Any:
    """Let an observer stand around something, and keep what came of that."""
    outcome: list[Any] = []
    failures: list[Exception] = []

    async def kept(_: Any) -> Any:
        if failures:
            raise failures[0]
        if not outcome:
            try:
                outcome.append(await following(call))
            except Exception as error:
                failures.append(error)
                raise
        return outcome[0]

    try:
        await hook(call, kept)
    except Exception as error:  # noqa: BLE001  # an onlooker's; the log has all of it
        if error not in failures:
            each.failing(getattr(hook, "__name__", "wrap"))
    return await kept(call)
