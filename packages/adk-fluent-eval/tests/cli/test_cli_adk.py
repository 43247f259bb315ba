"""``adk-fluent eval run``, and the commands that stand on ADK."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.eval import (
    EvalFileError,
    FluentEvalReport,
    FluentEvalSuite,
    ModelMatrix,
    Status,
)
from adk_fluent.eval._journal._journal import Journal
from adk_fluent.eval._running._schedule_adk import Schedule

from .conftest import DESK, FAILING, PASSING

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Cli, Write

pytestmark = pytest.mark.adk


@pytest.fixture(autouse=True)
def desk(write: Write) -> None:
    write("desk.py", DESK)
    write("good.py", "from desk import *\n", PASSING)
    write("bad.py", "from desk import *\n", FAILING)
    write("both.py", "from desk import *\n", PASSING, FAILING, "both = [passing, failing]\n")


def _report(path: Path) -> FluentEvalReport:
    return FluentEvalReport.load(path)


# --- verdicts ------------------------------------------------------------------------------------


def test_a_suite_that_passes(cli: Cli) -> None:
    done = cli("run", "good.py")
    assert done.code == 0, done
    assert done.out.startswith("passing: passed, 100% of 2 runs passed")
    assert "orders" in done.out
    assert "2 of 2 runs, 2 passed" in done.err


def test_a_suite_that_does_not(cli: Cli) -> None:
    done = cli("run", "bad.py")
    assert done.code == 1
    assert "failing: not passed, 33.3% of 3 runs passed" in done.out
    assert (
        'failed order\n  answer contains of turn 1: the answer does not contain "lost"' in done.out
    )
    assert "error boom\n  ValueError: no such order" in done.out
    assert "pass rate 33.3% (1 of 3 runs) is below 100%" in done.out
    assert "error boom: ValueError: no such order" in done.err  # as it came


def test_options_change_the_gate_and_not_the_suite(cli: Cli) -> None:
    assert cli("run", "bad.py", "--min-pass-rate", "0.33").code == 0
    assert cli("run", "bad.py", "--min-pass-rate", "34%").code == 1
    assert cli("run", "bad.py").code == 1


def test_what_is_chosen_is_run(cli: Cli, place: Path) -> None:
    assert cli("run", "bad.py", "--case", "hello", "--runs", "3", "--json", "r.json").code == 0
    assert [each.key for each in _report(place / "r.json").outcomes] == [
        ("hello", 1),
        ("hello", 2),
        ("hello", 3),
    ]
    assert cli("run", "bad.py", "--tag", "talk").code == 0
    assert cli("run", "bad.py", "--tag", "talk", "--tag", "orders").code == 1


def test_shards_are_merged_again(cli: Cli, place: Path) -> None:
    for part in (1, 2):
        cli("run", "bad.py", "--shard", f"{part}/2", "--json", f"{part}.json")
    done = cli("report", "1.json", "2.json", "--json", "all.json", "--gate")
    assert done.code == 1
    assert len(_report(place / "all.json").outcomes) == 3


def test_fail_fast_begins_nothing_more(cli: Cli, place: Path) -> None:
    done = cli("run", "bad.py", "--fail-fast", "--parallelism", "1", "--json", "r.json")
    assert done.code == 1
    assert "not passed, incomplete" in done.out
    assert len(_report(place / "r.json").outcomes) == 1


def test_quiet_shows_the_verdict_alone(cli: Cli, place: Path) -> None:
    done = cli("run", "good.py", "-q", "--json", "r.json")
    assert done.out.count("\n") == 1
    assert "of 2 runs" not in done.err
    assert (place / "r.json").exists()
    assert "2 of 2 runs" not in cli("run", "good.py", "--no-progress").err


def test_a_file_of_cases_is_run_against_a_pipeline(cli: Cli, write: Write) -> None:
    write("cases.jsonl", '{"id": "a", "input": "hello", "expected_response_contains": "morning"}\n')
    assert cli("run", "cases.jsonl", "--pipeline", "desk.py:desk").code == 0
    done = cli("run", "cases.jsonl", "--pipeline", "desk.py:dsek")
    assert done.code == 2
    assert "did you mean 'desk'?" in done.err


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("FluentEvalSuite('x', desk)", "has no cases"),
        ("FluentEvalSuite('x', 42, [FluentCase('a', max_tokens=9)])", "nothing that runs"),
        ("FluentEvalSuite('x', desk, [FluentCase('a')])", "it expects nothing"),
        (
            "FluentEvalSuite('x', desk, [FluentCase('a', expected_trajectory=['lokup'])])",
            "did you mean 'lookup'?",
        ),
        (
            "FluentEvalSuite('x', desk, metrics=['final_response_match_v2'],"  # noqa: ISC004
            " cases=[FluentCase('a', reference_response='b')])",
            "no model to judge",
        ),
    ],
)
def test_a_suite_that_cannot_run_calls_nothing(
    cli: Cli, write: Write, source: str, says: str
) -> None:
    write("odd.py", "from desk import *\n", f"suite = {source}\n")
    done = cli("run", "odd.py", "--json", "r.json")
    assert done.code == 2, done
    assert says in done.err
    assert done.out == ""


def test_the_judge_is_changed_by_an_option(cli: Cli, write: Write) -> None:
    write(
        "odd.py",
        "from desk import *\n",
        "suite = FluentEvalSuite('x', desk, [FluentCase('a', reference_response='b')],"
        " metrics=['final_response_match_v2'])\n",
    )
    done = cli("run", "odd.py", "--judge-model", "no-such-model")
    assert done.code == 2
    assert "the model that judges cannot be had" in done.err


# --- what is written -----------------------------------------------------------------------------


def test_every_form_is_written(cli: Cli, place: Path) -> None:
    names = {"json": "out/r.json", "html": "r.html", "junit": "r.xml", "markdown": "r.md"}
    done = cli("run", "bad.py", *(part for k, v in names.items() for part in (f"--{k}", v)))
    assert done.code == 1
    assert f"written: {', '.join(names.values())}" in done.out
    assert all((place / name).stat().st_size for name in names.values())


def test_standard_output_is_for_results(cli: Cli) -> None:
    done = cli("run", "good.py", "--json", "-")
    assert json.loads(done.out)["suite"] == "passing"
    assert "a tool prints" in done.err
    assert "passing: passed" in done.err


def test_what_cannot_be_written_is_told_and_costs_nothing_else(cli: Cli, place: Path) -> None:
    done = cli("run", "good.py", "--json", "desk.py/r.json", "--junit", "r.xml")
    assert done.code == 3
    assert "desk.py/r.json" in done.err
    assert (place / "r.xml").exists()
    assert "passing: passed" in done.out


def test_the_summary_of_a_job(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(place / "summary.md"))
    cli("run", "both.py:both")
    text = (place / "summary.md").read_text("utf-8")
    assert "Evaluation: passing" in text
    assert "Evaluation: failing" in text
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(place))
    done = cli("run", "good.py")
    assert done.code == 0  # it is nobody's fault
    assert "warning" in done.err


def test_results_for_adk_web(cli: Cli, write: Write, place: Path) -> None:
    write("agents/desk/agent.py", "from desk import desk as root_agent\n")
    done = cli("run", "good.py", "--results", "agents")
    assert done.code == 0, done.err
    (file, *_) = (place / "agents/desk/.adk/eval_history").iterdir()
    assert str(file) in done.out


# --- several suites and models -------------------------------------------------------------------


def test_several_suites_have_files_of_their_own(cli: Cli, place: Path) -> None:
    done = cli("run", "both.py:both", "--json", "r.json", "--html", "r.html")
    assert done.code == 1
    assert "passing: passed" in done.out
    assert "failing: not passed" in done.out
    assert _report(place / "r.passing.json").ok
    assert not _report(place / "r.failing.json").ok
    assert (place / "r.failing.html").exists()
    done = cli("run", "both.py:both", "--case", "boom", "--json", "s.json")
    assert not (place / "s.passing.json").exists()  # it has no such case
    assert cli("run", "both.py:both", "--json", "-").code == 2


MODELS = """
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry
from google.genai import types

class Parrot(BaseLlm):
    @classmethod
    def supported_models(cls):
        return [r"parrot-.*"]

    async def generate_content_async(self, llm_request, stream=False):
        said = "good morning" if self.model == "parrot-good" else "good night"
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=said)]))

LLMRegistry.register(Parrot)
"""


def test_several_models_side_by_side(cli: Cli, write: Write, place: Path) -> None:
    write("models.py", "from both import *\n", MODELS)
    done = cli(
        *("run", "models.py:failing", "--tag", "talk", "--json", "m.json", "--markdown", "m.md"),
        *("--html", "m.html", "--model", "parrot-good", "--model", "parrot-bad"),
        *("--journal", "j.jsonl"),
    )
    assert done.code == 1
    assert "best: parrot-good" in done.out
    matrix = ModelMatrix.load(place / "m.json")
    assert [row.pass_rate for row in matrix.table()] == [1.0, 0.0]
    assert "parrot-bad" in (place / "m.md").read_text("utf-8")
    for name in ("m.parrot-good.html", "m.parrot-bad.html", "j.parrot-good.jsonl"):
        assert (place / name).exists()
    assert cli("run", "models.py:failing", "--tag", "talk", "--model", "parrot-good").code == 0
    done = cli("run", "models.py:failing", "--model", "no-such-model")
    assert done.code == 2
    assert "no-such-model" in done.err


# --- baselines -----------------------------------------------------------------------------------


def test_a_baseline_is_made_held_against_and_replaced(cli: Cli, write: Write, place: Path) -> None:
    args = ("run", "good.py", "--baseline", "base.json")
    done = cli(*args)
    assert done.code == 2
    assert "there is no baseline" in done.err
    assert "--update-baseline" in done.err
    assert cli(*args, "--update-baseline").code == 0
    assert cli(*args).code == 0
    write("good.py", "from desk import *\n", PASSING.replace("morning", "night"))
    loose = ("--min-pass-rate", "0")
    done = cli(*args, *loose)
    assert done.code == 1
    assert "1 case got worse than the baseline" in done.out
    assert "hello (1 of 1 -> 0 of 1 runs passed)" in done.out
    assert cli(*args, *loose, "--max-regressions", "1").code == 0
    assert _report(place / "base.json").ok  # as it was
    done = cli(*args, *loose, "--update-baseline")
    assert done.code == 0, done
    assert "1 got worse" in done.out
    assert _report(place / "base.json").outcome("hello").status is Status.FAILED
    assert cli(*args, *loose).code == 0


def test_errors_make_no_baseline(cli: Cli, place: Path) -> None:
    done = cli("run", "bad.py", "--baseline", "base.json", "--update-baseline")
    assert done.code == 1
    assert "stays as it is: 1 runs ended in an error" in done.err
    assert not (place / "base.json").exists()


# --- going on, and replaying ---------------------------------------------------------------------


def test_a_run_goes_on_where_its_journal_ends(cli: Cli, place: Path) -> None:
    cli("run", "bad.py", "--journal", "j.jsonl", "--fail-fast", "--parallelism", "1")
    done = cli("run", "bad.py", "--journal", "j.jsonl", "--json", "r.json")
    assert done.code == 1
    assert "1 runs are taken from the journal" in done.err
    assert len(_report(place / "r.json").outcomes) == 3


def test_a_file_that_is_no_journal(cli: Cli, place: Path) -> None:
    before = (place / "desk.py").read_text()
    done = cli("run", "good.py", "--journal", "desk.py")
    assert done.code == 2
    assert "journal" in done.err
    assert (place / "desk.py").read_text() == before


def test_what_is_done_is_kept_whatever_ends_the_run(
    cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Schedule._one

    async def failing(self: Schedule, case: Any, run: int, pace: Any) -> Any:
        if case.name == "hello":
            raise EvalFileError("the disk is gone", path="somewhere")
        return await one(self, case, run, pace)

    monkeypatch.setattr(Schedule, "_one", failing)
    done = cli("run", "good.py", "--parallelism", "1", "--json", "r.json")
    assert done.code == 2
    assert "the disk is gone" in done.err
    report = _report(place / "r.json")
    assert [each.id for each in report.outcomes] == ["order"]
    assert report.interrupted


def test_a_journal_that_cannot_be_written_costs_no_run(
    cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: Journal, outcome: Any) -> None:
        raise EvalFileError("the file cannot be written: no room", path="j.jsonl")

    monkeypatch.setattr(Journal, "add", failing)
    done = cli("run", "good.py", "--journal", "j.jsonl", "--json", "r.json")
    assert "no room" in done.out
    assert len(_report(place / "r.json").outcomes) == 2


def test_answers_are_kept_and_replayed(cli: Cli, place: Path) -> None:
    assert cli("run", "good.py", "--cache", "answers").code == 0
    done = cli("run", "good.py", "--cache", "answers", "--replay", "--json", "r.json")
    assert done.code == 0, done.out
    assert "3 answers replayed" in done.out
    done = cli("run", "good.py", "--cache", "answers", "--replay", "--runs", "2")
    assert done.code == 1
    assert "no answer is kept" in done.out
    done = cli("run", "good.py", "--cache", "answers", "--record")
    assert "replayed" not in done.out


# --- services ------------------------------------------------------------------------------------


def test_without_a_key_nothing_is_asked(cli: Cli, write: Write) -> None:
    write(
        "gemini.py",
        "from desk import *\n",
        "suite = FluentEvalSuite('g', Agent('a', 'gemini-2.5-flash'),"
        " [FluentCase('hi', id='a', max_tokens=99)])\n",
    )
    done = cli("run", "gemini.py")
    assert done.code == 3
    assert "there is no key" in done.err
    done = cli("run", "good.py", "--model", "gemini-2.5-flash")
    assert done.code == 3
    assert "--model gemini-2.5-flash is Gemini" in done.err


def test_a_service_that_nobody_reaches_is_no_failed_case(cli: Cli, write: Write) -> None:
    write(
        "down.py",
        "from desk import *\n",
        "from adk_fluent.testing import reply\n",
        "model = ScriptedModel(default=reply(raises=ConnectionError('refused')))\n",
        "down = Agent('a', model=model)\n",
        "suite = FluentEvalSuite('d', down, [FluentCase('hi', id='a', max_tokens=99)])\n",
    )
    done = cli("run", "down.py", "--json", "r.json")
    assert done.code == 3, done
    assert "no model could be reached" in done.err


@pytest.mark.parametrize("engine", ["light", "local"])
def test_both_engines(cli: Cli, place: Path, engine: str) -> None:
    done = cli("run", "good.py", "--engine", engine, "--json", "r.json")
    if engine == "local" and find_spec("rouge_score") is None:
        assert done.code == 2
        assert 'pip install "adk-fluent-eval[adk]"' in done.err
    else:
        assert done.code == 0, done
        assert _report(place / "r.json").engine == engine


# --- files of ADK's ------------------------------------------------------------------------------


def test_export_for_adk_and_import_again(cli: Cli, place: Path) -> None:
    done = cli("export", "bad.py", "bad.evalset.json", "--config", "config.json")
    assert done.code == 0, done.err
    assert "criteria" in json.loads((place / "config.json").read_text())
    assert cli("import", "bad.evalset.json", "bad.yaml").code == 0
    again = FluentEvalSuite.from_yaml(place / "bad.yaml")
    assert [case.name for case in again.cases] == ["order", "hello", "boom"]
    done = cli("run", "bad.evalset.json", "--pipeline", "desk.py:desk", "--tag", "talk")
    assert done.code == 0, done
    done = cli("export", "good.py", "x.evalset.json", "--config", "x.evalset.json")
    assert done.code == 2
    assert "same file" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "good.py", "--json", "good.py"], "--json would write over good.py"),
        (["run", "good.py:passing", "--html", "./good.py"], "--html would write over good.py"),
        (["run", "b.json", "--pipeline", "desk.py:good", "--json", "b.json"], "over b.json"),
        (["run", "good.py", "--baseline", "b.json", "--json", "./b.json"], "--baseline and --json"),
        (["run", "good.py", "--json", "x.json", "--html", "./x.json"], "--json and --html"),
        (["report", "b.json", "--html", "./b.json"], "--html would write over b.json"),
        (["compare", "b.json", "c.json", "--json", "c.json"], "--json would write over c.json"),
        (["import", "b.json", "x.json", "--config", "./b.json"], "b.json is the file that is read"),
        (["import", "b.json", "x.json", "--config", "desk.py"], "desk.py is there already"),
    ],
)
def test_nothing_that_is_read_is_written_over(
    cli: Cli, place: Path, arguments: list[str], message: str
) -> None:
    (place / "b.json").write_text("{}")
    before = {each.name: each.read_text() for each in place.iterdir()}
    done = cli(*arguments)
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert {each.name: each.read_text() for each in place.iterdir()} == before


def test_notes_are_told_quietly_too(cli: Cli) -> None:
    cli("run", "good.py", "--journal", "j")
    assert "taken over from the journal" in cli("run", "good.py", "--journal", "j", "-q").err


# --- shards of skipped cases ---------------------------------------------------------------------

SKIPPED = """
parts = FluentEvalSuite("parts", desk, [
    FluentCase("later", id="later", expected_response_contains="x", skip="not yet"),
    FluentCase("hello", id="hello", expected_response_contains="morning"),
])
"""


@pytest.mark.parametrize("fast", [[], ["--fail-fast"]])
def test_a_shard_without_anything_to_evaluate_is_no_failure(
    cli: Cli, write: Write, place: Path, fast: list[str]
) -> None:
    write("parts.py", "from desk import *\n", SKIPPED)
    done = cli("run", "parts.py", "--shard", "1/2", "--json", "1.json", *fast)
    assert done.code == 0, done
    assert done.out.startswith("parts: nothing to evaluate in shard 1/2\n")
    assert "not passed" not in done.out
    assert "gate" not in done.out
    assert cli("run", "parts.py", "--shard", "1/2", "-q").out.count("\n") == 1
    assert cli("run", "parts.py", "--shard", "2/2", "--json", "2.json").code == 0
    assert cli("report", "1.json", "2.json", "--gate").code == 0
    assert cli("report", "1.json", "--gate").code == 1  # where the whole is asked for
    write("parts.py", "from desk import *\n", SKIPPED.replace("morning", "bye"))
    assert cli("run", "parts.py", "--shard", "2/2", "--json", "2.json").code == 1
    assert cli("report", "1.json", "2.json", "--gate").code == 1
    assert cli("run", "parts.py", "--case", "later").code == 1  # without shards nothing passes


# --- names of files ------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--journal", "--baseline", "--cache"])
def test_a_dash_is_no_file_to_be_read_again(cli: Cli, place: Path, option: str) -> None:
    update = ["--update-baseline"] if option == "--baseline" else []
    done = cli("run", "good.py", option, "-", *update)
    assert done.code == 2
    assert f"'{option}': - is no file here; name one." in done.err
    assert not (place / "-").exists()


def test_a_dash_is_no_baseline_or_configuration_of_other_commands(cli: Cli, place: Path) -> None:
    cli("run", "good.py", "--json", "r.json")
    assert cli("report", "r.json", "--baseline", "-").code == 2
    assert cli("export", "good.py", "x.evalset.json", "--config", "-").code == 2
    assert not (place / "-").exists()


# --- functions that files name -------------------------------------------------------------------

NAMED = """
name: named
cases:
  - input: where is my order?
    id: order
    expected_trajectory:
      - {tool: lookup, args: {order: {call: NAME}}}
"""
CHECKS = """
def is_order(value):
    return value[:1].isalpha() and value[1:].isdigit()

def is_none(value):
    return False

by_name = {"is_order": is_order, "desk:is_order": is_none}
number = 7
"""


@pytest.mark.parametrize(
    ("name", "registry", "code"),
    [
        ("is_order", "checks.py:by_name", 0),
        ('"desk:is_order"', "checks.py:by_name", 1),
        ("is_order", "checks.py", 0),
        ('"checks:is_order"', "checks.py", 0),
        ("is_none", "checks", 1),
    ],
)
def test_functions_of_files_are_given(
    cli: Cli, write: Write, name: str, registry: str, code: int
) -> None:
    write("named.yaml", NAMED.replace("NAME", name))
    write("checks.py", CHECKS)
    run = ("run", "named.yaml", "--pipeline", "desk.py:desk")
    assert "no functions were given" in cli(*run).err
    assert cli(*run, "--registry", registry).code == code
    assert "order" in cli("list", "named.yaml", "--registry", registry).out


def test_a_file_with_functions_is_turned_into_another_and_read_again(
    cli: Cli, write: Write, place: Path
) -> None:
    write("named.yaml", NAMED.replace("NAME", "is_order"))
    write("checks.py", CHECKS)
    given = ("--registry", "checks.py")
    assert cli("import", "named.yaml", "a.jsonl", *given).code == 0
    assert '"checks:is_order"' in (place / "a.jsonl").read_text("utf-8")
    assert cli("export", "a.jsonl", "b.evalset.json", *given).code == 0
    run = ("run", "b.evalset.json", "--pipeline", "desk.py:desk", *given)
    assert cli(*run).code == 0


@pytest.mark.parametrize(
    ("registry", "says"),
    [
        ("checks.py:number", "is no registry"),
        ("checks.py:by_nmae", "did you mean 'by_name'?"),
        ("chekcs.py", "there is no file chekcs.py"),
    ],
)
def test_what_is_no_registry(cli: Cli, write: Write, registry: str, says: str) -> None:
    write("named.yaml", NAMED.replace("NAME", "is_order"))
    write("checks.py", CHECKS)
    done = cli("run", "named.yaml", "--pipeline", "desk.py:desk", "--registry", registry)
    assert done.code == 2
    assert says in done.err


def test_suites_in_python_take_no_registry(cli: Cli, write: Write) -> None:
    write("checks.py", CHECKS)
    done = cli("run", "good.py", "--registry", "checks.py")
    assert done.code == 2
    assert "--registry is for files of cases" in done.err


# --- metrics of files ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "says", "where"),
    [
        ("metrics:\n- response_match_scor", "there is no metric", "c.yaml:2 (metrics[0])"),
        ("metrics: [x]", "there is no metric 'x'", "c.yaml:1 (metrics[0])"),
        ("metrics: [response_match_score]", "applies to no case", "c.yaml:1 (metrics[0])"),
        ("thresholds: {x: 1}", "a threshold is given for 'x'", "c.yaml:1 (thresholds.x)"),
        (
            "metrics: [safety_v1]\nthresholds: {safety_v1: 7}",
            "none that its scores",
            "c.yaml:2 (thresholds.safety_v1)",
        ),
    ],
)
def test_metrics_of_a_file_are_told_with_the_line(
    cli: Cli, write: Write, head: str, says: str, where: str
) -> None:
    write("c.yaml", f"{head}\ncases:\n- {{input: hello, expected_response_contains: morning}}\n")
    for command in (("run", "c.yaml", "--pipeline", "desk.py:desk"), ("list", "c.yaml")):
        done = cli(*command)
        assert done.code == 2
        assert says in done.err
        assert f"where: {where}" in done.err
        assert "warning" not in done.err  # once is enough
    assert cli("import", "c.yaml", "c.evalset.json").code == 0  # as it is written


def test_metrics_of_adks_files_are_told_with_the_line(cli: Cli, place: Path) -> None:
    cli("export", "good.py", "c.evalset.json")
    value = json.loads((place / "c.evalset.json").read_text("utf-8"))
    value["adk_fluent"]["metrics"] = ["x"]
    text = json.dumps(value, indent=2)
    (place / "c.evalset.json").write_text(text, "utf-8")
    line = text[: text.rindex('"x"')].count("\n") + 1
    run = ("run", "c.evalset.json", "--pipeline", "desk.py:desk")
    assert f"where: c.evalset.json:{line} (adk_fluent.metrics[0])" in cli(*run).err
    del value["adk_fluent"]
    for each in value["eval_cases"]:
        each["session_input"]["user_id"] = "user"
    (place / "c.evalset.json").write_text(json.dumps(value), "utf-8")
    (place / "test_config.json").write_text('{"criteria":\n{"x": 1}}', "utf-8")
    assert "where: test_config.json:2 (criteria.x)" in cli(*run).err


def test_what_files_warn_of_is_told(cli: Cli, place: Path) -> None:
    cli("export", "good.py", "c.evalset.json")
    value = json.loads((place / "c.evalset.json").read_text("utf-8"))
    del value["adk_fluent"]
    (place / "c.evalset.json").write_text(json.dumps(value), "utf-8")
    done = cli("list", "c.evalset.json")
    assert done.code == 0
    assert done.err.startswith("warning: c.evalset.json: the block 'adk_fluent' is gone")
    assert "EvalFileWarning" not in done.err
    assert "warning: c.evalset.json" in cli("import", "c.evalset.json", "c.yaml").err


def test_a_judge_that_is_an_object_is_not_in_a_configuration(cli: Cli, write: Write) -> None:
    write(
        "judged.py",
        "from desk import *\nfrom adk_fluent.testing import ScriptedModel\n",
        PASSING.replace("desk, [", "desk, judge_model=ScriptedModel('x'), cases=["),
    )
    done = cli("export", "judged.py", "j.evalset.json", "--config", "j.json")
    assert done.code == 0
    assert "who judges is not in j.json, as the suite has an object for a model" in done.err
    assert "judges" not in cli("export", "good.py", "g.evalset.json", "--config", "g.json").err
