"""What a name in a docstring or a signature stands for, and where the reference describes it."""

from __future__ import annotations

import builtins
import re
import sys
from typing import TYPE_CHECKING, Final

import griffe

from docs.sources import ROOT_MODULE, docstring, target

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from docs.sources import Sources

_NAME: Final = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*)(\(.*\))?", re.DOTALL)
_BUILTINS: Final = {name for name, each in vars(builtins).items() if isinstance(each, type)}
_OUTSIDE: Final = {*sys.stdlib_module_names, *dir(builtins), "a2a", "click", "google", "pydantic"}
_UNSAID: Final = {"__init__", "__new__", "__init_subclass__", "__post_init__"}

LITERAL: Final = ""
"""A name that is right but not described: a parameter, or a name of somebody else."""


class Names:
    """Resolves names, and remembers the private types that signatures need.

    Args:
        sources: What the packages define.

    Attributes:
        types: What stands in signatures without a public name, by the path it is described under.
        problems: Names that stand for nothing.
    """

    def __init__(self, sources: Sources) -> None:
        self.types: dict[str, griffe.Object] = {}
        self.problems: list[str] = []
        self._sources = sources
        self._short: dict[str, list[str]] = {}
        self._owners: dict[str, set[str]] = {}  # of a name that a class has
        for home in sources.homes.values():
            self._short.setdefault(home.rpartition(".")[2], []).append(home)
            found = self._find(home)
            if isinstance(found, griffe.Class):
                listed = (each.name for each in attributes(found))
                for name in {*self.members(found), *listed}:
                    self._owners.setdefault(name, set()).add(home)

    # --- classes -------------------------------------------------------------------------------

    def home(self, thing: griffe.Object) -> str | None:
        """Where something is described, if it is."""
        return self._sources.homes.get(thing.path)

    def defined(self, path: str) -> str:
        """The path of the definition of what has a path; of a name of somebody else, the same."""
        found = self._find(path)
        return path if found is None else found.path

    def public_bases(self, cls: griffe.Class) -> list[griffe.Class]:
        """The classes it inherits from that are described themselves."""
        return [each for each in cls.mro() if self.home(each)]

    def members(self, cls: griffe.Class) -> dict[str, griffe.Object]:
        """What is described with a class: its own, and what it has from private bases.

        An attribute that only keeps an argument of the constructor is described by that argument.
        """
        public = self.public_bases(cls)
        elsewhere = {each.path for base in public for each in base.mro()}
        elsewhere |= {base.path for base in public}
        inherited = {name for base in public for name in self.members(base)}
        parameters = {each.name for each in cls.parameters}
        found: dict[str, griffe.Object] = {}
        for each in (cls, *(base for base in cls.mro() if base.path not in elsewhere)):
            for name, member in each.members.items():
                if name in found or member.is_alias or not _is_said(name, target(member)):
                    continue
                thing = target(member)
                if docstring(thing) is None and (
                    name in inherited  # it means the same as in the base
                    or ("instance-attribute" in thing.labels and name in parameters)
                ):
                    continue
                found[name] = thing
        return found

    # --- signatures ----------------------------------------------------------------------------

    def type(self, annotation: str | griffe.Expr | None) -> str:
        """An annotation as a signature shows it, with the path of each name for Sphinx."""
        if annotation is None or isinstance(annotation, str):
            return annotation or ""
        parts = list(annotation.iterate(flat=True))
        text: list[str] = []
        for at, part in enumerate(parts):
            if part == "." or parts[at + 1 : at + 2] == ["."]:
                continue  # `types.Part` is shown as `Part`
            is_name = isinstance(part, griffe.ExprName)
            text.append(self._type_name(part) if is_name else str(part))
        return "".join(text)

    def _type_name(self, name: griffe.ExprName) -> str:
        path = name.canonical_path
        if path in _BUILTINS:  # Sphinx would look for a `type` of ours
            return f"~builtins.{path}"
        if "." in path and path.partition(".")[0] != ROOT_MODULE:
            return f"~{path}"
        thing = self._find(path) if "." in path else None
        if thing is not None:
            return f"~{home}" if (home := self.home(thing)) else self._private(thing)
        self.problems.append(f"{path}: a signature names it, and nothing defines it")
        return name.name

    def _private(self, thing: griffe.Object) -> str:
        """A type without a public name, as a signature shows it."""
        if isinstance(thing, griffe.Attribute):
            if isinstance(thing.value, griffe.ExprCall):  # a TypeVar
                return thing.name
            if thing.name.startswith("_"):
                return self.type(thing.value)
        module = thing.module.path
        while module not in self._sources.modules:
            module = module.rpartition(".")[0]
        self.types[f"{module}.{thing.name}"] = thing
        return f"~{module}.{thing.name}"

    def _find(self, path: str) -> griffe.Object | None:
        found = self._sources.modules[ROOT_MODULE]
        try:
            return target(found[path.removeprefix(f"{ROOT_MODULE}.")])
        except (KeyError, griffe.AliasResolutionError):
            return self._of_instance(path)

    def _of_instance(self, path: str) -> griffe.Object | None:
        """What a constant has by its class: ``S.compute``."""
        parent, _, name = path.rpartition(".")
        made = self._find(parent) if "." in parent else None
        if not isinstance(made, griffe.Attribute) or not isinstance(made.value, griffe.ExprCall):
            return None
        cls = self._find(made.value.function.canonical_path)
        member = cls.all_members.get(name) if isinstance(cls, griffe.Class) else None
        return target(member) if member is not None else None

    # --- prose ---------------------------------------------------------------------------------

    def link(self, text: str, thing: griffe.Object, owner: griffe.Class | None) -> str:
        """What stands between single backticks, as reStructuredText.

        Args:
            text: The name, perhaps with a call: ``Call(...)``.
            thing: What the docstring belongs to.
            owner: The class under which it is shown.
        """
        match = _NAME.fullmatch(text)
        if match is None or match[1].endswith(".py"):
            return f"``{text}``"
        for home in self._meanings(match[1], thing, owner):
            return f":py:obj:`{text} <{home}>`" if home else f"``{text}``"
        self.problems.append(f"{self._sources.where(thing)}: `{text}` stands for nothing")
        return f"``{text}``"

    def raised(self, text: str, thing: griffe.Object, owner: griffe.Class | None) -> str:
        """The path of an error that a docstring names, or its name if it is somebody else's."""
        for home in self._meanings(text, thing, owner):
            return f"~{home}" if home else text
        self.problems.append(f"{self._sources.where(thing)}: raises {text}, which is nothing")
        return text

    def _meanings(
        self, name: str, thing: griffe.Object, owner: griffe.Class | None
    ) -> Iterator[str]:
        """Where something of that name is described, the nearest first."""
        first, _, rest = name.partition(".")
        for each in (thing, owner):
            if isinstance(each, griffe.Function | griffe.Class):
                yield from (LITERAL for given in each.parameters if given.name == first)
        if name in self._sources.modules:
            yield name
        if owner:
            yield from self._of_class(owner, first)
        try:
            path = thing.resolve(first)
        except griffe.NameResolutionError:
            path = first
        if path.partition(".")[0] != ROOT_MODULE:
            yield from (LITERAL for outside in _OUTSIDE if outside == path.partition(".")[0])
        elif (found := self._find(f"{path}.{rest}" if rest else path)) is not None:
            yield from self._described(found)
        homes = self._short.get(first, [])
        near = [each for each in homes if thing.path.startswith(each.rpartition(".")[0] + ".")]
        for home in near or homes[:1]:
            if (found := self._find(f"{home}.{rest}" if rest else home)) is not None:
                yield from self._described(found)
        if not rest and len(owners := self._owners.get(first, set())) == 1:
            yield from (f"{home}.{first}" for home in owners)

    def _described(self, found: griffe.Object) -> Iterator[str]:
        """Where something is described, or with what class."""
        parent = found.parent
        if home := self.home(found):
            yield home
        elif isinstance(parent, griffe.Class) and self.home(parent):
            yield from self._of_class(parent, found.name)
        else:
            yield LITERAL

    def _of_class(self, cls: griffe.Class, name: str) -> Iterator[str]:
        for each in (cls, *self.public_bases(cls)):
            if name in self.members(each) or name in {item.name for item in attributes(each)}:
                yield f"{home}.{name}" if (home := self.home(each)) else LITERAL
            elif name in each.members:
                yield LITERAL


def _is_said(name: str, member: griffe.Object) -> bool:
    if name.startswith("__") and name.endswith("__"):
        return member.docstring is not None and member.is_function and name not in _UNSAID
    return not name.startswith("_")


def attributes(cls: griffe.Class) -> Iterable[griffe.DocstringAttribute]:
    """What a class docstring lists under ``Attributes:``."""
    for section in cls.docstring.parsed if cls.docstring else ():
        if isinstance(section, griffe.DocstringSectionAttributes):
            yield from section.value
