"""The description of ADK's models, the setters made of it, and the reports about changes."""

from __future__ import annotations

import ast
import enum
import json
import sys
from typing import TYPE_CHECKING, Any, ClassVar, Optional, Union

import pytest
from pydantic import BaseModel, Field

from codegen import cli, generate, policy, report, snapshots
from codegen.extract import describe, normal_type
from codegen.policy import Setter, Taken
from codegen.snapshots import CodegenError, Snapshot

if TYPE_CHECKING:
    from pathlib import Path

Alias = Union[int, list[int]]  # noqa: UP007  # as ADK writes it
_Private = Alias


class Colour(enum.Enum):
    RED = 1


class Base(BaseModel):
    name: str
    """What it is called.

    DEPRECATED: call it otherwise.
    """

    parts: list[str] = Field(default_factory=list)

    kind: ClassVar[str] = "base"
    """Not a field."""


class Model(Base):
    alias: Optional[Alias] = None  # noqa: UP045  # as ADK writes it
    """First line
    of two."""

    private: _Private | None = None
    colour: Colour = Colour.RED
    quoted: "Optional[Colour]" = None  # noqa: UP037, UP045
    """Not this one's."""
    limit: int = Field(default=500, description="At most so many.")


class Own(BaseModel):
    seen: int = 0

    def __init__(self, card: Optional[str], *, seen: int = 0, retries: int = 3) -> None:  # noqa: UP045
        super().__init__(seen=seen)
        self._given = (card, retries)


def field(name: str, type_: str = "str", default: str = "None", *, old: bool = False) -> Any:
    return snapshots.Field(name, type_, default, old)


def snapshot(version: str, *fields: snapshots.Field, model: str = "LlmAgent") -> Snapshot:
    return Snapshot(version, {model: {each.name: each for each in fields}})


# --- what ADK has --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("Optional[X]", "X | None"),
        ("None | X", "X | None"),
        ("Union[A, None, B]", "A | B | None"),
        ("Union[Optional[A], B]", "A | B | None"),
        ("Optional[Union[A, B]] | None", "A | B | None"),
        ("Union[A]", "A"),
        ("List[Optional[_X]]", "list[X | None]"),
        ("Dict[str, 'types.Y']", "dict[str, types.Y]"),
        ("'Optional[X]'", "X | None"),
        ("Literal['default', 'none']", "Literal['default', 'none']"),
        ("Optional[Literal['x', None]]", "Literal['x', None] | None"),
        ("Type[BaseModel]", "type[BaseModel]"),
        ("Callable[[A], Optional[B]]", "Callable[[A], B | None]"),
    ],
)
def test_a_type_is_written_in_one_way(written: str, normal: str) -> None:
    assert normal_type(ast.parse(written, mode="eval").body) == normal
    assert normal_type(ast.parse(normal, mode="eval").body) == normal


def test_a_model_is_described_from_its_source() -> None:
    described = describe(Model)
    assert described["module"] == __name__
    fields = {each.pop("name"): each for each in described["fields"]}
    assert list(fields) == ["name", "parts", "alias", "private", "colour", "quoted", "limit"]
    none = {"kind": "value", "of": "None"}

    def expected(type_: str, default: dict[str, str], doc: str, in_: str = "Model") -> Any:
        told = {"type": type_, "default": default, "deprecated": False}
        return {**told, "defined_in": in_, "doc": doc}

    assert fields["name"] == {
        **expected("str", {"kind": "required"}, "What it is called.", "Base"),
        "deprecated": True,
    }
    assert fields["parts"] == expected("list[str]", {"kind": "factory", "of": "list"}, "", "Base")
    assert fields["alias"] == expected("Alias | None", none, "First line of two.")
    assert fields["private"] == expected("Private | None", none, "")
    assert fields["colour"]["default"] == {"kind": "value", "of": "Colour.RED"}
    assert fields["quoted"] == expected("Colour | None", none, "Not this one's.")
    assert fields["limit"]["doc"] == "At most so many."


def test_parameters_that_are_no_fields_are_described_too() -> None:
    seen, card, retries = describe(Own)["fields"]
    assert (seen["name"], seen["defined_in"]) == ("seen", "Own")
    assert (card["name"], card["type"]) == ("card", "str | None")
    assert card["default"] == {"kind": "required"}
    assert (retries["name"], retries["default"]) == ("retries", {"kind": "value", "of": "3"})


def test_a_description_becomes_a_snapshot() -> None:
    read = snapshots.read({"adk": "9.9.9", "classes": {"Model": describe(Model)}})
    assert read.version == "9.9.9"
    model = read.classes["Model"]
    assert model["name"] == field("name", "str", "required", old=True)
    assert model["parts"].default == "list()"
    assert model["limit"] == field("limit", "int", "500")


def test_every_version_that_ci_pins_has_a_snapshot() -> None:
    there = {each.version for each in snapshots.load_all()}
    pinned = snapshots.pinned()
    assert len(pinned) == 3
    assert set(pinned) <= there
    assert snapshots.load_all()[-1].version == pinned[-1]


def test_a_version_without_a_snapshot_says_how_to_make_one() -> None:
    with pytest.raises(CodegenError, match=r"extract\.py > tools/codegen/adk/0\.0\.1\.json"):
        snapshots.load("0.0.1")


# --- setters -------------------------------------------------------------------------------------

OLD = snapshot("1.0.0", field("name"), field("gone", "bool"), field("plan", "Plan | None"))
NEW = snapshot("2.0.0", field("name"), field("plan", "Plan | None"), field("fast", "bool"))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy for the two versions above."""
    monkeypatch.setattr(policy, "OWN", {"name": "named"})
    monkeypatch.setattr(policy, "NONE", {})
    setters = {
        "gone": Setter("Set what is gone.", "value", "A flag."),
        "plan": Setter("Plan.", "plan", "A plan.", instead="write a >> b"),
        "fast": Setter("Make haste.", "value", "A flag."),
    }
    monkeypatch.setattr(policy, "SETTERS", setters)
    types = {
        "bool": Taken("bool", "as_flag"),
        "Plan | None": Taken("Plan | None", 'optional(instance("Plan"))', (("plans", "Plan"),)),
    }
    monkeypatch.setattr(policy, "TYPES", types)


def test_a_field_is_known_by_the_versions_that_have_it() -> None:
    assert generate.known([OLD, NEW]) == {
        "fast": generate.Known("fast", "bool", "2.0.0", None),
        "gone": generate.Known("gone", "bool", "1.0.0", "1.0.0"),
        "name": generate.Known("name", "str", "1.0.0", None),
        "plan": generate.Known("plan", "Plan | None", "1.0.0", None),
    }


@pytest.mark.usefixtures("small")
def test_a_setter_says_what_it_sets_and_since_when_there_is_such_a_field() -> None:
    facts, setters = generate.modules([OLD, NEW]).values()
    tree = ast.parse(setters)
    (made,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    docs = {n.name: ast.get_docstring(n) for n in made.body if isinstance(n, ast.FunctionDef)}
    assert docs["plan"] == (
        "Plan.\n\nADK's ``plan``; only agent tools (`agent_tool`) can have it: write a >> b.\n\n"
        "Args:\n    plan: A plan."
    )
    assert "ADK's ``fast``, since google-adk 2.0.0." in (docs["fast"] or "")
    assert "ADK's ``gone``, google-adk 1.0.0 to 1.0.0." in (docs["gone"] or "")
    assert "    from plans import Plan\n" in setters
    assert "    def fast(self, value: bool = True) -> Self:\n" in setters
    assert "    def plan(self, plan: Plan | None) -> Self:\n" in setters
    assert '    "plan": "write a >> b",\n' in facts
    assert 'NEWEST: Final = "2.0.0"\n' in facts


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("table", "rows", "drop", "fault"),
    [
        ("SETTERS", {}, "fast", "LlmAgent.fast: bool (google-adk 2.0.0): say in NONE why"),
        ("TYPES", {}, "bool", "LlmAgent.fast: bool: say in TYPES how a setter takes that"),
        ("OWN", {"fast": "quick"}, None, "LlmAgent.fast stands in OWN and in SETTERS"),
        ("NONE", {"slow": "leave it out"}, None, "NONE: LlmAgent has no field 'slow'"),
    ],
)
def test_what_the_policy_does_not_say_is_named(
    monkeypatch: pytest.MonkeyPatch, table: str, rows: dict[str, str], drop: str | None, fault: str
) -> None:
    said = {**getattr(policy, table), **rows}
    if drop is not None:
        del said[drop]
    monkeypatch.setattr(policy, table, said)
    with pytest.raises(CodegenError) as caught:
        generate.modules([OLD, NEW])
    assert fault in str(caught.value)


@pytest.mark.usefixtures("small")
def test_advice_that_fits_no_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "NONE", {"slow": "x" * 100})
    later = snapshot("3.0.0", *NEW.classes["LlmAgent"].values(), field("slow"))
    with pytest.raises(CodegenError, match="too long for a line"):
        generate.modules([OLD, later])


# --- reports -------------------------------------------------------------------------------------


def test_a_report_tells_what_breaks_from_what_does_not() -> None:
    old = snapshot("1.0.0", field("a"), field("b", "int", "0"), field("c"), field("d"))
    new = snapshot(
        "1.1.0",
        field("b", "float", "1"),
        field("c"),
        field("d", old=True),
        field("e", "int", "3"),
        field("f", "int", "required"),
    )
    made = report.compare(old, new)
    rows = {
        "added": [(e.field, e.default, e.verdict) for e in made.added],
        "removed": [(e.field, e.default, e.verdict) for e in made.removed],
        "changed": [(e.field, e.what, e.old, e.new, e.verdict) for e in made.changed],
    }
    assert rows == {
        "added": [("e", "3", "auto-merge"), ("f", "required", "BREAKING")],
        "removed": [("a", "None", "BREAKING")],
        "changed": [
            ("b", "type", "int", "float", "BREAKING"),
            ("b", "default", "0", "1", "BREAKING"),
            ("d", "deprecated", False, True, "BREAKING"),
        ],
    }
    assert made.verdict == "BREAKING"
    assert made.text == (
        "google-adk 1.0.0 -> 1.1.0: BREAKING\n"
        "\nadded\n"
        "  auto-merge  LlmAgent.e: int = 3\n"
        "  BREAKING    LlmAgent.f: int\n"
        "\nremoved\n"
        "  BREAKING    LlmAgent.a: str = None\n"
        "\nchanged\n"
        "  BREAKING    LlmAgent.b, type: int -> float\n"
        "  BREAKING    LlmAgent.b, default: 0 -> 1\n"
        "  BREAKING    LlmAgent.d, deprecated: False -> True\n"
    )


def test_what_is_only_added_needs_no_review() -> None:
    made = report.compare(snapshot("1.0.0"), snapshot("1.1.0", field("e")))
    assert made.verdict == "auto-merge"
    same = report.compare(NEW, NEW)
    assert (same.verdict, same.text) == ("auto-merge", "google-adk 2.0.0 -> 2.0.0: auto-merge\n")


def test_a_model_that_comes_or_goes_comes_or_goes_with_its_fields() -> None:
    made = report.compare(
        snapshot("1", field("x"), model="Old"), snapshot("2", field("x"), model="New")
    )
    assert [str(each) for each in made.added] == ["New.x: str = None"]
    assert [str(each) for each in made.removed] == ["Old.x: str = None"]


def test_a_report_is_saved_for_programs_and_for_people(tmp_path: Path) -> None:
    made = report.compare(OLD, NEW)
    paths = made.save(tmp_path / "reports")
    assert [path.name for path in paths] == ["ir_diff_2.0.0.json", "ir_diff_2.0.0.txt"]
    data = json.loads(paths[0].read_text("utf-8"))
    assert (data["adk_version"], data["since"], data["verdict"]) == ("2.0.0", "1.0.0", "BREAKING")
    assert [each["field"] for each in data["added"]] == ["fast"]
    assert [each["field"] for each in data["removed"]] == ["gone"]
    assert data["changed"] == []
    assert paths[1].read_text("utf-8") == made.text


# --- the program ---------------------------------------------------------------------------------


def test_what_is_checked_in_is_what_the_program_writes(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--check"]) == 0, capsys.readouterr().out


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another place for what is written."""
    monkeypatch.setattr(cli, "_ROOT", tmp_path)
    monkeypatch.setattr(generate, "CORE", tmp_path)
    monkeypatch.setattr(cli, "REPORTS", tmp_path / "reports")
    return tmp_path


def test_it_writes_what_it_checks(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--check"]) == 1
    assert "out of date: _adk_fields.py" in capsys.readouterr().out
    assert cli.main([]) == 0
    assert "written: _adk_fields.py" in capsys.readouterr().out
    assert cli.main(["--check"]) == 0
    assert capsys.readouterr().out == "facts, setters and reports agree with the snapshots of ADK\n"
    assert cli.main([]) == 0
    assert capsys.readouterr().out == ""
    names = sorted(path.name for path in (elsewhere / "reports").iterdir())
    assert names == [
        f"ir_diff_{v}.{end}" for v in snapshots.pinned()[1:] for end in ("json", "txt")
    ]


def test_a_report_that_is_wrong_or_too_many_is_out_of_date(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main([])
    (first, *_) = sorted((elsewhere / "reports").iterdir())
    first.write_text("edited", "utf-8")
    extra = elsewhere / "reports" / "ir_diff_0.0.1.txt"
    extra.write_text("of another time", "utf-8")
    capsys.readouterr()
    assert cli.main(["--check"]) == 1
    printed = capsys.readouterr().out
    assert f"out of date: {first.relative_to(elsewhere)}" in printed
    assert f"out of date: {extra.relative_to(elsewhere)}" in printed
    cli.main([])
    assert not extra.exists()
    assert cli.main(["--check"]) == 0


def test_it_shows_the_difference_between_two_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["diff", "1.39.1", "2.13.0"]) == 0
    printed = capsys.readouterr().out
    assert "auto-merge  LlmAgent.timeout: float | None = None" in printed
    assert cli.main(["diff", "1.39.1", "2.13.0", "--to", str(tmp_path)]) == 0
    assert (tmp_path / "ir_diff_2.13.0.txt").read_text("utf-8") == printed


def test_an_unknown_version_is_an_error_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diff", "0.0.1", "2.13.0"]) == 1
    assert "there is no snapshot of google-adk 0.0.1" in capsys.readouterr().err


def test_the_description_needs_nothing_of_ours() -> None:
    """It runs in environments that have google-adk and nothing else."""
    tree = ast.parse((snapshots.HERE / "extract.py").read_text("utf-8"))
    imported = {
        alias.name if isinstance(node, ast.Import) else node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    tops = {name.partition(".")[0] for name in imported}
    assert tops - sys.stdlib_module_names == {"google", "pydantic", "pydantic_core"}
