"""What one request to a model took and cost, as it is kept on events."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.protocol import Money, Unknown, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adk_fluent.protocol import AgentEvent

#: The key of an event's ``custom_metadata`` under which the costs of its model call stand.
KEY: Final = "adk_fluent_cost"


@dataclass(frozen=True, kw_only=True)
class CostRecord:
    """What one request to a model took, and what that cost.

    Attributes:
        agent: The agent for whose sake the model was asked.
        model: The model that was asked.
        served: The model that answered, as it says itself; the same as `model` where it does not.
        provider: Who provides the model.
        usage: The tokens.
        cost: The price; `Unknown` with the reason where nobody knows it.
        source: The price book that says so; "" for an unknown price.
        estimated: The model has not reported its tokens: they are estimated from the texts.
        tier: The service tier; None is the standard one.
        path: Position of the step in the pipeline; see `AgentEvent.path`.
        branch: ADK's branch, dotted.
        at: Seconds since 1970.
    """

    agent: str
    model: str
    served: str
    provider: str = ""
    usage: Usage = field(default_factory=Usage)
    cost: Money | Unknown = field(default_factory=Money)
    source: str = ""
    estimated: bool = False
    tier: str | None = None
    path: str = ""
    branch: str = ""
    at: float = 0.0

    def but(self, **changes: Any) -> CostRecord:
        """Return a record with other values: `dataclasses.replace` takes ten times as long."""
        made = object.__new__(CostRecord)
        vars(made).update(vars(self), **changes)
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON data, what is at its default left out."""
        return cast("dict[str, Any]", json.loads(_written(self)))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CostRecord:
        """Return the record that `to_dict` was called on.

        Raises:
            ValueError: The data is no record.
        """
        try:
            named = (*_FIXED, "at")
            made: dict[str, Any] = {name: data[name] for name in named if name in data}
            made.setdefault("served", made["model"])
            tokens = {name: int(n) for name, n in data["usage"].items() if name in _TOKENS}
            cost = Unknown(data["unknown"]) if "unknown" in data else Money(Decimal(data["usd"]))
            return cls(**made, usage=Usage(**tokens), cost=cost)
        except (AttributeError, InvalidOperation, KeyError, TypeError) as error:
            raise ValueError(f"this is no record of costs: {error!r}") from error


#: What the records of a step have in common, with few exceptions.
_FIXED: Final = (
    *("agent", "model", "served", "provider", "source", "estimated", "tier", "path", "branch"),
)
_TOKENS: Final = tuple(each.name for each in fields(Usage))
#: Read at once, as this is done for each model call.
_fixed: Final = attrgetter(*_FIXED)
_tokens: Final = attrgetter(*_TOKENS)


def written(records: Sequence[CostRecord]) -> str:
    """Return records as they are kept on events: as text, since ADK copies all else many times."""
    return f"[{', '.join(map(_written, records))}]"


def _written(record: CostRecord) -> str:
    """One record, what is at its default left out."""
    counts = _tokens(record.usage)
    tokens = dict(compress(zip(_TOKENS, counts, strict=True), counts))
    cost = record.cost
    if isinstance(cost, Unknown):
        price = f'"unknown": {json.dumps(cost.reason)}'
    else:
        price = f'"usd": "{cost.usd!s}"'
    at = f'"at": {record.at!r}, ' if record.at else ""
    usage = str(tokens).replace("'", '"')
    return f'{_begun(*_fixed(record))}{at}"usage": {usage}, {price}}}'


@lru_cache(maxsize=1024)
def _begun(*fixed: Any) -> str:
    """The beginning of a record, which takes the longest to write."""
    made = dict(zip(_FIXED, fixed, strict=True))
    kept = {name: each for name, each in made.items() if each or name in ("agent", "model")}
    if made["served"] == made["model"]:
        del kept["served"]
    return json.dumps(kept)[:-1] + ", "


def records_on(event: AgentEvent) -> list[CostRecord] | None:
    """Return the records that an event holds; None when nobody has attributed its costs."""
    text: Any = event.custom_metadata.get(KEY)
    if not isinstance(text, str):
        return None
    try:
        kept: Any = json.loads(text)
    except ValueError:
        return []
    return list(_valid(cast("list[Any]", kept))) if isinstance(kept, list) else []


def _valid(kept: list[Any]) -> Iterator[CostRecord]:
    """The records; what clients have put there is none, and is no reason to fail."""
    for each in kept:
        try:
            yield CostRecord.from_dict(each)
        except ValueError:
            continue
