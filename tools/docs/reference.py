"""The reference of a module: reStructuredText that Sphinx understands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import griffe

from docs.entry import Entry, title
from docs.names import attributes
from docs.prose import body, inline, summary
from docs.signatures import calls
from docs.sources import docstring

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docs.names import Names
    from docs.sources import Sources

_WIDEST: Final = 300  # of a constant's value
_ELSEWHERE: Final = "Also here"
_GROUPS: Final = ("Classes", "Functions", "Errors", "Constants and types", _ELSEWHERE)
_NAMELESS: Final = """\
What signatures call the types below. They are names for readers: there is nothing to import."""


class Reference:
    """Describes modules.

    Args:
        sources: What the packages define.
        names: What names stand for.

    Attributes:
        objects: Every name that is described, with where it is defined.
        problems: What has no docstring.
    """

    def __init__(self, sources: Sources, names: Names) -> None:
        self.objects: dict[str, tuple[str, int]] = {}
        self.problems: list[str] = []
        self._sources = sources
        self._names = names

    # --- modules -------------------------------------------------------------------------------

    def module(self, path: str, more: str = "") -> str:
        """The page of a module, with `more` behind its docstring."""
        groups: dict[str, list[str]] = {group: [] for group in _GROUPS}
        for name, thing in self._sources.names(path).items():
            if self._names.home(thing) == f"{path}.{name}":
                groups[_group(thing)].append(self._described(path, name, thing))
            else:
                groups[_ELSEWHERE].append(self._mentioned(path, name, thing))
        module = self._sources.modules[path]
        head = [title(path, "="), f".. py:module:: {path}", self._said(path, module, None), more]
        sections = [
            "\n\n".join([title(group, "-"), *entries])
            for group, entries in groups.items()
            if entries
        ]
        return "\n\n".join([*head, *sections]) + "\n"

    def types(self) -> dict[str, str]:
        """What signatures of the modules described so far name, and nobody can import.

        It goes to the end of the page of the module by which it is given.
        """
        entries: dict[str, str] = {}
        while left := sorted(set(self._names.types) - set(entries)):  # a type may name others
            for path in left:
                entries[path] = self._nameless(path, self._names.types[path])
        pages: dict[str, list[str]] = {}
        for path, entry in sorted(entries.items()):
            page = pages.setdefault(path.rpartition(".")[0], [])
            if not page:
                page += [title("Types in signatures", "-"), _NAMELESS]
            page.append(entry)
        return {module: "\n" + "\n\n".join(page) + "\n" for module, page in pages.items()}

    # --- what a module has ---------------------------------------------------------------------

    def _described(self, module: str, name: str, thing: griffe.Object) -> str:
        kind, options = _kind(thing), dict[str, str]()
        heads = calls(name, thing, self._names)
        text = self._said(f"{module}.{name}", thing, None)
        if isinstance(thing, griffe.Class):
            text = self._class(module, name, thing)
        elif isinstance(thing, griffe.Attribute):
            kind, options = self._constant(thing)
        if kind != "type" and thing.path != f"{module}.{name}":
            options["canonical"] = thing.path
        return self._written(Entry(kind, module, name, heads, text, options, _flags(thing)), thing)

    def _mentioned(self, module: str, name: str, thing: griffe.Object) -> str:
        """An entry of what another page describes."""
        heads = calls(name, thing, self._names)
        home = self._names.home(thing)
        text = f"{summary(thing, self._names)}\n\nDescribed as :py:obj:`{home}`."
        return self._written(Entry(_kind(thing), module, name, heads, text), thing)

    def _nameless(self, path: str, thing: griffe.Object) -> str:
        module, _, name = path.rpartition(".")
        text = summary(thing, self._names)
        if isinstance(thing, griffe.Attribute):
            options = {"canonical": self._names.type(thing.value)}
            return self._written(Entry("type", module, name, [name], text, options), thing)
        return self._written(Entry(_kind(thing), module, name, [name], text), thing)

    def _constant(self, thing: griffe.Attribute) -> tuple[str, dict[str, str]]:
        """The kind of a module's attribute, and its options."""
        value = thing.value
        annotation = str(thing.annotation or "")
        is_subscript = isinstance(value, griffe.ExprSubscript)
        if annotation.endswith("TypeAlias") or (is_subscript and not annotation):
            return "type", {"canonical": self._names.type(value)}
        options = {"type": self._names.type(_without_final(thing.annotation))}
        text = " ".join(str(value).split()) if value is not None else ""
        if len(text) <= _WIDEST and "(" not in text:
            options["value"] = text
        return "data", options

    # --- classes -------------------------------------------------------------------------------

    def _class(self, module: str, name: str, cls: griffe.Class) -> str:
        members = self._names.members(cls)
        listed = {each.name: each for each in attributes(cls)}
        parts = [self._bases(cls), self._said(f"{module}.{name}", cls, cls)]
        parts += [
            self._listed(module, f"{name}.{key}", each, members.get(key), cls)
            for key, each in listed.items()
        ]
        parts += [
            self._member(module, f"{name}.{key}", each, cls)
            for key, each in members.items()
            if key not in listed
        ]
        parts.append(self._inherited(cls, {*members, *listed}))
        return "\n\n".join(part for part in parts if part)

    def _bases(self, cls: griffe.Class) -> str:
        shown = dict.fromkeys(self._public_bases(cls))
        return f"Bases: {', '.join(shown)}" if shown else ""

    def _public_bases(self, cls: griffe.Class) -> Iterator[str]:
        """Links to the bases, of private ones to theirs; names of those of somebody else."""
        ours = {each.path: each for each in cls.mro()}
        for base in cls.bases:
            path = base if isinstance(base, str) else base.canonical_path
            found = ours.get(self._names.defined(path))
            if found is None:
                yield f"``{path.rpartition('.')[2]}``"
            elif home := self._names.home(found):
                yield f":py:obj:`~{home}`"
            else:
                yield from self._public_bases(found)

    def _inherited(self, cls: griffe.Class, seen: set[str]) -> str:
        lines: list[str] = []
        for base in self._names.public_bases(cls):
            home = self._names.home(base)
            there = {each.name for each in attributes(base)} | set(self._names.members(base))
            links = [f":py:obj:`{each} <{home}.{each}>`" for each in sorted(there - seen)]
            seen |= there
            if links:
                lines.append(f"Inherited from :py:obj:`~{home}`: {', '.join(links)}.")
        return "\n\n".join(lines)

    def _listed(
        self,
        module: str,
        path: str,
        said: griffe.DocstringAttribute,
        member: griffe.Object | None,
        cls: griffe.Class,
    ) -> str:
        """An attribute that the docstring of its class describes."""
        annotation = said.annotation
        if annotation is None and said.name in cls.parameters:  # which it keeps
            annotation = cls.parameters[said.name].annotation
        kind = "property" if member is not None and "property" in member.labels else "attribute"
        options = {"type": self._names.type(annotation)}
        text = inline(said.description, cls, cls, self._names)
        return self._written(Entry(kind, module, path, [said.name], text, options), member or cls)

    def _member(self, module: str, path: str, member: griffe.Object, cls: griffe.Class) -> str:
        heads = calls(member.name, member, self._names)
        if isinstance(member, griffe.Function):
            kind, options = "method", dict[str, str]()
        elif isinstance(member, griffe.Attribute):
            kind = "property" if "property" in member.labels else "attribute"
            options = {"type": self._names.type(_without_final(member.annotation))}
            if _is_enum(cls) and kind == "attribute":
                options = {"value": str(member.value)}
        else:
            raise TypeError(f"{module}.{path}: a {member.kind.value} in a class")
        if docstring(member) or not (_is_enum(cls) or _is_dict(cls)):
            text = self._said(f"{module}.{path}", member, cls)
        else:
            text = ""  # its name and its type or value say what there is to say
        flags = _flags(member) if kind == "method" else ()
        return self._written(Entry(kind, module, path, heads, text, options, flags), member)

    # --- text ----------------------------------------------------------------------------------

    def _said(self, path: str, thing: griffe.Object, owner: griffe.Class | None) -> str:
        if docstring(thing) is None:
            self.problems.append(f"{self._sources.where(thing)}: {path} has no docstring")
        return body(thing, owner, self._names)

    def _written(self, entry: Entry, thing: griffe.Object) -> str:
        self.objects[f"{entry.module}.{entry.path}"] = self._sources.place(thing)
        return str(entry)


def _group(thing: griffe.Object) -> str:
    kinds = {"exception": "Errors", "class": "Classes", "function": "Functions"}
    return kinds.get(_kind(thing), "Constants and types")


def _kind(thing: griffe.Object) -> str:
    """What Sphinx calls it."""
    if isinstance(thing, griffe.Class):
        is_error = any(each.endswith(("Error", "Exception")) for each in _all_bases(thing))
        return "exception" if is_error else "class"
    return "function" if thing.is_function else "data"


def _all_bases(cls: griffe.Class) -> set[str]:
    return {str(base).rpartition(".")[2] for each in (cls, *cls.mro()) for base in each.bases}


def _is_enum(cls: griffe.Class) -> bool:
    return bool(_all_bases(cls) & {"Enum", "IntEnum", "StrEnum"})


def _is_dict(cls: griffe.Class) -> bool:
    return "TypedDict" in _all_bases(cls)


def _flags(thing: griffe.Object) -> tuple[str, ...]:
    return tuple(sorted(thing.labels & {"async", "classmethod", "staticmethod"}))


def _without_final(annotation: str | griffe.Expr | None) -> str | griffe.Expr | None:
    if str(annotation) == "Final":
        return None
    outer = str(annotation.left) if isinstance(annotation, griffe.ExprSubscript) else ""
    if isinstance(annotation, griffe.ExprSubscript) and outer in {"ClassVar", "Final"}:
        return annotation.slice
    return annotation
