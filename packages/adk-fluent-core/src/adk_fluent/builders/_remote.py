"""The builder of agents that run somewhere else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypedDict, cast, overload

from adk_fluent._arguments import one_of
from adk_fluent._words import describe, public_address
from adk_fluent.builders._flow import Builder
from adk_fluent.builders._keys import as_keys, merged
from adk_fluent.builders._names import checked_name
from adk_fluent.builders._operands import as_node, instance_of, passengers, positive
from adk_fluent.builders._settings import as_schema
from adk_fluent.errors import UsageError
from adk_fluent.ir import AuthConfig, Node, Ref, RemoteAgentNode, RetryConfig, StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Self, Unpack

    from adk_fluent.builders._base import StepLike
    from adk_fluent.builders._types import KeyLike, Schema

_HISTORIES = ("input", "transcript", "none")


class RemoteOptions(TypedDict, total=False):
    """What `RemoteAgent` takes beside its name and where it is; its arguments say what each means.

    It types wrappers: ``def bank(**options: Unpack[RemoteOptions]) -> RemoteAgent``.
    """

    capabilities: Collection[str]
    inputs: KeyLike | Iterable[KeyLike] | type
    outputs: KeyLike | Iterable[KeyLike]
    input_schema: Schema | None
    output_schema: Schema | None
    auth: AuthConfig | None
    timeout: float
    retry: RetryConfig | None
    idempotent: bool
    history: str
    card_ttl: float
    verify_card: Callable[[Any], object] | None
    fallback: StepLike | None


class RemoteAgent(Builder):
    """An agent behind the A2A protocol (spec section 4). Running it needs the layer ``a2a``.

    Example:
        >>> from adk_fluent import RemoteAgent
        >>> RemoteAgent("payments", endpoint="https://payments.internal/a2a", timeout=15)
        <RemoteAgent 'payments'>

    Args:
        name: Its name, an identifier.
        endpoint: Its base URL, or that of its card. Give either this or a card.
        card: Its agent card: an object of ``a2a.types``, a mapping, or a path to a JSON file.
            Needs the layer ``a2a``.
        capabilities: Skills it must offer, by id, name or tag.
        inputs: State keys that are sent along, or a state schema; nothing else of state is.
        outputs: State keys that its answer is written to.
        input_schema: Schema of what is sent. Without `inputs`, its fields are sent.
        output_schema: Schema of what comes back.
        auth: How to authenticate; the secret itself stays in an environment variable.
        timeout: Seconds one task may take, with all its tries.
        retry: When a failed request is sent again; None is never. A failed task never is.
        idempotent: The agent may be asked the same twice, so that a request may be sent again
            after a dropped connection or any HTTP status from 500 on.
        history: What of the conversation is sent: ``input`` the previous step's output, else the
            user's message; ``transcript`` everything since its last answer; ``none`` nothing.
        card_ttl: Seconds a fetched card is used before it is fetched again.
        verify_card: Called with each card (``a2a.types.AgentCard``); raises if its signatures
            cannot be trusted.
        fallback: Runs when it failed.
    """

    __slots__ = ("_fallback", "_reads", "_settings", "_writes")

    @overload
    def __init__(self, name: str, *, endpoint: str, **options: Unpack[RemoteOptions]) -> None: ...

    @overload
    def __init__(self, name: str, *, card: object, **options: Unpack[RemoteOptions]) -> None: ...

    def __init__(
        self,
        name: str,
        *,
        endpoint: str | None = None,
        card: object = None,
        capabilities: Collection[str] = (),
        inputs: KeyLike | Iterable[KeyLike] | type = (),
        outputs: KeyLike | Iterable[KeyLike] = (),
        input_schema: Schema | None = None,
        output_schema: Schema | None = None,
        auth: AuthConfig | None = None,
        timeout: float = 30.0,
        retry: RetryConfig | None = None,
        idempotent: bool = False,
        history: str = "input",
        card_ttl: float = 300.0,
        verify_card: Callable[[Any], object] | None = None,
        fallback: StepLike | None = None,
    ) -> None:
        super().__init__(checked_name(name, "RemoteAgent"))
        if (endpoint is None) == (card is None):
            raise UsageError(
                f"RemoteAgent {name!r} takes either endpoint= or card=",
                found="neither" if card is None else "both",
                help='such as endpoint="https://payments.internal/a2a"',
            )
        read = None if card is None else _read_card(card, "card=")
        self._settings: dict[str, Any] = {
            "endpoint": _url(endpoint) if read is None else read.endpoint,
            "card": None if read is None else read.text,
            "capabilities": _skills(capabilities),
            "auth": instance_of(AuthConfig, auth, "auth"),
            "timeout_seconds": float(positive(timeout, "timeout")),
            "retry": instance_of(RetryConfig, retry, "retry"),
            "idempotent": one_of(idempotent, (False, True), "idempotent"),
            "history": one_of(history, _HISTORIES, "history"),
            "card_ttl_seconds": float(positive(card_ttl, "card_ttl")),
            "card_verifier": _verifier(verify_card),
        }
        for role, schema in (("input_schema", input_schema), ("output_schema", output_schema)):
            if schema is not None:
                self._settings[role] = as_schema(schema, f"{role}=")
        self._reads = _distinct(_keys(inputs, "inputs=") or _fields(input_schema), "inputs")
        self._writes = _distinct(_keys(outputs, "outputs=", written=True), "outputs")
        self._fallback = None if fallback is None else as_node(fallback, "a fallback")
        self._board(passengers(fallback))

    @classmethod
    def from_card(
        cls, card: object, *, name: str | None = None, **options: Unpack[RemoteOptions]
    ) -> Self:
        """Make one that an agent card describes.

        Args:
            card: As in `RemoteAgent`.
            name: Its name; None is made of the card's.
            options: The other arguments of `RemoteAgent`.

        Raises:
            MissingLayerError: The layer ``a2a`` is not installed.
            UsageError: It is not an agent card.
        """
        read = _read_card(card, "RemoteAgent.from_card(...)")
        return cls(read.name if name is None else name, card=card, **options)

    def reads(self, *keys: KeyLike) -> Self:
        """Declare state keys that are sent along."""
        self._reads = _distinct(merged(self._reads, as_keys(keys, ".reads(...)")), "inputs")
        return self._changed()

    def writes(self, *keys: KeyLike) -> Self:
        """Declare state keys that its answer is written to."""
        added = as_keys(keys, ".writes(...)", written=True)
        self._writes = _distinct(merged(self._writes, added), "outputs")
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


def _read_card(card: object, what: str) -> Any:
    """The name, the endpoint and the JSON of a card, which the layer reads."""
    from adk_fluent._registry import provided, require_layer  # noqa: PLC0415  # slow to import

    require_layer("a2a", what)
    (reader,) = (each.object for each in provided("cards") if each.layer == "a2a")
    return reader(card)


def _keys(value: Any, role: str, *, written: bool = False) -> tuple[StateFieldRef, ...]:
    """State keys: one, several, or all that a state schema declares."""
    fields: Mapping[str, Any] | None = getattr(value, "__state_fields__", None)
    if fields is not None:
        value = tuple(fields.values())
    elif isinstance(value, str) or hasattr(value, "key"):
        value = (value,)
    try:
        keys = tuple(value)
    except TypeError:
        keys = (value,)
    return merged((), as_keys(keys, role, written=written)) if keys else ()


def _distinct(keys: tuple[StateFieldRef, ...], role: str) -> tuple[StateFieldRef, ...]:
    """Refuse keys that would be one on the wire, where scopes have no prefix."""
    seen: dict[str, str] = {}
    for ref in keys:
        if (other := seen.setdefault(ref.name, ref.key)) != ref.key:
            raise UsageError(
                f"two {role} of a remote agent are called {ref.name!r}",
                found=f"{other!r} and {ref.key!r}",
                help="they cross without the prefix of their scope: let a step rename one",
            )
    return keys


def _fields(schema: Any) -> tuple[StateFieldRef, ...]:
    """The fields of a schema as state keys of the same names."""
    if isinstance(schema, Ref):
        schema = schema.value
    names: Iterable[str] = getattr(schema, "model_fields", None) or getattr(
        schema, "__annotations__", ()
    )
    required = getattr(schema, "model_fields", {})
    return tuple(
        StateFieldRef(name, default=None)
        if name in required and not required[name].is_required()
        else StateFieldRef(name)
        for name in names
    )


def _verifier(function: object) -> Ref | None:
    if function is None:
        return None
    if not callable(function):
        raise UsageError(
            "verify_card= takes a function of a card",
            found=describe(function),
            help="such as a2a.utils.signing.create_signature_verifier(key_provider, ['ES256'])",
        )
    return Ref.to(function)


def _url(value: object) -> str:
    if isinstance(value, str) and value.startswith(("http://", "https://")) and _is_url(value):
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


def _is_url(text: str) -> bool:
    from urllib.parse import urlsplit  # noqa: PLC0415  # keeps the import light

    try:
        parts = urlsplit(text)
        named, _ = parts.hostname, parts.port
    except ValueError:  # of a port above 65535, or half an IPv6 address
        return False
    return bool(named) and text.isprintable() and " " not in text


def _has_credentials(url: str) -> bool:
    from urllib.parse import parse_qsl, urlsplit  # noqa: PLC0415  # keeps the import light

    from adk_fluent.protocol import Redactor  # noqa: PLC0415  # keeps the import light

    if "@" in url.split("/")[2]:
        return True
    hides = Redactor().hides
    return any(hides(name) for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True))


def _skills(value: object) -> tuple[str, ...]:
    found = repr(value)
    if isinstance(value, Iterable) and not isinstance(value, str):
        skills = tuple(cast("Iterable[object]", value))
        names = tuple(each for each in skills if isinstance(each, str) and each)
        if len(names) == len(skills):
            return names
    raise UsageError(
        "capabilities= takes names of skills",
        found=found,
        help='such as ("process_refund", "check_balance")',
    )
