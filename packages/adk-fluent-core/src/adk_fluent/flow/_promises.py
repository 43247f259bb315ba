"""What a pipeline promises about state, as its runs keep it."""

from __future__ import annotations

from functools import reduce
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._accepting import accepts
from adk_fluent._copies import copied_containers
from adk_fluent.errors import (
    BuildError,
    StateKeyError,
    StateTypeError,
    UnsupportedNodeError,
    UsageError,
    add_place,
)
from adk_fluent.flow._schemas import Part, Warned, kept, part_of
from adk_fluent.flow._strand import ARRANGEMENTS
from adk_fluent.ir import UNSET, AgentNode, MiddlewareNode
from adk_fluent.ir._node import distinct
from adk_fluent.ir._promised import boundary, read_keys, ref_reducers, same_reducer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from adk_fluent.flow._strand import Strand
    from adk_fluent.ir import Node, Ref, StateFieldRef

NO_REDUCERS: Final[Mapping[str, Any]] = {}


class Promises:
    """What one pipeline promises about state. All its runs share it.

    Args:
        root: The pipeline.
        reducers: The reducers of keys that nodes name, by key.
        parts: Those that keep to a state schema, by the identity of the node.
        delegates: Those that agents below agents keep to, by the identity of the agent that is a
            step and the name of the one below it.
        outer: The parts that the whole stands in, the innermost first.

    Attributes:
        guards: Whether there are writes that have to be looked at.
    """

    __slots__ = ("_delegates", "_outer", "_parts", "_reducers", "_root", "_warned", "guards")

    def __init__(
        self,
        root: Node,
        reducers: Mapping[str, Ref],
        parts: Mapping[int, Part],
        delegates: Mapping[int, Mapping[str, Sequence[Part]]],
        outer: tuple[Part, ...] = (),
    ) -> None:
        self._root = root
        self._reducers = reducers
        self._parts = parts
        self._delegates = delegates
        self._outer = outer
        self._warned = Warned()
        self.guards: bool = any(part.enforce != "off" for part in (*parts.values(), *outer))

    def inside(self, outer: Promises, strand: Strand) -> Promises:
        """The same, of a pipeline that runs at a step of another one."""
        reducers = {**outer.reducers(strand), **self._reducers}
        parts = (*outer.parts(strand), *outer._outer)
        return Promises(self._root, reducers, self._parts, self._delegates, parts)

    # --- where branches meet -------------------------------------------------------------------

    def reducers(self, strand: Strand) -> Mapping[str, Ref]:
        """The reducers that count where a strand stands."""
        found = dict(self._reducers)
        for part in (*self.parts(strand), *self._outer):
            found.update(part.reducers)
        return found

    def parts(self, strand: Strand) -> list[Part]:
        """The parts that a strand stands in, the innermost first."""
        if not self._parts:
            return []
        found = (self._parts.get(id(node)) for node in strand.around())
        return list(dict.fromkeys(part for part in found if part is not None))

    # --- writes --------------------------------------------------------------------------------

    def kept(
        self, delta: Mapping[str, Any], node: Node, strand: Strand, author: str | None = None
    ) -> Mapping[str, Any]:
        """A write as it is stored.

        Args:
            delta: What is written.
            node: The step that writes.
            strand: Where it stands.
            author: The agent that writes, which may be one below the step.

        Raises:
            StateTypeError: A schema does not allow it.
        """
        below = self._delegates.get(id(node), {}).get(author or "", ())
        parts = (*below, *self.parts(strand), *self._outer)
        return kept(delta, node, parts, strand.around(), self._warned) if parts else delta

    # --- the beginning -------------------------------------------------------------------------

    def check_start(self, state: Mapping[str, Any]) -> None:
        """See that state is as the pipeline says that it finds it.

        Raises:
            StateKeyError: A key has no value.
            StateTypeError: A value is none that its key takes.
        """
        whole = boundary(self._root)
        inputs = (whole.contract.inputs if whole.contract is not None else None) or ()
        missing = [ref.key for ref in inputs if ref.default is UNSET and state.get(ref.key) is None]
        if missing:
            raise _lacking(self._root, whole, missing)
        part = self._parts.get(id(whole))
        if part is not None and part.enforce != "off":
            self._check_state(part, whole, state)
        for ref in inputs:
            value = state.get(ref.key)
            known = part is not None and ref.key in part.fields
            if value is not None and not known and accepts(ref.type, value) is False:
                raise _misfit(whole, ref, value)

    def _check_state(self, part: Part, whole: Node, state: Mapping[str, Any]) -> None:
        upgrade: Any = getattr(part.schema, "__state_upgrade__", None)
        changed: Mapping[str, Any] = {} if upgrade is None else upgrade(state)  # of older versions
        for key in part.fields:
            value = changed.get(key) if key in changed else state.get(key)
            if value is None:
                continue
            try:
                part.encoded(key, value, "the session")
            except StateTypeError as error:
                if part.enforce == "error":
                    raise add_place(error, whole) from None
                self._warned.warn(whole, key, error)


def promises_of(root: Node) -> Promises | None:
    """What a pipeline promises about state; None: nothing that a run has to do with.

    Raises:
        BuildError: Two different reducers are declared for a key.
    """
    reducers: dict[str, Ref] = {}
    parts: dict[int, Part] = {}
    agents: list[AgentNode] = []
    first: dict[str, tuple[Node, Ref]] = {}
    for node in distinct(root):
        if named := ref_reducers(node):
            reducers.update(_checked(node, named, first))
        if isinstance(node, AgentNode) and node.delegates:
            agents.append(node)
        part = part_of(node)
        if part is not None:
            parts[id(node)] = part
            part.reducers.update(_checked(node, part.reducers.items(), first))
    contract = boundary(root).contract
    inputs = contract is not None and contract.inputs
    matters = any(part.reducers or part.enforce != "off" for part in parts.values())
    if not (reducers or matters or inputs):
        return None
    below = {id(agent): found for agent in agents if (found := _delegates(agent, parts))}
    return Promises(root, reducers, parts, below)


def promises_inside(
    root: Node, own: Promises | None, outer: Promises | None, strand: Strand
) -> Promises | None:
    """What a pipeline promises that runs at a step of another one.

    Args:
        root: The pipeline.
        own: What it promises by itself.
        outer: What the other one promises.
        strand: Where the step stands.
    """
    return own if outer is None else (own or Promises(root, {}, {}, {})).inside(outer, strand)


def check_tool(node: Node) -> None:
    """Refuse an agent as a tool of which nobody would see what it writes; a pipeline may be one.

    Raises:
        UnsupportedNodeError: It, or an agent that it may hand over to, keeps to a state schema.
    """
    todo = [node]
    while todo:
        here = todo.pop()
        part = None if type(here) in ARRANGEMENTS else part_of(here)
        if part is not None and part.enforce != "off":
            raise UnsupportedNodeError(
                f"{here.name} runs as a tool, where what it writes cannot be held to {part.name}",
                node=here,
                help=f"make a pipeline of it: Pipeline(..., {here.name}).state({part.name})",
            )
        if isinstance(here, MiddlewareNode):
            todo.append(here.body)
        elif isinstance(here, AgentNode):
            todo.extend(here.delegates)


def _delegates(agent: AgentNode, parts: Mapping[int, Part]) -> dict[str, Sequence[Part]]:
    """The parts that the agents below an agent stand in, by name, the innermost first."""
    found: dict[str, Sequence[Part]] = {}
    todo: list[tuple[Node, tuple[Part, ...]]] = [(each, ()) for each in agent.delegates]
    while todo:
        node, around = todo.pop()
        if id(node) in parts:
            around = (parts[id(node)], *around)
        if around:
            found[node.name] = around
        if isinstance(node, MiddlewareNode):
            todo.append((node.body, around))
        elif isinstance(node, AgentNode):
            todo.extend((each, around) for each in node.delegates)
    return found


def _checked(
    node: Node, declared: Iterable[tuple[str, Ref]], first: dict[str, tuple[Node, Ref]]
) -> Iterator[tuple[str, Ref]]:
    for key, reducer in declared:
        before, known = first.setdefault(key, (node, reducer))
        if not same_reducer(known, reducer):
            raise BuildError(
                f"state key {key!r} has two different reducers",
                node=node,
                found=f"{known.name} at {before.name!r}, and {reducer.name} at {node.name!r}",
                help="declare one of them wherever the key is declared",
            )
        yield key, reducer


def _lacking(root: Node, whole: Node, keys: list[str]) -> StateKeyError:
    reads = ((node, key) for node in distinct(root) for key in read_keys(node) if key in keys)
    reader = next(reads, None)
    given = ", ".join(f"{key!r}: ..." for key in keys)
    return StateKeyError(
        f"{whole.name} begins without {', '.join(map(repr, keys))}, which it needs",
        key=keys[0],
        node=whole,
        found=None if reader is None else f"{reader[0].name} reads {reader[1]!r}",
        help=f"start the session with state={{{given}}}",
    )


def _misfit(whole: Node, ref: StateFieldRef, value: object) -> StateTypeError:
    kind = getattr(ref.type, "__name__", None) or str(ref.type)
    return StateTypeError(
        f"{whole.name} begins with {ref.key!r} as {type(value).__name__}, "
        f"which is no {kind} that it takes",
        key=ref.key,
        node=whole,
        help=f"start the session with a value of that type, or declare the input {ref.key!r} anew",
    )


def reduced(key: str, reducer: Ref, values: Sequence[Any]) -> Any:
    """One value of several, which stay as they are.

    Raises:
        UsageError: The reducer is async.
        Exception: What the reducer raised.
    """
    try:
        made = reduce(reducer.value, [copied_containers(each) for each in values])
    except Exception as error:
        error.add_note(f"in the reducer of state key {key!r}, {reducer.name}")
        raise
    if isawaitable(made):
        close: Any = getattr(made, "close", None)
        if close is not None:  # nobody will await it
            close()
        raise UsageError(
            f"the reducer of state key {key!r} is async",
            found=reducer.name,
            help="give a function that returns the value",
        )
    return made
