"""What crosses: the state keys that are sent along, and those that an answer writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from adk_fluent.errors import (
    OutputInvalidError,
    OutputMissingError,
    StateKeyError,
    StateTypeError,
    UnstorableValueError,
    nearest_name,
)
from adk_fluent.extend import one_line, storage_fault
from adk_fluent.ir import UNSET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.extend import Answer
    from adk_fluent.ir import RemoteAgentNode

#: Numbers cross as those of JSON in protobuf, which are doubles.
_EXACT: Final = 2**53
_NAMES: Final = 12  # of what was sent, in an error


def inputs_of(node: RemoteAgentNode, state: Mapping[str, Any]) -> dict[str, Any]:
    """The declared inputs and their values, by name without the scope's prefix.

    Raises:
        StateKeyError: State has no value for one that has no default.
        StateTypeError: The values do not fit the input schema.
        UnstorableValueError: A value cannot be sent.
    """
    values: dict[str, Any] = {}
    for ref in node.reads_keys:
        value = state.get(ref.key)
        if value is None and ref.default is UNSET:
            raise StateKeyError(
                f"{node.name} sends {ref.key!r}, and state has no value for it",
                key=ref.key,
                node=node,
                help="write it in an earlier step, or give it a default",
            )
        value = ref.default if value is None else value
        if value is not None:
            values[ref.name] = value
    if node.input_schema is not None:
        values = _fitted(node, values)
    _check(node, values)
    return values


def _fitted(node: RemoteAgentNode, values: dict[str, Any]) -> dict[str, Any]:
    """The values as the input schema has them."""
    schema = node.input_schema
    assert schema is not None  # noqa: S101  # the caller has looked
    keys = ", ".join(ref.key for ref in node.reads_keys)
    try:
        adapter = TypeAdapter[Any](schema.value)
        made = adapter.dump_python(adapter.validate_python(values), mode="json")
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        says = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in faults)
        raise StateTypeError(
            f"what {node.name} sends does not fit its input schema",
            key=keys,
            node=node,
            found=says,
            help="write what the schema asks for, or change the schema",
        ) from error
    except PydanticUserError as error:
        raise StateTypeError(
            f"pydantic cannot read the input schema of {node.name}",
            key=keys,
            node=node,
            found=error.message,
        ) from error
    return cast("dict[str, Any]", made) if isinstance(made, dict) else {schema.name: made}


def _check(node: RemoteAgentNode, values: dict[str, Any]) -> None:
    """Refuse what would arrive as something else, or not at all."""
    fault = storage_fault(values)
    path, says, help = (fault.path, fault.says, fault.help) if fault else ("", "", "")
    if fault is None and (where := _too_large(values)) is not None:
        path, says, help = where, "is a number above 2**53, which A2A rounds", "send it as a str"
    if path:
        raise UnstorableValueError(
            f"{node.name} cannot send inputs{path}: it {says}", path=path, node=node, help=help
        )


def _too_large(value: Any, path: str = "") -> str | None:
    """Where a whole number is that would not arrive exactly."""
    if isinstance(value, int) and not -_EXACT <= value <= _EXACT:
        return path
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
    elif isinstance(value, list | tuple):
        pairs = enumerate(cast("list[Any]", value))
    found = (_too_large(each, f"{path}[{key!r}]") for key, each in pairs)
    return next((each for each in found if each is not None), None)


def outputs_of(
    node: RemoteAgentNode, answer: Answer | None, text: str, data: Mapping[str, Any] | None
) -> tuple[dict[str, Any], Any]:
    """What an answer writes to state, its declared outputs and nothing else; and its value.

    Args:
        node: The remote agent.
        answer: How its answers are read; None if nothing has to be done with them.
        text: Its text.
        data: Its data parts, merged.

    Returns:
        What is written, and the validated data; `UNSET` where the answer is text.

    Raises:
        OutputInvalidError: It does not fit the declared types.
        OutputMissingError: It has data, and none of this name.
    """
    if answer is None:
        return {}, UNSET
    whole = text if data is None else json.dumps(data)
    key = answer.whole_key
    if not node.writes_keys or (key is not None and answer.schema is not None):
        made = answer.data(whole)
        return answer.written(whole, made), made
    if key is not None:
        (ref,) = node.writes_keys
        value = data.get(ref.name) if data is not None and ref.name in data else None
        if data and ref.name not in data and _is_named(ref.name, text, data):
            raise _missing(node, [ref.name], data)
        if value is None:
            value = text or (whole if data is not None else None)
        if value is None:
            return {}, UNSET
        if ref.type is str and not isinstance(value, str):
            value = json.dumps(value)
        return {key: value}, UNSET
    named = _named(node, text, data)
    free = {} if node.output_schema is not None else _untyped(node, named)
    # where a model writes text, a peer's data may be anything
    whole = json.dumps({**named, **dict.fromkeys(free, "")})
    try:
        made = answer.data(whole)
    except OutputInvalidError as error:
        said = data if data is not None else _json(text)
        wrong = {field.partition(".")[0] for field in error.fields}
        sent = cast("dict[str, Any]", said) if isinstance(said, dict) else None
        absent = [ref.name for ref in node.writes_keys if ref.name in wrong]
        absent = [name for name in absent if sent is not None and name not in sent]
        if sent and absent:
            raise _missing(node, absent, sent) from error
        if data is None and not named:
            answer.data(text)  # says what is wrong with the text
        raise
    delta = answer.written(whole, made)
    written = {ref.key: free[ref.name] for ref in node.writes_keys if ref.name in free}
    return {**delta, **written}, {**made, **free}


def _is_named(name: str, text: str, data: Mapping[str, Any]) -> bool:
    """Whether an answer without the output of this name has it by another one.

    Beside a text, which is an output by itself, only a name like it is a mistake.
    """
    if set(data) == {"value"}:  # data that is no object
        return False
    return not text or nearest_name(name, data) is not None


def _missing(
    node: RemoteAgentNode, absent: list[str], sent: Mapping[str, Any]
) -> OutputMissingError:
    """The error of data without a declared output."""
    free = sorted(set(sent) - {ref.name for ref in node.writes_keys})
    near = [repr(found) for name in absent if (found := nearest_name(name, free))]
    names = ", ".join(map(repr, sorted(sent)[:_NAMES]))
    more = len(sent) - _NAMES
    return OutputMissingError(
        f"{node.name} did not send {', '.join(map(repr, absent))}, which outputs= names",
        keys=[ref.key for ref in node.writes_keys if ref.name in absent],
        node=node,
        found=f"data with {one_line(names)}{f' and {more} more' if more > 0 else ''}",
        help=(f"did you mean {', '.join(near)}? " if near else "")
        + "name in outputs= what it sends; a whole answer is one output with output_schema=",
    )


def _json(text: str) -> Any:
    """What a text says as JSON; the text itself if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _untyped(node: RemoteAgentNode, named: Mapping[str, Any]) -> dict[str, Any]:
    """The values of outputs that have no type."""
    names = {ref.name for ref in node.writes_keys if ref.type is None}
    return {name: value for name, value in named.items() if name in names}


def plain(value: Any) -> Any:
    """A value of a data part with whole numbers as such: on the wire all are floats."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    if isinstance(value, dict):
        return {key: plain(each) for key, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [plain(each) for each in cast("list[Any]", value)]
    return value


def _named(node: RemoteAgentNode, text: str, data: Mapping[str, Any] | None) -> dict[str, Any]:
    """The values of several outputs, or of one that is no text, by name."""
    names = [ref.name for ref in node.writes_keys]
    said: Any = data
    if said is None:
        said = _json(text)
    if isinstance(said, dict) and (len(names) > 1 or names[0] in said):
        found = cast("dict[str, Any]", said)
        return {name: found[name] for name in names if name in found}
    return {names[0]: said} if len(names) == 1 else {}
