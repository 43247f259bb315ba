from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.contracts import (
    ContractReport,
    Diagnostic,
    DuplicateName,
    InvalidName,
    Opaque,
    Related,
    RouteWithoutDefault,
    Severity,
    SingleAlternative,
    check_all,
)
from adk_fluent.errors import ContractError
from adk_fluent.ir import (
    AgentNode,
    FunctionNode,
    GateNode,
    Location,
    LoopNode,
    Match,
    RaceNode,
    Ref,
    RouteNode,
    SequenceNode,
    TransferNode,
)

if TYPE_CHECKING:
    from pathlib import Path

ERROR = InvalidName(message="e", node="n")
WARNING = SingleAlternative(message="w")
INFO = RouteWithoutDefault(message="i")
OPAQUE = Opaque("step", "what `fn` reads and writes is not declared", Location("app.py", 7))

SOURCE = """\
from adk_fluent import Agent, Route

writer = Agent("writer", "gemini-2.5-flash")
\tother = Agent("writer", "gemini-2.5-pro")  # tab
flow = writer >> Route("intent").eq("bill", other)
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "src" / "app.py"
    file.write_text(SOURCE, encoding="utf-8")
    return file


def lines(text: str) -> list[str]:
    return text.split("\n")


class TestReport:
    @pytest.mark.parametrize(
        ("found", "opaque", "absent", "ok", "proven"),
        [
            ([], (), (), True, True),
            ([WARNING, INFO], (), (), True, True),
            ([WARNING, ERROR], (), (), False, False),
            ([], (OPAQUE,), (), True, False),
            ([], (), ("cost",), True, False),
        ],
    )
    def test_ok_and_proven(
        self,
        found: list[Diagnostic],
        opaque: tuple[Opaque, ...],
        absent: tuple[str, ...],
        ok: bool,
        proven: bool,
    ) -> None:
        report = ContractReport.of(found, opaque=opaque, absent=absent)
        assert (report.ok, report.proven) == (ok, proven)

    def test_findings_are_sorted_and_kept_once(self) -> None:
        def at(file: str | None, line: int, message: str, **fields: Any) -> Diagnostic:
            place = Location(file, line) if file else None
            return InvalidName(message=message, location=place, **fields)

        ordered = [
            at("a.py", 2, "m"),
            at("a.py", 10, "m"),
            at("b.py", 1, "a"),
            at("b.py", 1, "b"),
            DuplicateName(message="a", location=Location("b.py", 1)),
            at(None, 0, "z", path="a"),
            at(None, 0, "a", path="b"),
            at("a.py", 1, "m", severity=Severity.WARNING),
            INFO,
        ]
        report = ContractReport.of([*reversed(ordered), *ordered])
        assert list(report) == ordered
        assert report.diagnostics == tuple(ordered)
        assert report == ContractReport.of(ordered)

    def test_errors_and_warnings(self) -> None:
        report = ContractReport.of([INFO, WARNING, ERROR])
        assert report.errors == (ERROR,)
        assert report.warnings == (WARNING,)

    def test_to_dict_and_to_json(self) -> None:
        report = ContractReport.of(
            [WARNING], opaque=(OPAQUE, Opaque("a", "b")), checked=("names",), absent=("cost",)
        )
        assert report.to_dict() == {
            "format": 1,
            "ok": True,
            "proven": False,
            "diagnostics": [WARNING.to_dict()],
            "opaque": [
                {
                    "node": "step",
                    "why": "what `fn` reads and writes is not declared",
                    "location": {"file": "app.py", "line": 7},
                },
                {"node": "a", "why": "b", "location": None},
            ],
            "checked": ["names"],
            "absent": ["cost"],
            "allowed": [],
        }
        assert json.loads(report.to_json()) == report.to_dict()

    def test_raise_for_errors_carries_the_report(self) -> None:
        first = InvalidName(message="bad", node="n", location=Location("a.py", 1), help="rename")
        ContractReport.of([WARNING]).raise_for_errors()
        report = ContractReport.of([first])
        with pytest.raises(ContractError) as caught:
            report.raise_for_errors()
        assert caught.value.report is report
        assert lines(str(caught.value)) == [
            "the pipeline breaks its contracts: bad",
            "  where: node 'n' at a.py:1",
            "  help: rename",
        ]
        with pytest.raises(ContractError, match=r"contracts: bad \(2 more in \.report\)"):
            ContractReport.of(
                [first, ERROR, DuplicateName(message="d", location=None)]
            ).raise_for_errors()


class TestText:
    def test_looks_like_rustc(self, app: Path) -> None:
        file = str(app)
        writer = AgentNode("writer", instruction="a", location=Location(file, 3))
        other = AgentNode("writer", instruction="b", location=Location(file, 4))
        route = RouteNode(
            "intent",
            "intent",
            (Match("eq", "intent", "bill"), Match("eq", "intent", "bill")),
            (other, AgentNode("again")),
            location=Location(file, 5),
        )
        report = check_all(SequenceNode("flow", (writer, route)), inputs=["intent"])
        assert lines(str(report)) == [
            "error[FLW102]: two different agents are called `writer`",
            " --> src/app.py:4",
            "  |",
            '4 | other = Agent("writer", "gemini-2.5-pro")  # tab',
            "  |",
            "  = note: the other one is here (src/app.py:3)",
            "  = help: rename one, or use the very same agent in both places",
            "",
            (
                "warning[FLW113]: `again` never runs: when `intent == 'bill'` holds, "
                "route `intent` has taken `writer`"
            ),
            " --> flow > intent > again",
            "  = note: `intent == 'bill'` is tested first (src/app.py:4)",
            "  = help: put the narrower test first, or remove this branch",
            "",
            "info[FLW112]: route `intent` does nothing when no test holds",
            " --> src/app.py:5",
            "  |",
            '5 | flow = writer >> Route("intent").eq("bill", other)',
            "  |",
            "  = help: add .otherwise(...) if that case matters",
            "",
            "Found 1 error, 1 warning, 1 info.",
        ]

    def test_without_locations_it_names_the_path(self) -> None:
        race = RaceNode("fastest", (GateNode("ok"), AgentNode("a")))
        flow = SequenceNode("flow", (race, TransferNode("hand_over", "zz")))
        assert lines(check_all(flow).render()) == [
            "error[FLW121]: nothing in the pipeline is called `zz`",
            " --> flow > hand_over",
            "  = help: name a step of this pipeline",
            "",
            "error[FLW131]: gate `ok` stands inside a race, which cannot wait for a person",
            " --> flow > fastest > ok",
            "  = help: ask before the race or after it",
            "",
            "Found 2 errors.",
        ]

    def test_the_margin_fits_the_line_number(self, app: Path) -> None:
        app.write_text("\n" * 99 + "x = 1\n", encoding="utf-8")
        report = ContractReport.of([InvalidName(message="m", location=Location(str(app), 100))])
        assert lines(report.render())[:5] == [
            "error[FLW101]: m",
            "   --> src/app.py:100",
            "    |",
            "100 | x = 1",
            "    |",
        ]

    def test_without_source_there_is_no_excerpt(self, app: Path) -> None:
        report = ContractReport.of([InvalidName(message="m", location=Location(str(app), 3))])
        assert lines(report.render(source=False)) == [
            "error[FLW101]: m",
            " --> src/app.py:3",
            "",
            "Found 1 error.",
        ]

    @pytest.mark.parametrize("name", ["gone.py", "/nowhere/gone.py", "bad\0.py", "<stdin>", ""])
    def test_a_file_that_cannot_be_read_is_only_named(self, name: str) -> None:
        report = ContractReport.of([InvalidName(message="m", location=Location(name, 3))])
        text = lines(report.render())
        assert len(text) == 4
        assert text[1].endswith(":3")

    def test_a_line_that_is_not_there_is_not_shown(self, app: Path) -> None:
        report = ContractReport.of([InvalidName(message="m", location=Location(str(app), 999))])
        assert lines(report.render())[1:3] == [" --> src/app.py:999", ""]

    def test_only_python_source_is_ever_shown(self, app: Path) -> None:
        secret = app.with_name("id_rsa")
        secret.write_text("BEGIN PRIVATE KEY\n", encoding="utf-8")
        report = ContractReport.of([InvalidName(message="m", location=Location(str(secret), 1))])
        assert "PRIVATE" not in report.render()

    def test_a_long_line_is_cut(self, app: Path) -> None:
        app.write_text("x = '" + "y" * 500 + "'\n", encoding="utf-8")
        report = ContractReport.of([InvalidName(message="m", location=Location(str(app), 1))])
        excerpt = lines(report.render())[3]
        assert excerpt == "1 | x = '" + "y" * 112 + "..."

    def test_an_edited_file_is_read_again(self, app: Path) -> None:
        report = ContractReport.of([InvalidName(message="m", location=Location(str(app), 3))])
        assert "gemini-2.5-flash" in report.render()
        app.write_text("\n\nchanged = 12345\n", encoding="utf-8")
        assert "changed = 12345" in report.render()

    def test_hostile_names_cannot_move_the_cursor(self, app: Path) -> None:
        app.write_text("x = '\x1b[31m'\n", encoding="utf-8")
        report = ContractReport.of(
            [
                InvalidName(
                    message="a\x1b[2Jb\nc",
                    path="p\r",
                    help="h\u202e",
                    related=(Related("r\x07", "n\x00"), Related("r", location=Location("f\n", 1))),
                    location=location,
                )
                for location in (None, Location(str(app), 1), Location("q\x1b.py", 1))
            ],
            opaque=(Opaque("o\x1b", "w\x1b"),),
        )
        assert all(line.isprintable() for line in lines(report.render()))
        assert "a\\x1b[2Jb\\nc" in report.render()

    def test_colour_changes_nothing_but_colour(self, app: Path) -> None:
        report = ContractReport.of(
            [
                InvalidName(message="m", location=Location(str(app), 3), help="h"),
                SingleAlternative(message="w", related=(Related("r"),)),
                INFO,
            ]
        )
        coloured = report.render(color=True)
        assert lines(coloured)[:3] == [
            "\x1b[1;31merror[FLW101]\x1b[0m\x1b[1m: m\x1b[0m",
            " \x1b[1;34m-->\x1b[0m src/app.py:3",
            "  \x1b[1;34m|\x1b[0m",
        ]
        plain = coloured
        for code in ("0", "1", "1;31", "1;33", "1;34", "1;36"):
            plain = plain.replace(f"\x1b[{code}m", "")
        assert plain == report.render()

    def test_a_related_node_is_named_unless_the_note_does(self) -> None:
        related = (Related("see this", "a"), Related("`b` is odd", "b"), Related("more"))
        report = ContractReport.of([InvalidName(message="m", related=related)])
        assert lines(report.render())[1:4] == [
            "  = note: see this (`a`)",
            "  = note: `b` is odd",
            "  = note: more",
        ]

    def test_nothing_found_is_said(self) -> None:
        assert str(ContractReport()) == "Found nothing wrong."
        assert str(check_all(AgentNode("a"))) == "Found nothing wrong."

    def test_opaque_steps_are_named_when_there_are_no_errors(self) -> None:
        def guess(state: object) -> None:
            exec("state['x']")

        flow = SequenceNode(
            "flow",
            (
                FunctionNode("one", Ref.to(guess)),
                FunctionNode("two", Ref.to(guess)),
                LoopNode("three", AgentNode("a"), 2, until=Ref.to(guess)),
            ),
        )
        line = guess.__code__.co_firstlineno + 1
        assert lines(str(check_all(flow))) == [
            "Found nothing wrong.",
            (
                "Not proven because of `one` and 2 others: what `guess` does to state is not "
                f"known: it calls `exec` in line {line}."
            ),
        ]
        assert lines(str(check_all(flow.steps[0])))[1].endswith(f"in line {line}.")
        assert "Not proven" not in str(ContractReport.of([ERROR], opaque=(OPAQUE,)))

    def test_counts_are_in_words(self) -> None:
        found = [
            *(InvalidName(message=m) for m in "ab"),
            *(SingleAlternative(message=m) for m in "abc"),
            *(RouteWithoutDefault(message=m) for m in "ab"),
        ]
        assert str(ContractReport.of(found)).endswith("Found 2 errors, 3 warnings, 2 info.")
