"""The builder of agents that run somewhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from adk_fluent._words import describe, public_address
from adk_fluent.builders._flow import Builder
from adk_fluent.builders._keys import as_keys, merged
from adk_fluent.builders._names import checked_name
from adk_fluent.builders._operands import as_node, instance_of, passengers, positive
from adk_fluent.builders._settings import as_schema
from adk_fluent.errors import UsageError
from adk_fluent.ir import AuthConfig, Node, RemoteAgentNode, RetryConfig, StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Self

    from adk_fluent.builders._base import StepLike
    from adk_fluent.builders._types import KeyLike, Schema


class RemoteAgent(Builder):
    """An agent behind the A2A protocol (spec section 4). Running it needs the layer ``a2a``.

    Example:
        >>> from adk_fluent import RemoteAgent
        >>> RemoteAgent("payments", endpoint="https://payments.internal/a2a", timeout=15)
        <RemoteAgent 'payments'>

    Args:
        name: Its name, an identifier.
        endpoint: URL of the agent.
        capabilities: Skills it must offer.
        input_schema: Schema of what is sent.
        output_schema: Schema of what comes back.
        auth: How to authenticate; the secret itself stays in an environment variable.
        timeout: Seconds one task may take.
        retry: When a failed task is sent again.
        fallback: Runs when it failed.
    """

    __slots__ = ("_fallback", "_reads", "_settings", "_writes")

    def __init__(
        self,
        name: str,
        *,
        endpoint: str,
        capabilities: Collection[str] = (),
        input_schema: Schema | None = None,
        output_schema: Schema | None = None,
        auth: AuthConfig | None = None,
        timeout: float = 30.0,
        retry: RetryConfig | None = None,
        fallback: StepLike | None = None,
    ) -> None:
        super().__init__(checked_name(name, "RemoteAgent"))
        self._settings: dict[str, Any] = {
            "endpoint": _url(endpoint),
            "capabilities": _skills(capabilities),
            "auth": instance_of(AuthConfig, auth, "auth"),
            "timeout_seconds": float(positive(timeout, "timeout")),
            "retry": instance_of(RetryConfig, retry, "retry"),
        }
        for role, schema in (("input_schema", input_schema), ("output_schema", output_schema)):
            if schema is not None:
                self._settings[role] = as_schema(schema, f"{role}=")
        self._reads: tuple[StateFieldRef, ...] = ()
        self._writes: tuple[StateFieldRef, ...] = ()
        self._fallback = None if fallback is None else as_node(fallback, "a fallback")
        self._board(passengers(fallback))

    @classmethod
    def from_card(cls, card: object, **options: Any) -> Self:  # noqa: ARG003  # of the layer
        """One that an agent card describes.

        Raises:
            MissingLayerError: The layer ``a2a`` is not installed.
        """
        from adk_fluent._registry import missing_layer  # noqa: PLC0415  # keeps the import light

        raise missing_layer("a2a", "RemoteAgent.from_card(...)")

    def reads(self, *keys: KeyLike) -> Self:
        """Declare state keys that are sent along."""
        self._reads = merged(self._reads, as_keys(keys, ".reads(...)"))
        return self._changed()

    def writes(self, *keys: KeyLike) -> Self:
        """Declare state keys that its answer is written to."""
        self._writes = merged(self._writes, as_keys(keys, ".writes(...)", written=True))
        return self._changed()

    def outputs(self, *keys: KeyLike) -> Self:
        """The same as `writes`."""
        return self.writes(*keys)

    def _freeze(self) -> Node:
        return RemoteAgentNode(
            self.name,
            reads_keys=self._reads,
            writes_keys=self._writes,
            fallback=self._fallback,
            location=self._location,
            **self._settings,
        )


def _url(value: object) -> str:
    if isinstance(value, str) and value.startswith(("http://", "https://")):
        if _has_credentials(value):
            raise UsageError(
                "endpoint= takes a URL without credentials",
                found=public_address(value),
                help='name the variable that holds the secret: auth=AuthConfig("bearer", "TOKEN")',
            )
        return value
    raise UsageError(
        "endpoint= takes the URL of an agent",
        found=repr(value) if isinstance(value, str) else describe(value),
        help='such as "https://payments.internal/a2a"',
    )


def _has_credentials(url: str) -> bool:
    from urllib.parse import parse_qsl, urlsplit  # noqa: PLC0415  # keeps the import light

    from adk_fluent.protocol import Redactor  # noqa: PLC0415  # keeps the import light

    if "@" in url.split("/")[2]:
        return True
    hides = Redactor().hides
    return any(hides(name) for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True))


def _skills(value: object) -> tuple[str, ...]:
    skills = cast("Iterable[object]", () if isinstance(value, str) else value)
    names = tuple(each for each in skills if isinstance(each, str) and each)
    if isinstance(value, str) or len(names) < len(tuple(skills)):
        raise UsageError(
            "capabilities= takes names of skills",
            found=repr(value),
            help='such as ("process_refund", "check_balance")',
        )
    return names
