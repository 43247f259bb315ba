"""Whether a write to state keeps to a schema, and as what it is stored. Imports no ADK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.errors import StateTypeError, UsageError, nearest_name
from adk_fluent.extend import LOG, describe, one_of
from adk_fluent.ir import StateFieldRef as Key
from adk_fluent.ir import is_reserved_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.protocol import StateRules

#: Keys that ADK's own tools and servers write, of versions 1.25 to 2.13. What it has besides begins
#: with ``_``, or ``adk_`` (credentials), or is of the form ``owner:key``.
_ADKS: Final = frozenset(
    (
        *("bigquery_token_cache", "bigtable_token_cache", "data_agent_token_cache"),
        *("gcs_token_cache", "pubsub_token_cache", "spanner_token_cache"),
        *("bigquery_session_info", "sandbox_name", "trigger_delivery"),
    )
)
_CREDENTIAL: Final = "_existing_exchanged_credential"
_TOLD: Final = 1_000  # keys that are warned of; some programs make up their keys


class WriteCheck:
    """Encodes writes to state by a schema, and refuses those that break it.

    Args:
        schema: The schema.
        extra: Whether keys may be written that it does not declare: ``forbid`` or ``allow``.
        enforce: ``error`` refuses a write that breaks the schema; ``warn`` lets it pass as it is,
            and logs that once for each key.

    Raises:
        UsageError: `schema` is none.
        UnknownNameError: `extra` or `enforce` is something else.
    """

    __slots__ = ("_keys", "_told", "enforce", "extra", "schema")

    def __init__(self, schema: StateRules, extra: str, enforce: str) -> None:
        if not (hasattr(schema, "__state_fields__") and hasattr(schema, "__state_encode__")):
            raise UsageError(
                "SchemaSessionService(inner, schema) takes a state schema",
                found=describe(schema),
                help="a subclass of StateSchema, itself and not what is bound to a context",
            )
        self.schema = schema
        self.extra = one_of(extra, ("forbid", "allow"), "extra")
        self.enforce = one_of(enforce, ("error", "warn"), "enforce")
        #: What it declares; read late, since annotations may name what is defined later.
        self._keys: frozenset[str] | None = None
        self._told = set[str]()

    def encoded(
        self, delta: Mapping[str, Any], writer: object, own: str | None = None
    ) -> dict[str, Any]:
        """A write as it is stored.

        Args:
            delta: Keys and values; None makes absent.
            writer: Who writes: its ``str()`` is asked for only if it breaks the schema.
            own: A key that need not be declared, since it is the writer's own.

        Raises:
            StateTypeError: It does.
        """
        try:
            return self._checked(delta, "", own)
        except StateTypeError:
            if self.enforce == "warn":
                return self._leniently(delta, str(writer), own)
            self._checked(delta, str(writer), own)  # raises the same, and says who it was
            raise

    def _checked(self, delta: Mapping[str, Any], writer: str, own: str | None) -> dict[str, Any]:
        keys = self._keys
        if keys is None:
            keys = self._keys = frozenset(self.schema.__state_fields__)
        if self.extra == "forbid" and not keys.issuperset(delta):
            known = keys if own is None else keys | {own}
            self._check_keys(delta, known, writer)
        return self.schema.__state_encode__(delta, writer)

    def _leniently(self, delta: Mapping[str, Any], writer: str, own: str | None) -> dict[str, Any]:
        """What can be encoded, and the rest as it is."""
        made: dict[str, Any] = {}
        for key, value in delta.items():
            try:
                made.update(self._checked({key: value}, writer, own))
            except StateTypeError as error:
                made[key] = value
                if key not in self._told and len(self._told) < _TOLD:
                    self._told.add(key)
                    LOG.warning("state is written past its schema: %s", error)
        return made

    def _check_keys(self, delta: Mapping[str, Any], keys: frozenset[str], writer: str) -> None:
        names = {Key(each).name for each in keys}
        for key, value in delta.items():
            if key in keys or value is None or _is_somebody_elses(key, value, names):
                continue
            raise StateTypeError(
                f"{writer} writes {key!r}, which {_name(self.schema)} does not declare",
                key=key,
                found=f"a value of type {type(value).__name__}",
                help=self._advice(key, keys),
            )

    def _advice(self, key: Any, keys: frozenset[str]) -> str:
        if not isinstance(key, str):
            return "state keys are text"
        name = Key(key).name.rpartition(":")[2]
        other = next((each for each in sorted(keys) if Key(each).name == name), None)
        if other is not None:
            return f"did you mean {other!r}, the key of that name in another scope?"
        near = nearest_name(key, keys)
        if near is not None:
            return f"did you mean {near!r}?"
        return f"declare it in {_name(self.schema)}, or let other keys pass: extra='allow'"


def _name(schema: object) -> str:
    return getattr(schema, "__name__", type(schema).__name__)


def _is_somebody_elses(key: Any, value: object, names: set[str]) -> bool:
    """Whether a key is kept by ADK, by us, or by a library, for what is no user's business.

    Args:
        key: The key, which is none of the schema.
        value: Its value.
        names: The keys of the schema without their scopes.
    """
    if not isinstance(key, str):  # ADK takes anything
        return False
    name = Key(key).name
    owner, _, rest = name.partition(":")
    return (
        is_reserved_key(name)
        or name.startswith(("_", "adk_"))
        or name in _ADKS
        or name.endswith(_CREDENTIAL)
        or bool(owner and rest and rest not in names)  # `usr:tier` is a slip where `user:tier` is
        or type(value).__module__.startswith("google.adk.")  # a credential, under any key
    )
