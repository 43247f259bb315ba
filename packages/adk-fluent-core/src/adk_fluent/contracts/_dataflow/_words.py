"""Reads and writes in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.contracts._dataflow._values import Need
from adk_fluent.contracts._reports._diagnostic import Related
from adk_fluent.contracts._types import name_of
from adk_fluent.ir import AgentNode, FunctionNode, TapNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adk_fluent.contracts._dataflow._values import Def, Site


#: How a function reads that an agent calls when it sees fit; the function's name follows.
CALLS: Final = "calls "
#: How an agent that was built by hand fills an instruction; the name of who has that follows.
FILLS: Final = "fills "


def reads(site: Site) -> str:
    """Who reads what, as the beginning of a sentence."""
    say = _READS.get(site.how)
    if say is not None:
        return say(site.node.name, site.key)
    if site.how.startswith(CALLS):
        by = site.how.removeprefix(CALLS)
        return f"`{by}`, which `{site.node.name}` calls, reads `{site.key}`"
    if site.how.startswith(FILLS):
        by = site.how.removeprefix(FILLS)
        where = "" if by == site.node.name else f", which is in `{site.node.name}`,"
        return f"the instruction of `{by}`{where} needs `{site.key}`"
    if _is_placeholder(site):
        return f"the instruction of `{site.node.name}` needs `{site.key}`"
    return f"`{site.node.name}` reads `{site.key}`"


_READS: dict[str, Callable[[str, str], str]] = {
    "routes on": lambda name, key: f"route `{name}` decides by `{key}`",
    "tests": lambda name, key: f"the test of `{name}` reads `{key}`",
    "expects": lambda name, key: f"`{name}` tests `{key}`",
    "repeats": lambda name, key: f"the test that ends loop `{name}` reads `{key}`",
    "maps over": lambda name, key: f"`{name}` maps over `{key}`",
    "collects": lambda name, key: f"`{name}` collects `{key}` of its items",
    "sends": lambda name, key: f"`{name}` sends `{key}` along",
    "shows": lambda name, key: f"the payload of gate `{name}` reads `{key}`",
    "instructs": lambda name, key: f"the instruction function of `{name}` reads `{key}`",
    "promises": lambda name, key: f"`{name}` promises the output `{key}`",
    "begins with": lambda name, key: f"`{name}` needs its input `{key}`",
}


#: Reads by code, of those that are no steps.
_CODE: Final = frozenset({"routes on", "tests", "expects", "repeats", "shows", "instructs"})
#: Reads by whoever has declared the key so.
_DECLARED: Final = frozenset({"promises", "begins with"})


def _is_placeholder(site: Site) -> bool:
    """Whether an agent's instruction has the key as a placeholder that must be filled."""
    if site.how.startswith(FILLS):
        return site.need is Need.REQUIRED
    text = site.node.instruction if isinstance(site.node, AgentNode) else None
    if site.how != "reads" or not isinstance(text, str):
        return False
    return f"{{{site.key}}}" in text.replace(" ", "")


def writers(found: Iterable[Def], when: str = "") -> list[Related]:
    """The places where a key is written or removed.

    Args:
        found: Who does.
        when: More about that, as the end of the sentence.
    """
    related = [
        Related.at(
            each.node,
            f"`{each.node.name}` {'removes' if each.removes else 'writes'} it{when and ' '}{when}",
        )
        for each in found
    ]
    return list(dict.fromkeys(related))


def lenient(site: Site) -> str:
    """How to read a key that may have no value, in words of advice."""
    node, key = site.node, site.key
    if _is_placeholder(site):
        return f"read it as `{{{key}?}}`"
    step = isinstance(node, FunctionNode | TapNode)
    if site.how in _DECLARED or (step and not node.effects.opaque):
        return f'let it be absent: StateFieldRef("{key}", default=None)'
    by_code = step or site.how in _CODE or site.how.startswith(CALLS)
    if by_code and site.need is Need.REQUIRED and site.type is not None:
        return "give its field a default"
    if by_code and site.need is Need.REQUIRED:
        return f'read it with state.get("{key}")'
    scope, _, name = key.rpartition(":")
    return f"give it a value first, as S.{scope and f'{scope}.'}default({name}=...) does"


#: Reads that fail at once if the type is another.
AT_ONCE: Final = frozenset({"maps over", "routes on", "tests", "expects", "repeats"})
_NEEDED: Final = {list: "a list", float: "a number", str: "text"}


def wanted(site: Site) -> str:
    """What a reader takes a value as."""
    if site.how in AT_ONCE:  # nobody has written this type: it is what a step needs
        return _NEEDED.get(site.type) or name_of(site.type)
    return name_of(site.type)
