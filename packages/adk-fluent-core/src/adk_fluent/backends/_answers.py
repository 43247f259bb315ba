"""What an agent's answer writes to state: its text, or data that fits a schema."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._answer_keys import check_retries, is_validated, keys_of_fields
from adk_fluent._words import describe
from adk_fluent.backends._storable import json_fault
from adk_fluent.errors import OutputInvalidError, UsageError
from adk_fluent.ir import UNSET, AgentNode, RemoteAgentNode
from adk_fluent.protocol._output import unfenced

if TYPE_CHECKING:
    from pydantic import PydanticUserError, TypeAdapter, ValidationError

    from adk_fluent.ir import Node

_SHOWN: Final = 200  # characters of an answer in an error


class Answer:
    """How the answers of one agent are read.

    - One key without a type, or of type str, and no schema: the text is written there.
    - One such key, or one of the schema's type, and a schema: the validated data is written there.
    - Several keys, one of another type, or what it ``produces``: the answer is a JSON object, each
      of whose fields is written to the key of its name. The schema is the agent's own, else made of
      the keys.

    Args:
        node: The agent.

    Raises:
        UsageError: The keys do not fit the schema, two of them have the same name, or pydantic
            does not know such a type.
    """

    def __init__(self, node: AgentNode | RemoteAgentNode) -> None:
        self._node = node
        keys = node.writes_keys
        self._fields = keys_of_fields(node)
        self._key = keys[0].key if keys and not self._fields else None
        own = None if node.output_schema is None else node.output_schema.value
        #: What the model is told to answer with; None is text.
        self.schema: Any = _model(node) if self._fields and own is None else own
        self._adapter = None if self.schema is None else _adapter(node, self.schema)

    @property
    def is_typed(self) -> bool:
        """Whether it is validated."""
        return self._adapter is not None

    @property
    def text_key(self) -> str | None:
        """The key that the text itself is written to."""
        return self._key if self.schema is None else None

    @property
    def whole_key(self) -> str | None:
        """The key that the whole answer is written to, as ADK's ``output_key``."""
        return self._key

    def read(self, text: str) -> dict[str, Any]:
        """What an answer writes; nothing if it is empty and there is something to be written.

        Raises:
            OutputInvalidError: It does not fit the schema.
        """
        return self.written(text, self.data(text))

    def written(self, text: str, data: Any) -> dict[str, Any]:
        """What an answer writes, given the data in it that `data` has returned."""
        if data is UNSET:
            silent = self.schema is not None and not text.strip()
            return {} if self._key is None or silent else {self._key: text}
        if self._fields:
            return {key: data.get(name) for name, key in self._fields.items()}
        return {} if self._key is None else {self._key: data}

    def data(self, text: str) -> Any:
        """The validated data of an answer, as JSON; `UNSET` where it is text, or there is none.

        Raises:
            OutputInvalidError: It does not fit the schema.
        """
        adapter = self._adapter  # none for a schema in genai's own notation: only the model checks
        if adapter is None or (not text.strip() and self._node.writes_keys):
            return UNSET
        from pydantic import ValidationError  # noqa: PLC0415  # slow, and only schemas need it

        try:
            value = adapter.validate_json(unfenced(text))
        except ValidationError as error:
            raise _misfit(self._node, text, error) from error
        # as session services store it, and without what the model left out, as ADK does
        made = adapter.dump_python(value, mode="json", exclude_none=not self._fields)
        fault = json_fault(made) if self._node.writes_keys else None
        if fault is not None:  # a NaN, which pydantic takes for JSON
            field = fault.path[1:-1].replace("][", ".").replace("'", "")
            raise _invalid(self._node, text, [field], [fault.says])
        return made


def answer_of(node: Node) -> Answer | None:
    """How the answers of an agent are read; None if nothing has to be done with them.

    Raises:
        UsageError: The keys do not fit the schema, two of them have the same name, pydantic does
            not know such a type, or an answer in text is to be given again.
    """
    if not isinstance(node, AgentNode | RemoteAgentNode):
        return None
    check_retries(node)
    return Answer(node) if node.writes_keys or node.output_schema is not None else None


def correction(wrong: str) -> str:
    """What a model is told of an answer that does not fit."""
    return f"{wrong}. Answer again, with JSON that fits the schema and nothing else."


def _model(node: AgentNode | RemoteAgentNode) -> Any:
    # slow, and only schemas need it
    from pydantic import PydanticUserError, create_model  # noqa: PLC0415

    fields: dict[str, Any] = {
        ref.name: (ref.type or str, ... if ref.default is UNSET else ref.default)
        for ref in node.writes_keys
    }
    try:
        return create_model(f"{node.name}_answer", __base__=_base(), **fields)
    except PydanticUserError as error:
        raise _unreadable(
            node, ", ".join(describe(ref.type) for ref in node.writes_keys), error
        ) from error


@cache
def _base() -> Any:
    from pydantic import BaseModel, ConfigDict  # noqa: PLC0415  # the same

    class Base(BaseModel):
        model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")  # as in state

        def model_dump(self, **options: Any) -> Any:
            """As JSON, which is all that ADK 2.x takes of what it asks for beside tools."""
            options.setdefault("mode", "json")
            return super().model_dump(**options)

    return Base


def _adapter(node: Node, schema: Any) -> TypeAdapter[Any] | None:
    # slow, and only schemas need it
    from pydantic import PydanticUserError, TypeAdapter  # noqa: PLC0415

    if not is_validated(schema):
        return None
    try:
        return TypeAdapter[Any](schema)
    except PydanticUserError as error:
        raise _unreadable(node, describe(schema), error) from error


def _unreadable(node: Node, found: str, error: PydanticUserError) -> UsageError:
    return UsageError(
        "pydantic cannot read answers of this type",
        node=node,
        found=found,
        help=error.message.partition("\n")[0],
    )


def _misfit(node: Node, text: str, error: ValidationError) -> OutputInvalidError:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    fields = [".".join(map(str, fault["loc"])) for fault in faults]
    return _invalid(node, text, fields, [str(fault["msg"]) for fault in faults])


def _invalid(node: Node, text: str, fields: list[str], says: list[str]) -> OutputInvalidError:
    told = "; ".join(
        f"{field}: {said}" if field else said for field, said in zip(fields, says, strict=True)
    )
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return OutputInvalidError(
        f"the answer of {node.name} does not fit its schema: {told}",
        fields=[field for field in fields if field],
        node=node,
        found=repr(shown),
        help=f"{_shape(node)}say in the instruction what the answer has to look like, or loosen "
        "the schema; a fallback (//) makes good for it",
    )


def _shape(node: Node) -> str:
    """What the answer has to be, where typed keys and no schema of the user's say it."""
    if not isinstance(node, AgentNode | RemoteAgentNode) or node.output_schema is not None:
        return ""
    fields = ", ".join(f'"{ref.name}": ...' for ref in node.writes_keys)
    return f"typed keys are fields of one JSON object, {{{fields}}}: " if fields else ""
