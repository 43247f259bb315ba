"""Cases as tests, by pytest in processes of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from pkgutil import walk_packages
from textwrap import dedent
from typing import TYPE_CHECKING, Protocol

import pytest

import adk_fluent.eval
from adk_fluent import Agent
from adk_fluent.eval import EvalError, FluentCase, FluentEvalReport, FluentEvalSuite, Status
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.adk

DESK = """
import os
from adk_fluent import Agent
from adk_fluent.eval import FluentCase, FluentEvalSuite, Gate, ResponseCache
from adk_fluent.testing import Call, ScriptedModel

def lookup(order: str) -> dict:
    "Look up an order."
    return {"status": "shipped"}

def say(asked):
    with open("calls", "a") as calls:
        calls.write(f"{os.getpid()} {asked.prompt.splitlines()[-1]}\\n")
    last = asked.raw.contents[-1].parts[0]
    if last.function_response is not None:
        return "it is " + str(last.function_response.response.get("status"))
    return Call("lookup", {"order": "A1"}) if "order" in asked.prompt else "good morning"

desk = Agent("desk", model=ScriptedModel(default=say)).tool(lookup).writes("answer")
suite = FluentEvalSuite("desk", desk, [
    FluentCase("where is my order?", id="order", expected_trajectory=["lookup"], tags=["orders"]),
    FluentCase("hello", id="hello", expected_response_contains="morning", tags=["talk"]),
    FluentCase("hello there", id="night", expected_response_contains="night", tags=["talk"]),
    FluentCase("order!", id="boom", expected_trajectory=["lookup"], tags=["orders"],
               mock_tool_outputs={"lookup": ValueError("no \\x1b[2Jsuch order")}),
    FluentCase("later", id="later", expected_response_contains="x", skip="not yet"),
    FluentCase("hello", id="known", expected_response_contains="bye", xfail="issue 7"),
    FluentCase("hello", id="surprise", expected_response_contains="morning", xfail="issue 8"),
])
good = FluentEvalSuite("good", desk, suite.cases[:2])
"""

INI = """
[pytest]
addopts = --strict-markers -p no:cacheprovider
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
xfail_strict = true
filterwarnings =
    error
    ignore::DeprecationWarning:google\\..*
    ignore:You should use `.*Logger.*` instead:DeprecationWarning
"""

#: How a test of every case of `suite` ends.
ENDS = {
    "order": "PASSED",
    "hello": "PASSED",
    "night": "FAILED",
    "boom": "FAILED",
    "later": "SKIPPED",
    "known": "XFAIL",
    "surprise": "FAILED",
}


@dataclass
class Run:
    """How pytest ended."""

    code: int
    out: str
    tests: dict[str, str]


class Pytest(Protocol):
    def __call__(self, source: str, *args: str) -> Run: ...


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Load everything once: what only a test loads, pytester unloads, half of ADK with it."""
    model = ScriptedModel(default="yes")
    suite = FluentEvalSuite("all", Agent("a", model), [FluentCase("a", max_tokens=99)])
    suite.run_sync().to_html()
    for each in walk_packages(adk_fluent.eval.__path__, "adk_fluent.eval."):
        if not each.name.endswith("_local_adk"):  # which needs an extra
            import_module(each.name)


@pytest.fixture
def place(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tests stand that are run."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "")
    monkeypatch.setenv("COLUMNS", "200")
    pytester.makefile(".ini", pytest=INI)
    pytester.makepyfile(desk=DESK)
    pytester.syspathinsert()
    return pytester.path


@pytest.fixture
def run(pytester: pytest.Pytester, place: Path) -> Pytest:
    """Write a file of tests, and run pytest on it in this process, which has loaded ADK."""

    def run(source: str, *args: str) -> Run:
        (place / "test_desk.py").write_text("from desk import *\n" + dedent(source))
        return _ended(pytester.runpytest_inprocess("-v", *args))

    return run


@pytest.fixture
def process(pytester: pytest.Pytester, place: Path) -> Pytest:
    """The same as a process of its own."""

    def run(source: str, *args: str) -> Run:
        (place / "test_desk.py").write_text("from desk import *\n" + dedent(source))
        return _ended(pytester.runpytest_subprocess("-v", *args))

    return run


def _ended(result: pytest.RunResult) -> Run:
    out = "\n".join([*result.outlines, *result.errlines])
    words = "PASSED|FAILED|SKIPPED|XFAIL|XPASS|ERROR"
    found = re.findall(rf"::(\S+) ({words})", out)
    found += [(id, end) for end, id in re.findall(rf"({words}) \S+?::(\S+)", out)]
    return Run(int(result.ret), out, dict(found))


ONE = """
@suite.to_pytest()
def test_desk(adk_eval):
    adk_eval.assert_passed()
"""


# --- one test for each run of each case ----------------------------------------------------------


def test_every_case_is_a_test(run: Pytest) -> None:
    done = run(ONE)
    assert done.code == 1
    assert done.tests == {f"test_desk[{id}]": end for id, end in ENDS.items()}
    assert "Traceback" not in done.out


def test_every_run_is_a_test(run: Pytest, place: Path) -> None:
    done = run("@good.to_pytest(num_runs=2)\ndef test_it(adk_eval): adk_eval.assert_passed()\n")
    assert done.code == 0, done.out
    assert set(done.tests) == {f"test_it[{id}-run{n}]" for id in ("order", "hello") for n in (1, 2)}
    assert (place / "calls").read_text().count("\n") == 2 * 2 + 2


def test_the_mark_is_written_out_as_well(run: Pytest) -> None:
    done = run(
        "import pytest\n@pytest.mark.adk_eval(good)\nclass TestDesk:\n"
        "    def test_it(self, adk_eval): adk_eval.assert_passed()\n"
        "    def test_other(self): pass\n"
    )
    assert done.code == 0, done.out
    assert {each.partition("::")[2] for each in done.tests} == {
        "test_it[order]",
        "test_it[hello]",
        "test_other",
    }


def test_a_test_is_chosen_by_name_id_and_tag(run: Pytest) -> None:
    assert set(run(ONE, "-k", "talk").tests) == {"test_desk[hello]", "test_desk[night]"}
    assert set(run(ONE, "-k", "orders and not boom").tests) == {"test_desk[order]"}
    assert set(run(ONE, "test_desk.py::test_desk[hello]").tests) == {"test_desk[hello]"}


def test_looking_at_tests_runs_nothing(run: Pytest, place: Path) -> None:
    done = run(ONE, "--collect-only")
    assert done.out.count("<Function test_desk[") == len(ENDS)
    assert not (place / "calls").exists()


def test_async_tests_and_tests_of_more(run: Pytest) -> None:
    done = run(
        """
        import asyncio

        @good.to_pytest()
        async def test_async(adk_eval):
            await asyncio.sleep(0)
            adk_eval.assert_passed()

        @good.to_pytest()
        def test_more(adk_eval, tmp_path):
            assert adk_eval.outcome.tool_uses or adk_eval.case.id == "hello"
            assert adk_eval.passed
            assert "order" in repr(adk_eval), "deliberately"
        """
    )
    assert done.tests == {
        "test_async[order]": "PASSED",
        "test_async[hello]": "PASSED",
        "test_more[order]": "PASSED",
        "test_more[hello]": "FAILED",
    }
    assert "deliberately" in done.out


def test_a_test_that_asks_for_nothing_still_fails(run: Pytest) -> None:
    done = run(
        """
        @suite.to_pytest()
        def test_empty(adk_eval): pass

        @suite.to_pytest()
        async def test_async_empty(adk_eval): pass
        """
    )
    for name in ("test_empty", "test_async_empty"):
        assert {t: e for t, e in done.tests.items() if t.startswith(f"{name}[")} == {
            f"{name}[{id}]": end for id, end in ENDS.items()
        }


def test_a_test_that_looks_decides_for_itself_but_not_about_an_error(run: Pytest) -> None:
    done = run(
        "@suite.to_pytest()\ndef test_it(adk_eval):\n"
        "    assert adk_eval.outcome.status in ('passed', 'failed', 'error', 'xfailed')\n"
    )
    assert [test for test, end in done.tests.items() if end == "FAILED"] == ["test_it[boom]"]
    assert "case 'boom' ended in an error" in done.out


def test_where_a_loop_is_running_already(run: Pytest) -> None:
    done = run(
        """
        import asyncio, pytest

        @pytest.fixture
        def loop_left_running():
            async def inside():
                loop = asyncio.get_running_loop()
            loop = asyncio.new_event_loop()
            asyncio._set_running_loop(loop)
            yield
            asyncio._set_running_loop(None)
            loop.close()

        @good.to_pytest()
        def test_it(loop_left_running, adk_eval):
            adk_eval.assert_passed()
        """
    )
    assert done.code == 0, done.out


# --- what a failure says -------------------------------------------------------------------------


def test_a_failure_tells_why_and_what_was_said(run: Pytest, place: Path) -> None:
    out = run(ONE, "-k", "night or boom or surprise").out
    assert "case 'night' did not pass\n  answer contains of turn 1" in out
    assert '\n  actual:   "good morning"' in out
    assert "\n  user: hello there\n  desk: good morning\n" in out
    assert f"the case is at {place / 'desk.py'}:" in out
    assert "case 'boom' ended in an error\n  ValueError: no" in out
    assert '\n  desk calls lookup(order="A1")\n    -> raised ValueError: no' in out
    assert "it is expected to fail (issue 8), and passed" in out
    assert "\x1b[2J" not in out
    assert "pytest_plugin.py" not in out


def test_a_suite_that_names_what_is_not_there(run: Pytest) -> None:
    done = run(
        """
        odd = FluentEvalSuite("odd", desk, [FluentCase("a", id="a", expected_trajectory=["lokup"])])

        @odd.to_pytest()
        def test_it(adk_eval): adk_eval.assert_passed()
        """
    )
    assert done.tests == {"test_it[a]": "FAILED"}
    assert "did you mean 'lookup'?" in done.out
    assert "Traceback" not in done.out


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("@good.to_pytest()\ndef test_it(): pass\n", "takes no argument adk_eval"),
        ("def test_it(adk_eval): pass\n", "write @suite.to_pytest() above the test"),
        ("@good.to_pytest()\n@suite.to_pytest()\ndef test_it(adk_eval): pass\n", "several suites"),
        (
            "import pytest\n@pytest.mark.adk_eval(42)\ndef test_it(adk_eval): pass\n",
            "takes one FluentEvalSuite",
        ),
        (
            "import pytest\n@pytest.mark.adk_eval()\ndef test_it(adk_eval): pass\n",
            "found 0 arguments",
        ),
        (
            "import pytest\n@pytest.mark.adk_eval(good, num_rnus=2)\ndef test_it(adk_eval): pass\n",
            "did you mean 'num_runs'?",
        ),
        (
            "@FluentEvalSuite('x', desk).to_pytest()\ndef test_it(adk_eval): pass\n",
            "an empty suite passes nothing",
        ),
        ("@good.to_pytest(shard=(1, 2))\ndef test_it(adk_eval): pass\n", "take no shard="),
    ],
)
def test_misuse_is_told(run: Pytest, source: str, says: str) -> None:
    done = run(source)
    assert done.code in {1, 2}
    assert says in done.out


@pytest.mark.parametrize(
    "options", [{"progress": print}, {"num_runs": 0}, {"num_runs": True}, {"speed": 1}]
)
def test_options_without_meaning_are_refused(options: dict[str, object]) -> None:
    suite = FluentEvalSuite("x", cases=[FluentCase("a", max_tokens=1)])
    with pytest.raises(EvalError):
        suite.to_pytest(**options)  # pyright: ignore[reportArgumentType]


def test_runs_have_answers_of_their_own(run: Pytest, place: Path) -> None:
    source = (
        "@good.to_pytest(num_runs=2, cache=ResponseCache('answers'))\n"
        "def test_it(adk_eval):\n    assert adk_eval.passed\n"
        "    print('replayed', adk_eval.outcome.replayed)\n"
    )
    assert run(source).code == 0
    asked = (place / "calls").read_text()
    assert asked.count("\n") == 6
    done = run(source, "-s")
    assert done.code == 0
    assert "replayed 2" in done.out
    assert (place / "calls").read_text() == asked  # nobody was asked


# --- reports -------------------------------------------------------------------------------------


def _outcomes(path: Path) -> dict[str, Status]:
    report = FluentEvalReport.load(path)
    assert report.suite == "desk"
    assert report.engine == "light"
    assert report.adk_version
    assert report.outcome("night").turns  # all of it, and not only a verdict
    return {each.id: each.status for each in report.outcomes}


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_a_report_of_all_tests(process: Pytest, place: Path, workers: list[str]) -> None:
    forms = [f"--adk-eval-report=r.{each}" for each in ("json", "html", "md", "xml")]
    done = process(ONE, *workers, *forms)
    assert done.code == 1
    assert done.tests == {f"test_desk[{id}]": end for id, end in ENDS.items()}
    assert _outcomes(place / "r.json") == {
        "order": Status.PASSED,
        "hello": Status.PASSED,
        "night": Status.FAILED,
        "boom": Status.ERROR,
        "later": Status.SKIPPED,
        "known": Status.XFAILED,
        "surprise": Status.FAILED,
    }
    assert "desk: 40% of 5 runs passed" in done.out
    assert f"written: {place / 'r.html'}" in done.out
    assert all((place / f"r.{each}").stat().st_size for each in ("html", "md", "xml"))
    if workers:
        calls = (place / "calls").read_text().splitlines()
        assert len({line.split()[0] for line in calls}) == 2


def test_a_report_of_some_tests_says_so(run: Pytest, place: Path) -> None:
    done = run(ONE, "-k", "talk", "--adk-eval-report=r.json")
    assert done.code == 1
    report = FluentEvalReport.load(place / "r.json")
    assert [each.id for each in report.outcomes] == ["hello", "night"]
    assert report.notes == ("2 of the suite's 7 runs; pytest ran no others",)
    run(ONE, "-x", "--adk-eval-report=r.json")
    assert FluentEvalReport.load(place / "r.json").interrupted


def test_a_test_that_expects_more_counts(run: Pytest, place: Path) -> None:
    run(
        "@good.to_pytest()\ndef test_it(adk_eval):\n    assert adk_eval.case.id == 'order'\n",
        "--adk-eval-report=r.json",
    )
    hello = FluentEvalReport.load(place / "r.json").outcome("hello")
    assert hello.status is Status.FAILED
    assert "the test failed: AssertionError" in hello.reasons[0]


def test_suites_have_reports_of_their_own(run: Pytest, place: Path) -> None:
    done = run(
        "@good.to_pytest()\ndef test_a(adk_eval): pass\n"
        "@good.to_pytest()\ndef test_b(adk_eval): pass\n"
        "@suite.to_pytest()\ndef test_c(adk_eval): pass\n",
        "--adk-eval-report=out/r.json",
    )
    assert "good test_a: 100% of 2 runs passed" in done.out
    assert "good test_b: 100% of 2 runs passed" in done.out
    assert "desk: 40% of 5 runs passed" in done.out
    assert len(list((place / "out").iterdir())) == 3


PARAMETERS = """
import pytest

@pytest.fixture(params=["red", "blue"])
def colour(request): return request.param

@good.to_pytest()
@pytest.mark.parametrize("limit", [1, 1000], ids=["tight", "wide"])
@pytest.mark.parametrize(("a", "b"), [(1, 2)])
def test_it(adk_eval, limit, a, b):
    assert adk_eval.outcome.tokens.total < limit

@suite.to_pytest()
def test_colour(colour, adk_eval):
    assert colour == "red"
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_every_set_of_parameters_has_a_report(
    process: Pytest, place: Path, workers: list[str]
) -> None:
    done = process(PARAMETERS, *workers, "--adk-eval-report=out/r.json")
    assert done.code == 1
    loaded = [FluentEvalReport.load(each) for each in (place / "out").iterdir()]
    reports = {each.suite: each for each in loaded}
    assert len(reports) == len(loaded) == 4
    assert {name.partition("[")[0] for name in reports} == {"good", "desk"}
    tight, wide = (reports[f"good[1-2-{limit}]"] for limit in ("tight", "wide"))
    assert [each.id for each in tight.outcomes] == ["order", "hello"]
    assert [each.status for each in wide.outcomes] == [Status.PASSED] * 2
    assert {each.status for each in tight.outcomes} == {Status.FAILED}
    assert len(reports["desk[red]"].outcomes) == len(ENDS)
    assert len(reports["desk[blue]"].outcomes) == len(ENDS)
    assert reports["desk[red]"].counts[Status.PASSED] == 2
    assert reports["desk[blue]"].counts[Status.PASSED] == 0
    assert "good[1-2-wide]: 100% of 2 runs passed" in done.out
    assert not any(each.notes for each in loaded)


def test_sets_of_parameters_that_look_alike_are_two(run: Pytest, place: Path) -> None:
    source = """
        import pytest

        @good.to_pytest()
        @pytest.mark.parametrize("a", ["x-order", "x"])
        @pytest.mark.parametrize("b", ["y", "order-y"])
        def test_it(adk_eval, a, b): pass
        """
    done = run(source, "--adk-eval-report=out/r.json")
    assert done.code == 0, done.out
    loaded = [FluentEvalReport.load(each) for each in (place / "out").iterdir()]
    assert [len(each.outcomes) for each in loaded] == [2] * 4


@pytest.mark.parametrize("at", ["method", "class"])
def test_methods_of_unittest_are_refused(run: Pytest, at: str) -> None:
    mark = "@good.to_pytest()"
    done = run(
        f"""
        import unittest

        {mark if at == "class" else ""}
        class TestDesk(unittest.TestCase):
            {mark if at == "method" else ""}
            def test_it(self): pass

        class TestOther(unittest.TestCase):
            def test_other(self): pass
        """
    )
    assert done.code == 1
    assert done.tests == {"TestDesk::test_it": "ERROR", "TestOther::test_other": "PASSED"}
    assert "those of unittest.TestCase no case; write a function" in done.out


def test_a_mark_of_the_module_leaves_unittest_alone(run: Pytest) -> None:
    done = run(
        "import unittest\npytestmark = good.to_pytest()\n"
        "class TestDesk(unittest.TestCase):\n    def test_it(self): pass\n"
        "def test_desk(adk_eval): pass\n"
    )
    assert done.code == 0, done.out
    assert len(done.tests) == 3


def test_a_report_that_cannot_be_written_is_no_success(run: Pytest) -> None:
    source = "@good.to_pytest()\ndef test_it(adk_eval): pass\n"
    done = run(source, "--adk-eval-report=desk.py/r.json")
    assert done.code == 1
    assert "error: the file cannot be written" in done.out
    done = run(source, "--adk-eval-report=r.txt")
    assert done.code == 4
    assert "a file ends in .json, .html, .md, .xml" in done.out


# --- what it costs -------------------------------------------------------------------------------


def test_it_costs_other_projects_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # others are not ours to answer for
    monkeypatch.setenv("PYTEST_ADDOPTS", "")
    pytester.makepyfile(
        """
        import sys

        def test_x():
            heavy = ("google.adk", "google.genai", "pydantic", "jinja2", "yaml", "rich")
            assert not [m for m in sys.modules if m.startswith(heavy)]
            ours = [m for m in sys.modules if m.startswith("adk_fluent.eval.")]
            assert ours == ["adk_fluent.eval.pytest_plugin"]
        """
    )
    done = _ended(pytester.runpytest_subprocess("-p", "adk_fluent.eval.pytest_plugin"))
    assert done.code == 0, done.out
    assert "adk-fluent eval" not in done.out


def test_it_can_be_left_out(process: Pytest) -> None:
    done = process("def test_it(): pass\n", "-p", "no:adk_fluent_eval")
    assert done.code == 0
    assert "adk-eval-report" not in process("", "-p", "no:adk_fluent_eval", "--help").out
