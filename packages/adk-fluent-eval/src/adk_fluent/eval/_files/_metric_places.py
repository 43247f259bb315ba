"""Metrics and thresholds of a file that have no meaning, with the lines that name them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._files._evalset_block import BLOCK, CONFIG
from adk_fluent.eval._files._json_lines import JsonLines
from adk_fluent.eval._files._json_text import parse_json
from adk_fluent.eval._files._place import Source, read_text
from adk_fluent.eval._scoring._wanted import Metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.eval._files._place import At
    from adk_fluent.eval._suite import FluentEvalSuite


def check_metrics(path: str, suite: FluentEvalSuite) -> None:
    """Look at the metrics of a suite that a file holds.

    Args:
        path: The file.
        suite: The suite.

    Raises:
        EvalError: There is no such metric, it applies to no case, or a threshold has no meaning; an
            EvalFileError where the file says it.
    """
    try:
        Metrics(suite.metrics, suite.thresholds, suite.custom_judges, suite.cases, suite.simulation)
    except EvalError as error:
        of_threshold = "threshold" in error.what
        for name, source, at in _named(path):
            if repr(name) in error.what and (
                "metrics" not in at if of_threshold else "thresholds" not in at
            ):
                raise source.error(at, error.what, found=error.found, help=error.help) from error
        raise


def _named(path: str) -> Iterator[tuple[str, Source, At]]:
    """Metrics that a file names, or ADK's configuration beside it, each with its place."""
    suffix = Path(path).suffix.lower()
    if suffix in {".yaml", ".yml"}:
        from adk_fluent.eval._files._yaml_nodes import read_yaml  # noqa: PLC0415  # imports yaml

        value, source = read_yaml(read_text(path), path)
        yield from _in_suite(value, source, ())
    elif suffix == ".json":
        value, source = _json(path)
        if isinstance(value, dict) and BLOCK in value:
            block = cast("dict[str, Any]", value)[BLOCK]
            yield from _in_suite(block, source, (BLOCK,))
        elif (config := Path(path).with_name(CONFIG)).is_file():
            value, source = _json(str(config))
            for name in value.get("criteria") or ():
                yield name, source, ("criteria", name)


def _in_suite(suite: dict[str, Any], source: Source, at: At) -> Iterator[tuple[str, Source, At]]:
    for name in suite.get("thresholds") or ():
        yield name, source, (*at, "thresholds", name)
    for n, name in enumerate(suite.get("metrics") or ()):
        yield name, source, (*at, "metrics", n)


def _json(path: str) -> tuple[Any, Source]:
    text = read_text(path)
    return parse_json(text, path), Source(path, JsonLines(text))
