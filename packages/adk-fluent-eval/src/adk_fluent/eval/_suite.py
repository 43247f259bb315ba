"""A suite: cases, what they are run against, and what they have to reach."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack, aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._words import describe
from adk_fluent.eval._cases._case import FluentCase, check_fields
from adk_fluent.eval._cases._simulation import UserSimulation, player_of
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._gate import Gate
from adk_fluent.eval._metrics import JUDGE_SAMPLES
from adk_fluent.eval._report._report import FluentEvalReport
from adk_fluent.eval._report._words import plural
from adk_fluent.eval._running._options import RunOptions, check_options, whole

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
    from os import PathLike
    from typing import Self, Unpack

    import pytest
    from google.adk.evaluation.eval_config import EvalConfig
    from google.adk.evaluation.eval_set import EvalSet
    from google.adk.models import BaseLlm
    from google.genai.types import Content, Part

    from adk_fluent.eval._cases._case import CaseFields, Turn
    from adk_fluent.eval._cases._judge import FluentJudge
    from adk_fluent.eval._files._content import SuiteData
    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._report._matrix import ModelMatrix
    from adk_fluent.eval._running._prepared_adk import Prepared

_PASSED_ALL: Final = Gate()


class FluentEvalSuite:
    """Cases, what they are run against, and what they have to reach.

    Args:
        name: The suite's name.
        pipeline: What is evaluated: a builder, IR, an agent, a Workflow or an App of ADK's, or a
            function without arguments that makes one, for each run of a case anew.
        cases: The cases.
        metrics: Metrics beside what cases expect themselves: `PrebuiltMetrics`, or their names.
        thresholds: Metric to the score that it has to reach.
        num_runs: How often each case is run.
        custom_judges: Metrics of your own.
        simulation: Who plays the user of cases that say one turn, where they do not say.
        judge_model: The model that judges, by name or as a BaseLlm.
        judge_samples: How often it is asked about each turn.
        gate: What the suite has to reach.
        description: What it is for.
        app_name: The app that files for ADK name; None leaves it to the file's folder.

    Raises:
        EvalError: Something of it has no meaning.
    """

    def __init__(  # noqa: PLR0917  # in the order of the specification
        self,
        name: str = "suite",
        pipeline: Any = None,
        cases: Iterable[FluentCase] = (),
        metrics: Iterable[str] = (),
        thresholds: Mapping[str, float] | None = None,
        num_runs: int = 1,
        custom_judges: Iterable[FluentJudge] = (),
        simulation: UserSimulation | None = None,
        judge_model: str | BaseLlm | None = None,
        gate: Gate = _PASSED_ALL,
        *,
        judge_samples: int = JUDGE_SAMPLES,
        description: str = "",
        app_name: str | None = None,
    ) -> None:
        if not isinstance(name, str) or not name.strip():  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
            raise EvalError("a suite has no name", found=describe(name))
        _check_kind("gate", gate, Gate)
        if simulation is not None:
            _check_kind("simulation", simulation, UserSimulation)
        if thresholds is not None and not isinstance(thresholds, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
            raise EvalError(
                "thresholds= is no mapping of metrics to scores", found=describe(thresholds)
            )
        self.name = name
        self.pipeline = pipeline
        self.cases: list[FluentCase] = []
        self.metrics: tuple[str, ...] = _names_of_metrics(metrics)
        self.thresholds: dict[str, float] = {
            str(key): value for key, value in (thresholds or {}).items()
        }
        self.num_runs: int = whole("num_runs", num_runs)
        self.custom_judges: tuple[FluentJudge, ...] = _judges(custom_judges)
        self.simulation = simulation
        self.judge_model = judge_model
        self.judge_samples: int = whole("judge_samples", judge_samples)
        self.gate = gate
        self.description = description
        self.app_name = app_name
        self.add(*_listed("cases", cases))

    def add(self, *cases: FluentCase) -> Self:
        """Add cases.

        Raises:
            EvalError: One is no case, is there already, or has the id of another.
        """
        known = {case.name: case for case in self.cases}
        for case in cases:
            _check_kind("cases", case, FluentCase)
            other = known.get(case.name)
            if other is case:
                raise case.error(
                    "the suite has it twice", help="to run each case twice: num_runs=2"
                )
            if other is not None:
                raise case.error(
                    f"there are two cases with the id {case.name!r}",
                    found=f"the other is at {other.place}" if other.place else None,
                    help="give each an id of its own: FluentCase(..., id='...')",
                )
            known[case.name] = case
            self.cases.append(case)
        return self

    def case(
        self,
        input: str | Turn | Content | Part | Sequence[str | Turn | Content],
        **fields: Unpack[CaseFields],
    ) -> Self:
        """Add a case; arguments as for `FluentCase`.

        Raises:
            EvalError: A case has no such field, or one of them has no meaning.
        """
        check_fields(fields)
        return self.add(FluentCase(input, **fields))

    # --- run -----------------------------------------------------------------------------------

    async def run(self, **options: Unpack[RunOptions]) -> FluentEvalReport:
        """Run the cases.

        Args:
            **options: See `RunOptions`.

        Raises:
            EvalError: Something that the suite names is not there; no model was called.
            EvalFileError: The journal cannot be read or written.
        """
        from adk_fluent.eval._running._prepared_adk import Prepared  # noqa: PLC0415  # imports ADK

        return await self._run(Prepared(self, options), options)

    async def _run(self, prepared: Prepared, options: RunOptions) -> FluentEvalReport:
        began, clock = datetime.now(UTC), time.monotonic()
        outcomes = [each async for each in prepared.outcomes()]
        schedule = prepared.schedule
        report = FluentEvalReport(
            outcomes,
            suite=self.name,
            gate=self.gate,
            metrics=self.metrics,
            engine=prepared.settings.engine,
            adk_version=prepared.adk_version,
            started_at=began,
            duration_s=time.monotonic() - clock,
            interrupted=schedule.stopped,
            notes=prepared.notes,
            baseline=options.get("baseline"),
            model=prepared.model_name,
            cases=prepared.cases,
            shard=options.get("shard"),
        )
        report.native_results.update(schedule.results)
        manager = options.get("results_manager")
        if manager is not None:
            from adk_fluent._keys import without_keys  # noqa: PLC0415  # of this alone
            from adk_fluent.eval._checks._same import told  # noqa: PLC0415  # of this alone
            from adk_fluent.eval._files._results_adk import save_with  # noqa: PLC0415  # imports ADK

            try:
                save_with(manager, report, prepared.app_name)
            except Exception as error:  # noqa: BLE001  # the results are here, and were paid for
                what = f"results_manager= has not got the results: it raised {told(error)}"
                report.notes = (*report.notes, without_keys(what))
        return report

    def run_sync(self, **options: Unpack[RunOptions]) -> FluentEvalReport:
        """Run the cases, for code that is not async; see `run`.

        Raises:
            UsageError: An event loop is running; use `run` there.
        """
        from adk_fluent.builders._execution import run_now  # noqa: PLC0415  # imports asyncio

        return run_now("run_sync", lambda: self.run(**options), instead="run")

    async def stream(self, **options: Unpack[RunOptions]) -> AsyncGenerator[CaseOutcome, None]:
        """Run the cases, and give each outcome when it is there, in that order; see `run`.

        Closing the generator ends the run.
        """
        from adk_fluent.eval._running._prepared_adk import Prepared  # noqa: PLC0415  # imports ADK

        async with aclosing(Prepared(self, options).outcomes()) as outcomes:
            async for each in outcomes:
                yield each

    async def matrix(
        self, models: Iterable[str | BaseLlm], **options: Unpack[RunOptions]
    ) -> ModelMatrix:
        """Run the cases once for each model, which answers in the place of the pipeline's own.

        Nothing is run before everything was looked at, and all journals are open.

        Args:
            models: Names of models, or BaseLlms.
            **options: See `RunOptions`. A ``journal`` is one file for each model, with the model's
                name in its own.

        Raises:
            EvalError: There is no model, or one twice, or ``model=`` is given, too; else as `run`.
        """
        from adk_fluent.eval._report._matrix import ModelMatrix  # noqa: PLC0415  # of this alone
        from adk_fluent.eval._running._names import (  # noqa: PLC0415  # of this alone
            journal_of,
            models_by_name,
        )
        from adk_fluent.eval._running._prepared_adk import Prepared  # noqa: PLC0415  # imports ADK

        options = check_options(options)  # each of the runs goes through what is given
        if (given := options.get("model")) is not None:
            raise EvalError("a matrix takes models=, and no model=", found=describe(given))
        runs: dict[str, tuple[Prepared, RunOptions]] = {}
        for name, model in models_by_name(models).items():
            own = options.copy()
            own["model"] = model
            if (journal := options.get("journal")) is not None:
                own["journal"] = journal_of(journal, name)
            runs[name] = Prepared(self, own), own
        with ExitStack() as stack:  # all are open before the first of them costs anything
            for prepared, _ in runs.values():
                if prepared.journal is not None:
                    stack.enter_context(prepared.journal)
            return ModelMatrix({name: await self._run(*each) for name, each in runs.items()})

    def check(self, **options: Unpack[RunOptions]) -> None:
        """Look at everything that the suite names, without running anything.

        Raises:
            EvalError: Something is not there.
            EvalFileError: The journal cannot be gone on with.
        """
        from adk_fluent.eval._running._prepared_adk import Prepared  # noqa: PLC0415  # imports ADK

        journal = Prepared(self, options).journal
        if journal is not None:
            journal.check()

    def to_pytest(self, **options: Unpack[RunOptions]) -> pytest.MarkDecorator:
        """A mark that makes a test of pytest's into one for each run of each case.

        The test takes what came of the case as `adk_eval`, and fails where it did not pass::

            @suite.to_pytest()
            def test_desk(adk_eval):
                adk_eval.assert_passed()

        Args:
            **options: See `RunOptions`; without those that pytest has its own ways for.

        Raises:
            EvalError: An option has no meaning for tests.
        """
        from adk_fluent.eval._items._mark import mark_of  # noqa: PLC0415  # of tests alone

        return mark_of(self, options)

    # --- files ---------------------------------------------------------------------------------

    @classmethod
    def _of(cls, data: SuiteData, pipeline: Any, more: dict[str, Any]) -> Self:
        fields: dict[str, Any] = {
            "name": data.name,
            "metrics": data.metrics,
            "thresholds": data.thresholds,
            "num_runs": data.num_runs,
            "description": data.description,
            "app_name": data.app_name,
            "judge_model": data.judge_model,
            "judge_samples": data.judge_samples,
        }
        return cls(pipeline=pipeline, cases=data.cases, **(fields | more))

    @classmethod
    def from_eval_set(
        cls,
        source: str | PathLike[str] | EvalSet,
        pipeline: Any = None,
        *,
        registry: Mapping[str, Callable[..., Any]] | None = None,
        config_path: str | PathLike[str] | None = None,
        **more: Any,
    ) -> Self:
        """A suite from ADK's eval set: an ``.evalset.json``, a ``.test.json``, or the object.

        Args:
            source: The file, or the set.
            pipeline: What is evaluated.
            registry: Name to function, for what a file can only name.
            config_path: ADK's configuration; None is the ``test_config.json`` beside the file, if
                there is one.
            **more: Other arguments of the suite; they win over the file's.

        Raises:
            EvalFileError: The file is not there, broken, or of a newer version.
        """
        from adk_fluent.eval._files._evalset_adk import read_eval_set  # noqa: PLC0415  # imports ADK

        data = read_eval_set(source, registry, config_path=config_path)
        return cls._of(data, pipeline, more)

    @classmethod
    def from_yaml(
        cls,
        path: str | PathLike[str],
        pipeline: Any = None,
        *,
        registry: Mapping[str, Callable[..., Any]] | None = None,
        **more: Any,
    ) -> Self:
        """A suite from YAML; arguments and errors as for `from_eval_set`."""
        from adk_fluent.eval._files._yaml import load_yaml  # noqa: PLC0415  # imports yaml

        return cls._of(load_yaml(path, registry), pipeline, more)

    @classmethod
    def from_csv(
        cls,
        path: str | PathLike[str],
        pipeline: Any = None,
        *,
        map: Mapping[str, str] | None = None,
        registry: Mapping[str, Callable[..., Any]] | None = None,
        **more: Any,
    ) -> Self:
        """A suite from a table, a case to a row; arguments and errors as for `from_eval_set`.

        Args:
            path: The file.
            pipeline: What is evaluated.
            map: Column to the field that it is, where their names differ.
            registry: Name to function.
            **more: Other arguments of the suite.
        """
        from adk_fluent.eval._files._table import load_csv  # noqa: PLC0415  # imports csv

        return cls._of(load_csv(path, map, registry), pipeline, more)

    @classmethod
    def from_jsonl(
        cls,
        path: str | PathLike[str],
        pipeline: Any = None,
        *,
        map: Mapping[str, str] | None = None,
        registry: Mapping[str, Callable[..., Any]] | None = None,
        **more: Any,
    ) -> Self:
        """A suite from JSON lines, a case to a line; arguments and errors as for `from_csv`."""
        from adk_fluent.eval._files._table import load_jsonl  # noqa: PLC0415  # imports csv

        return cls._of(load_jsonl(path, map, registry), pipeline, more)

    def to_data(self) -> SuiteData:
        """The suite without its pipeline, functions that judge and gate, as files hold it.

        A model that judges is in it if it was given by its name.

        A user whom the suite plays is put into each case.
        """
        from adk_fluent.eval._files._content import SuiteData  # noqa: PLC0415  # of files alone

        return SuiteData(
            name=self.name,
            cases=tuple(
                replace(case, simulation=played)
                if (played := player_of(case, self.simulation)) is not case.simulation
                else case
                for case in self.cases
            ),
            metrics=self.metrics,
            thresholds=dict(self.thresholds),
            num_runs=self.num_runs,
            description=self.description,
            app_name=self.app_name,
            judge_model=self.judge_model if isinstance(self.judge_model, str) else None,
            judge_samples=self.judge_samples,
        )

    def to_eval_set(self) -> EvalSet:
        """The suite as ADK's eval set, without what ADK has no field for.

        Raises:
            EvalError: A case holds something that no file can.
        """
        from adk_fluent.eval._files._evalset_adk import to_eval_set  # noqa: PLC0415  # imports ADK

        return to_eval_set(self.to_data())

    def to_eval_config(self) -> EvalConfig:
        """The suite's metrics and thresholds as ADK's configuration."""
        from adk_fluent.eval._files._evalset_adk import to_eval_config  # noqa: PLC0415  # imports ADK

        return to_eval_config(self.to_data())

    def to_eval_set_file(
        self,
        path: str | PathLike[str],
        *,
        config_path: str | PathLike[str] | None = None,
        app_name: str | None = None,
    ) -> None:
        """Write an ``.evalset.json``, which ``adk eval`` and ``adk web`` read.

        What ADK has no field for stands in a block of its own, which ADK passes over.

        Args:
            path: The file.
            config_path: Another file for ADK's configuration; None writes none.
            app_name: The app that the file names; None is the suite's.

        Raises:
            EvalError: A case holds something that no file can, such as a lambda.
            EvalFileError: It cannot be written; another one of that name is still there.
        """
        from adk_fluent.eval._files._evalset_adk import write_eval_set  # noqa: PLC0415  # imports ADK

        write_eval_set(self.to_data(), path, config_path=config_path, app_name=app_name)

    def to_yaml(self, path: str | PathLike[str]) -> None:
        """Write the suite as YAML; errors as for `to_eval_set_file`."""
        from adk_fluent.eval._files._yaml import dump_yaml  # noqa: PLC0415  # imports yaml
        from adk_fluent.eval._write import write_whole  # noqa: PLC0415  # of files alone

        write_whole(path, [dump_yaml(self.to_data())])

    def to_jsonl(self, path: str | PathLike[str]) -> None:
        """Write the cases as JSON lines, a case to a line; errors as for `to_eval_set_file`."""
        from adk_fluent.eval._files._table import dump_jsonl  # noqa: PLC0415  # imports csv
        from adk_fluent.eval._write import write_whole  # noqa: PLC0415  # of files alone

        write_whole(path, [dump_jsonl(self.to_data())])

    def __repr__(self) -> str:
        cases, runs = plural(len(self.cases), "case"), plural(self.num_runs, "run")
        return f"FluentEvalSuite({self.name!r}, {cases}, {runs})"


def _check_kind(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise EvalError(
            f"{name}= takes {kind.__name__}", found=describe(value), help=f"{kind.__name__}(...)"
        )


def _names_of_metrics(metrics: Any) -> tuple[str, ...]:
    if isinstance(metrics, Mapping):  # which has scores to reach, that would be lost
        raise EvalError(
            "metrics= takes a list",
            found=describe(cast("object", metrics)),
            help="thresholds have an argument of their own: metrics=[...], thresholds={...}",
        )
    return tuple(str(each) for each in _listed("metrics", metrics))


def _judges(judges: Any) -> tuple[FluentJudge, ...]:
    listed = _listed("custom_judges", judges)
    if listed:
        from adk_fluent.eval._cases._judge import check_judge  # noqa: PLC0415  # most have none

        for each in listed:
            check_judge(each)
    return tuple(listed)


def _listed(name: str, value: Any) -> list[Any]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise EvalError(f"{name}= takes a list", found=describe(value), help=f"{name}=[...]")
    return list(value)
