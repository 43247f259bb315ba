"""Personal data, kept from models, users, tools and what is stored."""

from __future__ import annotations

import copy
import re
import secrets
from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast

from pydantic import Field

from adk_fluent.errors import UsageError, nearest_name
from adk_fluent.extend import describe
from adk_fluent.middleware._builtin import BuiltIn, builtin, dependency
from adk_fluent.middleware._errors import PersonalDataError
from adk_fluent.middleware._pii._filter import Change, Detectors, Filter, refused
from adk_fluent.middleware._pii._finding import Detector, check_kind
from adk_fluent.middleware._pii._strategies import Strategy
from adk_fluent.protocol import ModelCall, ModelReply, NextModel, NextTool, Sink, ToolCall

if TYPE_CHECKING:
    from adk_fluent.middleware._pii._content_adk import Parts

#: What is built in.
Kind = Literal[
    "email",
    "phone",
    "credit_card",
    "iban",
    "ip",
    "us_ssn",
    "url_credentials",
    "api_key",
    "private_key",
]
_ALL: tuple[Kind, ...] = (
    *("email", "phone", "credit_card", "iban", "ip", "us_ssn"),
    *("url_credentials", "api_key", "private_key"),
)
_KEY_LENGTH = 16


@builtin
class PIIFilterMiddleware(BuiltIn):
    """Finds personal data in what models, users and tools are given, and replaces it.

    Attributes:
        strategy: What becomes of it: ``redact`` leaves the kind, as in ``[EMAIL]``; ``mask`` the
            last four characters; ``hash`` a keyed hash; ``block`` raises `PersonalDataError`;
            ``placeholder`` gives models ``<EMAIL_1f8a3c5e>``, and users and tools what it stands
            for. One for all kinds, or one for each; kinds left out are redacted.
        kinds: The built-in kinds that are looked for.
        patterns: Regular expressions of your own, by the kind that they find; they are matched line
            by line.
        allow: What is found that is no personal data, such as an address of your own, in capitals
            or not; a ``*`` stands for anything, as in ``*@acme.com``.
        inbound: Filter what models are given: the instruction and the whole conversation.
        outbound: Filter what models say, and put back what placeholders stand for.
        tools: The same of tools' arguments and results: of all, none, or those of these names.
        stored: Filter the user's message before it is stored; placeholders are never stored.
        detectors: Functions that find more, such as `presidio()`.
        key: The key of hashes and placeholders, 16 bytes or more; by default one is made by chance,
            so that both differ from process to process.
    """

    strategy: Strategy | dict[str, Strategy] = "redact"
    kinds: Sequence[Kind] = _ALL
    patterns: dict[str, Annotated[str, Field(min_length=1)]] = field(default_factory=dict[str, str])
    allow: Sequence[Annotated[str, Field(min_length=1)]] = ()
    inbound: bool = True
    outbound: bool = True
    tools: bool | Sequence[str] = True
    stored: bool = True
    detectors: Sequence[Detector] = dependency(default_factory=tuple[Detector, ...])
    key: bytes = dependency(default_factory=lambda: secrets.token_bytes(32))
    _found: Detectors = field(init=False, repr=False)
    _filter: Filter = field(init=False, repr=False)
    _refused: tuple[str, ...] = field(default=(), init=False, repr=False)
    _around: int = field(default=0, init=False, repr=False)
    _loose: dict[tuple[str, str], Any] = field(
        default_factory=dict[tuple[str, str], Any], init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: One has a value that it cannot have.
        """
        super().__post_init__()
        for kind, pattern in self.patterns.items():
            check_kind(kind)
            _check_pattern(kind, pattern)
        if not isinstance(self.key, bytes) or len(self.key) < _KEY_LENGTH:  # pyright: ignore[reportUnnecessaryIsInstance]  # anybody may call
            raise UsageError(
                f"pii_filter(key=...) needs {_KEY_LENGTH} bytes or more",
                help="secrets.token_bytes(32), kept where secrets are kept",
            )
        for each in cast("Sequence[object]", self.detectors):
            if not callable(each) or isinstance(each, type):
                raise UsageError(
                    "pii_filter(detectors=...) takes functions that find more",
                    found=describe(each),
                    help=_instead(each),
                )
        if isinstance(self.strategy, dict) and not self.detectors:
            for kind in self.strategy.keys() - {*self.kinds, *self.patterns}:
                raise UsageError(
                    f"pii_filter(strategy=...) names a kind that nothing looks for: {kind!r}",
                    found=f"kinds: {', '.join((*self.kinds, *self.patterns))}",
                )
        for each in self.allow:
            if not each.strip("* "):
                raise UsageError(
                    "pii_filter(allow=...) would let everything through",
                    found=repr(each),
                    help="such as allow=['*@acme.com']; or pii_filter(kinds=[...]) with fewer",
                )
        self._found = Detectors(self.kinds, self.patterns, self.detectors, self.allow)
        self._filter = self._new_filter()

    def new(self) -> Self:
        """The instance for one run, with placeholders of its own."""
        made = copy.copy(self)
        vars(made).update(_filter=self._new_filter(), _refused=(), _around=0, _loose={})
        return made

    def _new_filter(self) -> Filter:
        if isinstance(self.strategy, str):
            return Filter(self._found, {}, self.strategy, self.key)
        return Filter(self._found, self.strategy, "redact", self.key)

    def refuses_live(self) -> str | None:
        """What is spoken cannot be filtered, and reaches the model before any hook."""
        return "pii_filter() cannot keep what is spoken from the model in a live run"

    # --- the user ------------------------------------------------------------------------------

    async def on_user_message(self, ctx: Any, message: Any) -> Any:
        """What the user says, before it is stored.

        ADK stores a message whatever a hook raises; so what is blocked is redacted here, and the
        run is refused when it begins.
        """
        if not (self.inbound and self.stored):
            return None
        from adk_fluent.middleware._pii._content_adk import filtered  # noqa: PLC0415  # imports ADK

        change = self._filter.outbound()
        try:
            made = await filtered(message, change)
        except PersonalDataError as error:
            self._refused = error.kinds
            made = await filtered(message, replace(change, blocks=False))
        return None if made == message else made

    async def before_run(self, ctx: Any) -> None:
        """Refuse a run that would begin with what is blocked.

        Raises:
            PersonalDataError: The user's message holds it.
        """
        if self._refused:
            raise refused(self._refused)

    # --- models --------------------------------------------------------------------------------

    async def before_model(self, ctx: Any, request: Any) -> None:
        """Filter the request, for those inside and for agents that no `wrap_*` stands around."""
        await self._filter_request(request)

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Filter the request, the answer, and what is streamed of it."""
        await self._filter_request(call.request)
        fragments = self._parts(call.request)

        async def forward(response: Any) -> None:
            made = await fragments.fragment(response)
            if made is not None:
                await call.emit(made)

        self._around += 1
        try:
            reply = await next(replace(call, sink=Sink(forward)))
            rest = await fragments.end()
            if rest is not None:
                await call.emit(rest)
        finally:
            self._around -= 1
        whole = [await self._parts(call.request).response(each) for each in reply.responses]
        return ModelReply(whole)

    async def after_model(self, ctx: Any, response: Any) -> Any:
        """Filter what came past `wrap_model_call`: answers of hooks, and agents without it."""
        if not response.partial:
            self._loose.pop(_who(ctx), None)
            made = await self._parts(None).response(response)
            return None if made is response or made == response else made
        if self._around:
            return None
        return await self._loose_fragment(ctx, response)

    async def _loose_fragment(self, ctx: Any, response: Any) -> Any:
        """A fragment that nobody will flush: what is held back at the end comes with the answer."""
        parts = self._loose.setdefault(_who(ctx), self._parts(None))
        made = await parts.fragment(response)
        return response.model_copy(update={"content": None}) if made is None else made

    async def _filter_request(self, request: Any) -> None:
        if self.inbound:
            from adk_fluent.middleware._pii._content_adk import filter_request  # noqa: PLC0415  # see above

            await filter_request(request, self._filter.inbound())

    def _parts(self, request: Any) -> Parts:
        from adk_fluent.middleware._pii._content_adk import Parts, is_json  # noqa: PLC0415  # see above

        return Parts(
            self._filter.outbound(),
            texts=self.outbound,
            tools=self._has,
            of_json=request is not None and is_json(request),
        )

    # --- tools ---------------------------------------------------------------------------------

    async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
        """Filter the arguments and the result."""
        if not self._has(call.name):
            return await next(call)
        change: Change = self._filter.outbound()
        args = await change.value(call.args)
        result = await next(replace(call, args=args))
        made = await change.value(result)
        return result if made == result else made

    async def after_tool(self, ctx: Any, tool_name: str, args: dict[str, Any], result: Any) -> Any:
        """Filter what came past `wrap_tool_call`: results of hooks, and agents without it."""
        if result is None or not self._has(tool_name):
            return None
        made = await self._filter.outbound().value(result)
        return None if made == result else made

    def _has(self, tool: str) -> bool:
        return self.tools if isinstance(self.tools, bool) else tool in self.tools


def _who(ctx: Any) -> tuple[str, str]:
    """The agent that a context is of, in its run."""
    return str(getattr(ctx, "invocation_id", "")), str(getattr(ctx, "agent_name", ""))


def _instead(detector: object) -> str:
    """What somebody meant who gave no function as a detector."""
    kind = nearest_name(detector, _ALL) if isinstance(detector, str) else None
    if kind is not None:
        return f"what is built in is named so: pii_filter(kinds=[{kind!r}])"
    return "a function of text that returns (kind, start, end) for each; names go to kinds="


def _check_pattern(kind: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"pii_filter(patterns=...) has a pattern for {kind!r} that is none",
            found=f"{error}",
            help="see the documentation of Python's re",
        ) from None


#: `PIIFilterMiddleware` by its short name.
pii_filter = PIIFilterMiddleware
