"""Middleware: what acts on every run, step, model call and tool call of a pipeline."""

from __future__ import annotations

import sys
from abc import ABCMeta
from collections.abc import Sequence  # noqa: TC003  # subclasses ask for the types of fields
from dataclasses import dataclass, field
from inspect import isasyncgenfunction, iscoroutinefunction, isfunction, signature, unwrap
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

from adk_fluent.errors import UsageError
from adk_fluent.protocol._hooks import (
    AfterAgent,
    AfterModel,
    AfterRun,
    AfterTool,
    BeforeAgent,
    BeforeModel,
    BeforeRun,
    BeforeTool,
    OnAgentError,
    OnEvent,
    OnModelError,
    OnRunError,
    OnToolError,
    OnUserMessage,
    WrapAgent,
    WrapModelCall,
    WrapModelRequest,
    WrapRemoteCall,
    WrapRun,
    WrapToolCall,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Self

    from adk_fluent.protocol._calls import (
        AgentCall,
        AgentReply,
        ModelCall,
        ModelReply,
        NextAgent,
        NextModel,
        NextRemote,
        NextRun,
        NextTool,
        RemoteCall,
        RemoteReply,
        RunCall,
        ToolCall,
    )
    from adk_fluent.protocol._event import AgentEvent


class _MiddlewareType(ABCMeta):
    """Makes ``isinstance(x, Middleware)`` true of every object that may be used as one."""

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Middleware:
            return refusal(instance) is None
        return super().__instancecheck__(instance)


class Middleware(metaclass=_MiddlewareType):
    """A unit of cross-cutting behaviour. Deriving from it is possible, never necessary.

    Any object with one of these hooks is a middleware; implement only those you need. The first
    middleware of a stack is the outermost: ``before_*`` hooks run in the stack's order, then
    ``wrap_*`` around the thing itself, then ``after_*`` in reverse. The first ``before_*`` hook
    that returns something other than None decides, and those after it are not asked; what an
    ``after_*`` hook or ``on_event`` returns the next one is given. An error in a hook is the
    failure of what it stands around, with its own type.

    In the spec these are thirteen hooks; the errors of runs and steps and the five ``wrap_*`` are
    beyond it.

    Attributes:
        observer: Its hooks' return values are ignored and its errors logged, not raised.
        at_boundary: It stands between the run and the world, past all other middlewares: it is the
            first to hear what the user says, the innermost around model calls and tool calls (those
            of parts included), and the last to see an event.
        outermost: It stands outside all other middlewares of the run and of its parts, wherever it
            was given: what it sends passes through all of them.
        adds_tools: The names of the tools that it adds to requests; None if they are not known, as
            long as it has `new` or a hook that is given requests: without those it adds none.
    """

    observer: bool = False
    at_boundary: bool = False
    outermost: bool = False
    adds_tools: Sequence[str] | None = None

    def new(self) -> Self:
        """The instance for one run. Return a fresh one to keep state of a run on `self`."""
        return self

    def refuses_scope(self) -> str | None:
        """Say why it cannot stand around a part of a pipeline; None when it can."""
        return None

    def refuses_live(self) -> str | None:
        """Say why it cannot keep its promise in a live run; None when it can.

        A live connection is no model call: of their hooks `before_model` and `after_model` alone
        are asked.
        """
        return None

    def begin_run(self, call: RunCall, /) -> None:
        """A run begins, or goes on; told before any hook but `on_user_message`.

        It is for who only has to know whose run it is: `wrap_run` lets each event of the run pass
        through a task of its own.
        """

    def end_run(self, status: str, error: BaseException | None, /) -> None:
        """A run ends, or stops until it is answered; the counterpart of `begin_run`.

        It is told after every other hook of the run.

        Args:
            status: ``completed``, ``waiting``, ``failed``, or ``cancelled`` if nobody wants more.
            error: Why it failed or was cancelled.
        """

    def begin_part(self, name: str, call: RunCall, /) -> None:
        """A run begins, or goes on, in which it stands around a part only.

        It is told before any hook, in the place of the hooks of runs, which are not asked. The
        state is `call.ctx.session.state`, to be read. No hook tells when the run is over.
        """

    def note_answer(self, call: ModelCall, /) -> Mapping[str, Any] | None:
        """Return what to keep on the event of an answer, in its ``custom_metadata``: JSON data.

        It is asked for each event of the run that a model call comes to, as it is about to be
        committed, fragments excepted. The answer itself, which a cache or a recorder may hold, is
        left as it is. Where several note something under one key, the outermost's is kept.
        Observers are not asked, and nobody is in live runs. What a callback of the agent's answers
        in the model's place is an answer, too.

        Args:
            call: The call that was answered, as it was announced.
        """

    def see_event(self, ctx: Any, event: Any, /) -> None:
        """Look at an event of the run, as it is stored and shown: for who changes nothing.

        It is told of every event that `on_event` is asked about, when all of those have been asked,
        and costs less: no `AgentEvent` is made. ``adk_fluent.extend.to_agent_event`` makes one.

        Args:
            ctx: ADK's InvocationContext.
            event: ADK's Event. Whoever is given it after this may change it, and this must not:
                what is kept of it is copied.
        """

    async def on_user_message(self, ctx: Any, message: Any) -> Any:
        """Return a Content to put in place of the user's message."""

    async def before_run(self, ctx: Any) -> Any:
        """Return a Content to answer with it and not run at all."""

    async def after_run(self, ctx: Any) -> None:
        """The run succeeded."""

    async def on_run_error(self, ctx: Any, error: Exception) -> None:
        """The run failed."""

    async def on_event(self, ctx: Any, event: AgentEvent) -> AgentEvent | None:
        """Return an event to put in place of this one."""

    async def before_agent(self, ctx: Any, agent_name: str) -> Any:
        """Return a Content to answer with it in the step's place."""

    async def after_agent(self, ctx: Any, agent_name: str) -> Any:
        """Return a Content to say it after the step."""

    async def on_agent_error(self, ctx: Any, agent_name: str, error: Exception) -> None:
        """A step failed."""

    async def before_model(self, ctx: Any, request: Any) -> Any:
        """Change the LlmRequest in place, or return an LlmResponse to not call the model."""

    async def after_model(self, ctx: Any, response: Any) -> Any:
        """Return an LlmResponse to put in place of this one; fragments come here, too."""

    async def on_model_error(self, ctx: Any, request: Any, error: Exception) -> Any:
        """Return an LlmResponse to recover; `wrap_model_call` can make the call again."""

    async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> Any:
        """Change the arguments in place, or return a result (a dict) to not call the tool."""

    async def after_tool(self, ctx: Any, tool_name: str, args: dict[str, Any], result: Any) -> Any:
        """Return a result (a dict) to put in place of this one."""

    async def on_tool_error(
        self, ctx: Any, tool_name: str, args: dict[str, Any], error: Exception
    ) -> Any:
        """Return a result (a dict) to recover; `wrap_tool_call` can make the call again."""

    async def wrap_run(self, call: RunCall, next: NextRun, /) -> AgentReply:
        """Stand around the run."""
        return await next(call)

    async def wrap_agent(self, call: AgentCall, next: NextAgent, /) -> AgentReply:
        """Stand around a step: an agent, or an arrangement of steps."""
        return await next(call)

    async def wrap_model_call(self, call: ModelCall, next: NextModel, /) -> ModelReply:
        """Stand around a model call; call `next` again to retry, unless `call.emitted`."""
        return await next(call)

    async def wrap_model_request(self, call: ModelCall, next: NextModel, /) -> ModelReply:
        """Stand next to the model, inside every `wrap_model_call` of the stack.

        It is asked for each request that is sent: every attempt of a retry, every model of a
        fallback, and what middlewares ask models for themselves (summaries), with `call.model` as
        it is called. What a cache answers was sent to nobody, and does not come here.
        """
        return await next(call)

    async def wrap_tool_call(self, call: ToolCall, next: NextTool, /) -> Any:
        """Stand around a tool call; call `next` again to retry."""
        return await next(call)

    async def wrap_remote_call(self, call: RemoteCall, next: NextRemote, /) -> RemoteReply:
        """Stand around a call of an agent elsewhere, its retries included.

        What does not call `next` reaches no network. Fragments pass by on their own
        (`RemoteCall.emit`).
        """
        return await next(call)

    async def close(self) -> None:
        """The app shuts down."""


#: What the type checker accepts as a middleware: an object with at least one hook.
AnyMiddleware = (
    Middleware
    | OnUserMessage
    | BeforeRun
    | AfterRun
    | OnRunError
    | OnEvent
    | BeforeAgent
    | AfterAgent
    | OnAgentError
    | BeforeModel
    | AfterModel
    | OnModelError
    | BeforeTool
    | AfterTool
    | OnToolError
    | WrapRun
    | WrapAgent
    | WrapModelCall
    | WrapModelRequest
    | WrapRemoteCall
    | WrapToolCall
)

#: What each hook is given, in the order in which they come up in a run.
_TAKES: Final[Mapping[str, tuple[str, ...]]] = {
    "on_user_message": ("ctx", "message"),
    "before_run": ("ctx",),
    "wrap_run": ("call", "next"),
    "before_agent": ("ctx", "agent_name"),
    "wrap_agent": ("call", "next"),
    "before_model": ("ctx", "request"),
    "wrap_model_call": ("call", "next"),
    "wrap_model_request": ("call", "next"),
    "on_model_error": ("ctx", "request", "error"),
    "after_model": ("ctx", "response"),
    "before_tool": ("ctx", "tool_name", "args"),
    "wrap_tool_call": ("call", "next"),
    "on_tool_error": ("ctx", "tool_name", "args", "error"),
    "after_tool": ("ctx", "tool_name", "args", "result"),
    "wrap_remote_call": ("call", "next"),
    "on_event": ("ctx", "event"),
    "after_agent": ("ctx", "agent_name"),
    "on_agent_error": ("ctx", "agent_name", "error"),
    "after_run": ("ctx",),
    "on_run_error": ("ctx", "error"),
    "close": (),
}

#: The names of all hooks, in the order in which they come up in a run.
HOOKS: Final[tuple[str, ...]] = tuple(_TAKES)

_INHERITED: Final = tuple((name, getattr(Middleware, name)) for name in HOOKS)
_ASKED: Final = frozenset({*HOOKS, "new"})
#: Methods that are no hooks: nobody awaits them.
_NOT_AWAITED: Final = ("begin_run", "end_run", "begin_part", "note_answer", "see_event")
#: How the names of hooks begin; the others are plain words.
_PREFIXES: Final = ("before_", "after_", "on_", "wrap_")
#: How like a hook's name another one is that was meant to be it; from 0 to 1.
_MISSPELT: Final = 0.87
#: The hooks of classes whose instances may be used, as far as those have the hooks of the class.
_CHECKED: Final[WeakKeyDictionary[type, frozenset[str]]] = WeakKeyDictionary()

#: The hooks that are asked about a whole run, and never about a part of one.
HOOKS_OF_RUNS: Final = frozenset(
    {"on_user_message", "before_run", "wrap_run", "after_run", "on_run_error", "close"}
)

#: Files and connections have it, too, so it alone makes nothing a middleware.
_COMMON: Final = frozenset({"close"})
_VALUES: Final[tuple[type, ...]] = (
    *(str, bytes, int, float, complex, dict, list, tuple, set, frozenset),
    BaseException,
    ModuleType,
)
#: Whose objects are middlewares only if they have a hook; "test" is where people keep their tests.
_LIBRARIES: Final = (sys.stdlib_module_names | {"adk_fluent", "google", "pydantic"}) - {"test"}
_WANTED: Final = "pass an object with hooks such as before_model, after_tool or wrap_model_call"


def asked_key(call_id: str | None) -> str:
    """The state key under which a middleware notes that it asks about a tool call.

    Its own name stands there while the question is open. Whoever answers in a run without a
    middleware of that name is refused, as the tool would be run whatever was answered.
    """
    return f"adk_fluent_asked:{call_id}"


def hooks_of(middleware: object) -> frozenset[str]:
    """The hooks an object implements; what it inherits from `Middleware` unchanged is none."""
    kind = type(middleware)
    known = _CHECKED.get(kind)
    if known is not None and _is_like_its_class(middleware):  # each run asks again
        return known
    return frozenset(
        name
        for name, inherited in _INHERITED
        if getattr(kind, name, None) is not inherited
        and getattr(middleware, name, None) is not None
    )


def has_method(middleware: object, method: str) -> bool:
    """Whether a middleware has a method that is no hook, and not only as `Middleware` has it."""
    return getattr(type(middleware), method, None) not in (None, getattr(Middleware, method))


def fresh(middleware: Any) -> Any:
    """The instance for one run: what its ``new`` returns, or itself when it has none."""
    new: Callable[[], Any] | None = getattr(middleware, "new", None)
    return middleware if new is None else new()


def refusal(value: object) -> str | None:
    """What to do instead of using `value` as a middleware; None when it is one.

    An instance of any class of the user's is one, also of an empty class. Classes, functions,
    modules, plain values and objects of the standard library are none, nor are ADK's plugins.
    """
    if isinstance(value, type):
        return f"pass an instance: {value.__name__}(...)"
    if isinstance(value, _VALUES):
        return _instead_of(cast("object", value))
    if hasattr(type(value), "to_ir"):
        return "this is a part of a pipeline: make it a step"
    has_hook = Middleware in type(value).__mro__ or not hooks_of(value) <= _COMMON
    if not has_hook and hasattr(type(value), "before_model_callback"):
        return "this looks like an ADK plugin: pass it in to_app(plugins=[...])"
    package = type(value).__module__.partition(".")[0]
    return _WANTED if package in _LIBRARIES and not has_hook else None


def _instead_of(value: object) -> str:
    if isinstance(value, str):
        return f"name one as MiddlewareRef({value[:40]!r}), or {_WANTED}"
    if isinstance(value, list | tuple | set | frozenset):
        return "unpack several with *, as in .middleware(*production())"
    return _WANTED


def check_middleware(value: Any) -> Any:
    """The value, if it may be used as a middleware.

    Raises:
        UsageError: It is none, or one of its hooks cannot be asked.
    """
    kind = cast("type[Any]", type(value))
    if kind in _CHECKED and _is_like_its_class(value):  # each run asks again
        return value
    wanted = refusal(value)
    if wanted is None:
        _check_hooks(value)
        if _is_like_its_class(value):
            _CHECKED[kind] = hooks_of(value)
        return value
    found = f"the class {value.__qualname__}" if isinstance(value, type) else _described(value)
    raise UsageError("this is no middleware", found=found, help=wanted)


def _is_like_its_class(middleware: object) -> bool:
    """Whether all its hooks are those of its class."""
    own: dict[str, Any] = getattr(middleware, "__dict__", {})
    return own.keys().isdisjoint(_ASKED) and not hasattr(type(middleware), "__getattr__")


def _check_hooks(middleware: object) -> None:
    """See that every hook can be called with what it will be called with, and awaited."""
    new: Any = getattr(middleware, "new", None)
    is_own = isfunction(getattr(new, "__func__", new))
    if new is not None and (not callable(new) or (is_own and not _makes_one(new))):
        raise UsageError(
            f"new of {type(middleware).__qualname__} is no function without arguments",
            found=repr(new),
            help="def new(self) -> Self, which is not async; or leave it out",
        )
    if isinstance(added := getattr(middleware, "adds_tools", None), str):
        raise UsageError(
            f"adds_tools of {type(middleware).__qualname__} is a sequence of names",
            found=repr(added),
            help=f"adds_tools = ({added!r},)",
        )
    for name in _NOT_AWAITED:
        if iscoroutinefunction(getattr(type(middleware), name, None)):
            raise UsageError(
                f"{name} of {type(middleware).__qualname__} is an async function",
                help=f"def {name}(...), for nobody awaits it",
            )
    for name in _methods_of(middleware):
        meant = _meant(name)
        if meant is not None:
            raise UsageError(
                f"{name} of {type(middleware).__qualname__} is no hook",
                help=f"did you mean {meant!r}? Otherwise call it _{name}",
            )
    for name in hooks_of(middleware):
        hook: Any = getattr(middleware, name)
        takes = _TAKES[name]
        if not callable(hook):
            raise UsageError(f"{name} of a middleware is a method", found=repr(hook))
        try:
            signature(hook).bind(*takes)
        except TypeError as error:
            raise UsageError(
                f"{name} of {type(middleware).__qualname__} cannot take what it is given",
                found=f"{error}: {name}{signature(hook)}",
                help=f"async def {name}({', '.join(('self', *takes))})",
            ) from None
        except ValueError:  # it does not tell its signature
            continue
        made = unwrap(hook)
        is_plain = isfunction(getattr(made, "__func__", made)) and not name.startswith("wrap_")
        if isasyncgenfunction(made) or (is_plain and not iscoroutinefunction(made)):
            raise UsageError(
                f"{name} of {type(middleware).__qualname__} is no async function",
                help=f"async def {name}({', '.join(('self', *takes))})",
            )


def _methods_of(middleware: object) -> Iterator[str]:
    """The methods whose names begin as those of hooks do, and functions kept as attributes."""
    kind = type(middleware)
    own: dict[str, Any] = getattr(middleware, "__dict__", {})
    for name in sorted({*dir(kind), *own}):
        if name.startswith(_PREFIXES) and callable(own.get(name, getattr(kind, name, None))):
            yield name


def _meant(name: str) -> str | None:
    """The hook that a name is a misspelling of; None for a hook's name, and any other."""
    if name in _TAKES:
        return None
    from difflib import get_close_matches  # noqa: PLC0415  # slow to import, seldom needed

    return next(iter(get_close_matches(name, HOOKS, 1, _MISSPELT)), None)


def _makes_one(new: Any) -> bool:
    try:
        signature(new).bind()
    except TypeError:
        return False
    return not iscoroutinefunction(new)


def _described(value: object) -> str:
    if value is None:
        return "None"
    name = getattr(value, "__name__", "")
    return f"{type(value).__qualname__} {name}".rstrip()


@dataclass(frozen=True, slots=True)
class MiddlewareDesc:
    """A middleware that can be chosen by name: what layers put into the slot ``middleware``.

    Attributes:
        name: Its name, unique among the installed layers.
        description: What it does, in one sentence.
        factory: Makes one from settings, given as keyword arguments.
        config_schema: JSON Schema of the settings; None when there are none.
        adds_tools: The names of the tools that it adds to requests; without them, what the class
            says that is the factory.
    """

    name: str
    description: str
    factory: Callable[..., AnyMiddleware]
    config_schema: Mapping[str, Any] | None = field(default=None, hash=False)
    adds_tools: Sequence[str] | None = field(default=None, hash=False)
