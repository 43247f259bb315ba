"""`S`: changes to state with a stated meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.builders._flow import Builder
from adk_fluent.builders._json_values import as_json_text
from adk_fluent.builders._keys import as_key, as_keys, merged
from adk_fluent.builders._operands import Vocabulary, as_predicate, function_name, some
from adk_fluent.builders._primitives import Expect, Tap
from adk_fluent.builders._settings import as_text
from adk_fluent.builders._state_functions import (
    Apply,
    Assign,
    Combine,
    Derive,
    Log,
    Rename,
    scope_of,
)
from adk_fluent.builders._words import describe
from adk_fluent.errors import UnknownNameError, UsageError
from adk_fluent.ir import (
    Effects,
    Location,
    Match,
    Node,
    Ref,
    Scope,
    StateFieldRef,
    TransformNode,
    is_reserved_key,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from logging import Logger
    from typing import Self

    from adk_fluent.builders._types import (
        JsonValue,
        KeyLike,
        PredicateLike,
        StateFunction,
        ValueFunction,
        ValuesFunction,
    )

_LOGGER: Final = "adk_fluent.state"
_INFO: Final = 20  # logging.INFO


class Transform(Builder):
    """A change to state with a stated meaning; made by `S`."""

    __slots__ = ("_change",)
    _kind = "transform"

    def __init__(self, change: TransformNode) -> None:
        super().__init__(change.name)
        self._change = change

    def _freeze(self) -> Node:
        return self._change.replace(name=self.name, location=self._location)


class Compute(Transform):
    """Values computed from state; made by `S.compute`."""

    __slots__ = ()

    def reads(self, *keys: KeyLike) -> Self:
        """Say which keys the functions read: all of them, so that checks can rely on it."""
        effects = self._change.effects
        known = merged(effects.reads, as_keys(keys, ".reads(...)"))
        self._change = self._change.replace(effects=Effects(known, effects.writes, opaque=False))
        return self._changed()


class ScopedTransforms(Vocabulary):
    """Changes to the state of one scope: `S.app`, `S.user`, `S.temp`, and most of `S`.

    A key is written without its prefix, or with it. What is only read (`merge`) may be a full key
    of any other scope, too. Keys that begin with ``_adk`` are refused: they are not the user's.
    """

    __slots__ = ("_scope",)

    def __init__(self, scope: Scope) -> None:
        self._scope: Scope = scope

    def __repr__(self) -> str:
        return "S" if self._scope == "session" else f"S.{self._scope}"

    # --- constants -----------------------------------------------------------------------------

    def set(self, /, **values: JsonValue) -> Transform:
        """Write constants.

        Example:
            >>> from adk_fluent import S
            >>> S.set(stage="triage", tries=0)
            <Transform 'set'>

        Args:
            **values: What JSON can hold, by key; a dict replaces a dict.
        """
        return self._assign("set", values)

    def default(self, /, **values: JsonValue) -> Transform:
        """Write constants where there is no value yet, that is, where a key is absent or None.

        Args:
            **values: What JSON can hold, by key.
        """
        return self._assign("default", values)

    def _assign(self, method: str, values: Mapping[str, object]) -> Transform:
        role = self._role(method)
        constants = self._by_key(values, method)
        text = as_json_text(constants, role)
        missing = method == "default"
        fn = Ref(Assign(text, missing), method)
        return self._merging(method, fn, constants, reads=constants if missing else ())

    # --- keys ----------------------------------------------------------------------------------

    def drop(self, *keys: KeyLike) -> Transform:
        """Remove keys, that is, set them to None. Absent ones stay so."""
        gone = self._keys(keys, "drop")
        return Transform(
            TransformNode(
                "drop",
                semantics="delete_keys",
                scope=self._reach(),
                affected_keys=gone,
                effects=_effects(writes=gone),
            )
        )

    def rename(self, /, **names: str) -> Transform:
        """Move values to other keys, all at once; the old keys become None.

        A key that is absent or None is not moved, and the key it would go to keeps its value.

        Example:
            >>> from adk_fluent import S
            >>> S.rename(draft="answer")
            <Transform 'rename'>

        Args:
            **names: The new key, by the old one.
        """
        role, given = self._role("rename"), self._by_key(names, "rename")
        pairs = {old: self._key(new, "rename") for old, new in given.items()}
        taken = set[str]()
        for old, new in pairs.items():
            if new == old or new in taken:
                raise UsageError(
                    f"{role} cannot move {old!r} to {new!r}",
                    found="the same key" if new == old else "two keys that move there",
                    location=Location.caller(),
                    help="give each key a new name of its own",
                )
            taken.add(new)
        words = ", ".join(f"{old} to {new}" for old, new in pairs.items())
        fn = Ref(Rename(tuple(pairs.items())), f"rename {words}")
        # the key that is written last must be a new one: a dict of branches looks at it
        touched = [key for key in pairs if key not in taken] + list(pairs.values())
        return self._merging("rename", fn, touched, reads=pairs)

    # --- values --------------------------------------------------------------------------------

    def merge(self, *keys: KeyLike, into: KeyLike, fn: ValuesFunction | None = None) -> Transform:
        """Make one value of several.

        If all of them are absent or None, nothing happens.

        Args:
            *keys: Keys of the values; with a prefix they may be of another scope.
            into: The key of the new value.
            fn: Gets the values in order, None where there is none; sync or async. Without it texts
                and numbers are joined as lines, leaving out what is absent.
        """
        role = self._role("merge")
        read = [self._read_key(key, role) for key in some(keys, role, "a state key")]
        key = self._key(into, "merge")
        combine = Combine(tuple(read), key, None if fn is None else _function(fn, role))
        by = "" if combine.fn is None else f" by {combine.fn.name}"
        words = f"merge {', '.join(read)} into {key}{by}"
        return self._merging("merge", Ref(combine, words), [key], reads=read)

    def transform(self, key: KeyLike, fn: ValueFunction) -> Transform:
        """Apply a function to one value; a key that is absent or None stays so.

        Example:
            >>> from adk_fluent import S
            >>> S.transform("topic", str.lower)
            <Transform 'lower'>

        Args:
            key: The value's key.
            fn: Gets the value and returns what takes its place; sync or async.
        """
        role = self._role("transform")
        ref, full = _function(fn, role), self._key(key, "transform")
        name = function_name(fn, role, "transform")
        return self._merging(name, Ref(Apply(full, ref), f"{ref.name} of {full}"), [full], [full])

    def compute(self, /, **functions: StateFunction) -> Compute:
        """Compute values from state, all from what it was before, and write them at once.

        Which keys the functions read is not known, unless `.reads(...)` of the result says it.

        Args:
            **functions: ``fn(state) -> value`` by key, sync or async.
        """
        role = self._role("compute")
        by_key = self._by_key(functions, "compute")
        parts = tuple((key, _function(fn, role)) for key, fn in by_key.items())
        words = ", ".join(f"{key} by {fn.name}" for key, fn in parts)
        effects = _effects(writes=by_key, opaque=True)
        return Compute(self._change("compute", Ref(Derive(parts), f"compute {words}"), effects))

    # --- for all of them -----------------------------------------------------------------------

    def _merging(
        self, name: str, fn: Ref, writes: Iterable[str], reads: Iterable[str] = ()
    ) -> Transform:
        return Transform(self._change(name, fn, _effects(reads, writes)))

    def _change(self, name: str, fn: Ref, effects: Effects) -> TransformNode:
        writes = tuple(ref.key for ref in effects.writes)
        return TransformNode(name, fn, scope=self._reach(), affected_keys=writes, effects=effects)

    def _reach(self) -> Any:
        return "session" if self._scope == "session" else "all"

    def _role(self, method: str) -> str:
        return f"{self!r}.{method}(...)"

    def _keys(self, keys: tuple[KeyLike, ...], method: str) -> tuple[str, ...]:
        some(keys, self._role(method), "a state key")
        return tuple(dict.fromkeys(self._key(key, method) for key in keys))

    def _by_key(self, values: Mapping[str, Any], method: str) -> dict[str, Any]:
        some(tuple(values), self._role(method), "a state key")
        found: dict[str, Any] = {}
        for name, value in values.items():
            key = self._key(name, method)
            if key in found:
                raise UsageError(
                    f"{self._role(method)} got {key!r} twice",
                    found=f"{key!r} and {key.partition(':')[2]!r}",
                    location=Location.caller(),
                )
            found[key] = value
        return found

    def _key(self, value: KeyLike, method: str) -> str:
        """The full key of one that is written.

        Raises:
            UsageError: It is none, of another scope, or kept for others.
        """
        role = self._role(method)
        given = as_key(value, role).key
        scope = scope_of(given)
        if scope not in (self._scope, "session"):
            raise UsageError(
                f"{role} does not touch {given!r}",
                found=f"a key of the scope {scope!r}",
                location=Location.caller(),
                help=_instead(scope, method),
            )
        key = self._full(given)
        name = key if self._scope == "session" else key.partition(":")[2]
        if is_reserved_key(name):
            raise UsageError(
                f"{role} does not touch {given!r}",
                found="a key that ADK and adk-fluent keep for themselves",
                location=Location.caller(),
                help="choose another key",
            )
        return key

    def _read_key(self, value: KeyLike, role: str) -> str:
        return self._full(as_key(value, role).key)

    def _full(self, key: str) -> str:
        bare = self._scope == "session" or scope_of(key) != "session"
        return key if bare else f"{self._scope}:{key}"

    if not TYPE_CHECKING:  # a type checker must go on refusing what does not exist

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise UnknownNameError(
                f"{self!r} has no method {name!r}",
                unknown=name,
                known=[known for known in dir(type(self)) if not known.startswith("_")],
                location=Location.caller(),
            )


class StateTransforms(ScopedTransforms):
    """Changes to session state: `S`. What is in other scopes they leave alone.

    Attributes:
        app: The same for what belongs to the whole application.
        user: The same for what belongs to the user, in all sessions.
        temp: The same for what lives as long as the run.
    """

    __slots__ = ("app", "temp", "user")

    def __init__(self) -> None:
        super().__init__("session")
        self.app: ScopedTransforms = ScopedTransforms("app")
        self.user: ScopedTransforms = ScopedTransforms("user")
        self.temp: ScopedTransforms = ScopedTransforms("temp")

    def pick(self, *keys: KeyLike) -> Transform:
        """Keep these keys of the session and remove all its others, that is, set them to None."""
        kept = self._keys(keys, "pick")
        return Transform(
            TransformNode(
                "pick", semantics="replace_session", affected_keys=kept, effects=_effects()
            )
        )

    def guard(self, test: KeyLike | PredicateLike, message: str | None = None) -> Expect:
        """Stop the run with `ExpectationError` unless something holds.

        Args:
            test: A key, with its prefix, that must not be absent or None; or a function of state,
                sync or async.
            message: What the error says.
        """
        role = self._role("guard")
        predicate, reason = _test(test, role)
        text = reason if message is None else as_text(message, f"the message of {role}")
        return Expect(predicate, text, "guard")

    def log(self, *keys: KeyLike, logger: Logger | str | None = None, level: int = _INFO) -> Tap:
        """Log values, each cut to 200 characters.

        Args:
            *keys: Whose, with their prefixes. Without any, every key of the session's own: what is
                kept for the app, the user or the run only, such as credentials, must be named.
            logger: Logs it; None is the logger ``adk_fluent.state``.
            level: The message's level, such as `logging.DEBUG`.
        """
        role = self._role("log")
        read = tuple(dict.fromkeys(self._read_key(key, role) for key in keys))
        log = Log(read, _logger_name(logger, role), _level(level, role))
        return Tap(Ref(log, f"log {', '.join(read)}" if read else "log"), "log", _effects(read))


#: Changes to state: ``a >> S.set(stage="review") >> b``.
S: Final = StateTransforms()


def _effects(
    reads: Iterable[str] = (), writes: Iterable[str] = (), *, opaque: bool = False
) -> Effects:
    """What a transform does to state; none of them needs a key to be there."""
    return Effects(
        tuple(StateFieldRef(key, default=None) for key in reads),
        tuple(StateFieldRef(key) for key in writes),
        opaque=opaque,
    )


def _instead(scope: Scope, method: str) -> str:
    if method == "pick":
        return "leave it out: what has a prefix stays anyway"
    return f"use S.{scope}.{method}(...)"


def _function(fn: object, role: str) -> Ref:
    if not callable(fn):
        raise UsageError(
            f"{role} takes functions",
            found=describe(fn),
            location=Location.caller(),
            help="pass a function that returns the value; it may be async",
        )
    function_name(fn, f"a function of {role}", "", help="return the value; do not yield")
    return Ref.to(fn)


def _test(test: object, role: str) -> tuple[Match | Ref, str]:
    """A predicate, and what an error says by default."""
    if isinstance(test, Match | Ref) or (callable(test) and not isinstance(test, type)):
        return as_predicate(test, role), "guard failed"
    if isinstance(test, str) or isinstance(getattr(test, "key", None), str):
        key = as_key(cast("KeyLike", test), role).key
        return Match("ne", key, None), f"state has no {key!r}"
    raise UsageError(
        f"{role} takes a state key or a function of state",
        found=describe(test),
        location=Location.caller(),
        help='write S.guard("topic"), or S.guard(lambda s: s["score"] > 3)',
    )


def _logger_name(logger: object, role: str) -> str:
    if logger is None:
        return _LOGGER
    if isinstance(logger, str) and logger:
        return logger
    import logging  # noqa: PLC0415  # whoever only builds a pipeline does not need it

    if isinstance(logger, logging.Logger) and logging.getLogger(logger.name) is logger:
        return logger.name
    raise UsageError(
        f"the logger of {role} is one of logging.getLogger(...), or its name",
        found=describe(logger),
        location=Location.caller(),
        help=f"leave it out to log under {_LOGGER!r}",
    )


def _level(level: object, role: str) -> int:
    if isinstance(level, int) and not isinstance(level, bool):
        return level
    raise UsageError(
        f"the level of {role} is an int",
        found=describe(level),
        location=Location.caller(),
        help="pass one of logging's, such as logging.DEBUG",
    )
