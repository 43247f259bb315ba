"""State schemas as JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Collection

    from adk_fluent.state._ref import StateFieldRef


def json_schema(name: str, doc: str | None, refs: Collection[StateFieldRef[Any]]) -> dict[str, Any]:
    """JSON Schema of an object with the keys of some fields, as they are stored.

    Keys of `temp:` are not, so it has none. What may be absent may be None, too: session services
    remove no key.

    Args:
        name: Its title.
        doc: Its description.
        refs: The fields.
    """
    from inspect import cleandoc  # noqa: PLC0415

    from pydantic import TypeAdapter  # noqa: PLC0415

    by_key = {ref.key: ref for ref in refs if ref.scope != "temp"}
    parts, shared = TypeAdapter.json_schemas(
        [(key, "validation", ref.codec.adapter) for key, ref in by_key.items()]
    )
    made: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "type": "object",
        "properties": {
            key: _property(ref, parts[key, "validation"]) for key, ref in by_key.items()
        },
        "required": [key for key, ref in by_key.items() if ref.required],
        **shared,
    }
    if doc:
        made["description"] = cleandoc(doc)
    return made


def _property(ref: StateFieldRef[Any], schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of one key, with what the field says."""
    made = _as_stored({key: value for key, value in schema.items() if key != "default"})
    if not ref.required and not _takes_none(made):
        made: dict[str, Any] = {"anyOf": [made, {"type": "null"}]}
    if ref.doc:
        made["description"] = ref.doc
    if not ref.required and (default := ref.stored_default()) is not None:
        made["default"] = default
    return made


def _takes_none(schema: dict[str, Any]) -> bool:
    """Whether a schema as pydantic writes it obviously lets None pass."""
    return (
        not schema.keys() - {"title", "description"}  # of Any
        or schema.get("type") == "null"
        or any(_takes_none(each) for each in schema.get("anyOf", ()))
    )


def _as_stored(schema: Any) -> Any:
    """With bytes as they are written here; models, which stand elsewhere, have their own way."""
    if isinstance(schema, dict):
        made = {key: _as_stored(value) for key, value in cast("dict[str, Any]", schema).items()}
        return {**made, "format": "base64url"} if made.get("format") == "binary" else made
    if isinstance(schema, list):
        return [_as_stored(each) for each in cast("list[Any]", schema)]
    return schema
