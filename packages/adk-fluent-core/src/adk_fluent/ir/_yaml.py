"""IR as YAML: the same table as in JSON, for people who read and write files by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from adk_fluent.errors import IRFormatError
from adk_fluent.ir._json import to_data
from adk_fluent.ir._load import from_data

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from adk_fluent.ir._node import Node


def to_yaml(root: Node, *, locations: bool = False) -> str:
    """A pipeline as YAML text; see `to_data`. The same pipeline gives the same text.

    Args:
        root: The pipeline.
        locations: Write the source lines of nodes too; they name files of this machine.

    Raises:
        IRFormatError: A field holds what only a `Ref` may hold.
    """
    from adk_fluent._yaml_files import to_yaml_text  # noqa: PLC0415  # imports yaml, which is slow

    return to_yaml_text(to_data(root, locations=locations))


def from_yaml(
    text: str | bytes,
    registry: Mapping[str, object] | None = None,
    allow_imports: Collection[str] = (),
) -> Node:
    """Read what `to_yaml` wrote; see `from_json`.

    Args:
        text: The YAML text. It may be hostile: no tag makes an object, and no anchor is followed.
        registry: Live objects by path or by name; see `registry_of`.
        allow_imports: Packages or modules that live objects may be imported from.

    Raises:
        IRFormatError: The text is no such YAML, its IR is not legal by itself, or a live object is
            neither in the registry nor allowed to be imported.
    """
    import yaml  # noqa: PLC0415  # whoever only builds a pipeline does not need it

    try:
        events = cast("Any", yaml).parse(text, Loader=yaml.SafeLoader)
        if any(isinstance(each, yaml.AliasEvent) for each in events):
            raise IRFormatError(
                "this YAML has aliases", help="write each value out; a few lines can be huge ones"
            )
        data: Any = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError) as error:
        raise IRFormatError(
            "this is not YAML", found=str(error), help="write it with to_yaml(node)"
        ) from error
    return from_data(data, registry, allow_imports)
