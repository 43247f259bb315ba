"""What a wheel tells core about itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, runtime_checkable

from adk_fluent._words import describe
from adk_fluent.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adk_fluent.protocol._middleware import AnyMiddleware

#: What core takes from layers, and what the object behind an entry of each slot is. Core passes
#: over slots it does not know: a new slot needs no change of old layers, nor of core.
SLOTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "rules": "RuleTable: how the ADK backend turns nodes into agents and flow",
        "values": "ValueTable: how the ADK backend turns values into models and tools",
        "passes": "PassList: rewrites of the IR before it is compiled",
        "checkers": "checker function: takes the Graph of a pipeline, gives Diagnostics",
        "run_checkers": "checker function whose errors keep a pipeline from being compiled",
        "middleware": "MiddlewareDesc, of which the entry has the name: to be chosen by that",
        "commands": "click command of adk-fluent; the entry's name is the command's",
        "backends": "Backend class; the entry's name is the backend's",
        "agent_cards": "function: a pipeline's IR, endpoint and options to its agent card",
        "cards": "function: an agent card in any form to its `name`, `endpoint` and `text`",
        "price_books": "PriceBook, or a function that makes one, also of the user's prices",
        "pytest_fixtures": "module with pytest fixtures and hooks",
        "telemetry": "function: sets up what a TelemetryConfig asks for, gives RunConfig's fields",
        "transports": "transport class of the distributed layer; the entry's name is its type",
        "journals": "Journal, or a function without arguments that makes one",
        "records": "frozen dataclass that serialised IR may hold",
        "run_options": "RunOption class: an option of `adk-fluent run`, --NAME by the entry's name",
        "names": "public name that core helps to find; the entry's name is the public name",
    }
)

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_TARGET: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


@runtime_checkable
class FieldRef(Protocol):
    """A key of session state with what is known about it; `ir.StateFieldRef` is one."""

    @property
    def key(self) -> str:
        """The full key with its scope prefix."""
        ...

    @property
    def type(self) -> Any:
        """The declared type, or None."""
        ...

    @property
    def scope(self) -> str:
        """``session``, ``user``, ``app`` or ``temp``."""
        ...

    @property
    def default(self) -> Any:
        """What a reader gets when the key is absent, or `ir.UNSET`."""
        ...


@runtime_checkable
class StateRules(Protocol):
    """What state may hold: `adk_fluent.state.StateSchema` classes are such.

    Its names cannot be those of state keys, which a schema has as attributes.
    """

    @property
    def __state_fields__(self) -> Mapping[str, FieldRef]:
        """The declared keys, each with its scope prefix."""
        ...

    def __state_encode__(self, delta: Mapping[str, Any], where: str, /) -> dict[str, Any]:
        """A write as it is stored, with every declared key checked; others as they are.

        Args:
            delta: Keys and values; None removes a key.
            where: Who writes, for the error.

        Raises:
            StateTypeError: A value is not of its key's type, or cannot be stored.
        """
        ...


class RunOption(Protocol):
    """An option of ``adk-fluent run`` that a layer brings, made without arguments for each call.

    It is a flag, whose name and line of help are those of its `Entry` in the slot ``run_options``.
    """

    @property
    def middlewares(self) -> Sequence[AnyMiddleware]:
        """What stands around each run of the call."""
        ...

    def report(self, *, as_json: bool) -> str:
        """Return what is printed when the call ends, also when it fails; "" for nothing.

        Args:
            as_json: It is printed on standard output, and is one line of JSON; otherwise people
                read it on standard error.
        """
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing a layer provides, imported only when it is used.

    Attributes:
        target: Where it is, as ``module:attribute``.
        name: What it is called (a command, a backend), so that lists need no import.
        help: One line about it, for lists.
    """

    target: str
    name: str = ""
    help: str = ""

    def __post_init__(self) -> None:
        if not _TARGET.fullmatch(self.target):
            raise BuildError(
                f"a layer's entry has the target {self.target!r}",
                help="write it as 'package.module:attribute'",
            )


#: What may stand in a slot: a target, an `Entry`, or several of them.
Entries = str | Entry | tuple[str | Entry, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """What a wheel hands core through its entry point in the group ``adk_fluent.layers``.

    ::

        # adk_fluent/cost/_layer.py; in pyproject.toml:
        #   [project.entry-points."adk_fluent.layers"]
        #   cost = "adk_fluent.cost._layer:LAYER"
        LAYER = Layer(
            "cost",
            {
                "checkers": "adk_fluent.cost._check:check_selectors",
                "commands": Entry("adk_fluent.cost._cli:estimate", "estimate", "Estimate the cost"),
            },
        )

    Listing what is installed imports the module that holds the layer and the packages above it, and
    nothing else: keep them light.

    Attributes:
        name: The layer's name; the entry point has the same.
        provides: Slot to what is provided; see `SLOTS`.
    """

    name: str
    provides: Mapping[str, Entries]

    def __post_init__(self) -> None:
        for what, name in (("layer", self.name), *(("slot", slot) for slot in self.provides)):
            if not _NAME.fullmatch(name):
                raise BuildError(
                    f"a {what} is called {name!r}", help="use lower-case letters, digits and '_'"
                )
        made = {slot: tuple(_entries(value)) for slot, value in self.provides.items()}
        for slot, entries in made.items():
            _check_names(self.name, slot, entries)
        object.__setattr__(self, "provides", MappingProxyType(made))

    def entries(self, slot: str) -> tuple[Entry, ...]:
        """What the layer puts into a slot, in its order."""
        return cast("tuple[Entry, ...]", self.provides.get(slot, ()))

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.provides.items())))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Layer, (self.name, dict(self.provides)))


def _check_names(layer: str, slot: str, entries: tuple[Entry, ...]) -> None:
    """Refuse a name that stands twice in one slot."""
    targets: dict[str, str] = {}
    for each in entries:
        if each.name in targets:
            raise BuildError(
                f"layer {layer!r} has {each.name!r} twice in its slot {slot!r}",
                found=f"{targets[each.name]} and {each.target}",
                help="give one of them another name",
            )
        if each.name:
            targets[each.name] = each.target


def _entries(value: object) -> Iterator[Entry]:
    for each in value if isinstance(value, tuple) else (value,):  # pyright: ignore[reportUnknownVariableType]  # checked below
        if isinstance(each, Entry):
            yield each
        elif isinstance(each, str):
            yield Entry(each)
        else:
            raise BuildError(
                "a layer provides something that is no entry",
                found=describe(each),
                help="give 'module:attribute', an Entry, or a tuple of them",
            )
