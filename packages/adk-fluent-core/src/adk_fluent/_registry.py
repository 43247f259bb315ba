"""The installed layers: which there are, and what they provide to a slot.

Nothing is imported before it is needed: `found` reads names only, `layers` and `offers` import the
layers' own small modules, and `provided` what stands in the one slot that is asked for.

A layer that is broken takes nothing else down. It provides nothing, `layer_errors` says why, and
the same error is raised where the layer is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module, invalidate_caches
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable
from weakref import WeakMethod

from adk_fluent._core import CORE
from adk_fluent._hints import PROVIDERS, WHEELS
from adk_fluent._logs import LOG
from adk_fluent._words import describe
from adk_fluent.errors import AdkFluentError, LayerError, MissingLayerError, UnknownNameError
from adk_fluent.protocol import Entry, Layer

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator
    from importlib.metadata import EntryPoint

    from adk_fluent.errors import Placed

GROUP: Final = "adk_fluent.layers"
#: What the import system calls itself.
_IMPORTING: Final = frozenset({"importlib._bootstrap", "_frozen_importlib"})

#: Slots in which a name stands for one thing, whoever provides it, and what it is called.
_NAMED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "backends": "backend",
        "commands": "command",
        "middleware": "middleware",
        "names": "public name",
        "transports": "transport",
    }
)
#: Slots in which one thing stands, whatever its name, and what to call it in messages.
_SOLE: Final[Mapping[str, str]] = MappingProxyType({"telemetry": "function for telemetry="})
#: Slots of tables, in which a key stands for one thing, and what to call that in messages.
_TABLES: Final[Mapping[str, str]] = MappingProxyType(
    {"passes": "pass", "rules": "rule for", "values": "rule for"}
)


@dataclass(frozen=True, slots=True)
class Found:
    """An installed layer of which nothing is imported yet.

    Attributes:
        name: The layer's name.
        distribution: The distribution that ships it.
        version: That distribution's version.
        point: Its entry point.
        rival: The layer of the same name that another distribution ships, if one does.
    """

    name: str
    distribution: str
    version: str
    point: EntryPoint
    rival: Found | None = None

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".rstrip()

    def load(self) -> Layer:
        """Import the layer's own module.

        Raises:
            LayerError: It cannot be imported, is no `Layer`, has another name than its entry
                point, or shares that name with another layer or with core.
        """
        if self.rival is not None:
            raise self.error(
                f"two layers are called {self.name!r}",
                found=f"one of {self.rival} and one of {self}",
                help=f"uninstall {self.distribution} or {self.rival.distribution}",
            )
        if self.name == CORE.name:
            raise self.error(
                f"a layer is called {self.name!r}, which is what adk-fluent-core calls its own",
                help=f"uninstall {self.distribution}",
            )
        target = self.point.value
        try:
            layer = self.point.load()
        except (Exception, SystemExit) as error:  # somebody else's module: anything may happen
            raise self.failed(target, error) from error
        if not isinstance(layer, Layer):
            raise self.error(f"{target} is no Layer", found=describe(layer))
        if layer.name != self.name:
            raise self.error(
                f"entry point {self.name!r} holds a layer called {layer.name!r}",
                help="give the entry point the layer's name",
            )
        for slot, what in _NAMED.items():
            for entry in layer.entries(slot):
                if not entry.name:
                    raise self.error(
                        f"a {what} of the layer has no name",
                        found=f"{entry.target} in slot {slot!r}",
                        help=f"write: Entry({entry.target!r}, 'its_name')",
                    )
        return layer

    def thing(self, target: str) -> Any:
        """Import what the layer names.

        Raises:
            LayerError: There is no such module or attribute, or importing it failed.
            MissingLayerError: It needs a layer that is not installed.
        """
        try:
            return thing_at(target)
        except MissingLayerError:
            raise  # says itself what is missing
        except (Exception, SystemExit) as error:
            raise self.failed(target, error) from error

    def failed(self, target: str, error: BaseException) -> LayerError:
        """The error about something of this layer that cannot be imported."""
        said, help = str(error), None
        if isinstance(error, AdkFluentError):  # its text has lines of its own
            said, help = ": ".join(filter(None, (error.what, error.found))), error.help
        found = f"{type(error).__name__}: {said}"
        return self.error(f"cannot load {target}", found=found, help=help)

    def error(self, what: str, **details: str | None) -> LayerError:
        """A `LayerError` about this layer."""
        return LayerError(
            what,
            layer=self.name,
            distribution=self.distribution,
            version=self.version,
            found=details.get("found"),
            help=details.get("help"),
        )


def thing_at(target: str) -> Any:
    """Import what a layer's entry names as ``module:attribute``."""
    module, _, path = target.partition(":")
    value: Any = import_module(module)
    for part in path.split("."):
        value = getattr(value, part)
    return value


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
            MissingLayerError: It needs a layer that is not installed.
        """
        return self.source.thing(self.entry.target)

    def clash(self, slot: str, name: str, first: Offer | None) -> LayerError:
        """The error about something that this has, and before it another layer or core (None)."""
        what = _SOLE.get(slot) or f"{_NAMED.get(slot) or _TABLES.get(slot, slot)} {name!r}"
        if first is None:
            return self.source.error(
                f"layer {self.layer!r} has a {what}, which adk-fluent-core has itself",
                found=f"{self.entry.target} of {self.source}",
                help=f"adk-fluent-core uses its own; uninstall {self.source.distribution},"
                " or report it",
            )
        if first.layer == self.layer:
            return self.source.error(
                f"layer {self.layer!r} has a {what} twice",
                found=f"{first.entry.target} and {self.entry.target}",
            )
        return self.source.error(
            f"layers {first.layer!r} and {self.layer!r} both have a {what}",
            found=f"one of {first.source} and one of {self.source}",
            help=f"uninstall {self.source.distribution} or {first.source.distribution}",
        )


@runtime_checkable
class _Table(Protocol):
    """What stands in the slots of `_TABLES`."""

    def claims(self) -> Mapping[Any, str]: ...


@dataclass(frozen=True, slots=True)
class LayerObject:
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
    """The installed layers by name, in the order of their names; nothing of them is imported."""
    from importlib.metadata import entry_points  # noqa: PLC0415  # 15 ms that most runs never need

    out: dict[str, Found] = {}
    made: list[Found] = []
    for point in entry_points(group=GROUP):
        dist = point.dist
        name, version = (dist.name, dist.version) if dist else ("an unknown distribution", "")
        made.append(Found(point.name, name, version, point))
    # of one name by distribution, too: errors are not to depend on the order of the path
    for each in sorted(made, key=lambda each: (each.name, each.distribution, each.version)):
        out[each.name] = replace(each, rival=out.get(each.name))
    return MappingProxyType(out)


@cache
def _loaded() -> Mapping[str, Layer | LayerError]:
    """Each installed layer, or what is wrong with it."""
    out: dict[str, Layer | LayerError] = {}
    for name, source in found().items():
        try:
            out[name] = source.load()
        except LayerError as error:
            out[name] = error
    return out


class _Layers(Mapping[str, Layer]):
    """The installed layers; one that is broken raises when it is asked for, and no other does."""

    def __getitem__(self, name: str) -> Layer:
        layer = _loaded()[name]
        return found()[name].load() if isinstance(layer, LayerError) else layer  # a fresh error

    def __iter__(self) -> Iterator[str]:
        return iter(found())

    def __len__(self) -> int:
        return len(found())


_LAYERS: Final = _Layers()


def layers() -> Mapping[str, Layer]:
    """The installed layers by name.

    Returns:
        Name to `Layer`, in the order of the names. Of each layer only its own module (and the
        packages above it) is imported, when it is asked for. A broken one then raises `LayerError`.
    """
    return _LAYERS


def offers(slot: str) -> Iterator[Offer]:
    """What the installed layers put into a slot, without importing it.

    Those that are broken put nothing there; see `layer_errors`.
    """
    for name, source in found().items():
        layer = _loaded()[name]
        if isinstance(layer, Layer):
            for entry in layer.entries(slot):
                yield Offer(name, entry, source)


def slots_in_use() -> tuple[str, ...]:
    """Every slot that an installed layer fills, those that core does not know included."""
    loaded = [each for name in found() if isinstance(each := _loaded()[name], Layer)]
    return tuple(sorted({slot for layer in loaded for slot in layer.provides}))


def offer_of(slot: str, name: str) -> Offer | None:
    """What the installed layers put into a slot under a name; None if nothing has it.

    Raises:
        LayerError: Two of them have it.
    """
    first: Offer | None = None
    for each in offers(slot):
        if each.name == name:
            if first is not None:
                raise each.clash(slot, name, first)
            first = each
    return first


def sole_offer(slot: str) -> Offer | None:
    """What the installed layers put into a slot for one thing; None if nothing stands there.

    Raises:
        LayerError: Two things stand there.
    """
    clashes = _sole_clashes(slot)
    if clashes:
        raise clashes[0]
    return next(offers(slot), None)


def provided(slot: str) -> Iterator[LayerObject]:
    """Iterate over what the installed layers put into a slot; each is imported when it is reached.

    Layers that are broken put nothing there; see `layer_errors`.

    Args:
        slot: One of `protocol.SLOTS`, or a slot that a layer defines.

    Raises:
        LayerError: A layer names something that does not exist, or cannot be imported.
    """
    for offer in offers(slot):
        yield LayerObject(offer.layer, offer.name, offer.load())


def broken_layers() -> list[LayerError]:
    """The error of each installed layer that cannot be loaded; it provides nothing."""
    return [each for name in found() if isinstance(each := _loaded()[name], LayerError)]


def usable(slot: str) -> tuple[list[LayerObject], list[LayerError]]:
    """What can be imported of a slot, and why the rest cannot be, broken layers included."""
    loaded, errors = _usable(slot)
    return [LayerObject(offer.layer, offer.name, thing) for offer, thing in loaded], errors


def _usable(slot: str) -> tuple[list[tuple[Offer, Any]], list[LayerError]]:
    things: list[tuple[Offer, Any]] = []
    errors = broken_layers()
    for offer in offers(slot):
        try:
            things.append((offer, offer.load()))
        except MissingLayerError as error:
            errors.append(offer.source.failed(offer.entry.target, error))
        except LayerError as error:
            errors.append(error)
    return things, errors


def layer_errors(*slots: str) -> list[LayerError]:
    """Collect what is wrong with the installed layers, for commands that list what they provide.

    Args:
        slots: The slots to look at, each thing of which is imported, too, to see whether it can be.
            Without any, the names in all slots are compared, and nothing is imported.

    Returns:
        An error for each layer that cannot be loaded, and for each name that two of them have, or
        one of them and core, or if two of them set up telemetry; it names both. With the slots of
        tables, also for each rule and pass that two of them have, or one of them and core.
    """
    errors = broken_layers()
    for slot in (each for each in _NAMED if not slots or each in slots):
        taken: dict[str, Offer | None] = dict.fromkeys(_names_of_core(slot))
        for offer in offers(slot):
            if offer.name in taken:
                errors.append(offer.clash(slot, offer.name, taken[offer.name]))
            elif offer.name:
                taken[offer.name] = offer
    for slot in (each for each in _SOLE if not slots or each in slots):
        errors += _sole_clashes(slot)
    for slot in slots:
        things, failed = _usable(slot)
        errors += [each for each in failed if each not in errors]
        if slot in _TABLES:
            errors += _clashing_tables(slot, things)
    return errors


def _sole_clashes(slot: str) -> list[LayerError]:
    """An error for each thing after the first in a slot for one."""
    first, *rest = [*offers(slot)] or [None]
    return [each.clash(slot, "", first) for each in rest if each is not None]


def _clashing_tables(slot: str, things: Iterable[tuple[Offer, Any]]) -> Iterator[LayerError]:
    """An error for each key of a layer's table that core's table or an earlier layer's has."""
    tables = [(offer, thing) for offer, thing in things if isinstance(thing, _Table)]
    taken: dict[Hashable, Offer | None] = dict.fromkeys(_claims_of_core(slot) if tables else ())
    for offer, table in tables:
        for key, name in table.claims().items():
            if key in taken:
                yield offer.clash(slot, name, taken[key])
            else:
                taken[key] = offer


def _claims_of_core(slot: str) -> Iterable[Hashable]:
    (entry,) = CORE.entries(slot)
    try:
        table = thing_at(entry.target)
    except Exception:  # noqa: BLE001  # ADK is absent or broken, which doctor says by itself
        return ()
    return table.claims()


def _names_of_core(slot: str) -> Iterable[str]:
    if slot == "names":
        return import_module("adk_fluent").__all__
    return [each.name for each in CORE.entries(slot)]


#: What tables forget when somebody looks again.
_watchers: Final[list[WeakMethod[Callable[[], None]]]] = []


def refresh() -> None:
    """Forget what is installed and look again: for tests, and after installing something."""
    invalidate_caches()
    found.cache_clear()
    _loaded.cache_clear()
    for forget in [watcher() for watcher in _watchers]:
        if forget is not None:
            forget()


def missing_layer(name: str, what: str, node: Placed | str | None = None) -> MissingLayerError:
    """The error about something whose layer is not installed."""
    return MissingLayerError(
        f"{what} needs the layer {name!r}, which is not installed",
        layer=name,
        distribution=WHEELS.get(name),
        node=node,
    )


def require_provider(slot: str, name: str, what: str, node: Placed | None = None) -> None:
    """Raise if what is not there would be provided by a layer of ours that is absent or broken.

    Args:
        slot: Where it would stand.
        name: What it is called.
        what: What needs it, as the start of a sentence.
        node: The node that needs it, if one does.

    Raises:
        MissingLayerError: Its layer is not installed.
        LayerError: Its layer is broken.
    """
    layer = PROVIDERS[slot].get(name)
    if layer is not None:
        require_layer(layer, what, node)


def known_names(slot: str) -> set[str]:
    """Names in a slot: those of installed layers, and of absent ones of ours."""
    absent = {name for name, layer in PROVIDERS[slot].items() if layer not in found()}
    return absent.union(each.name for each in offers(slot))


def broken_note() -> str | None:
    """Which layers are broken, for the error about something that one of them may have."""
    broken = [f"{e.layer!r} of {e.distribution} {e.version}".rstrip() for e in broken_layers()]
    if not broken:
        return None
    return f"broken layers that may have it: {', '.join(broken)}; adk-fluent doctor tells why"


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
    if name not in found():
        raise missing_layer(name, what, node)
    return layers()[name]


#: Modules of core in which a name is looked for that `adk_fluent` itself does not have.
_MODULES: Final = (
    *("config", "builders", "testing", "errors", "contracts", "protocol", "ir", "flow", "extend"),
)


def resolve_name(name: str, module: str = "adk_fluent", public: Iterable[str] = ()) -> Any:
    """Resolve a public name that another wheel brings; for a module's ``__getattr__``.

    Args:
        name: The name that the module does not have.
        module: The module, for the error.
        public: The names that it has.

    Raises:
        MissingLayerError: It is a name of a layer that is not installed.
        LayerError: It is a name of a layer that is broken, or of two layers.
        UnknownNameError: Nobody knows it.
        ImportError: The same, in ``from module import name``, where Python would keep the help of
            an AttributeError to itself.
    """
    if not name.startswith("_"):  # dunders are asked for all the time and are nobody's
        offer = offer_of("names", name)
        if offer is not None:
            return offer.load()
        require_provider("names", name, repr(name))
    layer = PROVIDERS["names"].get(name)
    home = f"adk_fluent.{layer}" if layer else _home_of(name)
    error = UnknownNameError(
        f"module {module!r} has no attribute {name!r}",
        unknown=name,
        known={*public, *known_names("names")},
        found=None if home or name.startswith("_") else broken_note(),
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

    def require(self, name: str, what: str, node: Placed) -> None:
        """Raise if a layer is absent or broken, or its rules cannot be imported."""
        require_layer(name, what, node)
        for error in usable("rules")[1]:
            if error.layer == name:
                raise error

    def provided(self, slot: str) -> list[tuple[Offer, Any]]:
        """What they put into a slot; what cannot be imported of it is logged and left out."""
        things, errors = _usable(slot)
        for error in errors:
            LOG.warning("what a broken layer has of %s is not used: %s", slot, error)
        return things

    def watch(self, forget: Callable[[], None]) -> None:
        """Call a method at each `refresh`, as long as its object lives."""
        _watchers.append(WeakMethod(forget, _watchers.remove))


INSTALLED: Final = InstalledLayers()
