"""Whether a JSON Schema can be used, and whether a value fits it.

`jsonschema` judges. It is imported where there is a schema, and fetches nothing.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, TypeGuard, cast

#: Formats that are checked: those that jsonschema knows on every machine. `date-time`, which it
#: knows only beside a further library, is ours.
_FORMATS: Final = ("date", "email", "ipv4", "ipv6", "regex", "uuid")

_LONGEST: Final = 200
_TOO_DEEP: Final = "it refers to itself without an end, or is nested too deeply"


def schema_fault(schema: Any) -> str | None:
    """Why values cannot be checked against a schema; None if they can."""
    if not isinstance(schema, dict | bool):
        return "a schema is an object, True or False"
    try:
        _kind_of(schema).check_schema(schema)
        return _lost_reference(schema)
    except _library("jsonschema.exceptions").SchemaError as error:
        return _said(error)
    except RecursionError:
        return _TOO_DEEP


def schema_misfit(schema: str, value: Any) -> str | None:
    """Return why a value does not fit a JSON Schema; None if it does.

    Args:
        schema: The schema, as JSON text.
        value: The value, as JSON has it.

    Raises:
        ValueError: The text is no schema that values can be checked against.
    """
    try:
        errors = _validator(schema).iter_errors(value)
        error = _library("jsonschema.exceptions").best_match(errors)
    except RecursionError:
        return _TOO_DEEP
    return None if error is None else _said(error)


def has_field(schema: str, name: str) -> bool:
    """Whether a schema tells of a field of this name in the values themselves, not deeper in them.

    Args:
        schema: The schema, as JSON text.
        name: The field's name.
    """
    from json import loads  # noqa: PLC0415  # only where there is a schema

    try:
        whole = loads(schema)
    except (ValueError, RecursionError):
        return False
    todo, seen = [whole], set[int]()
    while todo:
        here: Any = todo.pop()
        if not is_object(here) or id(here) in seen:
            continue
        seen.add(id(here))
        fields, required = here.get("properties"), here.get("required")
        if (is_object(fields) and name in fields) or (
            isinstance(required, list) and name in required
        ):
            return True
        todo.append(_within(whole, here.get("$ref")))
        for keyword in ("allOf", "anyOf", "oneOf"):
            several = here.get(keyword)
            todo.extend(cast("list[Any]", several) if isinstance(several, list) else ())
    return False


def _within(schema: Any, reference: Any) -> Any:
    """What a reference such as ``#/$defs/x`` leads to; None if it leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    here = schema
    for part in reference[1:].split("/")[1:]:
        here = here.get(part.replace("~1", "/").replace("~0", "~")) if is_object(here) else None
    return here


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether it is an object of JSON."""
    return isinstance(value, dict)


def _library(name: str) -> Any:
    """A module of jsonschema's, which is slow to import and tells type checkers little."""
    return import_module(name)


@lru_cache(maxsize=64)
def _validator(text: str) -> Any:
    from json import loads  # noqa: PLC0415  # only where there is a schema

    schema = loads(text)
    fault = schema_fault(schema)
    if fault is not None:
        raise ValueError(fault)
    formats = _library("jsonschema").FormatChecker(_FORMATS)
    formats.checks("date-time", ValueError)(_is_moment)
    # An empty registry: whatever is not in the schema itself is not looked for elsewhere.
    registry = _library("referencing").Registry()
    return _kind_of(schema)(schema, registry=registry, format_checker=formats)


def _kind_of(schema: Any) -> Any:
    """The validator of the schema's own draft; of the newest if it names none."""
    judges = _library("jsonschema.validators")
    return judges.validator_for(schema, default=judges.Draft202012Validator)


def _is_moment(value: object) -> bool:
    return not isinstance(value, str) or bool(datetime.fromisoformat(value))


def _lost_reference(schema: Any) -> str | None:
    """A reference that leads out of the schema, or nowhere."""
    draft = _kind_of(schema).META_SCHEMA.get("$id", "")
    rules = _library("referencing.jsonschema")
    root = rules.specification_with(draft, default=rules.DRAFT202012).create_resource(schema)
    todo = [(root, _library("referencing").Registry().resolver_with_root(root))]
    while todo:
        here, resolver = todo.pop()
        contents: Any = here.contents
        keywords: dict[str, Any] = {} if isinstance(contents, bool) else contents
        for keyword in ("$ref", "$dynamicRef"):
            target = keywords.get(keyword)
            try:
                if isinstance(target, str):
                    resolver.lookup(target)
            except _library("referencing.exceptions").Unresolvable:
                return f"{keyword} {target!r} leads to nothing within it"
        todo.extend((each, resolver.in_subresource(each)) for each in here.subresources())
    return None


def _said(error: Any) -> str:
    message = str(error.message)
    short = message if len(message) <= _LONGEST else f"{message[: _LONGEST - 3]}..."
    return short if error.json_path == "$" else f"at {error.json_path}: {short}"
