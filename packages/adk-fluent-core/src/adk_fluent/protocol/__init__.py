"""Where the layers meet: the shapes of events, calls, results and services.

Every name is imported when it is first used, and with it nothing but the standard library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from adk_fluent.protocol._answer import Data, compose_answer, compose_value, final_text
    from adk_fluent.protocol._attempts import kept_events
    from adk_fluent.protocol._backend import Backend, BackendBase, Compiler
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
        Sink,
        ToolCall,
    )
    from adk_fluent.protocol._classify import ErrorKind, classify, retry_after, status_of
    from adk_fluent.protocol._discarded import DiscardedAttempt, collect_discarded
    from adk_fluent.protocol._event import AgentEvent, ErrorInfo, ToolCallInfo, ToolResponseInfo
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
    from adk_fluent.protocol._journal import Journal, JournalEntry, JournalStatus, RunKey
    from adk_fluent.protocol._layer import (
        SLOTS,
        Entries,
        Entry,
        FieldRef,
        Layer,
        RunOption,
        StateRules,
    )
    from adk_fluent.protocol._middleware import (
        HOOKS,
        HOOKS_OF_RUNS,
        AnyMiddleware,
        Middleware,
        MiddlewareDesc,
        asked_key,
        check_middleware,
        fresh,
        hooks_of,
        refusal,
    )
    from adk_fluent.protocol._pending import Answer, Pending, PendingKind, Resume, resume_of
    from adk_fluent.protocol._ports import (
        Clock,
        EventListener,
        IdSource,
        NoticeListener,
        StateSnapshot,
        SystemClock,
        UuidIds,
    )
    from adk_fluent.protocol._redact import SECRET_KEYS, Redactor
    from adk_fluent.protocol._requests import (
        RequestSnapshot,
        estimate_tokens,
        request_data,
        request_key,
    )
    from adk_fluent.protocol._result import RunResult
    from adk_fluent.protocol._result_notes import collect_notes, note_on_result
    from adk_fluent.protocol._status import RunStatus
    from adk_fluent.protocol._usage import Money, PriceBook, Unknown, Usage
    from adk_fluent.protocol._wrap import wrap
else:  # a type checker must see a misspelt name, not Any
    _PLACES: Final = {
        name: module
        for module, names in {
            "_answer": "Data compose_answer compose_value final_text",
            "_attempts": "kept_events",
            "_backend": "Backend BackendBase Compiler",
            "_calls": "AgentCall AgentReply ModelCall ModelReply NextAgent NextModel NextRemote"
            " NextRun NextTool RemoteCall RemoteReply RunCall Sink ToolCall",
            "_classify": "ErrorKind classify retry_after status_of",
            "_discarded": "DiscardedAttempt collect_discarded",
            "_event": "AgentEvent ErrorInfo ToolCallInfo ToolResponseInfo",
            "_hooks": "AfterAgent AfterModel AfterRun AfterTool BeforeAgent BeforeModel BeforeRun"
            " BeforeTool OnAgentError OnEvent OnModelError OnRunError OnToolError"
            " OnUserMessage WrapAgent WrapModelCall WrapModelRequest WrapRemoteCall"
            " WrapRun WrapToolCall",
            "_journal": "Journal JournalEntry JournalStatus RunKey",
            "_layer": "SLOTS Entries Entry FieldRef Layer RunOption StateRules",
            "_middleware": "HOOKS HOOKS_OF_RUNS AnyMiddleware Middleware MiddlewareDesc asked_key"
            " check_middleware fresh hooks_of refusal",
            "_pending": "Answer Pending PendingKind Resume resume_of",
            "_ports": "Clock EventListener IdSource NoticeListener StateSnapshot SystemClock"
            " UuidIds",
            "_redact": "SECRET_KEYS Redactor",
            "_requests": "RequestSnapshot estimate_tokens request_data request_key",
            "_result": "RunResult",
            "_result_notes": "collect_notes note_on_result",
            "_status": "RunStatus",
            "_usage": "Money PriceBook Unknown Usage",
            "_wrap": "wrap",
        }.items()
        for name in names.split()
    }

    def __getattr__(name: str) -> object:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
        return value


__all__ = [
    "HOOKS",
    "HOOKS_OF_RUNS",
    "SECRET_KEYS",
    "SLOTS",
    "AfterAgent",
    "AfterModel",
    "AfterRun",
    "AfterTool",
    "AgentCall",
    "AgentEvent",
    "AgentReply",
    "Answer",
    "AnyMiddleware",
    "Backend",
    "BackendBase",
    "BeforeAgent",
    "BeforeModel",
    "BeforeRun",
    "BeforeTool",
    "Clock",
    "Compiler",
    "Data",
    "DiscardedAttempt",
    "Entries",
    "Entry",
    "ErrorInfo",
    "ErrorKind",
    "EventListener",
    "FieldRef",
    "IdSource",
    "Journal",
    "JournalEntry",
    "JournalStatus",
    "Layer",
    "Middleware",
    "MiddlewareDesc",
    "ModelCall",
    "ModelReply",
    "Money",
    "NextAgent",
    "NextModel",
    "NextRemote",
    "NextRun",
    "NextTool",
    "NoticeListener",
    "OnAgentError",
    "OnEvent",
    "OnModelError",
    "OnRunError",
    "OnToolError",
    "OnUserMessage",
    "Pending",
    "PendingKind",
    "PriceBook",
    "Redactor",
    "RemoteCall",
    "RemoteReply",
    "RequestSnapshot",
    "Resume",
    "RunCall",
    "RunKey",
    "RunOption",
    "RunResult",
    "RunStatus",
    "Sink",
    "StateRules",
    "StateSnapshot",
    "SystemClock",
    "ToolCall",
    "ToolCallInfo",
    "ToolResponseInfo",
    "Unknown",
    "Usage",
    "UuidIds",
    "WrapAgent",
    "WrapModelCall",
    "WrapModelRequest",
    "WrapRemoteCall",
    "WrapRun",
    "WrapToolCall",
    "asked_key",
    "check_middleware",
    "classify",
    "collect_discarded",
    "collect_notes",
    "compose_answer",
    "compose_value",
    "estimate_tokens",
    "final_text",
    "fresh",
    "hooks_of",
    "kept_events",
    "note_on_result",
    "refusal",
    "request_data",
    "request_key",
    "resume_of",
    "retry_after",
    "status_of",
    "wrap",
]
