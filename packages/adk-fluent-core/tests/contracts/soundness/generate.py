"""Random small pipelines."""

from __future__ import annotations

from random import Random
from typing import Any

from adk_fluent import S
from adk_fluent.ir import (
    UNSET,
    AgentNode,
    Contract,
    Effects,
    ExpectNode,
    FallbackNode,
    FunctionNode,
    GateNode,
    LoopNode,
    MapOverNode,
    Match,
    MiddlewareNode,
    Node,
    ParallelNode,
    RaceNode,
    Ref,
    RouteNode,
    SequenceNode,
    StateFieldRef,
    TapNode,
    TimeoutNode,
    ToolSpec,
    TransferNode,
    declare_effects,
)


def leave(tool_context: Any) -> str:
    """End the loop."""
    tool_context.actions.escalate = True
    return "left"


vars(leave)["leaves"] = True  # as the explorer knows it
_LEAVE = ToolSpec(Ref.to(leave))


def _nothing(state: Any) -> None:
    """Neither read nor write."""


def _either(state: Any) -> bool:
    """Hold or not: nobody looks."""
    return True


_NOTHING = Ref.to(_nothing)


#: What hands on to the parts below it, for which the explorer takes it.
_RELAYS = (RouteNode, TimeoutNode, MiddlewareNode)


class Generator:
    """Makes one pipeline.

    Args:
        seed: The same one makes the same pipeline.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # to be the same each time is what it is for
        self.keys = ["k", "user:u", *(["m", "n"][: self.random.randrange(3)])]
        self.count = 0
        self.budget = self.random.choice((2, 3, 4, 5, 6))
        self.inputs = frozenset(key for key in self.keys if self.random.random() < 0.2)
        self.made: list[str] = []
        self.root = SequenceNode("root", (self.node(3), AgentNode("last")))

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def some(self, most: int = 2) -> list[str]:
        return self.random.sample(self.keys, self.random.randint(0, min(most, len(self.keys))))

    def reads(self) -> tuple[StateFieldRef, ...]:
        chance = self.random.random
        return tuple(
            StateFieldRef(key, default="" if chance() < 0.2 else UNSET) for key in self.some()
        )

    def writes(self) -> tuple[StateFieldRef, ...]:
        return tuple(StateFieldRef(key) for key in self.some())

    def match(self) -> Match:
        operator = self.random.choice(("eq", "ne", "contains", "gt"))
        return Match(operator, self.random.choice(self.keys), 1)

    def function(self) -> Ref:
        """A tool or callback that says what it does."""

        def act() -> None:
            """Act."""

        act.__name__ = self.name("act")
        maybe = self.writes() if self.random.random() < 0.3 else ()
        declare_effects(act, Effects(self.reads(), self.writes(), False, maybe))
        return Ref.to(act)

    def node(self, depth: int) -> Node:
        made = self._node(depth)
        if self.random.random() < 0.08 and not isinstance(made, _RELAYS):
            inputs = self.reads() if self.random.random() < 0.7 else None
            outputs = self.reads() if self.random.random() < 0.5 else None
            made = made.replace(contract=Contract(inputs=inputs, outputs=outputs))
        if not isinstance(made, TransferNode | MiddlewareNode):  # which are no targets
            self.made.append(made.name)
        return made

    def _node(self, depth: int) -> Node:
        self.budget -= 1
        if depth == 0 or self.budget <= 0 or self.random.random() < 0.25:
            return self.leaf()
        kinds = (
            *("sequence", "sequence", "sequence", "parallel", "parallel", "route", "route"),
            *("loop", "fallback", "race", "map", "wrapped"),
        )
        return getattr(self, self.random.choice(kinds))(depth - 1)

    def leaf(self) -> Node:
        chance = self.random.random()
        if self.made and self.random.random() < 0.06:
            condition = self.match() if self.random.random() < 0.3 else None
            return TransferNode(self.name("transfer"), self.random.choice(self.made), condition)
        if chance < 0.5:
            return self.agent()
        if chance < 0.7:
            effects = Effects(self.reads(), self.writes(), False, self.writes())
            return FunctionNode(self.name("function"), _NOTHING, effects)
        return getattr(
            self,
            self.random.choice(
                ("tap", "drop", "keep", "default", "rename", "merge", "gate", "expect")
            ),
        )()

    def agent(self, *, alone: bool = False) -> Node:
        """An agent, maybe with tools, callbacks and agents of its own."""
        rolls = [self.random.random() for _ in range(6)]
        tools = [_LEAVE] if rolls[0] < 0.2 else []
        said: tuple[StateFieldRef, ...] = ()
        if rolls[1] < 0.15:
            tools.append(ToolSpec(self.function()))
            said = self.writes() if rolls[2] < 0.3 else ()
        callbacks: list[tuple[str, tuple[Ref, ...]]] = []
        if rolls[3] < 0.15:
            when = self.random.choice(("before_agent", "after_agent", "before_model"))
            callbacks.append((when, (self.function(),)))
        inner = () if alone or rolls[4] > 0.08 else (self.agent(alone=True),)
        delegates = () if alone or rolls[5] > 0.08 else (self.agent(alone=True),)
        return AgentNode(
            self.name("agent"),
            reads_keys=self.reads(),
            writes_keys=self.writes(),
            tool_writes=said,
            tools=tuple(tools),
            callbacks=tuple(callbacks),
            agent_tools=inner,
            delegates=delegates,
        )

    def tap(self) -> Node:
        return TapNode(self.name("tap"), _NOTHING, Effects(self.reads(), opaque=False))

    def _named(self, kind: str, made: Any) -> Node:
        return made.to_ir().replace(name=self.name(kind))

    def _in_scope(self) -> list[str]:
        return [key for key in self.keys if ":" not in key]

    def drop(self) -> Node:
        return self._named("drop", S.drop(self.random.choice(self._in_scope())))

    def keep(self) -> Node:
        return self._named("keep", S.pick(self.random.choice(self._in_scope())))

    def default(self) -> Node:
        key = self.random.choice(self._in_scope())
        make = self.random.choice((S.default, S.set))
        return self._named("set", make(**{key: "1"}))

    def rename(self) -> Node:
        keys = self._in_scope()
        if len(keys) < 2:
            return self.drop()
        old, new = self.random.sample(keys, 2)
        names = {old: new, new: old} if self.random.random() < 0.3 else {old: new}
        return self._named("rename", S.rename(**names))

    def merge(self) -> Node:
        keys = self._in_scope()
        sources = self.random.sample(keys, self.random.randint(1, len(keys)))
        return self._named("merge", S.merge(*sources, into=self.random.choice(keys)))

    def gate(self) -> Node:
        test = self.match() if self.random.random() < 0.5 else None
        return GateNode(self.name("gate"), test, key=self.random.choice(self.keys))

    def expect(self) -> Node:
        return ExpectNode(self.name("expect"), self.match())

    def several(self, depth: int) -> tuple[Node, ...]:
        return tuple(self.node(depth) for _ in range(self.random.choice((1, 2, 2, 3))))

    def sequence(self, depth: int) -> Node:
        return SequenceNode(self.name("sequence"), self.several(depth))

    def parallel(self, depth: int) -> Node:
        return ParallelNode(self.name("parallel"), self.several(depth))

    def route(self, depth: int) -> Node:
        branches = self.several(depth)
        default = self.node(depth) if self.random.random() < 0.5 else None
        tests = tuple(
            self.match() if self.random.random() < 0.5 else Ref.to(_either) for _ in branches
        )
        return RouteNode(self.name("route"), None, tests, branches, default)

    def loop(self, depth: int) -> Node:
        until = self.match() if self.random.random() < 0.5 else None
        times = self.random.choice((1, 2, 3))
        return LoopNode(self.name("loop"), self.node(depth), times, until)

    def fallback(self, depth: int) -> Node:
        return FallbackNode(self.name("fallback"), self.several(depth))

    def race(self, depth: int) -> Node:
        return RaceNode(self.name("race"), self.several(depth))

    def map(self, depth: int) -> Node:
        keys = self._in_scope()
        item, output = self.random.choice(("_item", *keys)), self.random.choice(keys)
        result = self.random.choice(keys) if self.random.random() < 0.3 else None
        listed = self.random.choice(keys)
        return MapOverNode(self.name("map"), listed, self.node(depth), item, output, result)

    def wrapped(self, depth: int) -> Node:
        body = self.node(depth)
        if self.random.random() < 0.5:
            return TimeoutNode(self.name("timeout"), body, 1.0)
        return MiddlewareNode(self.name("around"), body)
