"""The installed layers: which there are, and what they provide to a slot.

Nothing is imported before it is needed: `found` reads names only, `layers` and `offers` import the
layers' own small modules, and `provided` what stands in the one slot that is asked for.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module, invalidate_caches
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._layers import WHEELS
from adk_fluent._words import describe
from adk_fluent.errors import LayerError, MissingLayerError, UnknownNameError
from adk_fluent.protocol import Entry, Layer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from importlib.metadata import EntryPoint

    from adk_fluent.errors import Placed

GROUP: Final = "adk_fluent.layers"
#: What the import system calls itself.
_IMPORTING: Final = frozenset({"importlib._bootstrap", "_frozen_importlib"})

#: Public names that users write as if they were core's, to the layer that has them.
NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "AppScoped": "state",
        "CostAttributionMiddleware": "cost",
        "CostModel": "cost",
        "FluentCase": "eval",
        "FluentEvalReport": "eval",
        "FluentEvalSuite": "eval",
        "FluentJudge": "eval",
        "Recorder": "debug",
        "Recording": "debug",
        "ReplayerBackend": "debug",
        "RetryMiddleware": "middleware",
        "SessionScoped": "state",
        "StateSchema": "state",
        "StructuredLogMiddleware": "middleware",
        "Temp": "state",
        "TrafficAssumptions": "cost",
        "UserScoped": "state",
        "UserSimulation": "eval",
        "cost_attribution": "cost",
        "diff_events": "debug",
        "estimate_cost": "cost",
        "otel_enrichment": "middleware",
        "recorder": "debug",
        "structured_log": "middleware",
        "token_budget": "middleware",
    }
)

#: Middlewares of our own layers by name, so that their absence can be told from a misspelling.
BUILT_IN: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                *("cache", "circuit_breaker", "context_editing", "context_warning"),
                *("model_call_limit", "model_fallback", "otel_enrichment", "pii_filter"),
                *("rate_limiter", "retry", "structured_log", "summarization", "timeout"),
                *("todo_list", "token_budget", "tool_approval", "tool_call_limit"),
                *("human_in_the_loop", "tool_emulator", "tool_selector"),
            ),
            "middleware",
        ),
        "cost_attribution": "cost",
        "recorder": "debug",
    }
)


@dataclass(frozen=True, slots=True)
class Found:
    """An installed layer of which nothing is imported yet.

    Attributes:
        name: The layer's name.
        distribution: The distribution that ships it.
        version: That distribution's version.
        point: Its entry point.
    """

    name: str
    distribution: str
    version: str
    point: EntryPoint

    def load(self) -> Layer:
        """Import the layer's own module.

        Raises:
            LayerError: It cannot be imported, is no `Layer`, or has another name than its entry
                point.
        """
        target = self.point.value
        layer = self.attempt(f"cannot load {target}", self.point.load)
        if not isinstance(layer, Layer):
            raise self.error(f"{target} is no Layer", found=describe(layer))
        if layer.name != self.name:
            raise self.error(
                f"entry point {self.name!r} holds a layer called {layer.name!r}",
                help="give the entry point the layer's name",
            )
        return layer

    def attempt(self, what: str, make: Callable[[], Any]) -> Any:
        """What `make` returns; whatever it raises is the layer's fault."""
        try:
            return make()
        except MissingLayerError:
            raise  # it needs another layer, and already says which
        except Exception as error:
            raise self.error(what, found=f"{type(error).__name__}: {error}") from error

    def error(self, what: str, **details: str) -> LayerError:
        """A `LayerError` about this layer."""
        return LayerError(
            what,
            layer=self.name,
            distribution=self.distribution,
            version=self.version,
            found=details.get("found"),
            help=details.get("help"),
        )


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing that an installed layer provides, not imported yet.

    Attributes:
        layer: The layer's name.
        entry: What the layer says about it.
        source: Where the layer comes from.
    """

    layer: str
    entry: Entry
    source: Found

    @property
    def name(self) -> str:
        """What it is called, "" when the layer gives no name."""
        return self.entry.name

    def load(self) -> Any:
        """Import it.

        Raises:
            LayerError: There is no such module or attribute, or importing it failed.
        """
        return self.source.attempt(f"cannot load {self.entry.target}", self._load)

    def _load(self) -> Any:
        module, _, path = self.entry.target.partition(":")
        value: Any = import_module(module)
        for part in path.split("."):
            value = getattr(value, part)
        return value


@dataclass(frozen=True, slots=True)
class Provided:
    """An object that an installed layer provides.

    Attributes:
        layer: The layer's name.
        name: What it is called, "" when the layer gives no name.
        object: The thing itself.
    """

    layer: str
    name: str
    object: Any


@cache
def found() -> Mapping[str, Found]:
    """The installed layers by name, in the order of their names; nothing of them is imported.

    Raises:
        LayerError: Two distributions bring a layer of the same name.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415  # 15 ms that most runs never need

    out: dict[str, Found] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        dist = point.dist
        name, version = (dist.name, dist.version) if dist else ("an unknown distribution", "")
        here = Found(point.name, name, version, point)
        other = out.setdefault(point.name, here)
        if other is not here:
            raise here.error(
                f"two layers are called {point.name!r}",
                found=f"one of {other.distribution} {other.version} and one of {name} {version}",
                help=f"uninstall {name} or {other.distribution}",
            )
    return MappingProxyType(out)


@cache
def layers() -> Mapping[str, Layer]:
    """The installed layers by name.

    Returns:
        Name to `Layer`, in the order of the names. Of each layer only its own module (and the
        packages above it) is imported.

    Raises:
        LayerError: A layer is broken, or two have the same name.
    """
    return MappingProxyType({name: each.load() for name, each in found().items()})


def offers(slot: str) -> Iterator[Offer]:
    """What the installed layers put into a slot, without importing it.

    Raises:
        LayerError: A layer is broken.
    """
    sources = found()
    for name, layer in layers().items():
        for entry in layer.entries(slot):
            yield Offer(name, entry, sources[name])


def provided(slot: str) -> Iterator[Provided]:
    """Iterate over what the installed layers put into a slot; each is imported when it is reached.

    Args:
        slot: One of `protocol.SLOTS`, or a slot that a layer defines.

    Raises:
        LayerError: A layer is broken, or names something that does not exist.
    """
    for offer in offers(slot):
        yield Provided(offer.layer, offer.name, offer.load())


def refresh() -> None:
    """Forget what is installed and look again: for tests, and after installing something."""
    invalidate_caches()
    found.cache_clear()
    layers.cache_clear()


def missing_layer(name: str, what: str, node: Placed | str | None = None) -> MissingLayerError:
    """The error about something whose layer is not installed."""
    return MissingLayerError(
        f"{what} needs the layer {name!r}, which is not installed",
        layer=name,
        distribution=WHEELS.get(name),
        node=node,
    )


def require_layer(name: str, what: str, node: Placed | str | None = None) -> Layer:
    """Return an installed layer, or raise the error that says what to install.

    Args:
        name: The layer.
        what: What needs it, as the start of a sentence.
        node: The node that needs it, if one does.

    Raises:
        MissingLayerError: It is not installed.
        LayerError: It is broken.
    """
    source = found().get(name)
    if source is None:
        raise missing_layer(name, what, node)
    return layers()[name]


#: Modules of core in which a name is looked for that `adk_fluent` itself does not have.
_MODULES: Final = ("config", "builders", "testing", "errors", "contracts", "protocol", "ir", "flow")


def resolve_name(name: str, module: str = "adk_fluent", public: Iterable[str] = ()) -> Any:
    """Resolve a public name that another wheel brings; for a module's ``__getattr__``.

    Args:
        name: The name that the module does not have.
        module: The module, for the error.
        public: The names that it has.

    Raises:
        MissingLayerError: It is the name of a layer that is not installed.
        UnknownNameError: Nobody knows it.
        ImportError: The same, in ``from module import name``, where Python would keep the help of
            an AttributeError to itself.
    """
    known = {*NAMES, *public}
    if not name.startswith("_"):  # dunders are asked for all the time and are nobody's
        for offer in offers("names"):
            if offer.name == name:
                return offer.load()
            known.add(offer.name)
    layer = NAMES.get(name)
    if layer is not None and layer not in found():
        raise missing_layer(layer, repr(name))
    home = f"adk_fluent.{layer}" if layer else _home_of(name)
    error = UnknownNameError(
        f"module {module!r} has no attribute {name!r}",
        unknown=name,
        known=known,
        help=f"write: from {home} import {name}" if home else None,
    )
    if error.help and _is_imported() and find_spec(f"{module}.{name}") is None:
        error.what = f"cannot import name {name!r} from {module!r}"
        raise ImportError(str(error), name=module)
    raise error


def _is_imported() -> bool:
    """Whether it is the import system that asks a module of ours for a name."""
    frame = sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("adk_fluent"):
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") in _IMPORTING


def _home_of(name: str) -> str | None:
    """The public module of core that has a name."""
    if name.startswith("_"):
        return None
    modules = (import_module(f"adk_fluent.{module}") for module in _MODULES)
    return next((module.__name__ for module in modules if name in module.__all__), None)


class InstalledLayers:
    """The installed layers as a backend's tables want them."""

    def installed(self) -> Collection[str]:
        """Names of the installed layers."""
        return found().keys()

    def provided(self, slot: str) -> Iterator[Any]:
        """What they put into a slot, imported when it is reached."""
        return (each.object for each in provided(slot))


INSTALLED: Final = InstalledLayers()
