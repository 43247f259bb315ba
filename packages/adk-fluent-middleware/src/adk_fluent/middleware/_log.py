"""What happens in runs, one entry after the other, for whoever develops."""

from __future__ import annotations

import copy
import json
import logging
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from pydantic import Field

from adk_fluent.errors import UsageError
from adk_fluent.extend import describe
from adk_fluent.middleware._builtin import BuiltIn, builtin, dependency
from adk_fluent.protocol import (
    AgentReply,
    Clock,
    NextRun,
    Redactor,
    RunCall,
    SystemClock,
    Usage,
)

if TYPE_CHECKING:
    from typing import Self

Entry = dict[str, Any]
_MARK: Final = "…"
_HIDDEN: Final = "[CREDENTIAL]"
#: A name and what is given to it, as in ``password=x``, ``"apiKey": "x"`` and ``Cookie: a=b``.
_GIVEN: Final = re.compile(
    r"(?<![\w.-])([A-Za-z_][\w.-]{0,63})(\\?[\"']?\s?[=:]\s?\\?[\"']?)"
    r"((?:(?:Bearer|Basic|Token)\s)?[^\s\"'&,;<>\\(){}\[\]]++)"
)
_BEARER: Final = re.compile(r"(?<!\w)Bearer\s[\w.~+/=-]{8,}+", re.IGNORECASE)
#: What looks like a credential wherever it stands.
_KINDS: Final = ("url_credentials", "api_key", "private_key")
#: What comes before anybody knows which run it is.
_EARLY: Final = ("on_user_message", "before_run")


class _Log:
    """The entries of all runs; there is one for all copies of a middleware."""

    def __init__(self, most: int) -> None:
        self.entries: deque[Entry] = deque(maxlen=most)
        self.lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Log, (self.entries.maxlen,))  # whoever unpickles it has logged nothing


@builtin
class StructuredLogMiddleware(BuiltIn):
    """Keeps an entry about each step, model call and tool call of every run, for development.

    The entries are plain data, in `log`, and if asked for also in a file or in `logging`. What
    stands under keys that name a credential is left out, also in texts that are JSON, and so is
    what looks like one. It only looks: it changes nothing, and an error of its own stops no run.

    Attributes:
        max_entries: Entries that are kept, of all runs together; the oldest go first.
        max_chars: Characters that are kept of a text, of arguments and of a result.
        content: Keep what is said: texts, arguments, results, and the messages of errors.
        logger: The name of a logger that is told of each entry as a line of JSON, at level INFO.
        path: A file to which each entry is added as a line of JSON; its folder has to be there. No
            reference and no pipeline that is a file can set it: it would write wherever that says.
        redactor: Says which names are those of credentials.
        clock: Where the time comes from.
    """

    observer = True

    max_entries: Annotated[int, Field(ge=1)] = 5000
    max_chars: Annotated[int, Field(ge=1)] = 200
    content: bool = True
    logger: str | None = None
    path: str | Path | None = dependency(default_factory=lambda: None)
    redactor: Redactor = dependency(default_factory=Redactor)
    clock: Clock = dependency(default_factory=SystemClock)
    _kept: Any = field(default=None, init=False, repr=False)
    _began: dict[tuple[str, int], tuple[object, float]] = field(
        default_factory=dict[tuple[str, int], tuple[object, float]], init=False, repr=False
    )
    _run: str = field(default="", init=False, repr=False)
    _early: list[Entry] = field(default_factory=list[Entry], init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: One has a value that it cannot have.
        """
        super().__post_init__()
        self._kept = _Log(self.max_entries)
        if self.path is not None and not isinstance(self.path, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance]  # anybody may call
            raise UsageError(
                "structured_log(path=...) takes the path of a file", found=describe(self.path)
            )
        if self.path is not None and not Path(self.path).parent.is_dir():
            raise UsageError(
                "structured_log(path=...) names a file in a folder that is not there",
                found=str(self.path),
                help="make the folder first",
            )

    @property
    def log(self) -> list[Entry]:
        """The entries of all runs, the oldest first."""
        with self._kept.lock:
            return list(self._kept.entries)

    def clear(self) -> None:
        """Forget all entries; what is in a file stays."""
        with self._kept.lock:
            self._kept.entries.clear()

    def new(self) -> Self:
        """The instance for one run; the log is the same."""
        made = copy.copy(self)
        made._began, made._run, made._early = {}, "", []  # noqa: SLF001  # its own
        return made

    # --- runs and steps --------------------------------------------------------------------------

    async def on_user_message(self, ctx: Any, message: Any) -> None:
        """Note what the user says."""
        self._add("on_user_message", ctx, **self._said("message", message))

    def begin_part(self, name: str, call: RunCall, /) -> None:
        """Note which run it is, of which only a part is logged."""
        self._run = call.run

    async def wrap_run(self, call: RunCall, next: NextRun) -> AgentReply:
        """Note which run it is; what was said before it did not know that."""
        self._run = call.run
        for entry in self._early:
            entry["run_id"] = call.run
        return await next(call)

    async def before_run(self, ctx: Any) -> None:
        """Note that a run begins."""
        self._begin("run", None)
        self._add("before_run", ctx)

    async def after_run(self, ctx: Any) -> None:
        """Note that a run is done."""
        self._add("after_run", ctx, **self._took("run", None))

    async def on_run_error(self, ctx: Any, error: Exception) -> None:
        """Note that a run failed."""
        self._add("on_run_error", ctx, **self._failed(error), **self._took("run", None))

    async def before_agent(self, ctx: Any, agent_name: str) -> None:
        """Note that a step begins."""
        self._begin("agent", ctx)
        self._add("before_agent", ctx, agent_name=agent_name)

    async def after_agent(self, ctx: Any, agent_name: str) -> None:
        """Note that a step is done."""
        self._add("after_agent", ctx, agent_name=agent_name, **self._took("agent", ctx))

    async def on_agent_error(self, ctx: Any, agent_name: str, error: Exception) -> None:
        """Note that a step failed."""
        found = {**self._failed(error), **self._took("agent", ctx)}
        self._add("on_agent_error", ctx, agent_name=agent_name, **found)

    # --- models ----------------------------------------------------------------------------------

    async def before_model(self, ctx: Any, request: Any) -> None:
        """Note that a model is called."""
        self._begin("model", ctx)
        contents: list[Any] = getattr(request, "contents", None) or []
        model = getattr(request, "model", None)
        known = {"model": model, "contents": len(contents)} if hasattr(request, "contents") else {}
        said = self._said("request", contents[-1] if contents else request)
        self._add("before_model", ctx, **known, **said)

    async def after_model(self, ctx: Any, response: Any) -> None:
        """Note what a model says, once it is whole."""
        if getattr(response, "partial", None):
            return
        usage = Usage.from_genai(getattr(response, "usage_metadata", None))
        found: Entry = self._said("response", getattr(response, "content", response))
        if usage is not None:
            found["usage"] = {name: n for name, n in asdict(usage).items() if n}
        for name in ("model_version", "finish_reason", "error_code"):
            value = getattr(response, name, None)
            if value is not None:
                found[name] = str(getattr(value, "value", value))
        self._add("after_model", ctx, **found, **self._took("model", ctx))

    async def on_model_error(self, ctx: Any, request: Any, error: Exception) -> None:
        """Note that a model call failed."""
        self._add("on_model_error", ctx, **self._failed(error), **self._took("model", ctx))

    # --- tools -----------------------------------------------------------------------------------

    async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> None:
        """Note that a tool is called."""
        self._begin("tool", ctx)
        self._add("before_tool", ctx, tool_name=tool_name, **self._data("args", args))

    async def after_tool(self, ctx: Any, tool_name: str, args: dict[str, Any], result: Any) -> None:
        """Note what a tool returns."""
        found = {**self._data("result", result), **self._took("tool", ctx)}
        self._add("after_tool", ctx, tool_name=tool_name, **found)

    async def on_tool_error(
        self, ctx: Any, tool_name: str, args: dict[str, Any], error: Exception
    ) -> None:
        """Note that a tool failed."""
        found = {**self._failed(error), **self._took("tool", ctx)}
        self._add("on_tool_error", ctx, tool_name=tool_name, **found)

    # --- entries ---------------------------------------------------------------------------------

    def _add(self, event: str, ctx: Any, **found: Any) -> None:
        entry: Entry = {"event": event, "timestamp": self.clock.now(), **self._where(ctx), **found}
        if event in _EARLY:
            self._early.append(entry)
        line = json.dumps(entry, ensure_ascii=False) if self.path or self.logger else ""
        with self._kept.lock:
            self._kept.entries.append(entry)
            if self.path is not None:
                with Path(self.path).open("a", encoding="utf-8", errors="replace") as file:
                    file.write(f"{line}\n")
        if self.logger is not None:
            logging.getLogger(self.logger).info("%s", line)

    def _where(self, ctx: Any) -> Entry:
        """Which run, session and agent an entry is of, as far as is known."""
        if ctx is None:
            return {}
        invocation = getattr(ctx, "_invocation_context", ctx)
        session = getattr(invocation, "session", None)
        known = {
            "run_id": self._run,
            "invocation_id": getattr(invocation, "invocation_id", None),
            "session_id": getattr(session, "id", None),
            "agent_name": getattr(ctx, "agent_name", None),
            "call_id": getattr(ctx, "function_call_id", None),
        }
        return {name: value for name, value in known.items() if value}

    def _begin(self, what: str, ctx: Any) -> None:
        self._began[what, id(ctx)] = (ctx, self.clock.monotonic())  # kept: its id stays its own

    def _took(self, what: str, ctx: Any) -> Mapping[str, float]:
        """The duration of what began with the same context, in seconds."""
        _, began = self._began.pop((what, id(ctx)), (None, None))
        return {} if began is None else {"seconds": round(self.clock.monotonic() - began, 6)}

    def _failed(self, error: Exception) -> Entry:
        kind = {"error_type": type(error).__name__}
        return {**kind, "error": self._cut(self._text(str(error)))} if self.content else kind

    def _said(self, name: str, content: Any) -> Entry:
        """A message, if messages are kept: its texts, and what is called or returned in it."""
        if not self.content or content is None:
            return {}
        if isinstance(content, str):
            return {name: self._cut(self._text(content))}
        parts: list[Any] = getattr(content, "parts", None) or []
        return {name: self._cut(" ".join(filter(None, map(self._part, parts))))}

    def _part(self, part: Any) -> str:
        text: str | None = getattr(part, "text", None)
        if text is not None:
            return self._text(text)
        call, response = (
            getattr(part, "function_call", None),
            getattr(part, "function_response", None),
        )
        if call is not None:
            return f"{call.name}({self._plain(call.args)})"
        if response is not None:
            return f"{response.name}: {self._plain(response.response)}"
        return "[media]"

    def _data(self, name: str, value: Any) -> Entry:
        return {name: self._cut(self._plain(value))} if self.content else {}

    def _plain(self, value: Any) -> str:
        """Data as JSON, without what stands under the keys of credentials."""
        if isinstance(getattr(value, "model_fields_set", None), set):  # pydantic's
            value = value.model_dump(exclude_none=True)
        return json.dumps(self._without(value), ensure_ascii=False, default=_kind)

    def _without(self, value: Any) -> Any:
        """Data without credentials, its texts without what looks like some."""
        return self._texts(self.redactor.redact(value))

    def _texts(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            rows = cast("Mapping[Any, Any]", value).items()
            return {key: self._texts(each) for key, each in rows}
        if isinstance(value, list | tuple):
            return [self._texts(each) for each in cast("list[Any]", value)]
        return value

    def _text(self, text: str) -> str:
        """A text, or JSON, without what looks like a credential."""
        if text.lstrip()[:1] in ("{", "["):
            try:
                value = json.loads(text)
                made = self._without(value)
                return text if made == value else json.dumps(made, ensure_ascii=False)
            except (ValueError, RecursionError):  # no JSON, or nested as none is
                pass
        return _BEARER.sub(_HIDDEN, _GIVEN.sub(self._given, _looked_through(text)))

    def _given(self, match: re.Match[str]) -> str:
        if match[3].startswith("[") or not self.redactor.hides(match[1]):
            return match[0]
        return f"{match[1]}{match[2]}{_HIDDEN}"

    def _cut(self, text: str) -> str:
        most = self.max_chars
        return text if len(text) <= most else f"{text[: most - 1]}{_MARK}"


def _looked_through(text: str) -> str:
    """A text without what has the form of a credential."""
    from adk_fluent.middleware._pii._finding import Finding, merged  # noqa: PLC0415  # only if needed
    from adk_fluent.middleware._pii._fold import Folded  # noqa: PLC0415  # only if needed
    from adk_fluent.middleware._pii._patterns import BUILT_IN  # noqa: PLC0415  # only if needed

    read = Folded(text)
    found = [
        Finding(each.kind, read.start(each.start), read.end(each.end))
        for kind in _KINDS
        for each in BUILT_IN[kind](read.text)
    ]
    for each in reversed(merged(found)):
        text = f"{text[: each.start]}{_HIDDEN}{text[each.end :]}"
    return text


def _kind(value: object) -> str:
    """What is no data: an object's own words about itself may hold anything."""
    return f"<{type(value).__name__}>"


#: `StructuredLogMiddleware` by its short name.
structured_log = StructuredLogMiddleware
