"""Suites: cases, the pipeline they evaluate, and the gate."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, Unpack, cast

from adk_fluent.eval import _arguments as check
from adk_fluent.eval._arguments import require
from adk_fluent.eval._cases._case import FluentCase
from adk_fluent.eval._cases._suite import Suite
from adk_fluent.extend import plural

if TYPE_CHECKING:
    from os import PathLike

    import pytest
    from google.adk.evaluation.eval_set import EvalSet
    from google.adk.models import BaseLlm

    from adk_fluent.eval._files._codec import SuiteData
    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._report._report import FluentEvalReport, ModelMatrix
    from adk_fluent.eval._running._options import RunOptions

_P = ParamSpec("_P")


def _with_arguments_of(
    made: Callable[_P, FluentCase],
) -> Callable[[Any], Callable[Concatenate[FluentEvalSuite, _P], FluentEvalSuite]]:
    """Tell type checkers that a method of a suite takes the arguments of a class."""
    return lambda method: method


class FluentEvalSuite(Suite):
    """Cases, the pipeline they evaluate, and the gate.

    Attributes:
        name: The suite's name.
        pipeline: What is evaluated: a builder, IR, an agent, a Workflow or an App of ADK, or a
            function without arguments that returns one, called for each run of a case.
        cases: The cases.
        metrics: Metrics in addition to the checks of the cases' own expectations.
        thresholds: Metric to the score it must reach.
        num_runs: Runs of each case.
        custom_judges: Metrics of your own.
        gate: The conditions under which the suite passes.
        description: What the suite is for.
        judge_model: The model of ADK's judges, by name or as a BaseLlm.
        judge_samples: How often a judge is asked about each turn; the majority decides.
        simulation: The user of cases with one message and no simulation of their own.

    Raises:
        EvalError: An argument is invalid.
    """

    @_with_arguments_of(FluentCase)
    def case(self, *args: Any, **fields: Any) -> FluentEvalSuite:
        """Add a case with the arguments of `FluentCase`.

        Raises:
            EvalError: A field is unknown or invalid.
        """
        known = FluentCase.__dataclass_fields__
        check.check_known(fields, known, "FluentCase has no field", "fields")
        return self.add(FluentCase(*args, **fields))

    # --- run -----------------------------------------------------------------------------------

    async def run(self, **options: Unpack[RunOptions]) -> FluentEvalReport:
        """Run the cases.

        Args:
            **options: See `RunOptions`.

        Raises:
            EvalError: Something that the suite names does not exist; no model was called.
        """
        from adk_fluent.eval._running._suite_run_adk import SuiteRun  # noqa: PLC0415  # imports ADK

        return await SuiteRun(self, options).report()

    def run_sync(self, **options: Unpack[RunOptions]) -> FluentEvalReport:
        """Run the cases from code that is not async; see `run`.

        Raises:
            UsageError: An event loop is running; use `run` there.
        """
        from adk_fluent.extend import run_sync  # noqa: PLC0415  # imports asyncio

        return run_sync("run_sync", lambda: self.run(**options), instead="run")

    async def stream(self, **options: Unpack[RunOptions]) -> AsyncGenerator[CaseOutcome]:
        """Run the cases, and yield each outcome when it is there; see `run`.

        Closing the generator cancels the run.
        """
        from adk_fluent.eval._running._suite_run_adk import SuiteRun  # noqa: PLC0415  # imports ADK

        async with aclosing(SuiteRun(self, options).outcomes()) as outcomes:
            async for each in outcomes:
                yield each

    async def matrix(
        self,
        models: Iterable[str | BaseLlm] | Mapping[str, str | BaseLlm],
        **options: Unpack[RunOptions],
    ) -> ModelMatrix:
        """Run the cases once with each model in place of every model of the pipeline.

        Args:
            models: Names of models, BaseLlms, or either by a name of your own.
            **options: See `RunOptions`.

        Raises:
            EvalError: A model or something that the suite names does not exist; no model was
                called.
        """
        from adk_fluent.eval._report._report import ModelMatrix  # noqa: PLC0415  # rarely needed

        pairs = _named_models(models)
        require(pairs, "models= is empty", help='such as models=["gemini-2.5-flash", ...]')
        named = dict(pairs)
        what = "two models have the same name"
        require(len(named) == len(pairs), what, help="models={name: model, ...}")
        own = {"model", "journal"} & options.keys()
        require(not own, "a matrix takes no model= and no journal=")
        every: list[RunOptions] = [{**options, "model": model} for model in named.values()]
        for each in every:
            self.check(**each)
        reports = [await self.run(**each) for each in every]
        return ModelMatrix(zip(named, reports, strict=True))

    def check(self, **options: Unpack[RunOptions]) -> None:
        """Check everything that the suite names, without running anything.

        Raises:
            EvalError: Something does not exist.
        """
        from adk_fluent.eval._running._suite_run_adk import SuiteRun  # noqa: PLC0415  # imports ADK

        SuiteRun(self, options)

    def to_pytest(self, **options: Unpack[RunOptions]) -> pytest.MarkDecorator:
        """Return a mark that turns a test of pytest into one for each run of each case.

        ::

            @suite.to_pytest()
            def test_desk(adk_eval):
                adk_eval.assert_passed()

        Args:
            **options: See `RunOptions`.
        """
        import pytest  # noqa: PLC0415  # an optional dependency

        return pytest.mark.adk_eval(self, **options)

    # --- files ---------------------------------------------------------------------------------

    @classmethod
    def _from_data(cls, data: SuiteData, pipeline: Any, more: dict[str, Any]) -> Self:
        fields: dict[str, Any] = {**data.fields, "cases": data.cases, **more}
        with data.source.naming(data.at):
            return cls(pipeline=pipeline, **fields)

    @classmethod
    def from_yaml(
        cls,
        path: str | PathLike[str],
        pipeline: Any = None,
        *,
        registry: Mapping[str, Callable[..., Any]] | None = None,
        **more: Any,
    ) -> Self:
        """Return the suite in a YAML file.

        Args:
            path: The file.
            pipeline: What is evaluated.
            registry: The functions that the file may name, by name.
            **more: Other arguments of the suite; they override the file's.

        Raises:
            EvalFileError: The file is missing or invalid; names the line and field.
        """
        from adk_fluent.eval._files._plain import load_yaml  # noqa: PLC0415  # imports yaml

        return cls._from_data(load_yaml(path, registry), pipeline, more)

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
        """Return the suite in an eval set of ADK: ``.evalset.json``, ``.test.json`` or the object.

        Args:
            source: The file or the eval set.
            pipeline: What is evaluated.
            registry: The functions that the file may name, by name.
            config_path: ADK's configuration of metrics; None is the ``test_config.json`` in the
                same folder, if there is one.
            **more: Other arguments of the suite; they override the file's.

        Raises:
            EvalFileError: The file is missing, invalid, or of a newer version.
        """
        from adk_fluent.eval._files._evalset_adk import read_eval_set  # noqa: PLC0415  # imports ADK

        return cls._from_data(read_eval_set(source, registry, config_path), pipeline, more)

    @classmethod
    def from_table(
        cls,
        path: str | PathLike[str],
        pipeline: Any = None,
        *,
        map: Mapping[str, str] | None = None,
        registry: Mapping[str, Callable[..., Any]] | None = None,
        **more: Any,
    ) -> Self:
        """Return a suite with a case for each row of a CSV file, or each line of JSON lines.

        The columns, or keys, are fields of `FluentCase`; ``metadata.x`` is an entry of metadata. In
        CSV, lists are separated by ``|`` or written as JSON, and mappings as JSON.

        Args:
            path: The file, ``.csv`` or ``.jsonl``.
            pipeline: What is evaluated.
            map: Column to its field, such as ``{"question": "input"}``.
            registry: The functions that the file may name, by name.
            **more: Other arguments of the suite.

        Raises:
            EvalFileError: The file is missing or invalid; names the line and field.
        """
        from adk_fluent.eval._files._plain import load_table  # noqa: PLC0415  # rarely needed

        return cls._from_data(load_table(path, map, registry), pipeline, more)

    def to_yaml(self, path: str | PathLike[str]) -> None:
        """Write the suite as YAML, without its pipeline and judges.

        Raises:
            EvalError: A case has a value that files cannot hold, such as a lambda.
            EvalFileError: The file cannot be written; an old one stays.
        """
        from adk_fluent.eval._files._plain import write_yaml  # noqa: PLC0415  # imports yaml

        write_yaml(path, self)

    def to_eval_set(self) -> EvalSet:
        """Return the suite as an eval set of ADK, without what ADK has no field for.

        Raises:
            EvalError: A case has a value that files cannot hold.
        """
        from adk_fluent.eval._files._evalset_adk import to_eval_set  # noqa: PLC0415  # imports ADK

        return to_eval_set(self)

    def to_eval_set_file(
        self, path: str | PathLike[str], *, config_path: str | PathLike[str] | None = None
    ) -> None:
        """Write the suite as ``.evalset.json`` or ``.test.json``, which ADK reads.

        What ADK has no field for is in a block ``adk_fluent``, which ADK ignores. The pipeline and
        the judges are not written.

        Args:
            path: The file.
            config_path: Where to write ADK's configuration of metrics; None writes none.

        Raises:
            EvalError: A case has a value that files cannot hold, such as a lambda.
            EvalFileError: The file cannot be written; an old one stays.
        """
        from adk_fluent.eval._files._evalset_adk import write_eval_set  # noqa: PLC0415  # imports ADK

        write_eval_set(self, path, config_path)

    def __repr__(self) -> str:
        cases, runs = plural(len(self.cases), "case"), plural(self.num_runs, "run")
        return f"FluentEvalSuite({self.name!r}, {cases}, {runs})"


def _named_models(models: Any) -> list[tuple[str, Any]]:
    if isinstance(models, Mapping):
        return [(str(name), each) for name, each in cast("Mapping[Any, Any]", models).items()]
    named = check.listed("models", models)
    return [(str(getattr(each, "model", each)), each) for each in named]
