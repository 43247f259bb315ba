"""What is meant to be so, how bad findings are, and what is known of state around a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

import pytest

from adk_fluent import Agent, Pipeline, Route, S, race, transfer
from adk_fluent.contracts import (
    ContractReport,
    Graph,
    Severity,
    check_all,
    check_contracts,
    check_dataflow_contracts,
    check_runs,
    check_type_contracts,
)
from adk_fluent.errors import UnknownNameError, UsageError
from adk_fluent.ir import (
    AgentNode,
    AppNode,
    Contract,
    MiddlewareNode,
    Ref,
    SequenceNode,
    StateFieldRef,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adk_fluent.builders import Builder
    from adk_fluent.contracts import Diagnostic


class Notes:
    """What core knows of a state schema."""

    __state_fields__: ClassVar[Mapping[str, StateFieldRef]] = {"draft": StateFieldRef("draft", str)}

    @classmethod
    def __state_encode__(cls, delta: Mapping[str, Any], where: str, /) -> dict[str, Any]:
        return dict(delta)


def writer(key: str = "draft", name: str = "writer") -> Agent:
    return Agent(name).instruct("Write.").writes(key)


def reader(text: str = "{draft}", name: str = "reader") -> Agent:
    return Agent(name).instruct(text)


def codes(found: Iterable[Diagnostic]) -> list[str]:
    return [each.code for each in found]


class TestAllow:
    def test_a_finding_is_allowed_at_its_own_node(self) -> None:
        report = (writer().allow("FLW008") >> Agent("last")).check()
        assert codes(report) == []
        assert codes(report.allowed) == ["FLW008"]
        assert "FLW008" not in report.render()
        assert [each["code"] for each in report.to_dict()["allowed"]] == ["FLW008"]

    def test_other_findings_there_are_not(self) -> None:
        report = (reader().writes("note").allow("FLW008") >> Agent("last")).check()
        assert codes(report) == ["FLW001"]
        assert codes(report.allowed) == ["FLW008"]

    def test_nor_is_the_same_finding_elsewhere(self) -> None:
        report = (writer().allow("FLW008") >> writer("note", "other") >> Agent("last")).check()
        assert [each.node for each in report] == ["other"]

    def test_what_is_around_allows_for_all_in_it(self) -> None:
        part = Pipeline("part", writer(), Pipeline("inner", writer("note", "other")))
        report = (part.allow("FLW008") >> Agent("last")).check()
        assert codes(report) == []
        assert sorted(each.node for each in report.allowed) == ["other", "writer"]

    def test_several_codes_and_several_calls_add_up(self) -> None:
        report = reader().writes("note").allow("FLW008").allow("FLW001", "FLW002").check()
        assert codes(report) == []
        assert sorted(codes(report.allowed)) == ["FLW001", "FLW008"]

    def test_it_holds_for_what_stands_around_a_part(self) -> None:
        meant = AgentNode("a", contract=Contract(allow=("FLW008",)))
        around = MiddlewareNode("m", meant, (Ref(object()),))
        other = MiddlewareNode("o", AgentNode("b"), (Ref(object()),))
        graph = Graph(AppNode("app", SequenceNode("s", (around, other))))
        assert [bool(graph.allowed(each)) for each in (around, other, graph.root)] == [1, 0, 0]
        graph = Graph(AppNode("app", meant))
        assert graph.allowed(graph.root) == {"FLW008"}

    def test_a_part_that_stands_in_two_places_needs_it_in_both(self) -> None:
        shared = AgentNode("writer", writes_keys=(StateFieldRef("draft"),))
        meant = Contract(allow=("FLW008",))
        allowing = SequenceNode("a", (shared,), contract=meant)
        plain = SequenceNode("b", (shared,))
        report = check_all(SequenceNode("all", (allowing, plain)))
        assert codes(report) == ["FLW008"]
        report = check_all(SequenceNode("all", (allowing, plain.replace(contract=meant))))
        assert codes(report) == []
        assert codes(report.allowed) == ["FLW008"]

    def test_what_is_allowed_is_ok_and_still_in_doubt(self) -> None:
        broken = Pipeline("p", reader())
        assert not broken.check().ok
        report = broken.allow("FLW001").check()
        assert report.ok
        assert not report.proven

    def test_what_is_in_no_doubt_may_be_allowed_and_proven(self) -> None:
        report = (writer().allow("FLW008") >> Agent("last")).check()
        assert report.proven

    def test_the_whole_need_not_be_the_root(self) -> None:
        inner = Pipeline("p", reader()).allow("FLW001").to_ir()
        for root in (AppNode("app", inner), MiddlewareNode("m", inner, (Ref(1),))):
            assert "FLW001" not in codes(check_all(root))

    def test_it_does_not_compile_what_fails_unless_it_is_allowed(self) -> None:
        broken = Pipeline("p", reader()).contract(inputs=[])
        assert codes(check_runs(broken.to_ir())) == ["FLW001"]
        assert check_runs(broken.allow("FLW001").to_ir()).ok

    @pytest.mark.parametrize("code", ["flw008", "FLW8", "", 8, None])
    def test_what_is_no_code_is_refused(self, code: Any) -> None:
        with pytest.raises(UsageError, match="takes codes of findings"):
            Agent("a").allow(code)

    def test_none_at_all_is_refused(self) -> None:
        with pytest.raises(UsageError):
            Agent("a").allow()


class TestSeverity:
    PIPELINE = Route("k").eq(1, writer()) >> reader()

    def check(self, **options: Any) -> ContractReport:
        return check_all(self.PIPELINE, inputs=["k"], **options)

    def test_as_checks_say(self) -> None:
        assert [(d.code, d.severity) for d in self.check()] == [
            ("FLW002", Severity.WARNING),
            ("FLW112", Severity.INFO),
        ]

    @pytest.mark.parametrize("level", ["error", Severity.ERROR])
    def test_by_name_or_member(self, level: Any) -> None:
        report = self.check(severity={"FLW002": level})
        assert codes(report.errors) == ["FLW002"]
        assert codes(report) == ["FLW002", "FLW112"]
        assert not report.ok

    def test_the_worst_comes_first(self) -> None:
        report = self.check(severity={"FLW002": "info", "FLW112": "warning"})
        assert codes(report) == ["FLW112", "FLW002"]

    def test_off_leaves_a_finding_out_but_not_the_doubt(self) -> None:
        report = self.check(severity={"FLW002": "off", "FLW112": "off"})
        assert codes(report) == []
        assert codes(report.allowed) == ["FLW002", "FLW112"]
        assert report.ok
        assert not report.proven

    def test_an_error_made_a_warning_stops_nobody(self) -> None:
        report = check_all(reader(), severity={"FLW001": "warning"})
        report.raise_for_errors()
        assert codes(report.warnings) == ["FLW001"]
        assert not report.proven

    def test_strict_makes_errors_of_warnings_alone(self) -> None:
        report = self.check(strict=True)
        assert [(d.code, d.severity) for d in report] == [
            ("FLW002", Severity.ERROR),
            ("FLW112", Severity.INFO),
        ]

    def test_what_is_said_of_a_code_wins_over_strict(self) -> None:
        report = self.check(strict=True, severity={"FLW002": "warning"})
        assert codes(report.errors) == []
        assert codes(report.warnings) == ["FLW002"]

    def test_what_is_allowed_stays_allowed(self) -> None:
        pipeline = Route("k").eq(1, writer()) >> reader().allow("FLW002")
        report = check_all(pipeline, inputs=["k"], severity={"FLW002": "error"}, strict=True)
        assert codes(report.errors) == []
        assert codes(report.allowed) == ["FLW002"]

    def test_the_rest_of_the_report_stays(self) -> None:
        plain, judged = self.check(), self.check(strict=True)
        assert judged.checked == plain.checked
        assert judged.opaque == plain.opaque
        assert judged.absent == plain.absent

    def test_a_code_that_there_is_not_is_refused(self) -> None:
        with pytest.raises(UnknownNameError) as caught:
            self.check(severity={"FLW1120": "error"})
        assert caught.value.nearest == "FLW112"

    @pytest.mark.parametrize("level", ["fatal", "", 3, None])
    def test_a_severity_that_there_is_not_is_refused(self, level: Any) -> None:
        with pytest.raises(UsageError, match="no such severity"):
            self.check(severity={"FLW002": level})


class TestBoundary:
    @pytest.mark.parametrize(
        "inputs", [["draft"], ("draft",), {"draft": str}, [StateFieldRef("draft")], iter(["draft"])]
    )
    def test_an_input_has_a_value(self, inputs: Any) -> None:
        assert codes(check_all(reader(), inputs=inputs)) == []

    def test_a_mapping_gives_types(self) -> None:
        by_size = Route("size").gt(3, reader("a", "a")).otherwise(reader("b", "b"))
        assert codes(check_all(by_size, inputs={"size": int})) == []
        assert codes(check_all(by_size, inputs={"size": None})) == []
        (found,) = check_all(by_size, inputs={"size": str})
        assert found.code == "FLW003"
        assert found.message == "route `route` decides by `size` as a number, but the input is str"

    def test_they_add_to_what_the_pipeline_declares(self) -> None:
        both = reader("{draft} {note}").contract(inputs=["draft"])
        assert codes(check_all(both)) == ["FLW001"]
        assert codes(check_all(both, inputs=["note"])) == []

    def test_what_is_given_wins_over_what_is_declared(self) -> None:
        by_size = Route("size").gt(3, reader("a", "a")).otherwise(reader("b", "b"))
        by_size.contract(inputs=[StateFieldRef("size", str)])
        assert codes(check_all(by_size)) == ["FLW003"]
        assert codes(check_all(by_size, inputs={"size": float})) == []

    def test_outputs_must_have_a_value(self) -> None:
        report = check_all(writer(), outputs=["draft", "note"])
        assert [(d.code, d.node) for d in report] == [("FLW001", "writer")]
        assert codes(check_all(writer(), outputs=["draft"])) == []

    def test_outputs_make_warnings_of_what_nobody_reads(self) -> None:
        assert [d.severity for d in check_all(writer())] == [Severity.INFO]
        assert [d.severity for d in check_all(writer(), outputs=[])] == [Severity.WARNING]

    def test_a_schema_holds_for_all(self) -> None:
        pipeline = writer("note") >> reader("{note}")
        assert codes(check_all(pipeline, cast("Any", Notes))) == ["FLW009", "FLW009"]
        assert codes(check_all(writer() >> reader(), cast("Any", Notes))) == []


class TestOthers:
    def test_check_contracts_finds_what_is_wrong_with_state(self) -> None:
        found = check_contracts(reader() >> Agent("last"))
        assert codes(found) == ["FLW001"]
        assert isinstance(found, list)

    def test_check_contracts_is_about_state_and_streams_alone(self) -> None:
        pipeline = Route("k").eq(1, writer()) >> reader()
        assert "FLW112" in codes(pipeline.check())
        assert codes(check_contracts(pipeline)) == ["FLW001", "FLW002"]
        streaming = writer("k").stream_to("token") >> Route("k").eq(1, reader("a", "a"))
        assert codes(check_contracts(streaming)) == ["FLW201"]

    def test_check_contracts_takes_a_schema(self) -> None:
        pipeline = writer("note") >> reader("{note}")
        assert codes(check_contracts(pipeline, cast("Any", Notes))) == ["FLW009", "FLW009"]
        with pytest.raises(UsageError, match="takes a state schema"):
            check_contracts(pipeline, cast("Any", int))

    def test_the_two_checks_of_state_share_the_work(self) -> None:
        pipeline = (
            Agent("a").writes("n") >> Route("n").gt(2, reader("{m}")).otherwise(S.set(x=1))
        ).to_ir()
        assert codes(check_dataflow_contracts(pipeline)) == ["FLW001", "FLW008"]
        assert codes(check_type_contracts(pipeline)) == ["FLW003"]

    @pytest.mark.parametrize(
        "check", [check_contracts, check_dataflow_contracts, check_type_contracts]
    )
    def test_only_pipelines_are_checked(self, check: Any) -> None:
        with pytest.raises(UsageError):
            check(42)


class TestRuns:
    def test_any_key_may_have_a_value_and_need_not(self) -> None:
        report = check_runs(reader().to_ir())
        assert codes(report.warnings) == ["FLW002"]
        assert report.ok

    def test_unless_the_pipeline_says_what_it_begins_with(self) -> None:
        assert codes(check_runs(reader().contract(inputs=[]).to_ir()).errors) == ["FLW001"]
        assert codes(check_runs(reader().contract(inputs=["draft"]).to_ir())) == []

    def test_outputs_alone_close_nothing(self) -> None:
        assert check_runs(reader().contract(outputs=[]).to_ir()).ok

    def test_what_an_item_or_a_removal_leaves_is_in_doubt_alone(self) -> None:
        report = check_runs((S.drop("draft") >> reader()).to_ir())
        assert codes(report.warnings) == ["FLW001"]
        assert check_all(S.drop("draft") >> reader()).ok is False

    def test_types_are_those_of_the_pipeline(self) -> None:
        by_size = Route("size").gt(3, reader("a", "a")).otherwise(reader("b", "b"))
        assert codes(check_runs((Agent("w").writes("size") >> by_size).to_ir())) == ["FLW003"]
        assert codes(check_runs(by_size.to_ir())) == []

    def test_it_is_about_runs_alone(self) -> None:
        pipeline = Pipeline("p", writer(), Route("k").eq(1, Agent("a")), transfer("a"))
        assert codes(pipeline.check())
        assert codes(check_runs(pipeline.to_ir())) == []

    @pytest.mark.parametrize(
        "part",
        [
            reader() // Agent("b"),  # the other attempt makes good for it
            race(reader(), Agent("b")),
            Route("draft").eq(1, Agent("b")).otherwise(Agent("c")),  # takes the otherwise
            Agent("a").contract(inputs=["draft"]),  # of whole runs only
            Agent("a").contract(outputs=["draft"]),
        ],
    )
    def test_what_no_run_fails_at_is_no_error(self, part: Builder) -> None:
        pipeline = Pipeline("p", writer("k", "w"), part).contract(inputs=[])
        assert codes(check_all(pipeline).errors) == ["FLW001"]
        assert check_runs(pipeline.to_ir()).ok
        assert codes(check_runs(pipeline.to_ir()).warnings) == ["FLW001"]

    def test_the_last_attempt_matters(self) -> None:
        pipeline = (writer("k", "w") // reader()).contract(inputs=[])
        assert codes(check_runs(pipeline.to_ir()).errors) == ["FLW001"]

    def test_what_is_meant_to_be_so_is_heeded(self) -> None:
        report = check_runs(reader().contract(inputs=[]).allow("FLW001").to_ir())
        assert report.ok
        assert codes(report.allowed) == ["FLW001"]
