"""``adk-fluent eval`` where nothing is run: help, targets, options, and files of reports."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import lively, outcome, report

from adk_fluent.eval import FluentEvalReport, FluentEvalSuite, Gate, ModelMatrix, Status
from adk_fluent.eval._cli import COMMANDS
from adk_fluent.eval._cli._agents import agent_folder
from adk_fluent.eval._cli._columns import columns
from adk_fluent.eval._cli._load import suites_of
from adk_fluent.eval._cli._options import shard, share
from adk_fluent.eval._cli._progress import Lines
from adk_fluent.eval._cli._session import nothing_reached
from adk_fluent.eval._cli._summary import summary_lines
from adk_fluent.eval._running._progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Cli, Write

CASES = """
from adk_fluent.eval import FluentCase, FluentEvalSuite, ToolCall, Turn
suite = FluentEvalSuite("desk", cases=[
    FluentCase("where is it?", id="one", expected_trajectory=["lookup"], tags=["orders", "new"]),
    FluentCase(["hi", Turn("and now?")], id="two", expected_response_contains="now", max_tokens=9),
    FluentCase("nothing", id="three", skip="not yet"),
], metrics=["token_usage_v1"], num_runs=2)
"""

HEAVY = ("google.adk", "google.genai", "rich", "pydantic", "jinja2", "yaml", "asyncio", "pytest")


# --- help ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [["--help"], ["run", "--help"], ["list", "suites.py"]])
def test_what_runs_nothing_imports_nothing_heavy(write: Write, args: list[str]) -> None:
    write("suites.py", CASES)
    program = f"""
import sys
from adk_fluent.cli import main
try:
    main(["eval", *{args!r}])
except SystemExit as ended:
    assert not ended.code, ended.code
heavy = [m for m in sys.modules if m.startswith({HEAVY!r})]
assert not heavy, heavy
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_help_names_every_command(cli: Cli) -> None:
    done = cli("--help")
    assert done.code == 0
    assert all(f"  {name} " in done.out for name in COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_and_debug(cli: Cli, name: str) -> None:
    done = cli(name, "--help")
    assert done.code == 0
    assert "--debug" in done.out


@pytest.mark.parametrize(
    ("name", "says"), [("runn", "Did you mean 'run'?"), ("zzzzz", "There are compare, export")]
)
def test_a_misspelled_command(cli: Cli, name: str, says: str) -> None:
    done = cli(name)
    assert done.code == 2
    assert says in done.err


# --- targets -------------------------------------------------------------------------------------


def test_the_only_suite_of_a_module_needs_no_name(write: Write) -> None:
    write("suites.py", CASES, "again = suite\n_hidden = FluentEvalSuite('hidden')\n")
    (found,) = suites_of("suites.py")
    assert found.name == "desk"
    assert suites_of("suites:again") == [found]


def test_several_suites_by_list_and_by_function(write: Write) -> None:
    write(
        "suites.py",
        CASES,
        """
        def each():
            return [suite, FluentEvalSuite("other")]
        both = (suite, FluentEvalSuite("third"))
        """,
    )
    assert [each.name for each in suites_of("suites.py:each")] == ["desk", "other"]
    assert [each.name for each in suites_of("suites:both")] == ["desk", "third"]


BAD_TARGETS = [
    ("nowhere.py", "", "there is no file nowhere.py"),
    ("nomodule", "", "there is no module 'nomodule'"),
    ("suites.py:siute", "suite = FluentEvalSuite('x')", "did you mean 'suite'?"),
    ("suites.py:a.b", "a = 1", "has no attribute 'a.b'"),
    ("suites.py", "x = 1", "has no FluentEvalSuite"),
    ("suites.py", "a = FluentEvalSuite('a')\nb = FluentEvalSuite('b')", "found: a, b"),
    ("suites.py:x", "x = 1", "is no suite"),
    ("suites.py:x", "x = FluentEvalSuite", "is no suite"),
    ("suites.py:x", "x = []", "is empty"),
    ("suites.py:x", "x = [FluentEvalSuite('a'), 'secret']", "something that is no suite"),
    ("suites.py:x", "x = [FluentEvalSuite('a')] * 2", "two suites called 'a'"),
    ("suites.py:x", "def x(): return None", "is no suite"),
    ("suites.py:x", "def x(): return 1 / 0", "ZeroDivisionError"),
    ("suites.py:x", "def x(a): return a", "without arguments"),
    ("suites.py", "import gone", "No module named 'gone'"),
    ("suites.py", "suite = FluentEvalSuite('')", "a suite has no name"),
    ("suites.py", "suite = (", "syntax error"),
    ("suites.py", "exit(3)", "it called exit(3)"),
    ("suites.py:", "", "no attribute after the colon"),
    (".", "", "is a directory"),
    ("cases.yaml", "", "cases.yaml"),
    ("cases.jsonl", "", "cases.jsonl"),
]


@pytest.mark.parametrize(("target", "source", "says"), BAD_TARGETS)
@pytest.mark.parametrize("command", [["list"], ["export", "out.yaml"]])
def test_a_bad_target(
    cli: Cli, write: Write, command: list[str], *, target: str, source: str, says: str
) -> None:
    write("suites.py", "from adk_fluent.eval import FluentEvalSuite\n", source)
    done = cli(command[0], target, *command[1:])
    assert done.code == 2, done
    assert says in done.err
    assert "secret" not in done.err
    assert "Traceback" not in done.err


def test_a_broken_file_of_cases_tells_its_line(cli: Cli, write: Write) -> None:
    write("cases.yaml", "cases:\n  - input: hi\n    expected_trajektory: [a]\n")
    done = cli("list", "cases.yaml")
    assert done.code == 2
    assert "cases.yaml:3" in done.err


def test_the_pipeline_of_a_file_is_a_target_of_its_own(write: Write) -> None:
    write("cases.jsonl", '{"input": "hi", "id": "a"}\n')
    write("shop.py", "def build():\n    raise AssertionError\n")
    (suite,) = suites_of("cases.jsonl", "shop.py:build")
    assert suite.pipeline.__name__ == "build"


# --- list ----------------------------------------------------------------------------------------


def test_list_shows_every_case(cli: Cli, write: Write) -> None:
    write("suites.py", CASES)
    done = cli("list", "suites.py")
    assert done.code == 0
    head, _, *rows = done.out.splitlines()
    assert head == "desk: 3 cases, 2 runs of each"
    assert [row.split()[0] for row in rows] == ["one", "two", "three"]
    assert "orders, new" in rows[0]
    assert "adk_fluent_response, adk_fluent_budget, token_usage_v1" in rows[1]
    assert "skipped: nothing" in rows[2]


def test_list_for_programs(cli: Cli, write: Write) -> None:
    write("suites.py", CASES)
    (suite,) = json.loads(cli("list", "suites.py", "--json").out)
    assert (suite["suite"], suite["num_runs"]) == ("desk", 2)
    one, two, three = suite["cases"]
    assert one["tags"] == ["orders", "new"]
    assert one["metrics"][0] == "tool_trajectory_avg_score"
    assert two["turns"] == 2
    assert two["metrics"] == ["adk_fluent_response", "adk_fluent_budget", "token_usage_v1"]
    assert three["metrics"] == []  # it expects nothing
    assert three["skip"] == "not yet"


def test_what_a_module_prints_is_no_result(cli: Cli, write: Write) -> None:
    write("suites.py", "print('importing')\n", CASES)
    done = cli("list", "suites.py", "--json")
    assert json.loads(done.out)
    assert "importing" in done.err


# --- export and import ---------------------------------------------------------------------------


def test_export_and_import_again(cli: Cli, write: Write, place: Path) -> None:
    write("suites.py", CASES)
    assert "3 cases written to a.yaml" in cli("export", "suites.py", "a.yaml").out
    assert cli("import", "a.yaml", "b.jsonl").code == 0
    assert cli("import", "b.jsonl", "c.yaml").code == 0
    ids = [case.name for case in FluentEvalSuite.from_yaml(place / "c.yaml").cases]
    assert ids == ["one", "two", "three"]


def test_import_maps_columns(cli: Cli, write: Write, place: Path) -> None:
    write("cases.csv", "Question,Answer\nhi,hello there\n")
    done = cli(
        *("import", "cases.csv", "out.yaml"),
        *("--map", "Question=input", "--map", "Answer=reference_response"),
    )
    assert done.code == 0, done.err
    (case,) = FluentEvalSuite.from_yaml(place / "out.yaml").cases
    assert (case.input, case.reference_response) == ("hi", "hello there")


def test_import_replaces_nothing_by_accident(cli: Cli, write: Write, place: Path) -> None:
    write("cases.jsonl", '{"input": "hi", "expected_response_contains": "x"}\n')
    write("mine.yaml", "# by hand\n")
    done = cli("import", "cases.jsonl", "mine.yaml")
    assert done.code == 2
    assert "--force" in done.err
    assert (place / "mine.yaml").read_text() == "# by hand\n"
    assert cli("import", "cases.jsonl", "mine.yaml", "--force").code == 0
    assert len(FluentEvalSuite.from_yaml(place / "mine.yaml").cases) == 1


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["export", "suites.py:suite", "out.txt"], "write to .evalset.json, .yaml or .jsonl"),
        (["export", "suites.py:suite", "out.yaml", "--config", "c.json"], "--config belongs to"),
        (["export", "suites.py:both", "out.yaml"], "is several suites, 'desk', 'x'"),
        (["export", "suites.py:odd", "out.yaml"], "lambda"),
        (["import", "cases.txt", "out.yaml"], "is no file of cases"),
        (["import", "cases.yaml", "out.yaml", "--map", "a=b"], "--map is for tables"),
        (["import", "cases.csv", "out.yaml", "--map", "a"], "is not COLUMN=FIELD"),
    ],
)
def test_bad_conversions(cli: Cli, write: Write, place: Path, args: list[str], says: str) -> None:
    write(
        "suites.py",
        CASES,
        "both = [suite, FluentEvalSuite('x')]\n",
        "odd = FluentEvalSuite('odd', cases=[FluentCase('a', id='a',"
        " state_assertions={'k': lambda v: True})])\n",
    )
    done = cli(*args)
    assert done.code == 2, done
    assert says in done.err
    assert not (place / "out.yaml").exists()


# --- options of run ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--min-pass-rate", "95"], "write 0.95 or 95%"),
        (["--min-pass-rate", "nan"], "is no share"),
        (["--min-pass-rate", "101%"], "is no share"),
        (["--min-pass-rate", "most"], "is no share"),
        (["--shard", "0/4"], "no such part"),
        (["--shard", "5/4"], "no such part"),
        (["--shard", "2"], "write 1/4"),
        (["--shard", "-1/4"], "write 1/4"),
        (["--timeout", "nan"], "no number of seconds"),
        (["--timeout", "0"], "no number of seconds"),
        (["--runs", "0"], "--runs"),
        (["--parallelism", "0"], "--parallelism"),
        (["--engine", "fast"], "--engine"),
        (["--max-regressions", "1"], "needs --baseline"),
        (["--max-regressions", "0"], "needs --baseline"),
        (["--update-baseline"], "needs --baseline"),
        (["--baseline", "b.json", "--update-baseline", "--tag", "orders"], "without --tag"),
        (["--baseline", "b.json", "--update-baseline", "--case", "one"], "without --case"),
        (["--baseline", "b.json", "--update-baseline", "--shard", "1/2"], "without --shard"),
        (
            ["--baseline", "b.json", "--update-baseline", "--model", "a", "--model", "b"],
            "whose is the baseline?",
        ),
        (["--baseline", "b.json", "--update-baseline", "--max-regressions", "1"], "no maximum"),
        (["--baseline", "b.json"], "there is no baseline"),
        (["--baseline", "b.json"], "write this run to it: --update-baseline"),
        (["--record"], "needs --cache"),
        (["--replay"], "needs --cache"),
        (["--cache", "c", "--record", "--replay"], "exclude each other"),
        (["--cache", "c", "--replay"], "no answers to replay"),
        (["--json", "a", "--html", "a"], "--json and --html are both a"),
        (["--json", "-", "--junit", "-"], "both standard output"),
        (["--json", "b.json", "--baseline", "b.json"], "are both b.json"),
        (["--json", "."], "--json"),
        (["--results", "nowhere"], "there is no such folder"),
        (["--model", "a", "--model", "a"], "model 'a' is there twice"),
        (["--model", "a", "--model", "b", "--html", "-"], "there are several"),
        (["--tag", "ordres"], "did you mean 'orders'?"),
        (["--case", "oen"], "did you mean 'one'?"),
    ],
)
def test_bad_options(cli: Cli, write: Write, args: list[str], says: str) -> None:
    write("suites.py", CASES)
    done = cli("run", "suites.py", *args)
    assert done.code == 2, done
    assert says in done.err


def test_a_file_of_cases_needs_a_pipeline(cli: Cli, write: Write) -> None:
    write("cases.yaml", "cases:\n- input: hi\n")
    done = cli("run", "cases.yaml")
    assert done.code == 2
    assert "--pipeline" in done.err


@given(st.floats(0, 1))
def test_a_share_is_read_as_it_is_written(value: float) -> None:
    context: Any = None
    assert share(context, context, repr(value)) == value
    read = share(context, context, f"{value * 100!r}%")
    assert read == pytest.approx(value)


@given(st.text(max_size=8))
def test_no_text_breaks_shares_and_shards(text: str) -> None:
    context: Any = None
    try:
        found = share(context, context, text)
        assert found is not None
        assert 0 <= found <= 1
    except click.BadParameter:
        pass
    try:
        part = shard(context, context, text)
        assert part is not None
        assert 1 <= part[0] <= part[1]
    except click.BadParameter:
        pass


# --- compare -------------------------------------------------------------------------------------


def _saved(path: Path, *statuses: Status, **fields: Any) -> Path:
    made = report(
        *(outcome(f"case{n}", each, reasons=["it was so"]) for n, each in enumerate(statuses)),
        **fields,
    )
    made.save(path)
    return path


P, F, E = Status.PASSED, Status.FAILED, Status.ERROR


def test_compare_tells_what_got_worse(cli: Cli, place: Path) -> None:
    now, then = _saved(place / "now", P, F, F), _saved(place / "then", P, P, F)
    done = cli("compare", now, then)
    assert done.code == 1
    assert "not ok, 1 case got worse, 0 may" in done.out
    assert "case1 (1 of 1 -> 0 of 1 runs passed): it was so" in done.out
    assert cli("compare", now, then, "--max-regressions", "1").code == 0
    assert cli("compare", then, now).code == 0


def test_compare_of_nothing_in_common_is_not_ok(cli: Cli, place: Path) -> None:
    report(outcome("a")).save(place / "a")
    report(outcome("b")).save(place / "b")
    done = cli("compare", "a", "b", "--max-regressions", "9")
    assert done.code == 1
    assert "no case could be compared" in done.out


def test_compare_writes_files(cli: Cli, place: Path) -> None:
    now, then = _saved(place / "now", P, F), _saved(place / "then", P, P)
    done = cli("compare", now, then, "--json", "-", "--markdown", "c.md")
    assert json.loads(done.out)["compared"] == 2
    assert "against its baseline" in done.err  # the text makes room
    assert "Got worse" in (place / "c.md").read_text("utf-8")


@pytest.mark.parametrize("alpha", ["0", "1", "nan", "-1"])
def test_compare_refuses_what_is_no_p_value(cli: Cli, place: Path, alpha: str) -> None:
    now = _saved(place / "now", P)
    assert cli("compare", now, now, "--alpha", alpha).code == 2


@pytest.mark.parametrize("content", ["", "{", "[]", '{"a": 1}', "\x00"])
@pytest.mark.parametrize("command", [["compare"], ["report"]])
def test_a_broken_report(
    cli: Cli, write: Write, place: Path, command: list[str], content: str
) -> None:
    write("broken.json", content)
    good = _saved(place / "good.json", P)
    done = cli(*command, good, "broken.json")
    assert done.code == 2
    assert "broken.json" in done.err


def test_a_report_that_is_not_there(cli: Cli) -> None:
    done = cli("compare", "now", "then")
    assert done.code == 2
    assert "there is no such file" in done.err


# --- report --------------------------------------------------------------------------------------


def test_report_shows_a_saved_report(cli: Cli, place: Path) -> None:
    saved = _saved(place / "r", P, F, E)
    done = cli("report", saved)
    assert done.code == 0
    assert "not passed, 33.3% of 3 runs passed" in done.out
    assert "failed case1\n  it was so" in done.out
    assert cli("report", saved, "--gate").code == 1
    assert cli("report", _saved(place / "ok", P), "--gate").code == 0


def test_report_merges_shards(cli: Cli, place: Path) -> None:
    report(outcome("a"), shard=(1, 2)).save(place / "1.json")
    report(outcome("b"), shard=(2, 2)).save(place / "2.json")
    assert cli("report", "1.json", "2.json", "--gate", "--json", "all.json").code == 0
    assert [each.id for each in FluentEvalReport.load(place / "all.json").outcomes] == ["a", "b"]
    done = cli("report", "1.json", "1.json")
    assert done.code == 2
    assert "more than once" in done.err


def test_report_in_every_form(cli: Cli, place: Path) -> None:
    lively().save(place / "r.json")
    _saved(place / "then.json", P)
    done = cli(
        *("report", "r.json", "--html", "r.html", "--junit", "r.xml", "--markdown", "r.md"),
        *("--baseline", "then.json"),
    )
    assert done.code == 0, done.err
    assert "written: r.html, r.xml, r.md" in done.out
    assert (place / "r.html").read_text("utf-8").startswith("<!doctype html>")
    assert (place / "r.xml").read_text("utf-8").startswith("<?xml")
    assert "Compared with the baseline" in (place / "r.md").read_text("utf-8")


def test_a_file_that_cannot_be_written_costs_no_other(cli: Cli, write: Write, place: Path) -> None:
    saved = _saved(place / "r", P)
    write("file", "")
    done = cli("report", saved, "--html", "file/r.html", "--junit", "r.xml")
    assert done.code == 3
    assert "file/r.html" in done.err
    assert (place / "r.xml").exists()


def test_report_of_a_matrix(cli: Cli, place: Path) -> None:
    ModelMatrix(
        {"small": report(outcome("a", F), model="small"), "large": report(outcome("a"))}
    ).save(place / "m.json")
    done = cli("report", "m.json", "--markdown", "m.md")
    assert done.code == 0
    assert "best: large" in done.out
    assert "small" in (place / "m.md").read_text("utf-8")
    assert cli("report", "m.json", "--gate").code == 1
    for option in (["--html", "x"], ["--junit", "x"], ["--baseline", "m.json"]):
        done = cli("report", "m.json", *option)
        assert done.code == 2
        assert "is of one report" in done.err


# --- texts ---------------------------------------------------------------------------------------


def test_hostile_texts_reach_no_terminal(cli: Cli, place: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202e\r\nrm -rf"
    report(
        outcome(evil, F, reasons=[evil], tags=[evil]), suite=evil, notes=[evil], model=evil
    ).save(place / "r")
    done = cli("report", "r")
    assert not set(done.out) & set("\x1b\x07\u202e\r")
    assert "rm -rf" in done.out


def test_keys_are_shown_to_nobody(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "a-long-secret-key")
    report(outcome("a", E, error="denied: a-long-secret-key")).save(place / "r")
    assert "a-long-secret-key" not in cli("report", "r").out


def test_a_summary_counts_what_it_leaves_out() -> None:
    many = report(
        *(outcome(f"case{n}", F, reasons=list("abcdef"), tags=[f"t{n}"]) for n in range(200))
    )
    text = "\n".join(summary_lines(many))
    assert "and 180 more runs that did not pass" in text
    assert "and 3 more reasons" in text
    assert "and 170 more tags" in text
    assert text.count("\n") < 200


def test_a_summary_of_nothing_that_counts() -> None:
    text = "\n".join(summary_lines(report(outcome("a", Status.SKIPPED))))
    assert "no run counts" in text
    assert "0%" not in text


def test_a_summary_tells_flaky_cases_and_the_gate() -> None:
    text = "\n".join(
        summary_lines(
            report(outcome("a", run=1), outcome("a", F, run=2), gate=Gate(min_pass_rate=0.4))
        )
    )
    assert "passed in one run and not in another: a" in text
    assert "failed a (run 2)" in click.unstyle(text)
    assert "the gate is not met" not in text


@given(
    st.lists(st.tuples(st.text("ab ", max_size=9), st.sampled_from(["red", "green"])), max_size=5)
)
def test_columns_stand_below_each_other(cells: list[tuple[str, str]]) -> None:
    rows = [[click.style(text, fg=color), "|"] for text, color in cells]
    lines = [click.unstyle(line) for line in columns(("text", "end"), rows)]
    assert len({line.index("|") for line in lines[1:]}) <= 1
    assert len(lines) == 1 + len(cells)


def test_lines_of_progress_are_few(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Lines()
    shown.begin("desk")
    for done in range(1, 1001):
        shown.tell(Progress(outcome(f"c{done}", F if done == 500 else P), done, 1000))
    shown.end()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "desk: 1,000 of 1,000 runs, 999 passed, 1 failed"
    assert lines[4].startswith("failed c500")


def test_lines_of_progress_tell_what_was_done_before(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Lines()
    shown.begin("desk")
    shown.tell(Progress(outcome("a", F), 1, 2, resumed=True))
    shown.tell(Progress(outcome("b"), 2, 2))
    shown.end()
    err = capsys.readouterr().err
    assert "failed a" not in err
    assert "2 of 2 runs, 1 passed, 1 failed" in err
    assert "1 runs are taken from the journal" in err


# --- the rest ------------------------------------------------------------------------------------


def test_when_nothing_was_reached() -> None:
    refused = outcome("a", E, error="ConnectError: all connection attempts failed")
    wrong = outcome("b", E, error="ValueError: boom")
    assert nothing_reached([report(refused)])
    assert not nothing_reached([report(refused, wrong)])
    assert not nothing_reached([report(refused, outcome("c"))])
    assert not nothing_reached([report(outcome("d", Status.SKIPPED))])


def test_the_agent_that_gets_results(write: Write, place: Path) -> None:
    write("agents/shop/agent.py", "")
    agents = place / "agents"
    assert agent_folder("agents", "x.py") == (agents, "shop")
    assert agent_folder("agents/shop", "x.py") == (agents, "shop")
    write("agents/desk/__init__.py", "")
    write("agents/.hidden/agent.py", "")
    assert agent_folder("agents", "agents/desk/evals.py:suite") == (agents, "desk")
    assert agent_folder("agents", "desk.evals:suite") == (agents, "desk")
    with pytest.raises(click.UsageError, match="several agents in it, desk, shop"):
        agent_folder("agents", "x.py")
    with pytest.raises(click.UsageError, match="there is no agent in it"):
        agent_folder(str(place), "x.py")
