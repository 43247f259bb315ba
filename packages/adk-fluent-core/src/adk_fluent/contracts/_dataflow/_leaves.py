"""What single steps do to state: agents, functions, transforms, gates, tests."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._calling import Calls, Stated
from adk_fluent.contracts._dataflow._built_agents import BuiltAgent, built_agent
from adk_fluent.contracts._dataflow._part import (
    Part,
    again,
    alternatives,
    apart,
    behind,
    beside,
    optional,
)
from adk_fluent.contracts._dataflow._values import Change, Def, Need, Site
from adk_fluent.contracts._dataflow._words import CALLS, FILLS
from adk_fluent.contracts._effects import (
    effects_of_callback,
    effects_of_function,
    effects_of_instruction,
    effects_of_predicate,
    effects_of_tool,
    result_of,
)
from adk_fluent.ir import (
    UNSET,
    AdkAgentNode,
    AgentNode,
    ExpectNode,
    FunctionNode,
    GateNode,
    Match,
    Node,
    Ref,
    StateFieldRef,
    TapNode,
    TransformNode,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adk_fluent.contracts._dataflow._values import Writers
    from adk_fluent.contracts._effects import Derived
    from adk_fluent.ir import Predicate

#: Keys with these prefixes outlive the session, and are never undone.
LASTING: Final = ("user:", "app:")
_NUMBER: Final = (int, float)


class Steps:
    """Says what steps do, at the end of a part, and keeps every read and write that there is.

    Attributes:
        sites: Every read.
        defs: Every write, and every removal.
        refused: Writes that a schema surely refuses: who writes, how, the key, the type that is
            given, and the one that is declared.
        lasting: Keys that outlive the session and are written.
        reduced: Keys whose values are joined where branches come together: what does it, and of
            which type they are.
        wipes: Whether a transform removes all keys but some.
    """

    def __init__(self, every_key: frozenset[str]) -> None:
        self.sites: list[Site] = []
        self.defs: list[Def] = []
        self.refused: list[tuple[Node, str, str, Any, Any]] = []
        self.lasting: set[str] = set()
        self.reduced: dict[str, tuple[Ref, Any]] = {}
        self.wipes = False
        self._every_key = every_key

    def below(self, node: Node) -> Part:
        """What a node that is part of a step does."""
        raise NotImplementedError

    def is_in_loop(self, node: Node) -> bool:
        """Whether a loop stands around a node, in all places where it stands."""
        raise NotImplementedError

    # --- reads and writes ------------------------------------------------------------------------

    def read(  # noqa: PLR0917  # the most frequent call of all
        self, part: Part, key: str, node: Node, need: Need, how: str = "reads", type: Any = None
    ) -> Site:
        """A read of one key."""
        site = Site(key, node, need, how, type)
        self.sites.append(site)
        part.read(key, site)
        return site

    def reads(self, part: Part, node: Node, refs: Iterable[StateFieldRef], how: str) -> None:
        """Reads of several keys; those with a default may be absent."""
        for ref in refs:
            need = Need.REQUIRED if ref.default is UNSET else Need.OPTIONAL
            self.read(part, ref.key, node, need, how, ref.type)

    def write(
        self,
        part: Part,
        key: str,
        node: Node,
        type: Any = None,
        *,
        through: bool = False,
        implied: bool = False,
        sources: tuple[Site, ...] | None = None,
    ) -> Def:
        """A write of one key; with `through` it may not happen."""
        made = Def(key, node, type, implied=implied, sources=sources)
        self.defs.append(made)
        if ":" in key and key.startswith(LASTING):
            self.lasting.add(key)
        part.write(key, Change(through, made))
        return made

    def writes(
        self,
        part: Part,
        node: Node,
        refs: Iterable[StateFieldRef],
        otherwise: Any = None,
        *,
        through: bool = False,
    ) -> None:
        """Writes of several keys, of the type that is declared or `otherwise`."""
        for ref in refs:
            if ref.reducer is not None:
                self.reduced[ref.key] = (ref.reducer, ref.type)
            kind, implied = (otherwise, True) if ref.type is None else (ref.type, False)
            self.write(part, ref.key, node, kind, through=through, implied=implied)

    def remove(self, part: Part, key: str, node: Node, *, through: bool = False) -> None:
        """A removal of one key; with `through` it may not happen."""
        made = Def(key, node, removes=True)
        self.defs.append(made)
        part.write(key, Change(through, None, made))

    def does(self, part: Part, node: Node, done: Derived, how: str, *, always: bool) -> None:
        """What a function does; `always` if it is surely called, and once."""
        start = len(self.defs)
        self.reads(part, node, done.reads, how)
        self.writes(part, node, done.writes, through=not always)
        self.writes(part, node, done.may_write, through=True)
        for key in done.removes:
            self.remove(part, key, node, through=not always)
        for key in done.may_remove:
            self.remove(part, key, node, through=True)
        if done.assumed:
            self._assume(start, done.assumed)
        for made in self.defs[start:] if done.doubtful else ():
            made.doubtful = made.key in done.doubtful
        self.refused += [(node, how, *each) for each in done.refused]
        part.leaves |= done.escalates
        part.opaque |= done.opaque is not None

    def _assume(self, start: int, keys: Iterable[str]) -> None:
        """What was written from there on is only as good as certain to be a value."""
        for made in self.defs[start:]:
            made.assumed = made.assumed or made.key in keys

    def looks(self, part: Part, node: Node, fn: Ref | None, how: str) -> None:
        """What a function reads that writes nothing."""
        if fn is not None:
            self.reads(part, node, effects_of_predicate(fn).reads, how)

    def tests(self, part: Part, node: Node, test: Predicate | None, how: str) -> None:
        """A predicate; one that compares is content with None."""
        if isinstance(test, Match):
            self.read(part, test.key, node, Need.SOFT, how, _compared(test))
        else:
            self.looks(part, node, test, how)

    # --- steps -----------------------------------------------------------------------------------

    def agent(self, part: Part, node: AgentNode) -> None:
        """Reads, calls tools in any order, hands over to others, writes its answer."""
        callbacks = dict(node.callbacks) if node.callbacks else {}
        for fn in callbacks.pop("before_agent", ()):
            self.does(part, node, effects_of_callback(fn), CALLS + fn.name, always=False)
        self.reads(part, node, node.reads_keys, "reads")
        if isinstance(node.instruction, Ref):
            self.reads(part, node, effects_of_instruction(node.instruction).reads, "instructs")
        after = callbacks.pop("after_agent", ())
        surely = True
        others: list[Part] = []
        if node.tools or callbacks or node.agent_tools or node.delegates:
            delegates = [self.below(each) for each in node.delegates]
            others = [each.copy() for each in delegates]
            start, called = len(self.defs), self._called(node, callbacks, delegates)
            # who leaves owes nothing, and only in a loop does nothing come after that
            surely = not called.leaves or self.is_in_loop(node)
            part.add(called)
            said = {ref.key for ref in node.tool_writes}
            for made in self.defs[start:] if said else ():  # one write, which is said twice
                made.used = made.used or made.key in said
            if called.leaves and surely:  # but its own callbacks
                for fn in after:
                    self.does(part, node, effects_of_callback(fn), CALLS + fn.name, always=False)
        own = Part() if others else part
        for ref in node.writes_keys:
            self.writes(own, node, (ref,), _answer_type(node, ref.key), through=not surely)
        self.writes(own, node, node.tool_writes, through=not surely)
        if others:  # who hands over owes nothing, and has not the last word
            part.add(alternatives([own, *others]))
        for fn in after:
            self.does(part, node, effects_of_callback(fn), CALLS + fn.name, always=False)

    def _called(
        self, node: AgentNode, callbacks: Mapping[str, Sequence[Ref]], delegates: Sequence[Part]
    ) -> Part:
        """What may happen while it runs, any number of times and in any order."""
        own = Part()
        for tool in node.tools:
            self.does(own, node, effects_of_tool(tool.tool), CALLS + tool.name, always=False)
            if isinstance(tool.require_confirmation, Ref):
                self.looks(own, node, tool.require_confirmation, CALLS + tool.name)
        for fns in callbacks.values():
            for fn in fns:
                self.does(own, node, effects_of_callback(fn), CALLS + fn.name, always=False)
        parts = [own, *(apart(self.below(each)) for each in node.agent_tools)]
        parts += delegates
        leaves = any(each.leaves for each in parts)
        for each in parts:
            each.leaves, each.late = False, {}
        called = optional(again(alternatives(parts, none=True), rounds=False))
        called.leaves = leaves
        return called

    def function(self, part: Part, node: FunctionNode) -> None:
        """Calls its function."""
        done = node.effects
        if done.opaque:
            self.does(part, node, effects_of_function(node.fn), "reads", always=True)
            return
        self.reads(part, node, done.reads, "reads")
        self.writes(part, node, done.writes)
        self.writes(part, node, done.may_write, through=True)

    def tap(self, part: Part, node: TapNode) -> None:
        """Calls its function, which writes nothing."""
        if node.effects.opaque:
            self.looks(part, node, node.fn, "reads")
        else:
            self.reads(part, node, node.effects.reads, "reads")

    def transform(self, part: Part, node: TransformNode) -> None:
        """Changes state as it says."""
        own = Part()
        self._computes(own, node)
        if node.semantics == "delete_keys":
            for key in node.affected_keys or ():
                self.remove(own, key, node)
        elif node.semantics == "replace_session":
            self.wipes = True
            stays = {*(node.affected_keys or ()), *own.sure, *own.maybe}
            for key in sorted(self._every_key - stays):
                if node.scope == "all" or StateFieldRef(key).scope == "session":
                    self.remove(own, key, node)
        part.add(own)

    def _computes(self, part: Part, node: TransformNode) -> None:
        start, fn = len(self.defs), None if node.fn is None else node.fn.value
        if isinstance(fn, Stated):
            self._states(part, node, fn)
        elif not node.effects.opaque:
            self.reads(part, node, node.effects.reads, "reads")
            gone = () if node.semantics != "delete_keys" else node.affected_keys or ()
            kept = [ref for ref in node.effects.writes if ref.key not in gone]
            self.writes(part, node, kept)
        elif isinstance(fn, Calls):
            for each, _ in fn.functions():
                self.looks(part, node, each, "reads")
            self.writes(part, node, node.effects.writes)
        elif node.fn is not None:
            self.does(part, node, effects_of_function(node.fn), "reads", always=True)
        if isinstance(fn, Calls):
            self._take(start, fn)

    def _take(self, start: int, calls: Calls) -> None:
        """Say of what was written from there on what functions give that were called for it."""
        given = dict(calls.makes())
        for made in self.defs[start:]:
            if made.key in given:
                done = result_of(given[made.key], of_state=not isinstance(calls, Stated))
                made.type = done.gives if made.type is None else made.type
                made.assumed |= done.gives_none

    def _states(self, part: Part, node: TransformNode, fn: Stated) -> None:
        """What a function with a stated meaning does, all at once."""
        outcomes = fn.outcomes()
        others = {key for each in outcomes for key in each.sources or () if key != each.key}
        asked = {
            key: self.read(part, key, node, Need.SOFT if key in others else Need.PROBE)
            for key in sorted(
                {key for each in outcomes for key in (*(each.sources or ()), *each.copies)}
            )
        }
        for each in outcomes:
            if each.removes:
                self.remove(part, each.key, node)
                continue
            sources = None if each.sources is None else tuple(asked[key] for key in each.sources)
            kind = each.type if each.value is None else type(each.value)
            made = self.write(part, each.key, node, kind, sources=sources)
            made.copies = tuple(asked[key] for key in each.copies)
            made.value = UNSET if each.value is None else each.value

    def foreign(self, part: Part, node: AdkAgentNode) -> None:
        """What its data says; nobody knows what it does besides."""
        part.opaque = True
        self._built(part, node, built_agent(node.agent.value), code=False)

    def _built(self, part: Part, node: AdkAgentNode, agent: BuiltAgent, *, code: bool) -> bool:
        """What an agent of ADK's does; gives whether code has run by its end.

        Args:
            part: What was before it in the same agent by hand.
            node: The step.
            agent: It, or one below it.
            code: Whether code has run before it that may have written any key.
        """
        code = code or agent.starts_with_code or not agent.kind
        for ref in agent.reads:
            need = Need.OPTIONAL if code or ref.default is not UNSET else Need.REQUIRED
            self.read(part, ref.key, node, need, FILLS + agent.name)
        own = Part()
        if agent.writes is not None:
            self.write(own, agent.writes, node)
        below: list[Part] = []
        ran = code
        handed = agent.kind == "LlmAgent" and _has_code(
            agent
        )  # it, or a peer, before it hands over
        for each in agent.below:
            below.append(Part())
            below[-1].opaque = True
            before = ran if agent.kind in ("SequentialAgent", "LoopAgent") else code or handed
            ran |= self._built(below[-1], node, each, code=before)
        part.add(_arranged(agent.kind, own, below))
        return ran or agent.has_code

    def gate(self, part: Part, node: GateNode) -> None:
        """Asks when its test holds, and writes the answer."""
        self.tests(part, node, node.predicate, "tests")
        self.looks(part, node, node.payload, "shows")
        self.write(part, node.key or node.name, node, through=node.predicate is not None)

    def expect(self, part: Part, node: ExpectNode) -> None:
        """Tests, and stops the run if that fails."""
        self.tests(part, node, node.predicate, "expects")


def _has_code(agent: BuiltAgent) -> bool:
    """Whether it or an agent below it has code that may write any key."""
    return agent.has_code or any(map(_has_code, agent.below))


def _unsaid(key: str, one: Writers, other: Writers) -> None:
    """That branches of an agent built by hand write one key is no finding."""


def _arranged(kind: str, own: Part, below: list[Part]) -> Part:
    """What an agent of ADK's does with its answer and with the agents below it."""
    match kind:
        case "SequentialAgent":
            return reduce(behind, below, own)
        case "LoopAgent":
            return again(reduce(behind, below, own))
        case "ParallelAgent":
            return beside([own, *below], (), _unsaid)
        case "LlmAgent":  # who hands over has not the last word
            return alternatives([own, *below])
        case _:
            return again(alternatives(below, none=True))


def _answer_type(node: AgentNode, key: str) -> Any:
    """What an agent writes to a key without a type: the text of its answer, its data, or a field.

    Where it writes several keys, each gets the field of its name.
    """
    if node.output_schema is None:
        return str
    schema = node.output_schema.value
    if len(node.writes_keys) == 1:
        return schema
    return getattr(getattr(schema, "model_fields", {}).get(key), "annotation", None)


def _compared(test: Match) -> Any:
    """What a comparison takes without failing."""
    if test.operator not in ("gt", "lt"):
        return None
    value: object = test.value
    return float if isinstance(value, _NUMBER) else type(value)
