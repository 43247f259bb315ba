"""``adk-fluent check``: for people, for programs, for code hosts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.contracts import ContractReport, InvalidName, Related, RouteWithoutDefault
from adk_fluent.ir import Location

if TYPE_CHECKING:
    from .conftest import Cli, Write

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
    inside, outside = tmp_path / "src" / "a b.py", Path("/elsewhere/x.py")
    for file, uri in ((inside, "src/a b.py"), (outside, "file:///elsewhere/x.py")):
        log = json.loads(report(location=Location(str(file), 0)).to_sarif())
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
