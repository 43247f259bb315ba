"""The version of a pipeline: its steps, and the schemas of what crosses between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.ir import AgentNode, Node, Ref, RemoteAgentNode, structure_hash, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.json_schema import JsonSchemaMode

#: Fields of agents that name the schema of what they are given, or say.
_SCHEMAS: Final = ("input_schema", "output_schema", "consumes_type", "produces_type")
#: What of a JSON schema says nothing about what may be stored.
_LEFT_OUT: Final = frozenset({"title", "description", "examples", "default"})
_BOTH: Final[tuple[JsonSchemaMode, ...]] = ("validation", "serialization")


def fingerprint_of(root: Node) -> str:
    """What a run goes on with: a pipeline of the same steps and schemas.

    A schema counts by what it takes and stores, as JSON Schema without descriptions and defaults. A
    type that has none counts by its module and name.

    Returns:
        SHA-256 in hexadecimal; that of the steps where nothing has a schema.
    """
    steps = structure_hash(root)
    shapes: dict[Any, Any] = {}
    rows = [
        (node.name, what, _shape(kind, shapes)) for node in walk(root) for what, kind in _of(node)
    ]
    if not rows:
        return steps
    from hashlib import sha256  # noqa: PLC0415  # OpenSSL; most pipelines have no schema

    return sha256(json.dumps([steps, rows], sort_keys=True, default=repr).encode()).hexdigest()


def _of(node: Node) -> Iterator[tuple[str, Any]]:
    """What is declared at a step: of what, and the type."""
    rules = None if node.contract is None else node.contract.schema
    if rules is not None:
        for key, ref in sorted(rules.value.__state_fields__.items()):
            yield f"state {key}", ref.type
    if isinstance(node, AgentNode | RemoteAgentNode):
        for name in _SCHEMAS:
            schema: Ref | None = getattr(node, name, None)
            if schema is not None:
                yield name, schema.value
        for ref in (*node.reads_keys, *node.writes_keys):
            if ref.type is not None:
                yield f"key {ref.key}", ref.type


def _shape(kind: Any, known: dict[Any, Any]) -> Any:
    """What a schema takes, and what it is stored as."""
    key = id(kind)
    if key not in known:
        known[key] = (_described(kind), kind)  # which keeps its id
    return known[key][0]


def _described(kind: Any) -> Any:
    from pydantic import PydanticUserError, TypeAdapter  # noqa: PLC0415  # slow to import
    from pydantic.errors import PydanticUndefinedAnnotation  # noqa: PLC0415  # the same

    try:
        adapter = TypeAdapter[Any](kind)
        return [_plain(adapter.json_schema(mode=mode)) for mode in _BOTH]
    except (PydanticUserError, PydanticUndefinedAnnotation):
        name = getattr(kind, "__qualname__", None)
        return repr(kind) if name is None else f"{kind.__module__}:{name}"


def _plain(schema: Any, *, names: bool = False) -> Any:
    """A JSON schema without what people read, unless its keys are names of the user's."""
    if isinstance(schema, dict):
        rows = cast("dict[str, Any]", schema).items()
        return {
            key: _plain(value, names=not names and key in ("properties", "$defs"))
            for key, value in rows
            if names or key not in _LEFT_OUT
        }
    return (
        [_plain(each) for each in cast("list[Any]", schema)] if isinstance(schema, list) else schema
    )
