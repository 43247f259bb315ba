"""What a pipeline says, as a digest: a journal of another one is of no use."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.agents.base_agent import BaseAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from pydantic import BaseModel

from adk_fluent.backends import adk
from adk_fluent.ir import AdkAgentNode, Node, Ref, content_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    from google.adk.workflow import BaseNode
except ImportError:  # google-adk 1.x has no graphs
    BaseNode = None

_DEEPEST: Final = 30  # data in data
#: Whose classes are known by their names: their code changes with their versions alone.
_LIBRARIES: Final = frozenset({"abc", "adk_fluent", "builtins", "google", "pydantic", "typing"})
#: What functions are held as, beside fields.
_FUNCTIONS: Final = ("func", "_func")


def digest_of_pipeline(pipeline: Any) -> str:
    """What a pipeline says, as 16 hexadecimal digits: the same in every process.

    Models count by type and name, functions by their source, other objects by type and name.

    Args:
        pipeline: A builder, IR, an agent, a node of a graph or an App of ADK's.
    """
    teller = _Teller()
    told = [teller.tell(pipeline), *teller.steps_told()]
    return content_hash(AdkAgentNode("pipeline", Ref(told, "pipeline")))[:16]


class _Teller:
    """Takes ADK's objects apart, until nothing is left but data, functions and types."""

    def __init__(self) -> None:
        self._steps: list[Any] = []  # kept alive, so that no id is used again
        self._numbers: dict[int, int] = {}

    def steps_told(self) -> Iterator[Any]:
        """All agents and steps that were met, each once; these may meet others."""
        for each in self._steps:  # which grows
            yield self._fields(each, 0)

    def tell(self, value: Any, depth: int = 0) -> Any:
        """A value, of which core makes a digest."""
        if depth > _DEEPEST:
            return ["deep"]
        if value is None or isinstance(value, type):
            return cast("Any", value)
        if hasattr(value, "to_ir"):
            value = value.to_ir()
        if isinstance(value, Node):
            return [content_hash(value), *(self.tell(each, depth + 1) for each in _held(value))]
        if isinstance(value, Mapping):
            rows = cast("Mapping[Any, Any]", value).items()
            return [[key, self.tell(each, depth + 1)] for key, each in rows]
        if isinstance(value, list | tuple):
            return [self.tell(each, depth + 1) for each in cast("list[Any]", value)]
        return self._of_adk(value, depth)

    def _of_adk(self, value: Any, depth: int) -> Any:
        if isinstance(value, BaseAgent) or (BaseNode is not None and isinstance(value, BaseNode)):
            if id(value) not in self._numbers:
                self._numbers[id(value)] = len(self._steps)
                self._steps.append(value)
            return ["step", self._numbers[id(value)]]
        if isinstance(value, BaseLlm):
            return ["model", type(value), value.model]
        if isinstance(value, BaseTool):
            return [
                *("tool", type(value), value.name, value.description, _code(type(value))),
                *(self.tell(getattr(value, name, None), depth + 1) for name in ("agent", "func")),
            ]
        if isinstance(value, BaseToolset):
            return ["toolset", type(value), self.tell(value.tool_filter, depth + 1)]
        if isinstance(value, BasePlugin):
            return ["plugin", type(value), value.name, _code(type(value))]
        return self._fields(value, depth) if isinstance(value, BaseModel) else value

    def _fields(self, value: BaseModel, depth: int) -> Any:
        """What is set of an agent, a step of a graph, an App or a part of its settings."""
        if isinstance(value, adk.FlowAgent):  # built of IR, which says it all
            return self.tell(value.plan.node, depth + 1)
        told: dict[str, Any] = {"": [type(value), _code(type(value))]}
        for name, field in type(value).model_fields.items():
            each: Any = getattr(value, name, None)
            if name != "parent_agent" and not _is_unset(each, field.default):
                told[name] = self.tell(each, depth + 1)
        for name in _FUNCTIONS:
            if (function := getattr(value, name, None)) is not None:
                told[name] = function
        return told


def _held(value: Any) -> Iterator[Any]:
    """The live objects in IR: core knows those of ADK's by their types only."""
    if isinstance(value, Ref):
        yield value.value
    elif isinstance(value, tuple):
        for each in cast("tuple[Any, ...]", value):
            yield from _held(each)
    elif (schema := getattr(value, "__record__", None)) is not None:
        for name in schema.fields:
            yield from _held(getattr(value, name))


def _code(kind: type) -> list[Any]:
    """The functions of a class that is no library's."""
    return [
        [name, each]
        for own in kind.__mro__
        if own.__module__.partition(".")[0] not in _LIBRARIES
        for name, each in sorted(vars(own).items())
        if isinstance(each, FunctionType)
    ]


def _is_unset(value: Any, default: Any) -> bool:
    """Whether a field says nothing: a new one of another google-adk does not change a digest."""
    if value is None or value is default:
        return True
    if isinstance(value, str | int | float):
        return value == default
    return isinstance(value, list | dict | tuple) and not value
