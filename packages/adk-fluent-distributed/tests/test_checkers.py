"""What `check` finds about boundaries: each fault, and the nearest pipeline that has it not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, Middleware, race
from adk_fluent.builders import Pipeline, State
from adk_fluent.contracts import CODES, check_boundary_contracts
from adk_fluent.distributed import ScalingConfig, TransportConfig
from adk_fluent.ir import (
    AgentNode,
    EdgeSemantics,
    Effects,
    ExecutionBoundary,
    FunctionNode,
    Ref,
    SequenceNode,
    StateFieldRef,
)

if TYPE_CHECKING:
    from adk_fluent.contracts import Checkable


def there(node: Any) -> Any:
    return node.replace(boundary=ExecutionBoundary())


def step(name: str, *, reads: str = "", writes: str = "", type: Any = None) -> FunctionNode:
    def fn(state: State) -> None: ...

    read = (StateFieldRef(reads),) if reads else ()
    written = (StateFieldRef(writes, type),) if writes else ()
    return FunctionNode(name, Ref.to(fn), effects=Effects(read, written, opaque=False))


def seq(*steps: Any, edges: tuple[EdgeSemantics, ...] = ()) -> SequenceNode:
    return SequenceNode("all", steps, edge_semantics=edges)


class Counts(Middleware):
    """Counts calls."""

    def __init__(self, kept: str) -> None:
        self.__process_memory__ = kept


TOKENS = (EdgeSemantics("token"), EdgeSemantics())
UNION = Callable[[], int] | None
CASES: list[tuple[str, Checkable, Checkable]] = [
    (
        "DST001",
        seq(step("a", writes="f", type=UNION), there(step("b", reads="f"))),
        seq(step("a", writes="f", type=str), there(step("b", reads="f"))),
    ),
    (
        "DST002",
        seq(step("a", writes="temp:f"), there(step("b", reads="temp:f"))),
        there(seq(step("a", writes="temp:f"), step("b", reads="temp:f"))),
    ),
    (
        "DST003",
        seq(AgentNode("a"), there(AgentNode("b")), edges=TOKENS),
        seq(AgentNode("a"), there(AgentNode("b")), edges=TOKENS[1:] * 2),
    ),
    (
        "DST004",
        Agent("a") >> Agent("b").execution_boundary(scaling=ScalingConfig(min_instances=1)),
        Agent("a") >> Agent("b").execution_boundary(scaling=ScalingConfig(max_instances=2)),
    ),
    (
        "DST004",
        Agent("a") >> race(Agent("b").execution_boundary(), Agent("c")),
        Agent("a") >> race(Agent("b"), Agent("c")).execution_boundary(),
    ),
    (
        "DST004",
        Agent("b").execution_boundary(transport=TransportConfig("queue", "nats://h")),
        Agent("b").execution_boundary(transport=TransportConfig("queue", "postgresql://h/r")),
    ),
    (
        "DST005",
        Agent("a").middleware(Counts("what it counted; keep it in a file")).execution_boundary(),
        Agent("a").middleware(Counts("")).execution_boundary(),
    ),
    (
        "DST005",
        Pipeline("p", Agent("a"), Agent("b").execution_boundary()).middleware(Counts("counts")),
        Pipeline("p", Agent("a"), Agent("b")).middleware(Counts("counts")),
    ),
    (
        "DST006",
        seq(step("a", writes="f", type=list[bytes] | None), there(step("b", reads="f"))),
        seq(
            step("a", writes="f", type=list[bytes] | None),
            step("b", reads="f").replace(boundary=ExecutionBoundary("msgpack")),
        ),
    ),
]


@pytest.mark.parametrize(("code", "faulty", "sound"), CASES)
def test_what_is_found(code: str, faulty: Checkable, sound: Checkable) -> None:
    (found,) = check_boundary_contracts(faulty)
    assert (found.code, bool(found.help)) == (code, True)
    assert check_boundary_contracts(sound) == []


def test_every_code_has_a_case() -> None:
    assert {code for code in CODES if code.startswith("DST")} == {case[0] for case in CASES}


def test_what_is_said() -> None:
    faults = [check_boundary_contracts(faulty)[0] for _, faulty, _ in CASES]
    assert [each.message for each in faults] == [
        "`a` writes a callable to 'f'",
        "`b` reads 'temp:f' in another segment",
        "what `a` streams to `b` crosses a boundary whole",
        "this engine cannot host segment 'b': min_instances=",
        "the execution boundary of 'b' stands inside a race, 'race'",
        "this engine cannot host segment 'b': TransportConfig(type='queue', endpoint='nats://h')",
        "`Counts` keeps in the memory of each process what it counted",
        "`Counts` keeps in the memory of each process counts",
        "`a` writes to 'f' what JSON cannot hold",
    ]
