"""Finds personal data in texts and values, and replaces it."""

from __future__ import annotations

import inspect
import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from adk_fluent.errors import RunError
from adk_fluent.middleware._errors import PersonalDataError
from adk_fluent.middleware._pii._finding import Finding, check_kind, merged
from adk_fluent.middleware._pii._fold import Folded
from adk_fluent.middleware._pii._patterns import BUILT_IN, IN_RUN
from adk_fluent.middleware._pii._split import (
    JsonScalars,
    JsonSoFar,
    Lines,
    PrivateKeys,
    Runs,
    Splitter,
    Whole,
)
from adk_fluent.middleware._pii._strategies import (
    Placeholders,
    Strategy,
    hashed,
    mask,
    redact,
)
from adk_fluent.telemetry import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from adk_fluent.middleware._pii._finding import Detector, Scope

#: A string of JSON, to its end or that of the text; or what stands there without quotes, such as a
#: number, or anything else where a model did not keep to JSON.
_SCALAR: Final = re.compile(r'"((?:[^"\\]|\\.)*+)("|\Z)|[^\s"{}\[\],:][^"{}\[\],]*+', re.DOTALL)
_NUMBER: Final = re.compile(r"-?\d[\d.eE+-]*+")
_WORDS: Final = frozenset({"true", "false", "null"})
#: No number of a card has as many digits.
_TOO_LONG: Final = 10**19
#: How often what is left is looked at again; what is made to need more is made to get past.
_PASSES: Final = 8
_RUN: Final = re.compile(rf"[ {IN_RUN}]*+")
#: How many texts a run remembers the outcome of.
_KNOWN: Final = 4096


class _Piece(NamedTuple):
    """A part of a text that is being filtered.

    Attributes:
        text: It.
        is_new: It has not been looked at by itself.
    """

    text: str
    is_new: bool


class Detectors:
    """All detectors of a filter.

    Args:
        kinds: The built-in ones.
        patterns: Regular expressions, by kind.
        others: Detectors of the user's.
        allow: Texts that are no personal data; ``*`` in them stands for anything.
    """

    def __init__(
        self,
        kinds: Sequence[str],
        patterns: Mapping[str, str],
        others: Sequence[Detector],
        allow: Sequence[str] = (),
    ) -> None:
        self._allowed = _one_of(allow) if allow else None
        self._built_in = [BUILT_IN[kind] for kind in BUILT_IN if kind in kinds]
        self._holds_keys = "private_key" in kinds
        self._patterns = [(check_kind(kind), re.compile(each)) for kind, each in patterns.items()]
        self._others: list[tuple[Detector, Scope]] = [
            (each, getattr(each, "scope", "line")) for each in others
        ]
        scopes = {scope for _, scope in self._others}
        if "text" in scopes:
            self.scope: Scope = "text"
        else:
            self.scope = "line" if self._patterns or self._others else "run"

    def splitter(self) -> Splitter:
        """What cuts a stream so that they find in the pieces what is in the whole."""
        made: Splitter = {"run": Runs, "line": Lines, "text": Whole}[self.scope]()
        return PrivateKeys(made) if self._holds_keys else made

    def built_in(self, text: str) -> list[Finding]:
        """What the built-in ones find."""
        return self._personal(text, self._known(text))

    def _known(self, text: str) -> list[Finding]:
        read = Folded(text)
        return [
            Finding(each.kind, read.start(each.start), read.end(each.end))
            for find in self._built_in
            for each in find(read.text)
        ]

    def _personal(self, text: str, found: list[Finding]) -> list[Finding]:
        """Findings without what is allowed, and without what is of its kind and within it."""
        if self._allowed is None:
            return found
        kept, ends = list[Finding](), dict[str, int]()
        for each in sorted(found, key=lambda found: (found.start, -found.end)):
            if self._allowed.fullmatch(Folded(text[each.start : each.end]).text):
                ends[each.kind] = max(each.end, ends.get(each.kind, 0))
            elif each.end > ends.get(each.kind, 0):
                kept.append(each)
        return kept

    async def find(self, text: str) -> list[Finding]:
        """All findings, in no order.

        Raises:
            RunError: A detector of the user's failed; what it said is left out.
        """
        found = self._known(text)
        for kind, pattern in self._patterns:
            for line, at in _lines(text):
                for match in pattern.finditer(line):
                    if match.end() > match.start():
                        found.append(Finding(kind, at + match.start(), at + match.end()))
        for detector, scope in self._others:
            for part, at in [(text, 0)] if scope == "text" else _lines(text):
                found += [
                    Finding(each.kind, at + each.start, at + each.end)
                    for each in await _asked(detector, part)
                ]
        return self._personal(text, found)


def _one_of(allow: Sequence[str]) -> re.Pattern[str]:
    """Matches each text, whatever its case, with anything for a ``*``."""
    texts = (Folded(each).text.split("*") for each in allow)
    return re.compile(
        "|".join(".*".join(map(re.escape, parts)) for parts in texts), re.IGNORECASE | re.DOTALL
    )


def _lines(text: str) -> Iterator[tuple[str, int]]:
    at = 0
    for line in text.split("\n"):
        if line:
            yield line, at
        at += len(line) + 1


async def _asked(detector: Detector, text: str) -> list[Finding]:
    failure = ""
    found: list[Finding] = []
    try:
        said = detector(text)
        found = [Finding(*each) for each in (await said if inspect.isawaitable(said) else said)]
        for each in found:
            check_kind(each.kind)
            if not 0 <= each.start < each.end <= len(text):
                raise ValueError
    except Exception as error:  # noqa: BLE001  # its message may hold what it was reading
        failure = type(error).__name__
    if failure:  # not raised above: the error would be its context
        name = getattr(detector, "__qualname__", type(detector).__qualname__)
        raise RunError(
            "a detector of pii_filter failed, so nothing is let through",
            found=f"{failure} in {name}",
            help="it returns (kind, start, end), within the text that it is given",
        )
    return found


@dataclass(slots=True, eq=False)
class Filter:
    """What one run does about personal data.

    Args:
        detectors: What finds it.
        strategies: What becomes of each kind; ``redact`` of those that are not there.
        default: What becomes of kinds that are not there.
        key: The key of hashes and placeholders.
    """

    detectors: Detectors
    strategies: Mapping[str, Strategy]
    default: Strategy
    key: bytes = field(repr=False)
    placeholders: Placeholders = field(init=False, repr=False)
    _known: dict[tuple[Any, ...], str] = field(
        default_factory=dict[tuple[Any, ...], str], init=False, repr=False
    )

    def __post_init__(self) -> None:
        self.placeholders = Placeholders(self.key)

    def strategy(self, kind: str) -> Strategy:
        """What becomes of a kind."""
        return self.strategies.get(kind, self.default)

    @property
    def only_placeholders(self) -> bool:
        """Whether nothing is done on the way out but to put things back."""
        return self.default == "placeholder" and not self.strategies

    def inbound(self) -> Change:
        """What is done to texts for a model: nothing personal is left in them."""
        return Change(self, restores=False)

    def outbound(self) -> Change:
        """What is done to texts for users and tools: what placeholders stand for is put back."""
        return Change(self, restores=True)

    async def changed(
        self, text: str, *, restores: bool, counted: bool = True, blocks: bool = True
    ) -> str:
        """A text without what must not be in it.

        Raises:
            PersonalDataError: There is something in it that is blocked.
        """
        if not text:
            return text
        what = (text, restores, blocks)
        made = self._known.get(what) if counted else None
        if made is None:
            made = await self._changed(text, restores=restores, counted=counted, blocks=blocks)
            if counted:
                self._remember(what, made)
                if not restores:  # nothing is left in it that another pass would find
                    self._remember((made, restores, blocks), made)
        return self.placeholders.restore(made) if restores else made

    def _remember(self, what: tuple[Any, ...], made: str) -> None:
        if len(self._known) >= _KNOWN:
            self._known.clear()
        self._known[what] = made

    async def _changed(self, text: str, *, restores: bool, counted: bool, blocks: bool) -> str:
        if restores and self.only_placeholders:
            return text

        def kept(text: str, findings: list[Finding]) -> list[Finding]:
            """What has to be replaced."""
            return [
                each
                for each in merged(self._ours(text, findings))
                if not (restores and self.strategy(each.kind) == "placeholder")
            ]

        def parted(text: str, findings: list[Finding]) -> list[_Piece]:
            """A text with its findings replaced."""
            found = kept(text, findings)
            self._block(found if blocks else ())
            pieces, at = list[_Piece](), 0
            for each in found:
                made = self._replaced(each.kind, text[each.start : each.end], counted)
                pieces += (_Piece(text[at : each.start], True), _Piece(made, False))
                at = each.end
            return [*pieces, _Piece(text[at:], bool(found))]

        def closed(text: str) -> str:
            """What is left after all passes: if there is something, so is all that hangs on it."""
            found = kept(text, self.detectors.built_in(text))
            if not found:
                return text
            first = found[0]
            run = _RUN.match(text, first.end)
            end = first.end if run is None else run.end()
            made = self._replaced(first.kind, text[first.start : end], counted)
            return text[: first.start] + made + text[end:]

        def again(piece: _Piece) -> list[_Piece]:
            """A piece on its own: its ends may be something now that they were not."""
            text = piece.text
            return parted(text, self.detectors.built_in(text)) if piece.is_new else [piece]

        pieces = parted(text, await self.detectors.find(text))
        for _ in range(_PASSES):
            if not any(each.is_new for each in pieces):
                break
            pieces = [made for each in pieces for made in again(each)]
        return "".join(closed(each.text) if each.is_new else each.text for each in pieces)

    def _ours(self, text: str, found: list[Finding]) -> list[Finding]:
        """Findings outside of placeholders, whatever a pattern sees in those."""
        spans = list(self.placeholders.spans(text)) if found else []
        if not spans:
            return found
        ends = [end for _, end in spans]

        def is_free(each: Finding) -> bool:
            first = bisect_right(ends, each.start)
            return first == len(spans) or spans[first][0] >= each.end

        return [each for each in found if is_free(each)]

    def _block(self, found: Iterable[Finding]) -> None:
        kinds = sorted({each.kind for each in found if self.strategy(each.kind) == "block"})
        if kinds:
            for kind in kinds:
                count("adk_fluent.pii.findings", 1, {"adk_fluent.pii.kind": kind})
            raise refused(kinds)

    def _replaced(self, kind: str, text: str, counted: bool) -> str:
        if counted:
            count("adk_fluent.pii.findings", 1, {"adk_fluent.pii.kind": kind})
        match self.strategy(kind):
            case "mask":
                return mask(text)
            case "hash":
                return hashed(self.key, kind, text)
            case "placeholder":
                return self.placeholders.make(kind, text)
            case "redact" | "block":
                return redact(kind)


def refused(kinds: Iterable[str]) -> PersonalDataError:
    """The error of a text that holds what is blocked."""
    names = tuple(kinds)
    return PersonalDataError(
        f"there is personal data where none may be: {', '.join(names)}",
        kinds=names,
        help="leave it out, or choose another strategy than 'block' for it",
    )


@dataclass(frozen=True, slots=True)
class Change:
    """What is done to texts and values on their way in one direction.

    Args:
        filter: What finds and replaces.
        restores: Put back what placeholders stand for, and make none.
        blocks: Refuse what is blocked; else it is redacted.
    """

    filter: Filter
    restores: bool
    blocks: bool = True

    async def text(self, text: str, counted: bool = True) -> str:
        """A text."""
        return await self.filter.changed(
            text, restores=self.restores, counted=counted, blocks=self.blocks
        )

    async def string(self, text: str, counted: bool = True) -> str:
        """A text that may be JSON."""
        if text.lstrip()[:1] in ("{", "["):
            try:
                json.loads(text)
            except (ValueError, RecursionError):  # no JSON, or nested as none is
                pass
            else:
                return await self.json(text, counted)
        return await self.text(text, counted)

    async def json(self, text: str, counted: bool = True) -> str:
        """JSON, or a piece of it that cuts no value; whatever is not changed stays as it is."""
        made: list[str] = []
        at = 0
        for match in _SCALAR.finditer(text):
            made.append(text[at : match.start()])
            made.append(await self._scalar(match, counted))
            at = match.end()
        return "".join((*made, text[at:]))

    async def _scalar(self, match: re.Match[str], counted: bool) -> str:
        literal: str = match[0]
        if match[1] is None:
            bare = literal.rstrip()
            made = bare if bare in _WORDS else await self.text(bare, counted)
            if made != bare and _NUMBER.fullmatch(bare):
                made = json.dumps(made)
            return made + literal[len(bare) :]
        try:
            value: str = json.loads(literal)
        except ValueError:  # cut off, or not quite JSON
            return literal[0] + await self.text(literal[1:], counted)
        made = await self.text(value, counted)
        if made == value:
            return literal
        known = self.filter.placeholders.value(value) if self.restores else None
        return json.dumps(made if known is None else known, ensure_ascii=False)

    async def value(self, value: Any) -> Any:
        """Plain data, value by value; other objects only where there is something in them."""
        if isinstance(value, str):
            known = self.filter.placeholders.value(value) if self.restores else None
            made = await self.string(value) if known is None else known
            return value if made == value else made  # it may be of a subclass
        if value is None or isinstance(value, bool | bytes):
            return value
        if isinstance(value, int | float):
            return await self._number(value)
        if isinstance(value, Mapping):
            return await self._mapping(cast("Mapping[Any, Any]", value))
        if isinstance(value, list | tuple):
            items = [await self.value(each) for each in cast("list[Any]", value)]
            return items if isinstance(value, list) else tuple(items)
        return await self._object(value)

    async def _mapping(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, each in value.items():
            name = await self.text(key) if isinstance(key, str) else key
            again = 2
            while name in made and name != key:  # two addresses, both of which are [EMAIL] now
                name, again = f"{await self.text(key)}_{again}", again + 1
            made[name] = await self.value(each)
        return made

    async def _number(self, value: float) -> Any:
        """A number is what it is, unless it is a card's: then it is a text."""
        if not abs(value) < _TOO_LONG or not float(value).is_integer():
            return value
        plain = str(int(value))
        made = await self.text(plain)
        if made == plain:
            return value
        self.filter.placeholders.means(made, value)
        return made

    async def _object(self, value: Any) -> Any:
        from pydantic_core import to_jsonable_python  # noqa: PLC0415  # ADK has it

        try:
            plain = to_jsonable_python(value, inf_nan_mode="null", bytes_mode="base64")
        except ValueError:  # what it is nobody can tell, nor will it get into an event
            return value
        made = await self.value(plain)
        return value if made == plain else made

    def stream(self, *, of_json: bool = False) -> Stream:
        """What filters a text that comes in pieces."""
        if of_json:
            return Stream(JsonScalars(), self.json)
        quick = self.restores and self.filter.only_placeholders
        splitter = Runs() if quick else self.filter.detectors.splitter()
        return Stream(splitter, self.text, JsonSoFar(), self.string)


@dataclass(slots=True, eq=False)
class Stream:
    """A text that comes in pieces, filtered as the whole would be.

    Args:
        splitter: Says what is complete.
        change: What is done to that.
        json: Holds it back as long as it may be JSON; None when it is not asked.
        whole: What is done to a text that may have been JSON to its end.
    """

    splitter: Splitter
    change: Callable[..., Any]
    json: JsonSoFar | None = None
    whole: Callable[..., Any] | None = None

    async def feed(self, text: str, *, counted: bool = False) -> str:
        """What can be let through, now that this came in."""
        if self.json is not None:
            held = self.json.feed(text)
            if held is None:
                return ""
            text, self.json = held, None
        ready = self.splitter.feed(text)
        return await self.change(ready, counted) if ready else ""

    async def end(self, *, counted: bool = False) -> str:
        """What can be let through, now that nothing more will come."""
        if self.json is not None and self.whole is not None:
            held, self.json = self.json.end(), None
            return await self.whole(held, counted) if held else ""
        ready = self.splitter.end()
        return await self.change(ready, counted) if ready else ""
