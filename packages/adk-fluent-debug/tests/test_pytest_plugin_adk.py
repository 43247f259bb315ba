"""The mark `recording`, and tests that are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from adk_fluent import Agent
from adk_fluent.cli import load
from adk_fluent.debug import Recorder, Recording, replay
from adk_fluent.testing import ScriptedModel

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.adk

INI = """
[pytest]
addopts = --strict-markers -p no:cacheprovider
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings =
    error
    ignore::DeprecationWarning:google\\..*
    ignore:You should use `.*Logger.*` instead:DeprecationWarning
"""
TESTS = """
import pytest
from adk_fluent import Agent
from adk_fluent.testing import ScriptedModel

SAYS = {says!r}
desk = Agent("desk", ScriptedModel(default=SAYS))

@pytest.mark.recording("tapes/desk.json"{more})
async def test_desk():
    assert await desk.ask_async({message!r}) == "Good day."

@pytest.mark.recording("tapes/sync.json"{more})
def test_sync():
    assert desk.ask({message!r}) == "Good day."

def test_unmarked():
    assert desk.ask("anything") == SAYS
"""


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Load what is imported when it is used: the runs inside forget what they import first."""
    agent = Agent("a", ScriptedModel(default="Good day."))
    with Recorder() as kept:
        agent.ask("Hello")
    assert replay(agent, kept.recording).ok


@pytest.fixture(autouse=True)
def ini(pytester: pytest.Pytester) -> None:
    pytester.makefile(".ini", pytest=INI)


def run(
    pytester: pytest.Pytester, *args: str, says: str = "?", more: str = "", message: str = "Hello"
) -> pytest.RunResult:
    pytester.makepyfile(test_it=TESTS.format(says=says, more=more, message=message))
    return pytester.runpytest_inprocess(*args)


def test_once_records_and_then_replays(pytester: pytest.Pytester) -> None:
    once = ", mode='once'"
    run(pytester, says="Good day.", more=once).assert_outcomes(passed=3)
    assert Recording.load(pytester.path / "tapes" / "desk.json").runs
    run(pytester, says="No model is asked.", more=once).assert_outcomes(passed=3)
    changed = run(pytester, more=once, message="Bye")
    changed.assert_outcomes(failed=2, passed=1)
    changed.stdout.fnmatch_lines(["*agent 'desk', model call #1: the request differs*"])
    new = run(pytester, says="Good day.", more=", mode='new'", message="Bye")
    new.assert_outcomes(passed=3)
    run(pytester, more="", message="Bye").assert_outcomes(passed=3)
    again = run(pytester, "--record-mode=rewrite", says="Good day.", message="Hi")
    again.assert_outcomes(passed=3)
    call = Recording.load(pytester.path / "tapes" / "desk.json").llm_interactions[0]
    assert call.request_content[0]["parts"] == [{"text": "Hi"}]


def test_without_a_file_or_with_a_wrong_mark_a_test_fails(pytester: pytest.Pytester) -> None:
    missing = run(pytester)
    missing.assert_outcomes(failed=2, passed=1)
    missing.stdout.fnmatch_lines(["*RecordingFileError: the file cannot be read*"])
    wrong = run(pytester, more=", mode='twice'")
    wrong.assert_outcomes(failed=2, passed=1)
    wrong.stdout.fnmatch_lines(["*has no mode 'twice'*"])
    run(pytester, more=", speed=2").stdout.fnmatch_lines(["*takes no 'speed'*"])


def test_what_is_not_asked_for_fails_a_test_unless_it_is_allowed(
    pytester: pytest.Pytester,
) -> None:
    run(pytester, says="Good day.", more=", mode='once'").assert_outcomes(passed=3)
    idle = """
        import pytest

        @pytest.mark.recording("tapes/desk.json"{more})
        def test_idle():
            pass
    """
    pytester.makepyfile(test_it=idle.format(more=""))
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*desk.json holds 1 call not asked for*"])
    pytester.makepyfile(test_it=idle.format(more=", allow_unused=True"))
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_test_that_fails_records_nothing(pytester: pytest.Pytester) -> None:
    run(pytester, says="Bad day.", more=", mode='once'").assert_outcomes(failed=2, passed=1)
    assert not Path(pytester.path / "tapes").exists()


DESK = """
from adk_fluent import Agent
from adk_fluent.testing import ScriptedModel

desk = Agent("desk", ScriptedModel(default={says!r})).instruct({how!r})
"""


def test_a_test_is_written_that_passes(pytester: pytest.Pytester) -> None:
    file = pytester.path / "desk.py"
    file.write_text(DESK.format(says="Good day.", how="Be kind."), "utf-8")
    with Recorder() as kept:
        load("desk.py:desk").ask("Hello")
    made = kept.recording.to_pytest(pytester.path / "tests" / "test_desk.py", "desk.py:desk")
    assert Recording.load(made.with_name("test_desk.json")).runs
    file.write_text(DESK.format(says="No model is asked.", how="Be kind."), "utf-8")
    pytester.runpytest_inprocess(str(made)).assert_outcomes(passed=1)
    file.write_text(DESK.format(says="", how="Be rude."), "utf-8")
    changed = pytester.runpytest_inprocess(str(made))
    changed.assert_outcomes(failed=1)
    changed.stdout.fnmatch_lines(["*AgentNode 'desk' has changed*"])
