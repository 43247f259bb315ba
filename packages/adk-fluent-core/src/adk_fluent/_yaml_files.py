"""YAML as files of ours have it: strict when it is read, and read as it was when it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

#: What reading YAML may raise.
FAULTS: Final = (yaml.YAMLError, ValueError)
_TAG: Final = "tag:yaml.org,2002:"
#: What YAML takes for ends of lines, or leaves out, and would read as something else.
_ESCAPED: Final = "\x85\u2028\u2029\ufeff"


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = '"' if any(each in data for each in _ESCAPED) else None
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


def to_yaml_text(data: object) -> str:
    """Return plain data as YAML, with keys in their order and nothing abbreviated.

    Args:
        data: Mappings, lists and scalars; every text is read again as it was.
    """
    options: Any = {"sort_keys": False, "allow_unicode": True, "width": 100}
    text: str = cast("Any", yaml).dump(data, Dumper=_Dumper, **options)
    return text


def parsed(text: str, look: Callable[[Any], None]) -> Any:
    """Return the value of a YAML text, after a look at its node; None if it has none."""
    loader: Any = _Loader(text)  # without complete types
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
