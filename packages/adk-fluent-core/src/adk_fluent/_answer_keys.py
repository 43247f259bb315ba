"""Which fields of an agent's answer are written to which keys, as far as that needs no pydantic."""

from __future__ import annotations

from collections import Counter
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from adk_fluent.errors import UsageError
from adk_fluent.ir import AgentNode, RemoteAgentNode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.ir import Node


def check_answer(node: AgentNode | RemoteAgentNode) -> None:
    """Do nothing if the answers of an agent can be read into the keys that it writes.

    Raises:
        UsageError: They cannot, or an answer in text is to be given again.
    """
    keys_of_fields(node)
    check_retries(node)


def keys_of_fields(node: AgentNode | RemoteAgentNode) -> Mapping[str, str]:
    """The keys by the names of the fields that are written there; none if the answer is one value.

    Raises:
        UsageError: The agent's schema has no such fields, or two keys have the same name.
    """
    if _is_whole(node):
        return {}
    fields = _by_name(node)
    if node.output_schema is not None:
        _check_fields(node, node.output_schema.value, fields)
    return fields


def check_retries(node: AgentNode | RemoteAgentNode) -> None:
    """Do nothing if no answer is to be given again that cannot be wrong.

    Raises:
        UsageError: One in text, or in genai's own notation, is.
    """
    retries = node.output_retries if isinstance(node, AgentNode) else 0
    if not retries:
        return
    if node.output_schema is None:
        typed = not _is_whole(node)
    else:
        typed = is_validated(node.output_schema.value)
    if not typed:
        raise UsageError(
            f"{node.name} answers in text, of which none is invalid",
            node=node,
            found=f".output_retries({retries})",
            help="give its answer a type: agent @ Schema",
        )


def is_validated(schema: object) -> bool:
    """Whether answers are held to a schema; in genai's own notation, only the model is."""
    return not (isinstance(schema, dict) or type(schema).__module__.startswith("google."))


def _is_whole(node: AgentNode | RemoteAgentNode) -> bool:
    keys = node.writes_keys
    if isinstance(node, AgentNode) and node.produces_type is not None:
        return not keys
    if len(keys) != 1:
        return not keys
    held = keys[0].type
    types = get_args(held) if get_origin(held) in (Union, UnionType) else (held,)
    schema = None if node.output_schema is None else node.output_schema.value
    return held in (None, str) or (schema is not None and schema in types)


def _by_name(node: AgentNode | RemoteAgentNode) -> Mapping[str, str]:
    """The keys by the names of the fields that are written there."""
    for name, count in Counter(ref.name for ref in node.writes_keys).items():
        if count > 1:
            raise UsageError(
                f"{node.name} writes {count} keys called {name!r}, which one field of its answer "
                "cannot tell apart",
                node=node,
                found=", ".join(repr(ref.key) for ref in node.writes_keys),
                help="give one of them another name",
            )
        if not name.isidentifier() or name.startswith("_"):
            raise UsageError(
                f"{name!r} cannot be the name of a field in the answer of {node.name}",
                node=node,
                help="letters, digits and '_', starting with a letter; or write this key alone",
            )
    return {ref.name: ref.key for ref in node.writes_keys}


def _check_fields(node: Node, schema: Any, fields: Mapping[str, str]) -> None:
    known = getattr(schema, "model_fields", None)
    absent = [name for name in fields if known is None or name not in known]
    if absent:
        title = getattr(schema, "__name__", str(schema))
        raise UsageError(
            f"{node.name} writes {', '.join(map(repr, absent))}, and its answer has no such field",
            node=node,
            found=f"schema {title} with {', '.join(known) if known else 'no fields'}",
            help="write one key to have the whole answer there, or name fields of the schema",
        )
