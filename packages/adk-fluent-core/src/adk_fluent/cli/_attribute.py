"""What a target names, and the pipeline that it is in its module."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from inspect import iscoroutinefunction, signature
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.builders import Builder, BuilderBase, Pipeline
from adk_fluent.cli._transcript import note
from adk_fluent.errors import AdkFluentError, BuildError, TargetError, nearest_name
from adk_fluent.ir import Node, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What is looked for when a target names no attribute.
DEFAULTS: Final = ("pipeline", "root_agent", "agent")
#: How a target is written.
FORMS: Final = "write module:attribute or path.py:attribute"
_WINDOWS_DRIVE: Final = re.compile(r"^[A-Za-z]:(?=[\\/])")
_SEPARATOR: Final = re.compile(r"[\\/]")


@dataclass(frozen=True, slots=True)
class Target:
    """A place in Python that a person names, such as ``shop/desk.py:pipeline``.

    Attributes:
        text: As the user wrote it.
        source: Module name, or path of a file.
        attribute: Dotted name in it, or None for the first of the usual names.
    """

    text: str
    source: str
    attribute: str | None

    @property
    def is_file(self) -> bool:
        """Whether the source is a path."""
        source = self.source
        return source.endswith(".py") or source in {".", ".."} or bool(_SEPARATOR.search(source))

    @property
    def folder(self) -> Path:
        """Where its own modules are."""
        return Path(self.source).resolve().parent if self.is_file else Path.cwd()

    @classmethod
    def parse(cls, text: str) -> Target:
        """Split a target at its last colon, unless that is a part of a path.

        Raises:
            TargetError: A part of it is empty.
        """
        drive = _WINDOWS_DRIVE.match(text)
        start = drive.end() if drive else 0
        source, colon, attribute = text[start:].rpartition(":")
        if not colon or _SEPARATOR.search(attribute):
            source, attribute = text[start:], None
        target = cls(text, text[:start] + source, attribute)
        if not target.source.strip():
            found = "no module and no file" + (" before the colon" if colon else "")
        elif attribute == "":
            found = "no attribute after the colon"
        elif attribute is not None and not all(attribute.split(".")):
            found = f"a name is missing in {attribute!r}"
        else:
            return target
        raise target.error(f"{text!r} is no target", FORMS, found=found)

    def error(
        self,
        what: str,
        help: str,
        *,
        found: str | None = None,
        location: str | None = None,
    ) -> TargetError:
        """Make a `TargetError` about this target."""
        return TargetError(what, target=self.text, help=help, found=found, location=location)


def default_of(module: ModuleType) -> str | None:
    """The first of the usual names that a module has; a module of that name is no pipeline."""
    there = (name for name in DEFAULTS if hasattr(module, name))
    return next((name for name in there if not isinstance(getattr(module, name), ModuleType)), None)


def find(target: Target, module: ModuleType) -> Builder:
    """The pipeline that a target names in its module.

    Raises:
        TargetError: There is none of that name, or it is no pipeline.
    """
    return _pipeline(target, attribute_of(target, module))


def attribute_of(target: Target, module: ModuleType) -> Any:
    """Return what a target names in its module, or the first of the usual names.

    Args:
        target: The target.
        module: Its module, from `module_of`.

    Raises:
        TargetError: There is no such attribute.
    """
    if target.attribute is None:
        name = default_of(module)
        if name is None:
            raise _unnamed(target, module)
        return getattr(module, name)
    value: Any = module
    parts = target.attribute.split(".")
    for at, part in enumerate(parts):
        if not hasattr(value, part):
            near = nearest_name(part, (name for name in dir(value) if not name.startswith("_")))
            there = _pipelines(module)
            raise target.error(
                f"{':'.join([target.source, *filter(None, ['.'.join(parts[:at])])])} "
                f"has no attribute {part!r}",
                f"did you mean {near!r}?" if near else "check the name",
                found=f"pipelines {', '.join(there)}" if there and not near else None,
            )
        value = getattr(value, part)
    return value


def _unnamed(target: Target, module: ModuleType) -> Exception:
    """The error about a target that should have named an attribute."""
    what = f"{target.source} has no {' or '.join(DEFAULTS)}"
    source = target.source if target.is_file else module.__name__
    if there := _pipelines(module):
        hint = f"name the attribute, such as {source}:{there[0]}"
        return target.error(what, hint, found=", ".join(there))
    below = [name for _, name, _ in iter_modules(getattr(module, "__path__", ()))]
    if not below:
        hint = f"name the attribute, such as {source}:desk"
        return target.error(what, hint, found="no pipeline at all")
    imported = ((name, getattr(module, name, None)) for name in below)
    names = [
        f"{source}.{name}:{each}"
        for name, part in imported
        if isinstance(part, ModuleType)
        for each in _pipelines(part)
    ]
    one = names[0] if names else f"{source}.{below[0]}:desk"
    return target.error(
        what,
        f"name what is in one of them, such as {one}",
        found=", ".join(names) or f"the modules {', '.join(below)}",
    )


def _pipelines(module: ModuleType) -> list[str]:
    """Names of pipelines, the usual names first, and then those that consist of the most steps."""
    named = vars(module).items()
    sizes = {n: _size(v) for n, v in named if not n.startswith("_") and _is_pipeline(v)}
    return sorted(sizes, key=lambda name: (name not in DEFAULTS, -sizes[name]))


def _size(value: Any) -> int:
    """Of how many parts it is made; 0 if it is not complete yet."""
    if _is_adk(value, "agents", "BaseAgent"):
        below: Iterable[object] = value.sub_agents
        return 1 + sum(_size(agent) for agent in below)
    try:
        return sum(1 for _ in walk(value if isinstance(value, Node) else value.to_ir()))
    except BuildError:
        return 0


def _is_pipeline(value: object) -> bool:
    return isinstance(value, BuilderBase | Node) or _is_adk(value, "agents", "BaseAgent")


def _is_adk(value: object, module: str, name: str) -> bool:
    """Whether it is an instance of an ADK class; if it is, ADK has been imported already."""
    loaded = sys.modules.get(f"google.adk.{module}")
    return loaded is not None and isinstance(value, getattr(loaded, name))


def _pipeline(target: Target, value: Any) -> Builder:
    value = _root_of(target, call_factory(target, value))
    if isinstance(value, Builder):
        return cast("Builder", value)
    if _is_pipeline(value):
        return Pipeline(value)
    hint = "name a builder such as Agent(...) or a >> b, an IR node, an ADK agent or a function "
    hint += "that returns one"
    if isinstance(value, ModuleType):
        there = [*_pipelines(value), DEFAULTS[1]]
        hint = f"name what is in it, such as {value.__name__}:{there[0]}"
    raise target.error(f"{target.text} is no pipeline", hint, found=_kind(value))


def _root_of(target: Target, value: Any) -> Any:
    """The root agent of an App of ADK; all else as it is."""
    if not _is_adk(value, "apps", "App"):
        return value
    if value.plugins:
        names = ", ".join(each.name for each in value.plugins)
        note(f"{target.text}: its root agent is taken, without the App's plugins: {names}")
    return value.root_agent


def call_factory(target: Target, factory: Any) -> Any:
    """Return what a function without arguments returns; all else as it is.

    Args:
        target: The target that names it, for errors.
        factory: What it names.

    Raises:
        TargetError: The function needs arguments, is async, or raised.
    """
    if not callable(factory) or isinstance(factory, type) or _is_pipeline(factory):
        return factory
    name = getattr(factory, "__name__", "factory")
    needs = None
    try:
        signature(factory).bind()
    except TypeError as error:
        needs = str(error)
    except ValueError:  # a builtin without a signature
        pass
    if iscoroutinefunction(factory):
        needs = "it is async"
    if needs is not None:
        hint = f"call it in its module and name what it returns: made = {name}(...)"
        raise target.error(f"{target.text} cannot be called", hint, found=f"a function: {needs}")
    try:
        return factory()
    except AdkFluentError:
        raise
    except Exception as error:
        raise target.error(
            f"{target.text} raised",
            "it is called without arguments; --debug shows the traceback",
            found=f"{type(error).__name__}: {error}",
        ) from error


def _kind(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
