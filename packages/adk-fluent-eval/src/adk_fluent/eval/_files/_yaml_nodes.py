"""YAML as plain data, with the line of every value; nothing in it can run code or grow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from adk_fluent._words import describe
from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._files._place import At, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Values that aliases may add, at most; a file of a few lines can stand for billions.
_ALIASED: Final = 200_000

_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{_TAG}merge"
_TEXT: Final = f"{_TAG}str"

#: Scalars that are read as they are written: a date is a text here, as it is in JSON.
_AS_WRITTEN: Final = frozenset({_TEXT, f"{_TAG}timestamp", f"{_TAG}value"})
_SCALARS: Final = frozenset({f"{_TAG}{name}" for name in ("int", "float", "bool", "null")})


def read_yaml(text: str, path: str) -> tuple[Any, Source]:
    """The value that a YAML text stands for, and where its parts stand.

    Args:
        text: The text.
        path: The file that it is from.

    Raises:
        EvalFileError: It is no YAML, has a key twice, has tags of its own, or is too large.
    """
    try:
        loader: Any = yaml.SafeLoader(text)  # has no complete types
        try:
            node = loader.get_single_node()
            made = _Reading(loader, path)
            value = None if node is None else made.value((), node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise _broken(path, error) from error
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise EvalFileError(f"broken YAML: {_first_line(error)}", path=path) from error
    except RecursionError:
        raise EvalFileError("the YAML is nested too deeply", path=path) from None
    return value, Source(path, made.lines)


class _Reading:
    """Makes plain data of nodes.

    Args:
        loader: What knows how scalars are written.
        path: The file.
    """

    def __init__(self, loader: Any, path: str) -> None:
        self.lines: dict[At, int] = {}
        self._loader = loader
        self._source = Source(path, self.lines)
        self._seen: set[int] = set()
        self._open: set[int] = set()
        self._aliased = 0

    def value(self, at: At, node: yaml.Node) -> Any:
        """The value of a node."""
        self.lines[at] = node.start_mark.line + 1
        self._count(at, node)
        if id(node) in self._open:
            raise self._source.error(at, "an alias stands for something that it is a part of")
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
        raise self._unknown_tag(at, node)

    def _count(self, at: At, node: yaml.Node) -> None:
        if id(node) not in self._seen:
            self._seen.add(id(node))
            return
        self._aliased += 1
        if self._aliased > _ALIASED:
            raise self._source.error(
                at, "aliases make the file too large", found=f"over {_ALIASED} values"
            )

    def _scalar(self, at: At, node: yaml.ScalarNode) -> Any:
        if node.tag in _AS_WRITTEN:
            return node.value
        if node.tag not in _SCALARS:
            raise self._unknown_tag(at, node)
        try:
            return self._loader.construct_object(node)
        except (ValueError, KeyError) as error:  # such as !!int abc
            raise self._source.error(
                at, f"{node.value[:40]!r} is no {node.tag.removeprefix(_TAG)}"
            ) from error

    def _mapping(self, at: At, node: yaml.MappingNode) -> dict[str, Any]:
        made: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                for each in self._merged(at, value_node):
                    merged = {**each, **merged}
                continue
            key = self._key(at, key_node)
            if key in made:
                first = self.lines[(*at, key)]
                self.lines[(*at, key)] = key_node.start_mark.line + 1
                raise self._source.error(
                    (*at, key),
                    f"the key {key!r} stands there twice",
                    found=f"the first is in line {first}",
                )
            made[key] = self.value((*at, key), value_node)
            self.lines[(*at, key)] = key_node.start_mark.line + 1
        return {**merged, **made} if merged else made

    def _key(self, at: At, node: yaml.Node) -> str:
        if isinstance(node, yaml.ScalarNode) and node.tag in _AS_WRITTEN:
            return node.value
        self.lines[(*at, "?")] = node.start_mark.line + 1
        scalar = isinstance(node, yaml.ScalarNode)
        raise self._source.error(
            (*at, "?"),
            "a key is no text",
            found=describe(self.value((*at, "?"), node)) if scalar else "a list or a mapping",
            help=f"write {node.value!r} in quotes" if scalar else None,
        )

    def _merged(self, at: At, node: yaml.Node) -> Iterator[dict[str, Any]]:
        several = isinstance(node, yaml.SequenceNode)
        for each in node.value if several else [node]:
            value = self.value((*at, "<<"), each)
            if not isinstance(value, dict):
                raise self._source.error(
                    (*at, "<<"), "<<: takes mappings", found=describe(value), help="<<: *name"
                )
            yield value

    def _unknown_tag(self, at: At, node: yaml.Node) -> EvalFileError:
        return self._source.error(
            at,
            f"the tag {node.tag.replace(_TAG, '!!')!r} is not allowed",
            help="write plain values; functions are {call: name}",
        )


def _broken(path: str, error: yaml.MarkedYAMLError) -> EvalFileError:
    mark = error.problem_mark or error.context_mark
    what = ", ".join(part for part in (error.context, error.problem) if part)
    tab = r"'\t'" in (error.problem or "")
    return EvalFileError(
        f"broken YAML: {what}",
        path=path,
        line=None if mark is None else mark.line + 1,
        found=None if mark is None else f"column {mark.column + 1}",
        help="indent with spaces, not with tabs" if tab else None,
    )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
