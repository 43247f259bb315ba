"""Where the layers meet: the shapes of events, calls, results and services.

Each name is imported when it is first used, and nothing but the standard library with it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adk_fluent.protocol._answer import compose_answer, final_text
    from adk_fluent.protocol._attempts import kept_events
    from adk_fluent.protocol._backend import Backend, BackendBase, Compiler
    from adk_fluent.protocol._calls import (
        AgentCall,
        AgentReply,
        ModelCall,
        ModelReply,
        NextAgent,
        NextModel,
        NextRun,
        NextTool,
        RunCall,
        Sink,
        ToolCall,
    )
    from adk_fluent.protocol._classify import ErrorKind, classify, status_of
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
        WrapRun,
        WrapToolCall,
    )
    from adk_fluent.protocol._journal import Journal, JournalEntry, JournalStatus, RunKey
    from adk_fluent.protocol._layer import SLOTS, Entries, Entry, FieldRef, Layer, StateRules
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
    from adk_fluent.protocol._requests import RequestSnapshot, estimate_tokens, request_key
    from adk_fluent.protocol._result import RunResult
    from adk_fluent.protocol._retry_after import retry_after
    from adk_fluent.protocol._usage import Money, PriceBook, Unknown, Usage
    from adk_fluent.protocol._wrap import wrap
else:
    _MODULES = {
        "_answer": ("compose_answer", "final_text"),
        "_attempts": ("kept_events",),
        "_backend": ("Backend", "BackendBase", "Compiler"),
        "_calls": (
            "AgentCall",
            "AgentReply",
            "ModelCall",
            "ModelReply",
            "NextAgent",
            "NextModel",
            "NextRun",
            "NextTool",
            "RunCall",
            "Sink",
            "ToolCall",
        ),
        "_classify": ("ErrorKind", "classify", "status_of"),
        "_event": ("AgentEvent", "ErrorInfo", "ToolCallInfo", "ToolResponseInfo"),
        "_hooks": (
            "AfterAgent",
            "AfterModel",
            "AfterRun",
            "AfterTool",
            "BeforeAgent",
            "BeforeModel",
            "BeforeRun",
            "BeforeTool",
            "OnAgentError",
            "OnEvent",
            "OnModelError",
            "OnRunError",
            "OnToolError",
            "OnUserMessage",
            "WrapAgent",
            "WrapModelCall",
            "WrapRun",
            "WrapToolCall",
        ),
        "_journal": ("Journal", "JournalEntry", "JournalStatus", "RunKey"),
        "_layer": ("SLOTS", "Entries", "Entry", "FieldRef", "Layer", "StateRules"),
        "_middleware": (
            "HOOKS",
            "HOOKS_OF_RUNS",
            "AnyMiddleware",
            "Middleware",
            "MiddlewareDesc",
            "asked_key",
            "check_middleware",
            "fresh",
            "hooks_of",
            "refusal",
        ),
        "_pending": ("Answer", "Pending", "PendingKind", "Resume", "resume_of"),
        "_ports": (
            "Clock",
            "EventListener",
            "IdSource",
            "NoticeListener",
            "StateSnapshot",
            "SystemClock",
            "UuidIds",
        ),
        "_redact": ("SECRET_KEYS", "Redactor"),
        "_requests": ("RequestSnapshot", "estimate_tokens", "request_key"),
        "_result": ("RunResult",),
        "_retry_after": ("retry_after",),
        "_usage": ("Money", "PriceBook", "Unknown", "Usage"),
        "_wrap": ("wrap",),
    }
    _LAZY = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
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
    "RequestSnapshot",
    "Resume",
    "RunCall",
    "RunKey",
    "RunResult",
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
    "WrapRun",
    "WrapToolCall",
    "asked_key",
    "check_middleware",
    "classify",
    "compose_answer",
    "estimate_tokens",
    "final_text",
    "fresh",
    "hooks_of",
    "kept_events",
    "refusal",
    "request_key",
    "resume_of",
    "retry_after",
    "status_of",
    "wrap",
]
