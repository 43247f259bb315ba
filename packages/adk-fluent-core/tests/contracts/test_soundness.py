"""The analysis against every way in which random pipelines can run.

Every reader that may find no value is reported, and every error that is reported can happen: in
250 pipelines, or 5 000 with ``--full``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.contracts import Diagnostic, Severity, check_all

from .soundness.explore import Explorer, Miss, TooManyError
from .soundness.generate import Generator

if TYPE_CHECKING:
    import pytest

_MISSING = {"ReadBeforeWrite", "MaybeUndefined", "ReadRace", "ScopeMismatch", "ExternalState"}
_FEW, _MANY = 250, 5_000
_CHUNK = 250


def _is_about(finding: Diagnostic, miss: Miss) -> bool:
    return (
        type(finding).__name__ in _MISSING
        and finding.node == miss.node
        and f"`{miss.key}`" in finding.message
    )


def judge(seed: int) -> str | None:
    """What is wrong with the findings about one pipeline."""
    made = Generator(seed)
    report = check_all(made.root, inputs=sorted(made.inputs))
    try:
        misses = Explorer(made.root, made.inputs, 20_000).run()
        possible = Explorer(made.root, made.inputs, 20_000, free=True).run()
    except TooManyError:
        return "skip"
    findings = list(report)
    for miss in misses:
        if miss.required and not any(_is_about(each, miss) for each in findings):
            return f"not reported: {miss}"
    for each in findings:
        certain = type(each).__name__ in _MISSING and each.severity is Severity.ERROR
        if certain and not any(_is_about(each, miss) for miss in possible):
            return f"cannot happen: {each}"
    if report.proven and any(miss.required for miss in misses):
        return "proven"
    return None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    option = metafunc.config.option
    count = option.examples or (_MANY if option.full else _FEW)
    metafunc.parametrize("start", range(option.seed, option.seed + count, _CHUNK))


def test_what_may_be_missing_is_reported_and_errors_can_happen(start: int) -> None:
    skipped = 0
    for seed in range(start, start + _CHUNK):
        wrong = judge(seed)
        skipped += wrong == "skip"
        assert wrong in (None, "skip"), f"seed {seed}: {wrong}"
    assert skipped < _CHUNK // 10
