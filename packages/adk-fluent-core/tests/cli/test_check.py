"""``adk-fluent check``: for people, for programs, for code hosts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.contracts import ContractReport, InvalidName, Related, RouteWithoutDefault
from adk_fluent.ir import Location

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Cli, Done, Write

GOOD = """
from adk_fluent import Agent

root_agent = Agent("desk").instruct("Help.")
"""
BAD = """
from adk_fluent import Agent

writer = Agent("writer").instruct("One.")
other = Agent("writer").instruct("Two.")
root_agent = writer >> other
"""
MILD = """
from adk_fluent import Agent

draft = Agent("draft").writes("user:draft")
root_agent = draft // Agent("backup").instruct("Sorry.")
"""


@pytest.fixture
def files(write: Write) -> None:
    write("good.py", GOOD)
    write("bad.py", BAD)
    write("mild.py", MILD)


@pytest.mark.usefixtures("files")
def test_exit_codes(cli: Cli) -> None:
    assert cli("check", "good.py").code == 0
    assert cli("check", "bad.py").code == 1
    assert cli("check", "mild.py").code == 0
    assert cli("check", "mild.py", "--strict").code == 1
    assert cli("check", "good.py", "bad.py").code == 1
    assert cli("check", "none.py").code == 2
    assert cli("check").code == 2


@pytest.mark.usefixtures("files")
def test_text(here: Cli) -> None:
    done = here("check", "bad.py")
    assert "error[FLW102]: two different agents are called `writer`" in done.out
    assert "bad.py:5" in done.out
    assert "\x1b" not in done.out
    both = here("check", "good.py", "bad.py").out
    assert both.index("good.py\n") < both.index("bad.py\n")


@pytest.mark.usefixtures("files")
def test_json(here: Cli) -> None:
    one = json.loads(here("check", "bad.py", "--format", "json").out)
    assert one["ok"] is False
    assert [each["code"] for each in one["diagnostics"]] == ["FLW102"]
    two = json.loads(here("check", "good.py", "bad.py", "--format", "json").out)
    assert {target: report["ok"] for target, report in two.items()} == {
        "good.py": True,
        "bad.py": False,
    }


@pytest.mark.usefixtures("files")
def test_sarif(here: Cli) -> None:
    done = here("check", "bad.py", "mild.py", "--format", "sarif")
    assert done.code == 1
    log = json.loads(done.out)
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    driver, results = log["runs"][0]["tool"]["driver"], log["runs"][0]["results"]
    assert [rule["id"] for rule in driver["rules"]] == ["FLW102", "FLW132"]
    assert [(each["ruleId"], each["level"]) for each in results] == [
        ("FLW102", "error"),
        ("FLW132", "warning"),
    ]
    for each in results:
        assert driver["rules"][each["ruleIndex"]]["id"] == each["ruleId"]
    place = results[0]["locations"][0]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "bad.py"},
        "region": {"startLine": 5},
    }
    assert place["logicalLocations"][0]["name"] == "writer"
    [other] = results[0]["relatedLocations"]
    assert other["physicalLocation"]["region"] == {"startLine": 4}
    assert json.loads(here("check", "good.py", "--format", "sarif").out)["runs"][0]["results"] == []


@pytest.mark.usefixtures("files")
def test_github(here: Cli) -> None:
    done = here("check", "bad.py", "mild.py", "--format", "github")
    first, second = done.out.splitlines()
    assert first.startswith("::error file=bad.py,line=5,title=FLW102 DuplicateName::two different")
    assert "%0Ahelp: " in first
    assert second.startswith("::warning file=mild.py,line=4,title=FLW132 ")
    assert here("check", "good.py", "--format", "github").out == ""


@pytest.mark.usefixtures("files")
def test_unknown_format(here: Cli) -> None:
    done = here("check", "good.py", "--format", "xml")
    assert done.code == 2
    assert "'text', 'json', 'sarif', 'github'" in done.err


READS = """
from adk_fluent import Agent

pipeline = Agent("reply").instruct("Answer {question} for {user:name}.")
"""
WRITES = """
from adk_fluent import Agent

pipeline = Agent("reply").instruct("Answer.").writes("answer")
"""


def codes(done: Done) -> list[str]:
    return [each["code"] for each in json.loads(done.out)["diagnostics"]]


def test_inputs_are_there_at_the_start(write: Write, here: Cli) -> None:
    write("reads.py", READS)
    bare = here("check", "reads.py", "--format", "json")
    assert bare.code == 1
    assert "FLW001" in codes(bare)
    given = here(
        *("check", "reads.py", "--format", "json"),
        *("--input", "question", "--input", "user:name"),
    )
    assert (given.code, codes(given)) == (0, [])
    half = here("check", "reads.py", "--format", "json", "--input", "user:name")
    assert half.code == 1
    [found] = json.loads(half.out)["diagnostics"]
    assert (found["code"], "`question`" in found["message"]) == ("FLW001", True)


def test_outputs_are_read_at_the_end(write: Write, here: Cli) -> None:
    write("writes.py", WRITES)
    read = here("check", "writes.py", "--format", "json", "--output", "answer")
    assert (read.code, codes(read)) == (0, [])
    other = here("check", "writes.py", "--format", "json", "--output", "summary")
    assert other.code == 1
    assert codes(other) == ["FLW001", "FLW008"]
    assert "promises the output `summary`" in other.out


@pytest.mark.parametrize("option", ["--input", "--output"])
def test_a_key_without_a_name_is_refused(write: Write, here: Cli, option: str) -> None:
    write("good.py", GOOD)
    done = here("check", "good.py", option, " ")
    assert done.code == 2
    assert f"{option.removeprefix('--')}s takes state keys" in done.err


@pytest.mark.usefixtures("files")
class TestSeverities:
    @pytest.mark.parametrize(
        ("options", "level", "code"),
        [
            ((), "warning", 0),
            (("--severity", "FLW132=error"), "error", 1),
            (("--severity", "FLW132=warning"), "warning", 0),
            (("--severity", "flw132 = info"), "info", 0),
            (("--severity", "FLW132=error", "--severity", "FLW132=off"), None, 0),
            (("--strict",), "error", 1),
            (("--strict", "--severity", "FLW132=warning"), "warning", 0),
            (("--strict", "--severity", "FLW102=off"), "error", 1),
        ],
    )
    def test_are_what_the_options_say(
        self, here: Cli, options: tuple[str, ...], level: str | None, code: int
    ) -> None:
        done = here("check", "mild.py", "--format", "json", *options)
        found = json.loads(done.out)["diagnostics"]
        assert [each["severity"] for each in found] == ([] if level is None else [level])
        assert done.code == code

    def test_hold_for_every_target(self, here: Cli) -> None:
        both = ("check", "bad.py", "mild.py", "--format", "github")
        assert here(*both, "--severity", "FLW102=info").code == 0
        done = here(*both, "--severity", "FLW102=off", "--strict")
        assert done.code == 1
        [line] = done.out.splitlines()
        assert line.startswith("::error file=mild.py,line=4,title=FLW132 ")

    @pytest.mark.parametrize("value", ["FLW132", "FLW132=bad", "=error", "FLW132=ERROR", ""])
    def test_that_are_none_are_refused(self, here: Cli, value: str) -> None:
        done = here("check", "mild.py", "--severity", value)
        assert (done.code, done.out) == (2, "")
        assert f"{value!r} is not CODE=LEVEL, such as FLW112=off" in " ".join(done.err.split())
        assert "LEVEL is one of error, warning, info, off." in " ".join(done.err.split())

    def test_of_unknown_codes_are_refused(self, here: Cli) -> None:
        done = here("check", "mild.py", "--severity", "FLW999=off")
        assert (done.code, done.out) == (2, "")
        assert "no finding has the code 'FLW999'" in done.err


@pytest.mark.usefixtures("files")
def test_what_cannot_be_checked_is_no_finding(
    absent: Callable[[str], None], write: Write, here: Cli
) -> None:
    absent("distributed")
    write("absent.py", "import adk_fluent.distributed\n")
    assert here("check", "good.py", "absent.py").code == 3
    write("broken.py", "1 / 0\n")
    done = here("check", "good.py", "broken.py")
    assert (done.code, done.out) == (2, "")
    assert "importing broken.py failed" in done.err


def report(**fields: Any) -> ContractReport:
    return ContractReport.of([InvalidName(**dict[str, Any]({"message": "m", **fields}))])


def test_names_cannot_make_commands_of_their_own() -> None:
    hostile = report(
        message="100%\n::error::forged\r", location=Location("a,b:c.py", 3), help="::warning::x"
    )
    [line] = hostile.to_github().splitlines()
    assert line == (
        "::error file=a%2Cb%3Ac.py,line=3,title=FLW101 InvalidName"
        "::100%25%0A::error::forged%0D%0Ahelp: ::warning::x"
    )


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file, uri, path in (
        (tmp_path / "src" / "a b.py", "src/a%20b.py", "src/a b.py"),
        ("a#1?,100%é.py", "a%231%3F%2C100%25%C3%A9.py", "a#1?%2C100%25é.py"),
        ("a:b.py", "a%3Ab.py", "a%3Ab.py"),  # `a:` would be a scheme
        (Path("/else where/x.py"), "file:///else%20where/x.py", "/else where/x.py"),
    ):
        found = report(location=Location(str(file), 0))
        assert found.to_github().startswith(f"::error file={path},line=0,")
        log = json.loads(found.to_sarif())
        physical = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
        assert physical["artifactLocation"]["uri"] == uri
        assert physical["region"]["startLine"] == 1


def test_a_finding_without_a_place() -> None:
    mild = ContractReport.of([RouteWithoutDefault(message="m", related=(Related("there", "n"),))])
    [result] = json.loads(mild.to_sarif())["runs"][0]["results"]
    assert result == {
        "ruleId": "FLW112",
        "ruleIndex": 0,
        "level": "note",
        "message": {"text": "m"},
    }
    assert mild.to_github() == "::notice title=FLW112 RouteWithoutDefault::m"
