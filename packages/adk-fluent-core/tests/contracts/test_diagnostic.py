from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest

from adk_fluent import contracts
from adk_fluent.contracts import (
    CODES,
    Code,
    Diagnostic,
    DuplicateName,
    Graph,
    InvalidName,
    Related,
    RouteWithoutDefault,
    Severity,
)
from adk_fluent.ir import AgentNode, Location, SequenceNode

HERE = Location("app.py", 3)


class Handmade(Diagnostic, code="ACME001", severity=Severity.WARNING):
    """Somebody's own finding.

    With more to say below.
    """


class TestSeverity:
    def test_is_ordered_and_printed_as_a_word(self) -> None:
        assert sorted(Severity) == [Severity.INFO, Severity.WARNING, Severity.ERROR]
        assert [str(each) for each in Severity] == ["info", "warning", "error"]


class TestCodes:
    def test_each_row_describes_the_class_of_that_name(self) -> None:
        for code, row in CODES.items():
            if code.startswith("FLW"):
                issue: type[Diagnostic] = getattr(contracts, row.name)
                assert row == Code(code, issue.__name__, row.severity, issue.title)
                assert issue.code == code
                assert row.name in contracts.__all__
                assert issue.__doc__ is not None
                assert row.explanation == issue.__doc__.splitlines()[0]
                assert row.explanation.endswith(".")

    def test_are_stable(self) -> None:
        ours = {row.code: row.name for row in CODES.values() if row.code.startswith("FLW")}
        assert ours == {
            "FLW001": "ReadBeforeWrite",
            "FLW002": "MaybeUndefined",
            "FLW003": "TypeMismatch",
            "FLW004": "ReadRace",
            "FLW005": "ScopeMismatch",
            "FLW006": "ExternalState",
            "FLW007": "WriteRace",
            "FLW008": "DeadState",
            "FLW009": "SchemaViolation",
            "FLW101": "InvalidName",
            "FLW102": "DuplicateName",
            "FLW103": "EmptyComposite",
            "FLW104": "SingleAlternative",
            "FLW105": "MisplacedNode",
            "FLW106": "InvalidValue",
            "FLW107": "IllegalNode",
            "FLW111": "LoopWithoutExit",
            "FLW112": "RouteWithoutDefault",
            "FLW113": "UnreachableBranch",
            "FLW114": "ShadowedKey",
            "FLW115": "ConflictingReducers",
            "FLW116": "MisspeltKey",
            "FLW121": "UnknownTransferTarget",
            "FLW122": "AmbiguousTransferTarget",
            "FLW123": "TransferCycle",
            "FLW131": "GateInRace",
            "FLW132": "IrreversibleWrite",
            "FLW133": "DuplicateGate",
            "FLW141": "DuplicateTool",
            "FLW142": "InertPlaceholder",
            "FLW143": "UnreadableAnswer",
            "FLW144": "UntellableParameter",
            "FLW151": "DuplicateResource",
            "FLW152": "DuplicateMiddleware",
            "FLW153": "UnusableMiddleware",
            "FLW161": "UncallableFunction",
            "FLW201": "StreamingRouteConflict",
            "FLW202": "UnfinishedRead",
            "FLW203": "HeldStream",
            "FLW204": "DiscardedStream",
            "FLW205": "StructuredStream",
            "FLW206": "UnseenStream",
            "FLW207": "InertEdge",
            "FLW208": "LiveEdge",
            "FLW301": "ModalityMismatch",
            "FLW302": "UnsupportedModality",
            "FLW303": "UnrequestedModality",
            "FLW304": "MissingOutputSchema",
            "FLW305": "OversizedContent",
            "FLW901": "LayerAbsent",
        }

    def test_cannot_be_changed_from_outside(self) -> None:
        with pytest.raises(TypeError):
            CODES["X001"] = CODES["FLW101"]  # type: ignore[index]  # pyright: ignore[reportIndexIssue]


class TestOwnFindings:
    def test_a_subclass_gets_its_row(self) -> None:
        assert CODES["ACME001"] == Code(
            "ACME001", "Handmade", Severity.WARNING, "Somebody's own finding."
        )

    def test_a_subclass_without_docstring_is_called_by_its_name(self) -> None:
        made = type("Silent", (Diagnostic,), {}, code="ACME002", severity=Severity.INFO)
        assert CODES["ACME002"].explanation == made.__name__ == "Silent"

    @pytest.mark.parametrize(
        ("code", "why"),
        [
            ("acme1", "code 'acme1' is not a prefix and 3 digits, as in 'ACME001'"),
            ("ACME0011", "code 'ACME0011' is not a prefix and 3 digits, as in 'ACME001'"),
            ("FLW777", "codes FLW... are adk-fluent's; choose another prefix"),
            ("ACME001", f"code ACME001 belongs to {__name__}.Handmade"),
        ],
    )
    def test_a_code_of_another_is_refused(self, code: str, why: str) -> None:
        with pytest.raises(TypeError) as error:
            type("Mine", (Diagnostic,), {}, code=code, severity=Severity.INFO)
        assert str(error.value) == f"Mine: {why}"

    def test_defining_a_finding_again_replaces_it(self) -> None:
        body = {"__module__": "notebook", "__qualname__": "Again"}
        for severity in (Severity.INFO, Severity.ERROR):
            made = type("Again", (Diagnostic,), body, code="ACME003", severity=severity)
            assert CODES["ACME003"].severity is severity
            assert made(message="x").severity is severity

    def test_the_base_class_is_no_finding(self) -> None:
        with pytest.raises(TypeError, match="subclass it with code= and severity="):
            Diagnostic(message="x")


class TestDiagnostic:
    def test_at_fills_in_the_node(self) -> None:
        node = AgentNode("a", location=HERE)
        graph = Graph(SequenceNode("flow", (node,)))
        related = [Related.at(node, "see")]
        made = Handmade.at(graph, node, "odd", help="change it", related=related)
        assert made == Handmade(
            message="odd",
            node="a",
            kind="AgentNode",
            path="flow > a",
            location=HERE,
            related=(Related("see", "a", HERE),),
            help="change it",
            severity=Severity.WARNING,
        )
        assert Handmade.at(graph, node, "odd", severity=Severity.ERROR).severity is Severity.ERROR

    def test_has_the_severity_of_its_class_unless_told(self) -> None:
        assert RouteWithoutDefault(message="x").severity is Severity.INFO
        assert InvalidName(message="x", severity=Severity.INFO).severity is Severity.INFO

    def test_is_frozen_and_hashable_and_equal_by_value(self) -> None:
        one, same = InvalidName(message="x"), InvalidName(message="x")
        assert one == same
        assert len({one, same}) == 1
        assert one != DuplicateName(message="x")
        with pytest.raises(dataclasses.FrozenInstanceError):
            one.message = "y"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]

    def test_survives_pickle_and_replace(self) -> None:
        made = Handmade(message="x", location=HERE, related=(Related("r", "n", HERE),))
        assert pickle.loads(pickle.dumps(made)) == made
        assert dataclasses.replace(made, severity=Severity.INFO).severity is Severity.INFO

    @pytest.mark.parametrize(
        ("fields", "text"),
        [
            ({}, "warning[ACME001]: odd"),
            ({"node": "a"}, "warning[ACME001]: odd (a)"),
            ({"node": "a", "path": "f > a"}, "warning[ACME001]: odd (f > a)"),
            ({"path": "f > a", "location": HERE}, "warning[ACME001]: odd (app.py:3)"),
        ],
    )
    def test_prints_in_one_line(self, fields: dict[str, Any], text: str) -> None:
        assert str(Handmade(message="odd", **fields)) == text

    def test_to_dict_has_everything(self) -> None:
        made = Handmade(
            message="odd",
            node="a",
            kind="AgentNode",
            path="f > a",
            location=HERE,
            related=(Related("r", "n", HERE), Related("s")),
            help="h",
        )
        place = {"file": "app.py", "line": 3}
        assert made.to_dict() == {
            "code": "ACME001",
            "name": "Handmade",
            "severity": "warning",
            "title": "Somebody's own finding.",
            "message": "odd",
            "node": "a",
            "kind": "AgentNode",
            "path": "f > a",
            "location": place,
            "related": [
                {"message": "r", "node": "n", "location": place},
                {"message": "s", "node": None, "location": None},
            ],
            "help": "h",
        }
        assert InvalidName(message="x").to_dict()["location"] is None
