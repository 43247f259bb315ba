"""What users pass to builders, as types."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Literal, TypeAlias

from adk_fluent.ir import Match, Ref

if TYPE_CHECKING:
    from google.adk.models import BaseLlm
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.base_toolset import BaseToolset
    from google.genai.types import Content, Part

    from adk_fluent._scripts._replies import Call, Reply, Thought
    from adk_fluent._scripts._script import Script
    from adk_fluent.protocol import Answer, FieldRef, Resume

if TYPE_CHECKING:  # with what Python 3.13 has
    from typing_extensions import TypeVar

    Out_co = TypeVar("Out_co", default=Any, covariant=True)
    Value = TypeVar("Value", default=Any)
else:
    from typing import TypeVar

    Out_co = TypeVar("Out_co", covariant=True)
    Value = TypeVar("Value")

#: Session state as a function step or predicate sees it: every key, read-only.
State: TypeAlias = Mapping[str, Any]
_Result: TypeAlias = Mapping[str, Any] | None
_Outcome: TypeAlias = _Result | Awaitable[_Result]

#: A step made of a function over state; what it returns is merged into state. The last form is for
#: parameters beyond state, which resources are injected into, and for one annotated as a `dict`.
StepFunction: TypeAlias = Callable[[State], _Outcome] | Callable[Concatenate[Any, ...], _Outcome]

#: Looks at state and returns nothing; sync or async.
TapFunction: TypeAlias = Callable[[State], object] | Callable[Concatenate[Any, ...], object]

#: What JSON can hold, and therefore every session service.
JsonValue: TypeAlias = str | int | float | list[Any] | Mapping[str, Any] | None

# The last forms are for parameters beyond the values, which resources are injected into.

#: Makes a new value of one; sync or async.
ValueFunction: TypeAlias = Callable[[Any], object] | Callable[Concatenate[Any, ...], object]

#: Makes a value of several; sync or async.
ValuesFunction: TypeAlias = (
    Callable[[Any], object]
    | Callable[[Any, Any], object]
    | Callable[[Any, Any, Any], object]
    | Callable[..., object]
)

#: Makes a value of state; sync or async.
StateFunction: TypeAlias = Callable[[State], object] | Callable[Concatenate[Any, ...], object]

_Verdict: TypeAlias = bool | Awaitable[bool]

#: A test over state, sync or async.
PredicateFunction: TypeAlias = (
    Callable[[State], _Verdict] | Callable[Concatenate[Any, ...], _Verdict]
)

#: A test over state: a function, or a comparison as data.
PredicateLike: TypeAlias = PredicateFunction | Match | Ref

#: An ADK callback; ADK calls it with keyword arguments and takes sync and async ones.
Callback: TypeAlias = Callable[..., object]

#: One, or several in order.
Callbacks: TypeAlias = Callback | Sequence[Callback]

#: Gives the instruction when the agent runs; gets ADK's ReadonlyContext.
InstructionProvider: TypeAlias = Callable[..., str | Awaitable[str]]

#: The same, or a function that has nothing but a docstring.
AgentFunction: TypeAlias = Callable[..., str | Awaitable[str] | None]

#: A type that an answer or an input must fit; mostly a pydantic model.
Schema: TypeAlias = type[Any]

#: Who writes a key: the agent's answer, or one of its tools.
Via: TypeAlias = Literal["answer", "tool"]

# What stands in quotes needs ADK, or what is slow to import.

#: A state key: its name, or a field of a StateSchema.
KeyLike: TypeAlias = "str | FieldRef"

#: What a mocked model answers; a function gets the prompt's text.
MockReply: TypeAlias = "str | Reply | Call | Thought | Part | Exception | Callable[[str], object]"

#: One for every call, one after the other, or a script.
MockReplies: TypeAlias = "MockReply | Sequence[MockReply] | Script"

#: A model's name, or an ADK model.
ModelLike: TypeAlias = "str | BaseLlm | Ref"

#: A function, an ADK tool or a toolset.
ToolLike: TypeAlias = "Callable[..., Any] | BaseTool | BaseToolset | Ref"

#: A part of a message: text, or genai's Part or Content.
MessagePart: TypeAlias = "str | Part | Content"

#: What a run is started with.
Message: TypeAlias = "MessagePart | Answer | Sequence[MessagePart | Answer] | Resume"
