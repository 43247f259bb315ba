"""Where a live object sits in the IR, and where in the user's source a node was written."""

from __future__ import annotations

from types import MethodType
from typing import Any

from adk_fluent._caller import caller
from adk_fluent.ir._path import import_path, is_made_of_parts, name_of_object, same_object
from adk_fluent.ir._record import record


@record
class Location:
    """A line of the user's source: where the builder call that made a node stands.

    Locations never take part in equality or in hashes of nodes.

    Attributes:
        file: The file's path, as Python knows it.
        line: The line, from 1.
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def __lt__(self, other: Location) -> bool:
        return (self.file, self.line) < (other.file, other.line)

    @classmethod
    def caller(cls) -> Location | None:
        """The nearest line outside adk_fluent on the present call stack, if there is one."""
        place = caller()
        return None if place is None else cls(*place)


@record
class Ref:
    """A live object (callable, tool, model, schema, ADK agent) held by the IR.

    Two references are equal when their digests are, or, where neither has one, when they hold the
    same object, or equal records. Whoever makes a reference gives it a digest only if equal digests
    really mean interchangeable objects.

    Attributes:
        value: The object itself.
        name: A short name, for messages, diagrams and files.
        digest: Identity of the value across processes; None: the object itself is its identity.
    """

    value: Any
    name: str = ""
    digest: str | None = None

    @classmethod
    def to(cls, value: Any, digest: str | None = None) -> Ref:
        """A reference named after its value (`__name__`, then `name`, then the type's name)."""
        return cls(value, name_of_object(value), digest)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ref):
            return NotImplemented
        if self.digest is not None or other.digest is not None:
            return self.digest == other.digest
        return same_object(self.value, other.value)

    def __hash__(self) -> int:
        if self.digest is not None:
            return hash(self.digest)
        value = self.value
        if isinstance(value, MethodType):
            return hash((id(value.__self__), id(value.__func__)))
        return hash(value) if is_made_of_parts(value) else id(value)

    def __repr__(self) -> str:
        """Constructible for importable objects; never the value's own repr, it may hold secrets."""
        path = import_path(self.value)
        extra = "" if self.digest is None else f", digest={self.digest!r}"
        if path is not None:
            return f"Ref.load({path!r}{extra})"
        return f"Ref(<{type(self.value).__name__}>, {self.name!r}{extra})"

    @classmethod
    def load(cls, path: str, digest: str | None = None) -> Ref:
        """A reference to ``module:qualname``, imported now.

        Raises:
            ImportError: The module cannot be imported.
            AttributeError: The module has no such attribute.
        """
        import importlib  # noqa: PLC0415  # only needed here; keeps `import adk_fluent` light

        module, _, qualname = path.partition(":")
        value: Any = importlib.import_module(module)
        for part in qualname.split("."):
            value = getattr(value, part)
        return cls.to(value, digest)
