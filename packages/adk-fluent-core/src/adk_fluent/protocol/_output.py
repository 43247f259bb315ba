"""The typed value of a run: what its answer is, given the types of the steps that answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from adk_fluent._words import describe
from adk_fluent.errors import OutputInvalidError, UsageError
from adk_fluent.protocol._answer import Data, composed, finals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from adk_fluent.protocol._event import AgentEvent

T = TypeVar("T")

_FENCE: Final = "```"
_SHOWN: Final = 200  # characters of an answer in an error


class Types(dict[str, Any]):
    """The types of steps by name, of which pickles keep those that another process can find."""

    def __deepcopy__(self, memo: object) -> Self:
        """Return the same, as types are."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out what pickle cannot name; the answer is JSON there."""
        return dict, ({name: each if _is_found(each) else None for name, each in self.items()},)


def _is_found(schema: object) -> bool:
    import pickle  # noqa: PLC0415  # few need it

    try:
        pickle.dumps(schema)
    except Exception:  # noqa: BLE001  # which one is up to the type
        return False
    return True


def unfenced(text: str) -> str:
    """The text without the fence of three backticks that some models put around JSON."""
    inside = text.strip()
    if len(inside) < 2 * len(_FENCE) or not (inside.startswith(_FENCE) and inside.endswith(_FENCE)):
        return text
    inside = inside.removeprefix(_FENCE).removesuffix(_FENCE)
    return inside[4:] if inside[:4].lower() == "json" else inside


def typed_output(events: Iterable[AgentEvent], types: Mapping[str, Any] | None) -> Any:
    """The value of the answer; None where that is text.

    Args:
        events: What happened.
        types: The steps whose answer is the pipeline's, by name, each with its type, or None where
            that is JSON of several keys; without, the data is given as JSON.
    """
    answers = finals(events)
    said = [(each.path or "", _value(each, types)) for each in answers]
    value = composed(said if any(each.path is not None for each in answers) else said[-1:])
    return value.value if isinstance(value, Data) else None


def output_as(events: Iterable[AgentEvent], schema: type[T]) -> T:
    """The answer as a type.

    Raises:
        OutputInvalidError: It does not fit.
        UsageError: Pydantic knows no such type.
    """
    # slow to import
    from pydantic import PydanticUserError, TypeAdapter, ValidationError  # noqa: PLC0415

    answers = finals(events)
    said = [(each.path or "", _raw(each)) for each in answers]
    value = composed(said if any(each.path is not None for each in answers) else said[-1:])
    if schema is str and isinstance(value, str):
        return cast("T", value)
    text = unfenced(value) if isinstance(value, str) else json.dumps(value.value)
    try:
        return TypeAdapter(schema).validate_json(text)
    except PydanticUserError as error:
        raise UsageError(
            "output_as(...) takes a type that pydantic can read",
            found=describe(schema),
            help=error.message.partition("\n")[0],
        ) from error
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        fields = [".".join(map(str, fault["loc"])) for fault in faults]
        told = "; ".join(
            f"{field}: {fault['msg']}" if field else fault["msg"]
            for field, fault in zip(fields, faults, strict=True)
        )
        raise OutputInvalidError(
            f"the answer of the run is no {getattr(schema, '__name__', schema)}: {told}",
            fields=[field for field in fields if field],
            found=repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."),
            help="let the agent that answers know the type: agent @ Schema",
        ) from error


def _value(event: AgentEvent, types: Mapping[str, Any] | None) -> str | Data:
    """What an event answers, as a value of its step's type."""
    text = event.content or ""
    if types is None:
        return text if event.output is None else Data(event.output)
    if event.author != event.node or event.author not in types:
        return text
    schema = types[event.author]
    if schema is None:
        return text if event.output is None else Data(event.output)
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  # slow to import

    try:
        return Data(TypeAdapter[Any](schema).validate_json(unfenced(text)))
    except ValidationError:  # said by somebody else in its name
        return text


def _raw(event: AgentEvent) -> str | Data:
    """What an event answers, as the model has said it: names in JSON may be others than fields."""
    if event.output is None:
        return event.content or ""
    try:
        return Data(json.loads(unfenced(event.content or "")))
    except ValueError:
        return Data(event.output)
