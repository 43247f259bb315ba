"""Suites in YAML, as the specification writes them (section 6.11)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, cast

import yaml

from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._files._data import SUITE_FIELDS, SuiteData, case_data, suite_data
from adk_fluent.eval._files._reader import Reader, Registry
from adk_fluent.eval._files._source import At, Source, locate, read_text

_EXTENSION: Final = "x-"  # keys at the top that only hold anchors
_TAG: Final = "tag:yaml.org,2002:"


def load_yaml(path: str | os.PathLike[str], registry: Registry | None = None) -> SuiteData:
    """Return the suite in a YAML file."""
    name = os.fspath(path)
    value, lines = parse_yaml(read_text(path), name)
    source = Source(name, lines)
    given = source.mapping((), value)
    given = {key: each for key, each in given.items() if not key.startswith(_EXTENSION)}
    suite = source.mapping((), given, (*SUITE_FIELDS, "cases"), "a suite")
    cases: Any = suite.get("cases")
    if not isinstance(cases, list):
        raise source.error(
            ("cases",), "the file has no list of cases", help="write cases: with a list"
        )
    reader = Reader(source, registry)
    fields = {"name": Path(name).stem, **reader.suite((), suite)}
    return SuiteData(fields, reader.cases(("cases",), cast("list[Any]", cases)), source)


def dump_yaml(data: SuiteData) -> str:
    """Return a suite as YAML."""
    made = {**suite_data(data), "cases": [case_data(case) for case in data.cases]}
    return yaml.dump(made, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        # in other quotes it is a line break, which is read as another one
        style = '"' if "\x85" in data else None
        return cast("Any", self).represent_scalar(f"{_TAG}str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)


class _Loader(yaml.SafeLoader):
    """Reads dates as text, as JSON has them, and takes no duplicate keys."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if key.tag != f"{_TAG}merge"]
        for key, _ in reversed(node.value):
            if key.tag != f"{_TAG}merge" and (key.tag != f"{_TAG}str" or keys.count(key.value) > 1):
                what = "duplicate key" if keys.count(key.value) > 1 else "a key must be a text:"
                raise yaml.MarkedYAMLError(
                    problem=f"{what} {key.value!r}", problem_mark=key.start_mark
                )
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in each if tag != f"{_TAG}timestamp"]
    for first, each in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse_yaml(text: str, path: str) -> tuple[Any, dict[At, int]]:
    """Return the value of a YAML text, and the lines of its parts; nothing in it can run code."""
    lines: dict[At, int] = {}
    try:
        loader: Any = _Loader(text)  # without complete types
        try:
            node = loader.get_single_node()
            if node is not None:
                locate(node, (), lines)
            return (None if node is None else loader.construct_document(node)), lines
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise EvalFileError(
            f"invalid YAML: {', '.join(filter(None, (error.context, error.problem)))}",
            path=path,
            line=None if mark is None else mark.line + 1,
            help="indent with spaces, not tabs" if r"'\t'" in (error.problem or "") else None,
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise EvalFileError(f"invalid YAML: {what.splitlines()[0]}", path=path) from error
