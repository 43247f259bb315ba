"""Suites in YAML, as the specification writes them (section 6.11)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._files._data import SUITE_FIELDS, SuiteData, case_data, suite_data
from adk_fluent.eval._files._reader import Reader
from adk_fluent.eval._files._source import At, Source, read_text
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.eval._files._reader import Registry

_EXTENSION: Final = "x-"  # keys at the top that only hold anchors
_ALIASED: Final = 200_000  # values that aliases may add; a few lines can stand for billions
_TAG: Final = "tag:yaml.org,2002:"
#: Scalars that are read as text: a date is a text here, as in JSON.
_TEXTS: Final = frozenset({f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}value"})
_SCALARS: Final = frozenset({f"{_TAG}{name}" for name in ("int", "float", "bool", "null")})


def load_yaml(path: str | os.PathLike[str], registry: Registry | None = None) -> SuiteData:
    """Return the suite in a YAML file.

    Raises:
        EvalFileError: The file is missing or invalid; names the line and field.
    """
    name = os.fspath(path)
    value, source = parse_yaml(read_text(path), name)
    reader = Reader(source, registry)
    suite = reader.mapping((), value)
    for key in suite:
        if key not in (*SUITE_FIELDS, "cases") and not key.startswith(_EXTENSION):
            raise source.unknown_key((key,), "a suite", (*SUITE_FIELDS, "cases"))
    if suite.get("cases") is None:
        raise source.error((), "the file has no cases", help="write cases: with a list")
    cases = reader.items(("cases",), suite["cases"])
    made = reader.distinct(
        (("cases", n), reader.case(("cases", n), each)) for n, each in enumerate(cases)
    )
    return SuiteData({"name": Path(name).stem, **reader.suite_fields((), suite)}, made)


def dump_yaml(data: SuiteData) -> str:
    """Return a suite as YAML.

    Raises:
        EvalError: A case has a value that files cannot hold.
    """
    made = {**suite_data(data), "cases": [case_data(case) for case in data.cases]}
    return yaml.dump(made, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def parse_yaml(text: str, path: str) -> tuple[Any, Source]:
    """Return the value of a YAML text, and the lines of its parts; nothing in it can run code.

    Raises:
        EvalFileError: It is invalid, has a duplicate key or a tag, or is too large.
    """
    try:
        loader: Any = yaml.SafeLoader(text)  # without complete types
        try:
            node = loader.get_single_node()
            parser = _Parser(loader, path)
            value = None if node is None else parser.value((), node)
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
    except yaml.YAMLError as error:
        first = str(error).partition("\n")[0]
        raise EvalFileError(f"invalid YAML: {first}", path=path) from error
    except RecursionError:
        raise EvalFileError("invalid YAML: nested too deeply", path=path) from None
    return value, Source(path, parser.lines)


class _Parser:
    """Turns nodes into plain data."""

    def __init__(self, loader: Any, path: str) -> None:
        self.lines: dict[At, int] = {}
        self._loader = loader
        self._source = Source(path, self.lines)
        self._seen: set[int] = set()
        self._open: set[int] = set()
        self._aliased = 0

    def value(self, at: At, node: yaml.Node) -> Any:
        """Return the value of a node."""
        self.lines[at] = node.start_mark.line + 1
        if id(node) in self._seen:
            self._aliased += 1
            if self._aliased > _ALIASED:
                raise self._source.error(at, f"aliases expand to over {_ALIASED} values")
        self._seen.add(id(node))
        if id(node) in self._open:
            raise self._source.error(at, "an alias contains itself")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(at, node)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
                return [self.value((*at, n), each) for n, each in enumerate(node.value)]
            if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
                return self._mapping(at, node)
        finally:
            self._open.discard(id(node))
        raise self._bad_tag(at, node)

    def _scalar(self, at: At, node: yaml.ScalarNode) -> Any:
        if node.tag in _TEXTS:
            return node.value
        if node.tag not in _SCALARS:
            raise self._bad_tag(at, node)
        try:
            return self._loader.construct_object(node)
        except (ValueError, KeyError) as error:  # such as !!int abc
            kind = node.tag.removeprefix(_TAG)
            raise self._source.error(at, f"{node.value[:40]!r} is not {kind}") from error

    def _mapping(self, at: At, node: yaml.MappingNode) -> dict[str, Any]:
        made: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{_TAG}merge":
                for each in self._merged(at, value_node):
                    merged = {**each, **merged}
                continue
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag not in _TEXTS:
                self.lines[(*at, "?")] = line
                help = f"write {key_node.value!r} in quotes"
                is_scalar = isinstance(key_node, yaml.ScalarNode)
                raise self._source.error(
                    (*at, "?"), "a key must be a text", help=help if is_scalar else None
                )
            place = (*at, key_node.value)
            first = self.lines.get(place)
            if key_node.value in made:
                self.lines[place] = line
                raise self._source.error(
                    place,
                    f"duplicate key {key_node.value!r}",
                    found=f"the first is in line {first}",
                )
            made[key_node.value] = self.value(place, value_node)
            self.lines[place] = line
        return {**merged, **made}

    def _merged(self, at: At, node: yaml.Node) -> Iterator[dict[str, Any]]:
        for each in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            value = self.value((*at, "<<"), each)
            if not isinstance(value, dict):
                raise self._source.error((*at, "<<"), "<<: takes mappings", found=describe(value))
            yield value

    def _bad_tag(self, at: At, node: yaml.Node) -> EvalFileError:
        return self._source.error(
            at,
            f"the tag {node.tag.replace(_TAG, '!!')!r} is not allowed",
            help="write plain values; functions are {call: name}",
        )
