"""One suite, several models: their reports side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adk_fluent._words import describe
from adk_fluent.errors import nearest_name
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._report._report import FluentEvalReport
from adk_fluent.eval._report._summaries import mean

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from adk_fluent.eval._report._compare import RegressionReport


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """The figures of one model.

    Attributes:
        model: The model.
        pass_rate: Share of the runs that passed, of those that count.
        ci: The interval in which the true pass rate lies, at 95 %.
        counting: Runs that count.
        tokens: Tokens that all runs took.
        cost_usd: What the runs of known cost took, in US dollars; None if none is known.
        mean_duration_s: Seconds that a run that counts took, in the mean; None if none counts.
        metrics: Metric to its mean, where it has one.
        ok: Whether its gate is met.
    """

    model: str
    pass_rate: float
    ci: tuple[float, float]
    counting: int
    tokens: int
    cost_usd: float | None
    mean_duration_s: float | None
    metrics: dict[str, float] = field(default_factory=dict[str, float])
    ok: bool = False


class ModelMatrix(Mapping[str, FluentEvalReport]):
    """Reports of one suite by model.

    Args:
        reports: Model to its report, in the order of the table.

    Raises:
        EvalError: There is none, or something else among them.
    """

    def __init__(self, reports: Mapping[str, FluentEvalReport]) -> None:
        if not reports:
            raise EvalError("a matrix has no models", help="give one or more")
        for model, report in reports.items():
            if not isinstance(report, FluentEvalReport):  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
                raise EvalError(f"model {model!r} has no report", found=describe(report))
        self._reports = dict(reports)

    def __getitem__(self, model: str) -> FluentEvalReport:
        return self._reports[model]

    def __iter__(self) -> Iterator[str]:
        return iter(self._reports)

    def __len__(self) -> int:
        return len(self._reports)

    def __repr__(self) -> str:
        return f"<ModelMatrix of {', '.join(self)}>"

    def table(self) -> list[MatrixRow]:
        """The figures of each model, in order."""
        return [_row(model, report) for model, report in self.items()]

    @property
    def best(self) -> str:
        """The model with the highest pass rate; of several, the one that costs, or takes, less.

        Reports that are incomplete, or of which no run counts, come after all others.
        """
        return min(self.table(), key=self._rank).model

    def _rank(self, row: MatrixRow) -> tuple[Any, ...]:
        report = self[row.model]
        partial = report.interrupted or bool(report.missing_shards) or not row.counting
        cost = float("inf") if row.cost_usd is None else row.cost_usd
        return (partial, -row.pass_rate, cost, row.tokens)

    @property
    def ok(self) -> bool:
        """Whether the gate of every model is met."""
        return all(each.ok for each in self.values())

    def compare(self, model: str, baseline: str, *, alpha: float = 0.05) -> RegressionReport:
        """One model held against another, case by case.

        Args:
            model: The model.
            baseline: What it is held against.
            alpha: The p-value up to which a difference is no accident.

        Raises:
            EvalError: There is no such model; names the nearest.
        """
        return self._named(model).compare(self._named(baseline), alpha=alpha)

    def _named(self, model: str) -> FluentEvalReport:
        if model in self:
            return self[model]
        near = nearest_name(str(model), self)
        raise EvalError(
            f"there is no model {model!r} in the matrix",
            found=", ".join(self),
            help=f"did you mean {near!r}?" if near else None,
        )

    def to_markdown(self) -> str:
        """The table for people, safe to show whatever the models are called."""
        from adk_fluent.eval._report._markdown_matrix import matrix_page  # noqa: PLC0415

        return matrix_page(self)

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def to_json(self) -> str:
        """All reports as JSON, as `save` writes them."""
        from adk_fluent.eval._report._json import matrix_chunks  # noqa: PLC0415  # not needed yet

        return "".join(matrix_chunks(self))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all reports to a file, which stays as it was if that fails.

        Raises:
            EvalFileError: It cannot be written.
        """
        from adk_fluent.eval._report._json import matrix_chunks  # noqa: PLC0415  # not needed yet
        from adk_fluent.eval._write import write_whole  # noqa: PLC0415

        write_whole(path, matrix_chunks(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ModelMatrix:
        """The matrix of a file that `save` wrote.

        Raises:
            EvalFileError: There is none, or it is broken, something else, or of a newer version.
        """
        from adk_fluent.eval._errors import EvalFileError  # noqa: PLC0415  # not needed yet
        from adk_fluent.eval._report._read import read_matrix  # noqa: PLC0415  # imports pydantic

        reports = read_matrix(path)
        if not reports:
            raise EvalFileError("the matrix has no models", path=str(path), field="reports")
        return cls(reports)


def _row(model: str, report: FluentEvalReport) -> MatrixRow:
    durations = [each.duration_s for each in report.outcomes if each.status.counts]
    return MatrixRow(
        model,
        report.pass_rate,
        report.pass_rate_ci(),
        report.counting,
        report.tokens.total,
        report.cost_usd,
        mean(durations) if durations else None,
        {name: each.mean for name, each in report.per_metric.items() if each.mean is not None},
        report.ok,
    )
