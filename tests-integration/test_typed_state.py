"""What is proven about random typed pipelines holds when they run (success criterion 8).

Each is a schema and a pipeline over it as source text; see `typed_pipelines`. Those that
`check_all` calls proven run on the mock backend and on ADK, with sessions in memory, in SQLite and
in a database, as they are and held to the schema: no key is missing, what is read is of its type,
and what is left in the end can be read. There are 60, or 5 000 with ``--full``, spread over the
kinds of sessions.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import warnings
import zlib
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from typed_pipelines.fields import KINDS
from typed_pipelines.programs import Program, generate, load, programs
from typed_pipelines.running import OnAdk, on_mock, ran

from adk_fluent.contracts import check_all
from adk_fluent.contracts._structure._declared import predicates
from adk_fluent.ir import AgentNode, FunctionNode, LoopNode, Match, Ref, TransformNode, walk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.ir import Node

FEW, MANY = 60, 5_000
LEAST = 10  # examples at a time: the first ones that hypothesis draws are small
STORES = ("memory", "sqlite", "database")
SETTINGS = settings(
    phases=[Phase.generate, Phase.shrink],
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
#: Of so many examples, each trait is had by one at least.
PLENTY = 400
TRAITS = {
    *("SequenceNode", "ParallelNode", "RouteNode", "LoopNode", "FallbackNode", "RaceNode"),
    *("MapOverNode", "TimeoutNode", "TransferNode", "TapNode", "ExpectNode", "FunctionNode"),
    *("answers", "answers several", "by tool", "tools", "agent tools", "delegates", "callbacks"),
    *("template", "instruction function", "reads", "leaves"),
    *("derived", "declared", "compared", "tested", "until", "reduced"),
    *("merge", "delete_keys", "part schema", "part inputs", "part outputs"),
    *("item key", "result key", "first_complete", "session", "user", "app", "temp"),
    *KINDS,
}


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # clients of earlier tests close themselves in whatever loop runs, or never
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(params=STORES)
def service(
    request: pytest.FixtureRequest, folder: Path, loop: asyncio.Runner
) -> Iterator[BaseSessionService]:
    if request.param == "memory":
        from google.adk.sessions.in_memory_session_service import InMemorySessionService

        yield InMemorySessionService()
    elif request.param == "sqlite":
        from google.adk.sessions.sqlite_session_service import SqliteSessionService

        yield SqliteSessionService(str(folder / "sessions.db"))
    else:
        from google.adk.sessions.database_session_service import DatabaseSessionService

        service = DatabaseSessionService(f"sqlite+aiosqlite:///{folder / 'all.db'}")
        yield service
        loop.run(service.db_engine.dispose())


# --- random pipelines ----------------------------------------------------------------------------


class Examples:
    """Random pipelines that are proven, and what occurs in them.

    Args:
        option: The options of the tests.
        name: Of the test, which has examples of its own.
        share: Of how many tests this one is.
    """

    def __init__(self, option: Any, name: str, share: int) -> None:
        self.begin = zlib.crc32(name.encode()) ^ option.seed
        count = option.examples or (MANY if option.full else FEW)
        self.count = -(-count // share)
        self.made = 0
        self.proven = 0
        self.reads = 0
        self.met = Counter[str]()

    def run(self, loop: asyncio.Runner, *ways: Any) -> None:
        """Run each in all of these ways."""
        passed: set[int] = set()

        def holds(program: Program) -> None:
            text = hash(program.text)
            if text in passed:  # hypothesis likes to repeat itself
                return
            passed.add(text)
            self.made += 1
            module = load(program.text)
            if not check_all(module.root).proven:
                return
            for way in ways:
                watch = loop.run(ran(module, way, program.chance))
                assert not watch.wrong, "\n".join(watch.wrong)
                self.reads += watch.reads
            self.proven += 1
            self.met.update(set(traits(module)))

        for turn in itertools.count(self.begin):
            if self.proven >= self.count:
                break
            left = max(self.count - self.proven, LEAST)
            more = settings(SETTINGS, max_examples=left)
            seed(turn)(more(given(programs())(holds)))()
        self.suffice()

    def suffice(self) -> None:
        """See that there was enough of everything."""
        assert self.proven >= self.made * 0.33
        assert self.reads > self.proven * 2
        if self.count >= PLENTY:
            rare = {trait for trait in TRAITS if self.met[trait] * PLENTY < self.proven}
            assert rare == set()


def traits(module: ModuleType) -> Iterator[str]:
    """What occurs in a program: kinds of nodes, what there is of each, and types."""
    root = module.root.to_ir()
    for ref in module.Shop.__state_fields__.values():
        yield ref.scope
    yield from module.kinds
    for node in walk(root):
        yield type(node).__name__
        yield from _traits_of_contract(node) if node is not root else ()
        for test in predicates(node):
            yield "compared" if isinstance(test, Match) else "tested"
        match node:
            case AgentNode():
                yield from _traits_of_agent(node)
            case FunctionNode():
                yield "derived" if node.effects.opaque else "declared"
            case TransformNode():
                yield node.semantics
            case LoopNode(until=until) if until is not None:
                yield "until"
            case _:
                for name in ("item_key", "result_key"):
                    if getattr(node, name, None) not in (None, "_item"):
                        yield name.replace("_", " ")
                if getattr(node, "merge", None) == "first_complete":
                    yield "first_complete"


def _traits_of_contract(node: Node) -> Iterator[str]:
    contract = node.contract
    if contract is not None:
        yield from ["part schema"] if contract.schema is not None else []
        yield from ["part inputs"] if contract.inputs is not None else []
        yield from ["part outputs"] if contract.outputs is not None else []


def _traits_of_agent(node: AgentNode) -> Iterator[str]:
    names = [spec.name for spec in node.tools]
    found = {
        "answers": bool(node.writes_keys),
        "answers several": len(node.writes_keys) > 1,
        "by tool": bool(node.tool_writes),
        "tools": bool(names),
        "leaves": "leave" in names,
        "agent tools": bool(node.agent_tools),
        "delegates": bool(node.delegates),
        "callbacks": bool(node.callbacks),
        "instruction function": isinstance(node.instruction, Ref),
        "template": isinstance(node.instruction, str) and "{" in node.instruction,
        "reads": bool(node.reads_keys),
        "reduced": any(ref.reducer is not None for ref in node.writes_keys),
    }
    yield from (name for name, holds in found.items() if holds)


@pytest.mark.adk
@pytest.mark.parametrize("held", [False, True], ids=["plain", "held"])
def test_what_is_proven_holds(
    request: pytest.FixtureRequest, loop: asyncio.Runner, service: BaseSessionService, held: bool
) -> None:
    examples = Examples(request.config.option, request.node.name, 2 * len(STORES))
    examples.run(loop, on_mock, OnAdk(service, held=held))


def test_what_is_proven_holds_without_adk(
    request: pytest.FixtureRequest, loop: asyncio.Runner
) -> None:
    Examples(request.config.option, request.node.name, 50).run(loop, on_mock)


# --- the other way round -------------------------------------------------------------------------

MUTANTS = 500
FLOORS = {"write": 6, "input": 50, "type": 12}  # of those that are no more proven and fail


@pytest.mark.full
def test_what_is_mutated_so_that_it_is_no_more_proven_fails(loop: asyncio.Runner) -> None:
    doubted, failed = Counter[str](), Counter[str]()
    for program, flaw in itertools.islice(mutants(), MUTANTS):
        why = program.flaws[flaw]
        module = load(program.mutated(flaw))
        proven = check_all(module.root).proven
        watches = [loop.run(ran(module, on_mock, n, contracts="off")) for n in range(3)]
        wrong = [each for watch in watches for each in watch.wrong]
        if proven:  # nobody needed what was left out
            assert wrong == [], f"{why}: {program.mutated(flaw)}"
        else:
            doubted[why] += 1
            failed[why] += bool(wrong)
    assert {why for why, least in FLOORS.items() if failed[why] < least} == set()
    assert failed.total() > doubted.total() * 0.4


def mutants() -> Iterator[tuple[Program, int]]:
    """Programs that are proven, each with one thing to be mutated."""
    for number in itertools.count():
        random = Random(number)
        program = generate(random.randint)
        if program.flaws and check_all(load(program.text).root).proven:
            flaws = list(program.flaws)
            yield from ((program, flaw) for flaw in random.sample(flaws, min(3, len(flaws))))
