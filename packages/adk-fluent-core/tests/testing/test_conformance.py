"""The conformance suite on the mock backend, and on backends that are wrong in one way each."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.builders import Pipeline
from adk_fluent.errors import UnknownNameError, UsageError
from adk_fluent.testing import MockBackend, conformance
from adk_fluent.testing.conformance import (
    CAPABILITIES,
    Program,
    Raised,
    Status,
    Subject,
    Turn,
    beside,
    case,
    check,
    never,
    not_yet,
    programs,
)
from adk_fluent.testing.conformance._order import disorder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.backends.mock import MockApp
    from adk_fluent.protocol import AgentEvent, RunResult

TestMock = conformance.as_pytest(conformance.mock_subject)


# --- the suite itself -----------------------------------------------------------------------------


def test_it_has_programs_about_everything() -> None:
    every = programs()
    assert len(every) >= 300
    assert len({program.id for program in every}) == len(every)
    assert {program.capability for program in every} == set(CAPABILITIES)
    situations = Counter(program.id.partition("/")[0] for program in every)
    for situation in (
        "nested",
        "reused",
        "failing",
        "cancelled",
        "timed out",
        "closed early",
        "resumed",
    ):
        assert situations[situation] >= 12, situation
    assert {program.capability for program in programs("race", "loop")} == {"race", "loop"}


def test_it_imports_neither_adk_nor_pytest() -> None:
    code = (
        "import sys\n"
        "from adk_fluent.testing import conformance\n"
        "conformance.programs(); conformance.mock_subject()\n"
        "print([n for n in sys.modules if n.startswith(('google.adk', 'pydantic', 'pytest'))])"
    )
    done = subprocess.run(
        (sys.executable, "-c", code), capture_output=True, text=True, encoding="utf-8", check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_order_of_lines() -> None:
    order = ("a", *beside(("b", *beside(("c",), ("d", "e"))), (), ("f",)), "g")
    for lines in ("a b c d e f g", "a f b d c e g", "a b d f e c g"):
        assert disorder(order, lines.split()) is None
    assert disorder(order, ["a", "g"]) == "number 2 is 'g', should be 'b' or 'f'"
    assert disorder(order, ["a", "f", "b", "c", "e"]) == "number 5 is 'e', should be 'd'"
    assert disorder(order, ["a", "f", "b"]) == "after 3 lacks 'c' or 'd'"
    assert disorder(("a",), ["a", "a"]) == "number 2 is 'a', should be nothing"


def test_statuses_have_reasons() -> None:
    for wrong in (lambda: Status("never"), lambda: Status("works", "because")):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(UnknownNameError, match="race"):
        Subject(name="x", backend=MockBackend, lacks={"rac": never("no")})


def test_the_table_says_what_is_lacking() -> None:
    table = conformance.capability_table({"mine": {"race": never("too fast")}, "other": {}})
    lines = table.splitlines()
    assert len(lines) == len(CAPABILITIES) + 2
    (race,) = [line for line in lines if line.startswith("| race:")]
    assert race.endswith(f"| {len(programs('race'))} | never: too fast | works |")
    assert {line.replace("\\|", "").count("|") for line in lines} == {5}


def test_the_page_about_backends_has_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "backends.md"
    columns = {"mock": conformance.MOCK_LACKS, "adk": conformance.ADK_LACKS}
    table = conformance.capability_table(columns)
    assert table in page.read_text("utf-8"), f"the table is now:\n{table}"


# --- backends that are wrong ----------------------------------------------------------------------


class Wrapped(MockBackend):
    """The mock backend, with events that somebody may change on their way."""

    async def stream(
        self, compiled: MockApp, prompt: Any, **kwargs: Any
    ) -> AsyncGenerator[AgentEvent, None]:
        async with aclosing(super().stream(compiled, prompt, **kwargs)) as events:
            async for event in events:
                for changed in self.change(event):
                    yield changed

    def change(self, event: AgentEvent) -> list[AgentEvent]:
        return [event]


class LosesEvents(Wrapped):
    def change(self, event: AgentEvent) -> list[AgentEvent]:
        return [] if event.path == "s1" else [event]


class SwapsEvents(Wrapped):
    held: AgentEvent | None = None

    def change(self, event: AgentEvent) -> list[AgentEvent]:
        held, self.held = self.held, event if self.held is None and event.path == "s0" else None
        return [] if self.held is not None else [event] if held is None else [event, held]


class ChangesText(Wrapped):
    def change(self, event: AgentEvent) -> list[AgentEvent]:
        return [replace(event, content=event.content.strip() + " ")] if event.content else [event]


class ForgetsWhatWasDiscarded(Wrapped):
    def change(self, event: AgentEvent) -> list[AgentEvent]:
        return [replace(event, discarded=())]


class SaysWhoeverWroteIt(Wrapped):
    def change(self, event: AgentEvent) -> list[AgentEvent]:
        return [replace(event, author="somebody")]


class NeverAsks(Wrapped):
    def change(self, event: AgentEvent) -> list[AgentEvent]:
        return [replace(event, pending=())]


class LosesState(Wrapped):
    async def run(self, compiled: MockApp, prompt: Any, **kwargs: Any) -> RunResult:
        result = await super().run(compiled, prompt, **kwargs)
        result.state.pop("k", None)
        return result


class KeepsNothing(Wrapped):
    """Every run begins with a session of its own."""

    async def stream(
        self, compiled: MockApp, prompt: Any, **kwargs: Any
    ) -> AsyncGenerator[AgentEvent, None]:
        kwargs["session_id"] = None
        async for event in super().stream(compiled, prompt, **kwargs):
            yield event


class SwallowsErrors(Wrapped):
    async def stream(
        self, compiled: MockApp, prompt: Any, **kwargs: Any
    ) -> AsyncGenerator[AgentEvent, None]:
        with suppress(ValueError):
            async for event in super().stream(compiled, prompt, **kwargs):
                yield event


class WrapsErrors(Wrapped):
    async def stream(
        self, compiled: MockApp, prompt: Any, **kwargs: Any
    ) -> AsyncGenerator[AgentEvent, None]:
        try:
            async for event in super().stream(compiled, prompt, **kwargs):
                yield event
        except ValueError as error:
            raise RuntimeError("it failed") from error


class RunsOn(Wrapped):
    """Goes on in the background when nobody listens any more."""

    tasks: list[asyncio.Task[None]] = []  # noqa: RUF012  # of all of them

    async def stream(
        self, compiled: MockApp, prompt: Any, **kwargs: Any
    ) -> AsyncGenerator[AgentEvent, None]:
        queue: asyncio.Queue[AgentEvent | Exception | None] = asyncio.Queue()

        async def work() -> None:
            try:
                async for event in super(RunsOn, self).stream(compiled, prompt, **kwargs):
                    await queue.put(event)
            except Exception as error:  # noqa: BLE001  # raised below
                await queue.put(error)
            await queue.put(None)

        self.tasks.append(asyncio.create_task(work()))
        while (got := await queue.get()) is not None:
            if isinstance(got, Exception):
                raise got
            yield got
        await asyncio.sleep(0)


class Closes(Wrapped):
    """Has something that closes itself in the background, as clients do when they are collected."""

    tasks: list[asyncio.Task[None]] = []  # noqa: RUF012  # of all of them

    async def stream(
        self, compiled: MockApp, prompt: Any, **kwargs: Any
    ) -> AsyncGenerator[AgentEvent, None]:
        async for event in super().stream(compiled, prompt, **kwargs):
            yield event
        self.tasks.append(asyncio.create_task(asyncio.sleep(0.01)))


async def test_what_closes_itself_in_the_background_is_not_left_running() -> None:
    subject = Subject(name="closes", backend=Closes)
    program = next(each for each in programs() if each.id == "alone/sequence")
    assert await check(program, subject) == []
    assert Closes.tasks


class RunsOneAtATime(Wrapped):
    busy = False

    async def stream(
        self, compiled: MockApp, prompt: Any, **kwargs: Any
    ) -> AsyncGenerator[AgentEvent, None]:
        if self.busy:
            raise RuntimeError("busy")
        self.busy = True
        try:
            async for event in super().stream(compiled, prompt, **kwargs):
                yield event
        finally:
            self.busy = False


@pytest.mark.parametrize(
    ("backend", "aspect"),
    [
        (LosesEvents, "events"),
        (SwapsEvents, "events"),
        (ChangesText, "text"),
        (ForgetsWhatWasDiscarded, "events"),
        (SaysWhoeverWroteIt, "events"),
        (NeverAsks, "events"),
        (LosesState, "state"),
        (KeepsNothing, "state"),
        (SwallowsErrors, "error"),
        (WrapsErrors, "error"),
        (RunsOn, "left running"),
        (RunsOneAtATime, "error"),
    ],
)
async def test_a_wrong_backend_is_found_out(backend: type[Wrapped], aspect: str) -> None:
    subject = Subject(name="wrong", backend=backend)
    ids = {
        *(
            "resumed/sequence",
            "alone/sequence",
            "alone/parallel",
            "alone/fallback",
            "failing/function raises",
        ),
        *("failing/after a write in fallback", "cancelled/agent", "at once/sequence"),
        "session/it remembers from message to message",
    }
    met: set[str] = set()
    for program in programs():
        if program.id in ids:
            met |= {each.aspect for each in await check(program, subject, seconds=10)}
    for task in RunsOn.tasks:
        task.cancel()
    await asyncio.gather(*RunsOn.tasks, return_exceptions=True)
    RunsOn.tasks.clear()
    assert aspect in met


def one(id: str) -> Program:
    (found,) = [program for program in programs() if program.id == id]
    return found


async def test_what_is_lacking_has_to_be_refused_and_must_not_work() -> None:
    sound = Subject(name="mine", backend=MockBackend, lacks={"sequence": not_yet("tomorrow")})
    (difference,) = await check(one("alone/sequence"), sound)
    assert str(difference) == "status: declared 'not yet', but it works"
    wrong = replace(sound, backend=SwallowsErrors, lacks={"tool": never("no tools")})
    assert await check(one("tool/one that writes to state"), wrong) == []
    silent = replace(sound, backend=LosesEvents, lacks={"sequence": never("no")})
    (difference,) = await check(one("alone/sequence"), silent)
    assert difference.detail.startswith("declared 'never', but it is not refused: events: ")
    strange = replace(sound, lacks={"function": never("no")})
    (difference,) = await check(one("failing/function raises"), strange)
    assert difference.detail == "declared 'never', but it works"


async def test_what_never_ends_is_told() -> None:
    stuck = case("mine/stuck", "agent", lambda p: p.agent("a", ends="hangs"))
    (difference,) = await check(stuck, conformance.mock_subject(), seconds=0.05)
    assert str(difference) == "left running: not over after 0.05 s"


async def test_a_program_of_ones_own() -> None:
    mine = case(
        "mine/two messages",
        "session",
        lambda p: Pipeline("root", p.agent("a", writes="k"), p.fn("f", {"n": 1}), p.agent("b")),
        end={"k": "A", "n": 1},
        text="B",
        calls=("a", "f", "b"),
        events=("s0 a 'A' {'k': 'A'}", "s1 f@root {'n': 1}", "s2 b 'B'"),
    )
    subject = conformance.mock_subject()
    assert await check(mine, subject) == []
    (turn,) = mine.turns
    changes: list[tuple[dict[str, Any], str]] = [
        ({"state": {"k": "A"}}, "state"),
        ({"text": "C"}, "text"),
        ({"calls": ("f", "a", "b")}, "calls"),
        ({"events": (turn.expects.events or ())[:2]}, "events"),
        ({"raises": Raised("ValueError")}, "error"),
        ({"errors": ("SAFETY: no",)}, "errors"),
    ]
    for change, aspect in changes:
        other = replace(
            mine, turns=(Turn(expects=replace(turn.expects, **change), message=turn.message),)
        )
        assert aspect in {each.aspect for each in await check(other, subject)}
