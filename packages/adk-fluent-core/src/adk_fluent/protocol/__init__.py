"""Where the layers meet: the shapes of events, calls, results and services.

Importing this imports nothing but the standard library.
"""

from __future__ import annotations

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
from adk_fluent.protocol._layer import SLOTS, Entries, Entry, FieldRef, Layer
from adk_fluent.protocol._middleware import (
    HOOKS,
    HOOKS_OF_RUNS,
    AnyMiddleware,
    Middleware,
    MiddlewareDesc,
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
from adk_fluent.protocol._usage import Money, PriceBook, Unknown, Usage
from adk_fluent.protocol._wrap import wrap

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
    "status_of",
    "wrap",
]
