"""What tests of derived effects say they expect, and how that is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from adk_fluent.ir import UNSET

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.contracts._effects import Derived


class Case(NamedTuple):
    """A function and what is known of it; see `told`."""

    fn: Any
    expected: dict[str, str]


class Cases(list[Case]):
    """Functions with what is known of them."""

    def told(self, **expected: str) -> Callable[[Any], Any]:
        """Keep what is decorated, with what it does; ``x?`` in `reads` may be absent."""

        def keep(fn: Any) -> Any:
            self.append(Case(fn, expected))
            return fn

        return keep

    def of(self, fn: Callable[[Any], object], **expected: str) -> None:
        """Keep a lambda."""
        self.append(Case(fn, expected))


def told(derived: Derived) -> dict[str, str]:
    """What is known, as `Cases.told` takes it: what there is nothing of is left out."""
    reads = [ref.key + ("" if ref.default is UNSET else "?") for ref in derived.reads]
    found = {
        "reads": " ".join(reads),
        "writes": " ".join(ref.key for ref in derived.writes),
        "may_write": " ".join(ref.key for ref in derived.may_write),
        "removes": " ".join(derived.removes),
        "may_remove": " ".join(derived.may_remove),
        "assumed": " ".join(derived.assumed),
        "also": " ".join(
            name for name in ("reads_all", "escalates", "transfers") if getattr(derived, name)
        ),
    }
    if derived.opaque is not None:
        clause, line, _ = derived.opaque.partition(" in line ")
        found = {"reads": found["reads"], "opaque": clause + (line and " in line N")}
    return {name: text for name, text in found.items() if text}
