"""YAML as files of ours have it: strict when it is read, and read as it was when it is written."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

#: What reading YAML may raise.
FAULTS: Final = (yaml.YAMLError, ValueError)
_TAG: Final = "tag:yaml.org,2002:"
_STR: Final = f"{_TAG}str"
#: What YAML takes for ends of lines, or leaves out, and would read as something else.
_ESCAPED: Final = "\x85\u2028\u2029\ufeff"


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = '"' if any(each in data for each in _ESCAPED) else None
        return cast("Any", self).represent_scalar(_STR, data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)


class _Loader(yaml.SafeLoader):
    """Makes what JSON has, with dates as text, and takes no duplicate keys."""

    keys: frozenset[str] = frozenset({_STR})

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = cast("Any", super()).compose_mapping_node(anchor)
        seen = set[str]()
        for key, _ in node.value:
            if key.tag == f"{_TAG}merge":
                continue
            if key.tag not in self.keys or key.id != "scalar":
                shown = repr(key.value) if key.id == "scalar" else f"a {key.id}"
                _refuse(key, f"a key must be a text: {shown}")
            if key.value in seen:
                _refuse(key, f"duplicate key {key.value!r}")
            seen.add(key.value)
        return node

    def make_scalar(self, node: Any) -> Any:
        """Make a number, a truth value or nothing."""
        try:
            value = yaml.SafeLoader.yaml_constructors[node.tag](self, node)
        except (LookupError, ValueError):
            value = math.nan
        if isinstance(value, float) and not math.isfinite(value):
            _refuse(node, f"{node.value[:40]!r} is no {node.tag.removeprefix(_TAG)} of JSON")
        return value

    def refuse_tag(self, node: Any) -> NoReturn:
        """Refuse what nothing is made of."""
        tag = node.tag.replace(_TAG, "!!")
        _refuse(node, f"JSON has nothing for the tag {tag}")


def _refuse(node: Any, problem: str) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


_SCALARS: Final = [f"{_TAG}{each}" for each in ("int", "float", "bool", "null")]
_MADE: Final = yaml.SafeLoader.yaml_constructors
_Loader.yaml_constructors = {
    **{tag: _MADE[tag] for tag in (f"{_TAG}map", f"{_TAG}seq", _STR)},
    **dict.fromkeys(_SCALARS, _Loader.make_scalar),
    None: _Loader.refuse_tag,  # of all others
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in each if tag in {*_SCALARS, f"{_TAG}merge"}]
    for first, each in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def to_yaml_text(data: object) -> str:
    """Return plain data as YAML, with keys in their order and nothing abbreviated.

    Args:
        data: Mappings, lists and scalars; every text is read again as it was.
    """
    options: Any = {"sort_keys": False, "allow_unicode": True, "width": 100}
    text: str = cast("Any", yaml).dump(data, Dumper=_Dumper, **options)
    return text


def parsed(text: str, look: Callable[[Any], None], *, number_keys: bool = False) -> Any:
    """Return the value of a YAML text, after a look at its node; None if it has none.

    Args:
        text: The text.
        look: Is given the node.
        number_keys: Whether whole numbers may be keys.
    """
    loader: Any = _Loader(text)  # without complete types
    if number_keys:
        loader.keys = {_STR, f"{_TAG}int"}
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        look(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def node_of(text: str) -> Any:
    """Return the node of a YAML text."""
    return cast("Any", yaml).compose(text, yaml.SafeLoader)


def fault(error: BaseException) -> tuple[str, int | None]:
    """Return what is wrong with a YAML text, and the line."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        what = ", ".join(filter(None, (error.context, error.problem)))
        return what, None if mark is None else mark.line + 1
    if isinstance(error, RecursionError):
        return "nested too deeply", None
    return str(error).splitlines()[0], None
