"""`S`: changes to state with a stated meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from adk_fluent.builders._effects import computing
from adk_fluent.builders._flow import Silent
from adk_fluent.builders._json_values import as_json_text
from adk_fluent.builders._keys import as_keys, merged
from adk_fluent.builders._operands import Vocabulary, function_name, some
from adk_fluent.builders._primitives import Expect, Tap
from adk_fluent.builders._settings import as_text
from adk_fluent.builders._state_functions import Apply, Assign, Combine, Derive, Log, Rename
from adk_fluent.builders._synonyms import TRANSFORMS
from adk_fluent.builders._transform_args import (
    Keys,
    as_function,
    as_level,
    as_logger_name,
    as_test,
)
from adk_fluent.errors import UnknownNameError, UsageError
from adk_fluent.ir import Effects, Node, Ref, Scope, StateFieldRef, TransformNode

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

_INFO: Final = 20  # logging.INFO


class Transform(Silent):
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

    A key is written without its prefix, or with it; one of another scope is refused. What is only
    read (the sources of `merge`) may be of another scope, with its prefix. Keys that begin with
    ``_adk`` are refused: ADK and adk-fluent keep them for themselves.
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
        keys = Keys(self._scope, method)
        by_key, missing = keys.by_key(values), method == "default"
        fn = Ref(Assign(as_json_text(by_key, keys.role), missing), method)
        return self._merging(method, fn, by_key, reads=by_key if missing else ())

    # --- keys ----------------------------------------------------------------------------------

    def drop(self, *keys: KeyLike) -> Transform:
        """Remove keys, that is, set them to None. Absent ones stay so."""
        gone = Keys(self._scope, "drop").several(keys)
        effects = _effects(writes=gone)
        return Transform(
            TransformNode(
                "drop",
                semantics="delete_keys",
                scope=self._reach,
                affected_keys=gone,
                effects=effects,
            )
        )

    def rename(self, /, **names: KeyLike) -> Transform:
        """Move values to other keys, all at once; the old keys become None.

        A key that is absent or None is not moved, and the key it would go to keeps its value.

        Example:
            >>> from adk_fluent import S
            >>> S.rename(draft="answer")
            <Transform 'rename'>

        Args:
            **names: The new key, by the old one.
        """
        keys = Keys(self._scope, "rename")
        pairs = {old: keys.one(new) for old, new in keys.by_key(names).items()}
        taken = set[str]()
        for old, new in pairs.items():
            if new == old or new in taken:
                raise UsageError(
                    f"{keys.role} cannot move {old!r} to {new!r}",
                    found="the same key" if new == old else "another key that moves there",
                    help="give each key a new name of its own",
                )
            taken.add(new)
        words = ", ".join(f"{old} to {new}" for old, new in pairs.items())
        fn = Ref(Rename(tuple(pairs.items())), f"rename {words}")
        # a dict of branches looks at the key that is written last, which must be a new one
        touched = [*(old for old in pairs if old not in taken), *pairs.values()]
        return self._merging("rename", fn, touched, reads=pairs)

    # --- values --------------------------------------------------------------------------------

    def merge(self, *keys: KeyLike, into: KeyLike, fn: ValuesFunction | None = None) -> Transform:
        """Make one value of several; if all of them are absent or None, nothing happens.

        Args:
            *keys: Keys of the values; with a prefix they may be of another scope.
            into: The key of the new value.
            fn: Gets the values in order, None where there is none; sync or async. Without it texts
                and numbers are joined as lines, leaving out what is absent.
        """
        known = Keys(self._scope, "merge")
        some(keys, known.role, "a state key")
        sources, key = tuple(known.read(key) for key in keys), known.one(into)
        combine = Combine(sources, key, None if fn is None else as_function(fn, known.role))
        by = "" if combine.fn is None else f" by {combine.fn.name}"
        words = f"merge {', '.join(sources)} into {key}{by}"
        return self._merging("merge", Ref(combine, words), [key], reads=sources)

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
        known = Keys(self._scope, "transform")
        full, held = known.one(key), as_function(fn, known.role)
        name = function_name(fn, known.role, "transform")
        return self._merging(name, Ref(Apply(full, held), f"{held.name} of {full}"), [full], [full])

    def compute(self, /, **functions: StateFunction) -> Compute:
        """Compute values from state, all from what it was before, and write them at once.

        Which keys the functions read is known where their source tells, or `effects` or
        `.reads(...)` of the result says it.

        Args:
            **functions: ``fn(state) -> value`` by key, sync or async.
        """
        keys = Keys(self._scope, "compute")
        by_key = keys.by_key(functions)
        parts = tuple((key, as_function(fn, keys.role)) for key, fn in by_key.items())
        words = ", ".join(f"{key} by {fn.name}" for key, fn in parts)
        writes = tuple(StateFieldRef(key) for key in by_key)
        effects = computing([fn.value for _, fn in parts], writes)
        return Compute(self._change("compute", Ref(Derive(parts), f"compute {words}"), effects))

    # --- for all of them -----------------------------------------------------------------------

    @property
    def _reach(self) -> Literal["session", "all"]:
        return "session" if self._scope == "session" else "all"

    def _merging(
        self, name: str, fn: Ref, writes: Iterable[str], reads: Iterable[str] = ()
    ) -> Transform:
        return Transform(self._change(name, fn, _effects(reads, writes)))

    def _change(self, name: str, fn: Ref, effects: Effects) -> TransformNode:
        writes = tuple(ref.key for ref in effects.writes)
        return TransformNode(name, fn, scope=self._reach, affected_keys=writes, effects=effects)

    if not TYPE_CHECKING:  # a type checker must go on refusing what does not exist

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise _unknown(self, name)


def _unknown(transforms: ScopedTransforms, name: str) -> UnknownNameError:
    help = TRANSFORMS.get(name)
    return UnknownNameError(
        f"{transforms!r} has no method {name!r}",
        unknown=name,
        known=[known for known in dir(type(transforms)) if not known.startswith("_")],
        help=f"only S itself has it: S.{name}" if hasattr(StateTransforms, name) else help,
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
        kept = Keys("session", "pick").several(keys)
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
        role = Keys("session", "guard").role
        predicate, reason = as_test(test, role)
        text = reason if message is None else as_text(message, f"the message of {role}")
        return Expect(predicate, text, "guard")

    def log(self, *keys: KeyLike, logger: Logger | str | None = None, level: int = _INFO) -> Tap:
        """Log values, each cut to 200 characters.

        Args:
            *keys: Whose, with their prefixes. Without any, every key of the session's own: what is
                kept for the app, the user or the run only, and what is called like a credential
                (``api_key``, ``password``), must be named.
            logger: Logs it; None is the logger ``adk_fluent.state``.
            level: The message's level, such as `logging.DEBUG`.
        """
        known = Keys("session", "log")
        read = tuple(dict.fromkeys(known.read(key) for key in keys))
        log = Log(read, as_logger_name(logger, known.role), as_level(level, known.role))
        return Tap(Ref(log, f"log {', '.join(read)}" if read else "log"), "log", _effects(read))


#: Changes to state: ``a >> S.set(stage="review") >> b``.
S: Final = StateTransforms()


def _effects(reads: Iterable[str] = (), writes: Iterable[str] = ()) -> Effects:
    """What a transform does to state; none of them needs a key to be there."""
    return Effects(
        tuple(StateFieldRef(key, default=None) for key in reads),
        tuple(StateFieldRef(key) for key in writes),
        opaque=False,
    )
