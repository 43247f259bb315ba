"""Parts of a pipeline that keep to a state schema: what becomes of a write in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent._logs import LOG
from adk_fluent.errors import StateTypeError, add_place, nearest_name
from adk_fluent.ir import GateNode, MapOverNode, Node, Ref, StateFieldRef
from adk_fluent.ir._names import is_kept_key
from adk_fluent.ir._promised import schema_reducers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adk_fluent.ir import Contract
    from adk_fluent.protocol import FieldRef, StateRules

_log: Final = LOG.getChild("state")
_FIT: Final = "write what the schema declares, or change the schema"


class Part:
    """A part of a pipeline that keeps to a state schema.

    Args:
        contract: What it promises; it has a schema.

    Attributes:
        schema: The schema.
        fields: What it declares, by key.
        reducers: The reducers that it declares, by key.
        enforce: What becomes of a write that breaks it.
        closed: Whether there may be no other keys.
    """

    __slots__ = ("closed", "enforce", "fields", "reducers", "schema")

    def __init__(self, contract: Contract, schema: StateRules) -> None:
        self.schema: StateRules = schema
        self.fields: Mapping[str, FieldRef] = schema.__state_fields__
        self.reducers: dict[str, Ref] = dict(schema_reducers(contract))
        self.enforce = contract.enforce
        self.closed: bool = contract.extra == "forbid"

    @property
    def name(self) -> str:
        """The schema's name."""
        return getattr(self.schema, "__name__", type(self.schema).__name__)

    def encoded(self, key: str, value: Any, writer: str) -> Any:
        """A value of one of its keys as it is stored.

        Raises:
            StateTypeError: The key does not take it.
        """
        try:
            return self.schema.__state_encode__({key: value}, writer)[key]
        except StateTypeError as error:
            error.help = error.help or _FIT
            raise


def part_of(node: Node) -> Part | None:
    """The part that begins at a node, if it keeps to a schema."""
    contract = node.contract
    if contract is None or contract.schema is None:
        return None
    schema = contract.schema.value
    return Part(contract, schema) if hasattr(schema, "__state_fields__") else None  # as of a file


class Warned:
    """What was warned of, once for each step and key."""

    __slots__ = ("_told",)

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def warn(self, node: Node, key: str, error: StateTypeError) -> None:
        """Log what is wrong with a write, or with what a session holds."""
        if (node.name, key) not in self._told:
            self._told.add((node.name, key))
            _log.warning("%s", add_place(error, node))


def kept(
    delta: Mapping[str, Any],
    node: Node,
    parts: Sequence[Part],
    around: Iterable[Node],
    warned: Warned,
) -> dict[str, Any]:
    """A write as the schemas around it have it stored.

    Args:
        delta: What is written.
        node: The step that writes.
        parts: Those it stands in, the innermost first.
        around: The nodes it stands in.
        warned: What was warned of.

    Raises:
        StateTypeError: One of the schemas does not allow it.
    """
    made = dict(delta)
    for key, value in delta.items():
        declaring = [part for part in parts if key in part.fields]
        if not declaring and is_kept_key(StateFieldRef(key).name):
            continue
        if not declaring and value is not None and all(part.closed for part in parts):
            _undeclared(key, node, parts, around, warned)
        for part in declaring:
            if part.enforce == "off":
                continue
            try:
                made[key] = part.encoded(key, made[key], repr(node.name))
            except StateTypeError as error:
                if part.enforce == "error":
                    raise add_place(error, node) from None
                made[key] = value
                warned.warn(node, key, error)
    return made


def _undeclared(
    key: str, node: Node, parts: Sequence[Part], around: Iterable[Node], warned: Warned
) -> None:
    """Refuse a key that no schema declares, or warn of it.

    Raises:
        StateTypeError: One of the schemas is enforced.
    """
    enforced = [part for part in parts if part.enforce != "off"]
    if not enforced or _is_its_own(key, node, around):
        return
    name = enforced[0].name
    error = StateTypeError(
        f"{node.name} writes {key!r}, which {name} does not declare",
        key=key,
        node=node,
        help=_advice(key, parts, name),
    )
    if any(part.enforce == "error" for part in enforced):
        raise error
    warned.warn(node, key, error)


def _is_its_own(key: str, node: Node, around: Iterable[Node]) -> bool:
    """Whether a key is a matter of nodes alone: an item of a map, an unnamed gate's answer."""
    if isinstance(node, GateNode) and node.key is None:
        return True
    return any(isinstance(each, MapOverNode) and each.item_key == key for each in around)


def _advice(key: str, parts: Iterable[Part], name: str) -> str:
    known = [each for part in parts for each in part.fields]
    bare = StateFieldRef(key).name
    near = next((each for each in known if StateFieldRef(each).name == bare), None)
    near = near or nearest_name(key, known)
    declare = f"declare it in {name}, or allow other keys: .state({name}, extra='allow')"
    return declare if near is None else f"did you mean {near!r}? If not, {declare}"
