"""What walks through a function: its names, what holds where, and what it must not go into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from adk_fluent.contracts._effects._facts import Facts, meet
from adk_fluent.contracts._effects._values import Fields, Plain, Tracked, Value

if TYPE_CHECKING:
    import ast

    from adk_fluent.contracts._effects._log import Log
    from adk_fluent.contracts._effects._names import Names
    from adk_fluent.contracts._effects._scope import Scope

#: Statements and expressions that are looked at, at most, those of a loop each time.
_LIMIT: Final = 20_000


class Unclear(Exception):  # noqa: N818  # no error: it ends the search
    """Something that is not understood; its text says what."""


class Budget:
    """How much may still be looked at, for a function and all functions inside it."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left: int = _LIMIT


class Machine:
    """One function, or one inside it, as it is walked through.

    Args:
        names: What names mean outside.
        scope: Whose names are whose.
        log: Gets what is seen.
        around: Who walks through the function around this one.
    """

    def __init__(self, names: Names, scope: Scope, log: Log, around: Machine | None = None) -> None:
        self.names: Names = names
        self.scope: Scope = scope
        self.log: Log = log
        self.around: Machine | None = around
        self.budget: Budget = around.budget if around else Budget()
        #: Names that a function inside used before they were bound.
        self.early: set[str] = set()
        #: What held wherever a `try` may be left by an error, innermost last.
        self.risks: list[Facts | None] = []
        #: Errors that do no harm here, innermost last.
        self.caught: list[tuple[type, ...]] = []

    # --- what is not understood ------------------------------------------------------------------

    def unclear(self, node: ast.AST, what: str) -> NoReturn:
        """Give up.

        Raises:
            Unclear: Always.
        """
        line = getattr(node, "lineno", None)
        raise Unclear(f"it {what}" + (f" in line {line}" if line else ""))

    def spend(self) -> None:
        """Look at one thing more.

        Raises:
            Unclear: That is too many.
        """
        self.budget.left -= 1
        if self.budget.left < 0:
            raise Unclear("it is too long to be looked through")

    # --- names -----------------------------------------------------------------------------------

    def lookup(self, name: str, facts: Facts) -> Value:
        """What a name stands for."""
        here: Machine | None = self
        while here is not None:
            if name in here.scope.moved:
                return Plain()
            if name in facts.env:
                return facts.env[name]
            if here.scope.bound[name]:
                if here is not self:
                    here.early.add(name)
                return Plain()
            here = here.around
        return self.names.value(name)

    def bind(self, name: str, value: Value, facts: Facts, node: ast.AST) -> None:
        """Let a name stand for a value."""
        inside = name in self.scope.shared
        if isinstance(value, Tracked):
            often = self.scope.bound[name] > 1 or name in self.early
            if name in self.scope.moved or (inside and often):
                self.unclear(node, f"shares `{name}` with a function inside it")
        if name in self.scope.moved:
            return
        if inside and isinstance(value, Fields):
            value = value.opened("a function inside may change it")
        facts.env[name] = value
        self.notice(facts)

    # --- ways ------------------------------------------------------------------------------------

    def notice(self, facts: Facts) -> None:
        """An error may lead from here to whatever handles it."""
        for at, known in enumerate(self.risks):
            self.risks[at] = meet(known, facts)

    def forgives(self, error: type) -> bool:
        """Whether an error of that class is caught here."""
        return any(issubclass(error, kind) for kinds in self.caught for kind in kinds)

    # --- what the other halves do ----------------------------------------------------------------

    def value(self, node: ast.expr, facts: Facts) -> Value:
        """What an expression gives."""
        raise NotImplementedError

    def plain(self, node: ast.expr, facts: Facts, how: str | None = None) -> Value:
        """What an expression gives that must not be state, nor lead to it."""
        value = self.value(node, facts)
        if isinstance(value, Tracked):
            self.refuse(node, value, how)
        return value

    def refuse(self, node: ast.AST, value: Tracked, how: str | None = None) -> NoReturn:
        """Give up on a use of state.

        Raises:
            Unclear: Always.
        """
        named = f"`{value.name}`"
        if value.kind == "sometimes":
            self.unclear(node, f"uses {named}, which is not always the same")
        self.unclear(node, (how or "uses {} in a way that is not understood").format(named))
