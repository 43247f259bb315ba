"""Catalogs of agents, as data: AI Catalog 1.0 and the entries of ARD 0.9, both drafts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

AGENT_TYPE: Final = "application/a2a-agent-card+json"
CATALOG_TYPE: Final = "application/ai-catalog+json"
REGISTRY_TYPES: Final = ("application/ai-registry+json", "application/ai-registry")
CATALOG_PATH: Final = "/.well-known/ai-catalog.json"

_WORD: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+|[^\W_a-zA-Z0-9]+")
_T = TypeVar("_T")


class CatalogError(ValueError):
    """A catalog, or the answer of a registry, is not what it should be."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry of a catalog.

    Attributes:
        identifier: What it is called, such as ``urn:air:acme.com:agent:payments``.
        kind: Its media type.
        name: Its name for people.
        url: Where its document is; None where the entry has it.
        data: The document, where the entry has it.
        version: Its version; "" where it has none.
        updated: When it was changed, in ISO 8601; "" where that is not said.
        offers: Capabilities and tags that the entry names; None where it names no capabilities.
        says: All it says of itself.
    """

    identifier: str
    kind: str
    name: str
    url: str | None
    data: object
    version: str
    updated: str
    offers: frozenset[str] | None
    says: str

    def may_offer(self, wanted: Sequence[str]) -> bool:
        """Whether it is worth looking at the card: only that says what is really offered."""
        return self.offers is None or self.offers.issuperset(wanted)


def publisher_of(identifier: str) -> str:
    """The domain in an identifier of ARD; "" where it has none."""
    parts = identifier.split(":")
    return parts[2] if parts[:2] == ["urn", "air"] and len(parts) > 3 else ""


def is_catalog(document: object) -> bool:
    """Whether a document is meant to be a catalog, and not a card."""
    return isinstance(document, Mapping) and "entries" in document


def entries_of(document: object, member: str = "entries") -> list[Listed]:
    """Read the entries of a catalog, or of a registry's answer.

    Raises:
        CatalogError: It is not such a document.
    """
    if not isinstance(document, Mapping):
        raise CatalogError(f"is no JSON object with {member!r}")
    found = cast("Mapping[str, object]", document).get(member)
    if not isinstance(found, list):
        raise CatalogError(f"has no list of {member!r}")
    return [_entry(each, at) for at, each in enumerate(cast("list[object]", found))]


def catalog_of(document: object) -> list[Listed]:
    """Read a catalog, in which no entry may stand twice.

    Raises:
        CatalogError: It is not a catalog, of another major version, or names an entry twice.
    """
    entries = entries_of(document)
    version = cast("Mapping[str, object]", document).get("specVersion")
    if not isinstance(version, str) or version.partition(".")[0] != "1":
        raise CatalogError(f"is of version {version!r}, and not 1.x")
    seen: set[tuple[str, str]] = set()
    for each in entries:
        if (key := (each.identifier, each.version)) in seen:
            raise CatalogError(f"names {each.identifier!r} twice")
        seen.add(key)
    return entries


def _entry(found: object, at: int) -> Listed:
    if not isinstance(found, Mapping):
        raise CatalogError(f"has an entry that is no JSON object: number {at}")
    entry = cast("Mapping[str, object]", found)
    # AI Catalog says mediaType, and ARD says type
    kind = _text(entry, "type") or _text(entry, "mediaType")
    identifier = _text(entry, "identifier")
    if not kind or not identifier:
        raise CatalogError(f"has an entry without a type or an identifier: number {at}")
    if ("url" in entry) == ("data" in entry):
        raise CatalogError(f"has an entry with not exactly one of url and data: {identifier!r}")
    offers = [each for key in ("capabilities", "tags") for each in _texts(entry, key)]
    name, queries = _text(entry, "displayName"), _texts(entry, "representativeQueries")
    return Listed(
        identifier,
        kind,
        name,
        _text(entry, "url") if "url" in entry else None,
        entry.get("data"),
        _text(entry, "version"),
        _text(entry, "updatedAt"),
        frozenset(offers) if "capabilities" in entry else None,
        " ".join([name, _text(entry, "description"), *offers, *queries]),
    )


def _text(entry: Mapping[str, object], key: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str):
        raise CatalogError(f"has an entry whose {key!r} is no text")
    return value


def _texts(entry: Mapping[str, object], key: str) -> list[str]:
    value = entry.get(key, [])
    if not isinstance(value, list):
        raise CatalogError(f"has an entry whose {key!r} is no list")
    return [each for each in cast("list[object]", value) if isinstance(each, str)]


def newest(entries: Iterable[Listed]) -> list[Listed]:
    """Of entries with one identifier the newest, in the place of the first."""
    kept: dict[str, Listed] = {}
    for each in entries:
        other = kept.setdefault(each.identifier, each)
        if _age(each) > _age(other):
            kept[each.identifier] = each
    return list(kept.values())


def _age(entry: Listed) -> tuple[tuple[int, ...], bool, str]:
    numbers, _, before = entry.version.partition("-")
    parts = numbers.split(".")
    known = all(each.isdecimal() and len(each) < 10 for each in parts)
    # 1.0.0-rc1 comes before 1.0.0
    return (tuple(map(int, parts)) if known else (), not before, entry.updated)


# --- search ------------------------------------------------------------------------------------


def words(text: str) -> set[str]:
    """The words of a text in small letters; ``process_refund`` and ``processRefund`` have two."""
    return {each.lower() for each in _WORD.findall(text)}


def score(sought: set[str], text: str) -> int:
    """How much of what is sought a text has, from 0 to 100."""
    return round(100 * len(sought & words(text)) / len(sought)) if sought else 0


def ranked(items: Iterable[tuple[_T, str]], text: str) -> list[tuple[_T, int]]:
    """Items whose text has any word of what is sought, with their scores, the best first."""
    sought = words(text)
    scored = [(item, score(sought, says)) for item, says in items]
    return sorted((each for each in scored if each[1]), key=lambda each: -each[1])


def at_path(value: Any, path: str) -> list[Any]:
    """What stands at a dotted path, of every element where a list is on the way."""
    found: list[Any] = [value]
    for key in path.split("."):
        inner: list[Any] = [each[key] for each in found if isinstance(each, dict) and key in each]
        found = []
        for each in inner:
            found += each if isinstance(each, list) else [each]
    return found
