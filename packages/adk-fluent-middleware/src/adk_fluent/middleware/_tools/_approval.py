"""Tools that a person is asked about before they run."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from pydantic.json_schema import SkipJsonSchema

from adk_fluent.errors import RunError
from adk_fluent.middleware._builtin import BuiltIn, builtin, dependency
from adk_fluent.middleware._tools._machinery import FRAMEWORK, check_tools, wrong_arguments
from adk_fluent.protocol import asked_key
from adk_fluent.telemetry import count

if TYPE_CHECKING:
    from typing import Self

    from adk_fluent.protocol import NextTool, ToolCall

#: Where state keeps what was approved for the rest of a session. One key for each, since two tools
#: may be approved at the same time.
_KEY: Final = "adk_fluent_approved"
#: What an answer may say besides the changed arguments.
_SAID: Final = frozenset({"args", "note", "reason"})
_UNREADABLE: Final = (
    'The answer approves the call, and says something about it that is not {"args": {...}}.'
)
#: What a model is shown of a call until it has run; of one that takes its time, also after that.
_WAITS: Final = {"status": "A person is asked about this call; its result comes later."}


@builtin
class ToolApprovalMiddleware(BuiltIn):
    """Asks a person before a tool runs, and does not run it without.

    The run pauses, as it does for every confirmation of ADK's. The answer approves the call,
    changes its arguments, or refuses it with a reason, which the model is told.

    Attributes:
        tools: Ask about all tools, about none, or about those of these names. ADK's own, such as
            ``transfer_to_agent``, are never asked about.
        exclude: Names of tools that are not asked about.
        message: What the person is asked: a text, which the call is put behind, or a function of
            the tool's name and arguments. By default "Run ...?".
        edits: The answer may change the arguments.
        remember: Ask only once in a session: with "call" about the same tool with the same
            arguments, with "tool" about the same tool.
        when: Decides whether to ask about a call: a function of the tool's name and arguments,
            sync or async. If it raises, the tool does not run.
    """

    tools: bool | Sequence[str] = True
    exclude: Sequence[str] = ()
    message: str | SkipJsonSchema[Callable[[str, dict[str, Any]], str]] = ""
    edits: bool = True
    remember: Literal["call", "tool"] | None = None
    when: Callable[[str, dict[str, Any]], bool | Awaitable[bool]] | None = dependency(
        default_factory=lambda: None
    )
    _edited: set[str] = field(default_factory=set[str], init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: One has a value that it cannot have.
        """
        super().__post_init__()
        check_tools(self.name, self.tools)

    def new(self) -> Self:
        """An instance for one run."""
        made = copy.copy(self)
        made._edited = set()  # noqa: SLF001  # its own
        return made

    async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> Any:
        """Ask, or do what was answered."""
        if not self._is_asked_about(tool_name):
            return None
        answer = ctx.tool_confirmation
        if answer is None:
            asks = await self._asks(ctx, tool_name, args)
            return self._ask(ctx, tool_name, args) if asks else None
        ctx.state[asked_key(ctx.function_call_id)] = None
        if not answer.confirmed:  # also if nobody would be asked by now
            return self._refuse(tool_name, _reason(answer.payload))
        try:
            changed = _changed(answer.payload)
        except ValueError:
            return self._refuse(tool_name, _UNREADABLE)
        if changed is not None and changed != args:
            return self._change(ctx, tool_name, args, changed)
        if self.remember is not None:
            ctx.state[self._key(tool_name, args)] = True
        self._count("approved", tool_name)
        return None

    async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
        """See that changed arguments are what the tool takes."""
        if call.call_id in self._edited:
            wrong = wrong_arguments(call.tool, call.args)
            if wrong is not None:
                return self._refuse(call.name, f"The arguments were changed, but {wrong}.")
            self._count("edited", call.name)
        return await next(call)

    def _is_asked_about(self, name: str) -> bool:
        if name in FRAMEWORK or name in self.exclude:
            return False
        return self.tools if isinstance(self.tools, bool) else name in self.tools

    async def _asks(self, ctx: Any, name: str, args: dict[str, Any]) -> bool:
        if self.remember is not None and ctx.state.get(self._key(name, args)) is True:
            return False
        if self.when is None:
            return True
        asks = self.when(name, args)
        return bool(await asks if isawaitable(asks) else asks)

    def _ask(self, ctx: Any, name: str, args: dict[str, Any]) -> dict[str, Any]:
        from adk_fluent.middleware._tools._machinery_adk import agent_tool_of  # noqa: PLC0415  # needs ADK

        within = agent_tool_of(ctx)
        if within is not None:
            raise RunError(
                f"nobody can be asked about tool {name!r}",
                found=f"it is called within {within!r}, an agent that is a tool",
                help=f"ask about {within!r} instead, or make that agent a delegate",
            )
        ctx.request_confirmation(
            hint=self._question(name, args), payload={"args": args} if self.edits else None
        )
        ctx.state[asked_key(ctx.function_call_id)] = self.name
        ctx.actions.skip_summarization = True  # else the model is asked what to make of this
        self._count("asked", name)
        return dict(_WAITS)

    def _question(self, name: str, args: dict[str, Any]) -> str:
        if not isinstance(self.message, str):
            return self.message(name, args)
        call = f"{name}({json.dumps(args, ensure_ascii=False, default=str)})"
        return f"{self.message} {call}" if self.message else f"Run {call}?"

    def _change(self, ctx: Any, name: str, args: dict[str, Any], changed: dict[str, Any]) -> Any:
        if not self.edits:
            return self._refuse(name, "The arguments were changed, and may not be.")
        self._edited.add(ctx.function_call_id)
        args.clear()
        args.update(changed)  # the tool's; what the model has said stays as it is
        return None

    def _refuse(self, name: str, reason: str) -> dict[str, Any]:
        self._count("refused", name)
        said = {"status": "A person has refused this call. It was not run."}
        return {**said, "reason": reason} if reason else said

    def _key(self, name: str, args: dict[str, Any]) -> str:
        if self.remember == "tool":
            return f"{_KEY}:{name}"
        text = json.dumps(args, sort_keys=True, default=str)
        return f"{_KEY}:{name}:{hashlib.sha256(text.encode()).hexdigest()[:32]}"

    def _count(self, decision: str, name: str) -> None:
        what = {"adk_fluent.decision": decision, "gen_ai.tool.name": name}
        count("adk_fluent.approval.decisions", 1, what)


def _changed(payload: Any) -> dict[str, Any] | None:
    """The arguments that an answer gives; None if it gives none.

    Raises:
        ValueError: It gives something, and no arguments in the form in which they were asked for.
    """
    given = json.loads(payload) if isinstance(payload, str) and payload else payload
    if not given:
        return None
    said = cast("dict[str, Any]", given if isinstance(given, dict) else {"": given})
    args = said.get("args")
    if not said.keys() <= _SAID or not (args is None or isinstance(args, dict)):
        raise ValueError(said)
    return cast("dict[str, Any] | None", args)


def _reason(payload: Any) -> str:
    """Why a call was refused; "" if nobody says."""
    match payload:
        case {"note": str(said)} | {"reason": str(said)}:
            return said
        case str(said):
            return said
        case _:
            return ""


#: `ToolApprovalMiddleware` by its short name.
tool_approval = ToolApprovalMiddleware
#: The same, by the name that others have for it.
human_in_the_loop = ToolApprovalMiddleware
#: The description under that name.
HUMAN_IN_THE_LOOP = replace(ToolApprovalMiddleware.DESC, name="human_in_the_loop")
