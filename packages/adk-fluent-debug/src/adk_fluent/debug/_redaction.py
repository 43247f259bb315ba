"""Taking credentials out of a recording: under their keys, wherever they recur, and in prose."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from adk_fluent.debug._recorded_run import LEFT_OUT, Data
from adk_fluent.errors import UsageError
from adk_fluent.extend import describe
from adk_fluent.protocol import Redactor

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Stands in the place of what was taken out.
REDACTED: Final = "[redacted]"
#: Shorter values under the key of a credential are taken out there, and left elsewhere.
_SHORTEST: Final = 4
#: The same for what is inside a mapping under such a key, which holds plain words, too.
_SHORTEST_INSIDE: Final = 6
_WORDS: Final = frozenset({"true", "false", "none", "null", "string", REDACTED})
_SCHEMA: Final = "properties"

#: Credentials that are known by what they look like.
_PATTERNS: Final = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    r"\beyJ[\w-]{8,1000}\.[\w-]{8,}\.[\w-]*",
    r"\b(?:sk|pk|rk)[-_][\w-]{16,}",
    r"\bAIza[\w-]{30,}",
    r"\bya29\.[\w.-]{16,}",
    r"\bgh[pousr]_\w{20,}",
    r"\bgithub_pat_\w{20,}",
    r"\bglpat-[\w-]{16,}",
    r"\bxox[a-z]-[\w-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    # Hugging Face, npm, Groq, Replicate; Perplexity, xAI: long, and none of it a word of a name
    r"\b(?:hf|npm|gsk|r8)_[A-Za-z0-9]{30,}",
    r"\b(?:pplx|xai)-[A-Za-z0-9]{30,}",
    r"\bpypi-Ag[\w-]{40,}",
    r"\bwhsec_[A-Za-z0-9+/]{24,}=*",
    r"\bdo[opr]_v1_[0-9a-f]{40,}",
    r"\bSG\.[\w-]{20,}\.[\w-]{40,}",
    r"(?<=://hooks\.slack\.com/services/)[\w/]{20,}",
    # who logs in at an address; the last @ before the path ends it
    r"(?<=://)(?:[^\s/:@\"<>]*:[^\s/\"<>]+|(?=[^\s/@]*\d)[\w.~%+-]{12,})(?=@)",
    r"(?i:[?&](?:key|sig|[\w-]*signature)=)(?P<query>[^\s&#'\"<>]{6,})",
    r"(?i:\bcurl\b[^\r\n]{0,400}?\s(?:-u|--user)[\s=]*['\"]?)(?P<login>[^\s:'\"]+:[^\s'\"]{4,})",
    (
        r"(?i:(?<!\S)--[\w-]*(?:api-?key|password|passwd|secret|token)\s+['\"]?)"
        r"(?P<option>(?=\S*\d|\S{20})[^\s'\"]{6,})"
    ),
    (
        r"(?i:<(?:\w+:)?[\w.-]*(?:api-?_?key|password|passwd|secret|token)>\s*)"
        r"(?P<element>[^\s<]{6,})"
    ),
    r"(?i:\bcookie['\"]?\s*:\s*['\"]?)(?P<cookie>(?=[^\r\n'\"]{0,1000}=)[^\r\n'\"]{6,})",
    r"(?i:\bbearer\s+)(?P<bearer>(?=\S*\d|\S{20})[\w.~+/-]{8,}=*)",
    (
        r"(?i:\b(?:api[ _-]?key|x-api-key|access[ _-]?token|auth[ _-]?token|client[ _-]?secret"
        r"|password|passwd)['\"]?\s*[:=]\s*['\"]?)(?P<named>[^\s'\",;}\]\[]{6,})"
    ),
)
_PROSE: Final = "|".join(_PATTERNS)
_NAME: Final = r"(?P<name>[A-Za-z][\w-]{2,63})\\*['\"]"
#: A name to which something is given; or that of a pair, as headers are written.
_NAMES: Final = (
    rf"(?<![\w-]){_NAME}?\s*(?P<by>=>?|:)\s*",
    rf"(?:\(|[\[,]\s*\[)\s*b?\\*['\"]{_NAME}(?P<by>,)\s*b?",
)
#: A value, and the scheme before it, however often it was quoted.
_VALUE: Final = (
    r"\\*['\"]?(?:(?i:basic|bearer|digest|negotiate|token)\s+)?"
    r"(?P<value>(?:\\(?!['\"])|[^\s'\",;}\]\[\\]){6,})"
)
#: After a colon or a comma, plain words may stand.
_NO_WORD: Final = r"\d|.{20}"
#: A text without any of these holds nothing that is found in prose.
_HINTS: Final = (
    r"PRIVATE KEY|eyJ|[spr]k[-_]|AIza|ya29|gh[pousr]_|github_pat|glpat|xox|AKIA|ASIA|://"
    r"|hf_|npm_|gsk_|r8_|pplx-|xai-|pypi-|whsec_|_v1_|SG\."
    r"|(?i:auth|bearer|cookie|cred|curl|key|token|secret|pass|pwd|jwt|otp|dsn|cvc|cvv|code|pem|sig=)"
)
_KEYS: Final = Redactor()


class Redacts(Protocol):
    """What takes things out of plain data, as `adk_fluent.protocol.Redactor` does."""

    def redact(self, value: Any, /) -> Any:
        """The data without what is to be taken out."""
        ...


Redact = Redacts | Callable[[Any], Any]


class Redaction:
    """Redacts plain data (dicts, lists and scalars).

    Args:
        redact: What is taken out beside credentials.

    Raises:
        UsageError: `redact` cannot be called.
    """

    def __init__(self, redact: Redact | None = None) -> None:
        found: Any = getattr(redact, "redact", redact)
        if redact is not None and (isinstance(redact, type) or not callable(found)):
            raise UsageError(
                "redact= takes a function of data, or an object with .redact(data)",
                found=describe(redact),
                help="such as Redactor(keys={'iban'}), or lambda data: ...",
            )
        self._own: Callable[[Any], Any] = as_it_is if found is None else found

    def secrets(self, data: Any) -> set[str]:
        """Everything that is taken out of the data because of where it stands."""
        found: set[str] = set() if self._own is as_it_is else set(_gone(data, self._own(data)))
        for key, value, inside in _keyed(data):
            if inside != _SCHEMA and _KEYS.hides(key):
                found.update(_leaves(value))
        return found

    def scrub(self, data: Any, secrets: Iterable[str]) -> Any:
        """The data without credentials and these secrets, as the user's function has it."""
        return self._scrubbed(self._own(data), _any_of(secrets), "")

    def secrets_of(self, run: Mapping[str, Any]) -> set[str]:
        """The `secrets` in everything of a run that may hold what nobody may see."""
        found: set[str] = set()
        mapped(run, lambda part: found.update(self.secrets(part)) or part)
        return found

    def scrub_run(self, run: Mapping[str, Any], secrets: Iterable[str]) -> Data:
        """A run without credentials and these secrets; see `scrub`."""
        known = _any_of(secrets)
        return mapped(run, lambda part: self._scrubbed(self._own(part), known, ""))

    def _scrubbed(self, data: Any, known: re.Pattern[str] | None, inside: str) -> Any:
        if isinstance(data, str):
            return _clean(data, known)
        if isinstance(data, dict):
            rows = cast("dict[str, Any]", data)
            named = "value" in rows and any(_KEYS.hides(rows.get(n)) for n in ("name", "key"))
            return {
                _clean(key, known): REDACTED
                if (inside != _SCHEMA and _KEYS.hides(key) and value not in (None, "", [], {}))
                or (named and key == "value")
                else self._scrubbed(value, known, key)
                for key, value in rows.items()
            }
        if isinstance(data, list):
            items = cast("list[Any]", data)
            if _are_pairs(items):
                rows = [self._scrubbed({key: value}, known, "").popitem() for key, value in items]
                return [list(row) for row in rows]
            return [self._scrubbed(each, known, "") for each in items]
        if known is not None and isinstance(data, int | float) and known.fullmatch(str(data)):
            return REDACTED
        return data


def as_it_is(data: Any) -> Any:
    """The same."""
    return data


def _clean(text: str, known: re.Pattern[str] | None) -> str:
    if known is not None:
        text = known.sub(REDACTED, text)
    if not re.search(_HINTS, text):
        return text
    text = re.sub(_PROSE, _hide, text, flags=re.DOTALL)
    for names in _NAMES:
        text = _without_given(text, names)
    return text


def _hide(match: re.Match[str]) -> str:
    group = match.lastgroup
    if group is None:
        return REDACTED
    start, end = match.span(group)
    whole = match.group(0)
    return whole[: start - match.start()] + REDACTED + whole[end - match.start() :]


def _without_given(text: str, names: str) -> str:
    """A text without what stands in it behind the names of credentials."""
    made: list[str] = []
    done = 0
    for name in re.finditer(names, text):
        if name.start() < done or not _KEYS.hides(name["name"]):
            continue
        given = re.compile(_VALUE).match(text, name.end())
        if given and (name["by"].startswith("=") or re.search(_NO_WORD, given["value"])):
            made += (text[done : given.start("value")], REDACTED)
            done = given.end()
    return "".join((*made, text[done:]))


def forms_of(secrets: Iterable[str]) -> set[str]:
    """Texts as they are, as JSON and Python write them within quotes, and as addresses do."""
    from urllib.parse import quote, quote_plus  # noqa: PLC0415  # slow to import, and seldom needed

    forms: set[str] = set()
    for each in secrets:
        forms |= {each, json.dumps(each)[1:-1], json.dumps(each, ensure_ascii=False)[1:-1]}
        forms.add(repr(each)[1:-1])
        forms.add(quote_plus(each, errors="replace"))
        forms |= {quote(each, safe, errors="replace") for safe in ("", "/")}
    return forms


def _any_of(secrets: Iterable[str]) -> re.Pattern[str] | None:
    forms = sorted(forms_of(secrets), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, forms))) if forms else None


def _keyed(data: Any, inside: str = "") -> Iterator[tuple[str, Any, str]]:
    """Each key with what stands under it, and the key under which its mapping stands."""
    if isinstance(data, dict):
        rows = cast("dict[str, Any]", data)
        for key, value in rows.items():
            yield key, value, inside
            yield from _keyed(value, key)
        for name in ("name", "key"):  # as headers often are
            if isinstance(rows.get(name), str) and "value" in rows:
                yield rows[name], rows["value"], inside
    elif isinstance(data, list):
        items = cast("list[Any]", data)
        if _are_pairs(items):
            yield from ((key, value, "") for key, value in items)
        for each in items:
            yield from _keyed(each)


def _are_pairs(items: list[Any]) -> bool:
    """Whether a list is one of names with values, as headers often are."""
    return bool(items) and all(
        isinstance(each, list) and len(cast("list[Any]", each)) == 2 and isinstance(each[0], str)
        for each in items
    )


def _leaves(value: Any, shortest: int = _SHORTEST) -> Iterator[str]:
    """What recurs elsewhere of what stands under the key of a credential."""
    if isinstance(value, dict):
        for each in cast("dict[str, Any]", value).values():
            yield from _leaves(each, _SHORTEST_INSIDE)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _leaves(each, shortest)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        text = str(value)
        if len(text) >= shortest and text.lower() not in _WORDS:
            yield text
            yield from (each for each in text.split() if len(each) >= _SHORTEST * 2)


def _gone(was: Any, now: Any) -> Iterator[str]:
    """What a function of the user's has taken out, keys and all."""
    if isinstance(was, dict) and isinstance(now, dict):
        kept = cast("dict[str, Any]", now)
        for key, value in cast("dict[str, Any]", was).items():
            yield from _gone(value, kept[key]) if key in kept else _leaves(value)
    elif isinstance(was, list) and isinstance(now, list):
        first, second = cast("list[Any]", was), cast("list[Any]", now)
        for each, other in zip(first, second, strict=True) if len(first) == len(second) else ():
            yield from _gone(each, other)
    elif was != now and not isinstance(now, str):
        yield from _leaves(was)


#: What of an entry, and of a run, may hold what nobody may see; the rest is ours.
_OF_ENTRIES: Final = ("request", "response", "responses", "args", "result", "effects", "error")
_OF_RUNS: Final = ("message", "state", "history", "answers", "error", "spans")
_OF_SPANS: Final = ("name", "agent", "span_id", "parent_id", "trace_id", "start", "end", "status")
_OF_EVENTS: Final = frozenset(
    {"author", "branch", "path", "node", "attempt", "id", "invocation_id", "timestamp", "usage"}
)
_OF_BARE_EVENTS: Final = _OF_EVENTS | {
    *("is_final", "is_partial", "transfer_to", "escalate", "discarded", "end_of_agent"),
    "artifact_delta",
}
_FIGURES: Final = ("usage_metadata", "finish_reason", "model_version", "error_code")


def mapped(run: Mapping[str, Any], change: Callable[[Any], Any]) -> Data:
    """A run with what is not ours in it changed."""
    made = {key: change(each) if key in _OF_RUNS else each for key, each in run.items()}
    made["tape"] = [_mapped_entry(entry, change) for entry in run["tape"]]
    return made


def _mapped_entry(entry: Data, change: Callable[[Any], Any]) -> Data:
    if "event" in entry:
        event: Data = entry["event"]
        theirs = change({key: each for key, each in event.items() if key not in _OF_EVENTS})
        ours = {key: each for key, each in event.items() if key in _OF_EVENTS}
        return {**entry, "event": {**ours, **theirs}}
    return {key: change(each) if key in _OF_ENTRIES else each for key, each in entry.items()}


def without_content(run: Data) -> Data:
    """A run with nothing in it that anybody has said, or written to state; see `bare_entry`."""
    made = {key: each for key, each in run.items() if key not in _OF_RUNS}
    if "spans" in run:
        made["spans"] = [_picked(each, _OF_SPANS) for each in run["spans"]]
    return made


def bare_entry(entry: Data) -> Data:
    """What is left of an entry of a run in which nothing stands that anybody has said."""
    return {
        key: _BARE[key](each) if key in _BARE else each
        for key, each in entry.items()
        if key in _BARE or key not in _OF_ENTRIES
    }


def _picked(data: Data, names: Iterable[str]) -> Data:
    return {key: data[key] for key in names if key in data}


def _bare_event(event: Data) -> Data:
    made = {key: each for key, each in event.items() if key in _OF_BARE_EVENTS}
    if "state_delta" in event:
        made["state_delta"] = dict.fromkeys(event["state_delta"], LEFT_OUT)
    for name in event.keys() & {"tool_calls", "tool_responses"}:
        made[name] = [_picked(each, ("tool_name", "call_id")) for each in event[name]]
    return made


#: What is left of what may stand in an entry.
_BARE: Final[dict[str, Callable[[Any], Any]]] = {
    "responses": lambda many: [_picked(each, _FIGURES) for each in many],
    "response": lambda _: {"partial": True},
    "error": lambda error: {"type": error.get("type", ""), "message": LEFT_OUT},
    "event": _bare_event,
}
