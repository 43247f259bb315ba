"""Rules for the wrong node, value or result are type errors."""

from __future__ import annotations

from typing import assert_type

from adk_fluent import ir
from adk_fluent.backends._tables import Kind, Pass, PassList, RuleTable, ValueTable

table: RuleTable[str, int] = RuleTable("toy")


@table.rule(ir.AgentNode)
def agent(node: ir.AgentNode, children: tuple[str, ...], cx: int) -> str:
    return node.name * cx


@table.rule(ir.LoopNode)
def any_node(node: ir.Node, children: tuple[str, ...], cx: object) -> str:
    return node.name


@table.rule(ir.SequenceNode)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
def wrong_node(node: ir.AgentNode, children: tuple[str, ...], cx: int) -> str:
    return node.name


@table.rule(ir.SequenceNode)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
def wrong_result(node: ir.SequenceNode, children: tuple[str, ...], cx: int) -> int:
    return cx


@table.rule(ir.SequenceNode)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
def wrong_children(node: ir.SequenceNode, children: tuple[int, ...], cx: int) -> str:
    return node.name


@table.rule(int)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
def no_node(node: int, children: tuple[str, ...], cx: int) -> str:
    return str(node)


assert_type(table(ir.AgentNode("a"), 2), str)
table(ir.AgentNode("a"), "2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

NUMBER = Kind[int]("number", "digits")
values: ValueTable[str] = ValueTable()


@values.rule(NUMBER, str)
def digits(value: str, cx: str) -> int:
    return int(cx + value)


@values.rule(NUMBER, str)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
def wrong_value(value: bytes, cx: str) -> int:
    return len(value)


@values.rule(NUMBER, str)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
def wrong_kind(value: str, cx: str) -> str:
    return value


assert_type(values(NUMBER, "1", ""), int)


def renamed(root: ir.Node, cx: str) -> ir.Node:
    return root.replace(name=cx)


passes: PassList[str] = PassList()
passes.add(Pass("rename", renamed))
other: PassList[int] = PassList()
other.add(Pass("rename", renamed))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
