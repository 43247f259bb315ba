"""What a run cost, by agent, model, step and branch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, NamedTuple, cast

from adk_fluent.cost._errors import PriceError
from adk_fluent.cost._prices._books import PriceBooks, Prices, price_books
from adk_fluent.cost._prices._rates import is_plain, number
from adk_fluent.cost._requests import Spent, quoted
from adk_fluent.extend import must_be, plural
from adk_fluent.protocol import AgentEvent, Money, RunResult, Unknown, Usage

#: The key of an event's ``custom_metadata`` under which the costs of its model call stand.
KEY: Final = "adk_fluent_cost"
#: In the place of the model of an agent elsewhere.
REMOTE: Final = "remote agent"
#: What a call cost that nobody has attributed, where its event names no model.
_UNTOLD: Final = Unknown("the run was not attributed; add .middleware(cost_attribution()) to it")


class CostRecord(NamedTuple):
    """What one request to a model took, and what that cost.

    Attributes:
        agent: The agent for whose sake the model was asked.
        model: The model that was asked.
        served: The model that answered, as it says itself; the same as `model` where it does not.
        provider: Who provides the model.
        source: The price book that says so; "" for an unknown price.
        estimated: The model has not reported its tokens: they are estimated from the texts.
        tier: The service tier; None is the standard one.
        path: Position of the step in the pipeline; see `AgentEvent.path`.
        branch: ADK's branch, dotted.
        usage: The tokens.
        cost: The price; `Unknown` with the reason where nobody knows it.
        at: Seconds since 1970; in JSON, to the millisecond.
    """

    agent: str
    model: str
    served: str
    provider: str = ""
    source: str = ""
    estimated: bool = False
    tier: str | None = None
    path: str = ""
    branch: str = ""
    usage: Usage = Usage()
    cost: Money | Unknown = Money()
    at: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON data, what is at its default left out."""
        return json.loads(_text(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CostRecord:
        """Return the record that `to_dict` was called on.

        Raises:
            ValueError: The data is no record.
        """
        try:
            made: dict[str, Any] = {name: data[name] for name in _ALIKE if name in data}
            made.setdefault("served", made["model"])
            for name, value in made.items():
                must_be(bool if name == "estimated" else str, value, name)
            tokens = {name: int(n) for name, n in data["usage"].items() if name in _TOKENS}
            is_unknown, at = "unknown" in data, float(data.get("at", 0))
            cost = Unknown(data["unknown"]) if is_unknown else Money(number(data["usd"], "usd"))
            datetime.fromtimestamp(at, UTC)  # as it is asked for a price of that day
        except (AttributeError, KeyError, OSError, OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"this is no record of costs: {error!r}") from error
        return cls(**made, usage=Usage(**tokens), cost=cost, at=at)


#: The fields in which many records are alike; they are the first ones.
_ALIKE: Final = CostRecord._fields[: CostRecord._fields.index("usage")]
_TOKENS: Final = Usage.__match_args__
_tokens: Final = attrgetter(*_TOKENS)


def text_of(records: Iterable[CostRecord]) -> str:
    """Return records as a line of JSON, as an event keeps them: ADK copies all else many times."""
    return f"[{','.join(map(_text, records))}]"


def _text(record: CostRecord) -> str:
    """A record as JSON: written here, since that takes a fraction of the time."""
    *alike, usage, cost, at = record
    if usage.prompt and usage.output and is_plain(usage) and not (usage.tool or usage.cached_audio):
        tokens = f'"prompt":{usage.prompt},"output":{usage.output}'
    else:
        rows = zip(_TOKENS, _tokens(usage), strict=True)
        tokens = ",".join([f'"{name}":{n}' for name, n in rows if n])
    if isinstance(cost, Unknown):
        costs = f'"unknown":{json.dumps(cost.reason)}'
    else:
        costs = f'"usd":"{cost.usd}"'
    when = f'"at":{at:.3f},' if at else ""
    return f'{_begun(*alike)},{when}"usage":{{{tokens}}},{costs}}}'


@lru_cache(maxsize=1024, typed=True)
def _begun(*alike: str | bool | None) -> str:
    """The JSON of these fields, without its end: they are the same for many requests."""
    row = dict(zip(_ALIKE, alike, strict=True))
    if row["served"] == row["model"]:
        del row["served"]
    kept = {name: each for name, each in row.items() if each or name in ("agent", "model")}
    return json.dumps(kept, separators=(",", ":"))[:-1]


def records_on(notes: Mapping[str, Any]) -> list[CostRecord] | None:
    """Return the records that stand on an event; None when nobody has attributed its costs.

    Args:
        notes: Its ``custom_metadata``.
    """
    text: Any = notes.get(KEY)
    if not isinstance(text, str):
        return None
    kept: Any = None
    with suppress(ValueError):
        kept = json.loads(text)
    found: list[CostRecord] = []
    for each in cast("list[Any]", kept) if isinstance(kept, list) else ():
        with suppress(ValueError):  # what clients have put there is no reason to fail
            found.append(CostRecord.from_dict(each))
    return found


@dataclass(frozen=True, slots=True)
class CostLine:
    """What one agent, model, step or branch cost.

    Attributes:
        name: Which.
        cost: What is known of the cost, in USD; calls without a price are not in it.
        calls: Requests to models.
        unpriced: Those of them whose price nobody knows.
        estimated: Those of them whose tokens the model did not report.
        usage: The tokens.
    """

    name: str
    cost: Money = Money()  # noqa: RUF009  # it is frozen
    calls: int = 0
    unpriced: int = 0
    estimated: int = 0
    usage: Usage = Usage()  # noqa: RUF009  # it is frozen

    @classmethod
    def of(cls, name: str, records: Iterable[CostRecord]) -> CostLine:
        """Return the sum of records."""
        rows = list(records)
        known = [each.cost for each in rows if isinstance(each.cost, Money)]
        estimated, usage = sum(e.estimated for e in rows), sum((e.usage for e in rows), Usage())
        return cls(name, sum(known, Money()), len(rows), len(rows) - len(known), estimated, usage)

    def to_dict(self) -> dict[str, Any]:
        """Return the line as JSON data."""
        return {
            "name": self.name,
            "usd": str(self.cost.usd),
            "calls": self.calls,
            "unpriced": self.unpriced,
            "estimated": self.estimated,
            "input_tokens": self.usage.prompt + self.usage.tool,
            "output_tokens": self.usage.output + self.usage.thoughts,
        }


class CostReport:
    """What was spent, as far as prices are known.

    Attributes:
        records: Each request to a model, in order.
    """

    def __init__(self, records: Iterable[CostRecord] = ()) -> None:
        """Make a report.

        Args:
            records: Each request to a model, in order.

        Raises:
            PriceError: They are none.
        """
        given: list[Any] = list(records) if isinstance(records, Iterable) else [records]  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
        for each in given:
            must_be(CostRecord, each, "CostReport takes records of costs", error=PriceError)
        self.records: list[CostRecord] = given

    def add(self, record: CostRecord) -> None:
        """Add one request; ``cost_attribution(on_record=report.add)`` collects all of a program.

        Raises:
            PriceError: It is no record.
        """
        if type(record) is not CostRecord:  # asked for each model call
            must_be(CostRecord, record, "CostReport.add takes a record of costs", error=PriceError)
        self.records.append(record)

    @property
    def total(self) -> Money:
        """What is known of the cost; look at `unpriced`, too."""
        return self._sum().cost

    @property
    def unpriced(self) -> dict[str, int]:
        """Models without a price, with the number of their requests; they are in no total."""
        return dict(Counter(e.model for e in self.records if isinstance(e.cost, Unknown)))

    @property
    def estimated(self) -> int:
        """Requests whose tokens the model did not report."""
        return self._sum().estimated

    @property
    def usage(self) -> Usage:
        """The tokens of all requests."""
        return self._sum().usage

    def by_agent(self) -> list[CostLine]:
        """Return what each agent cost, the dearest first."""
        return self._by(lambda each: each.agent)

    def by_model(self) -> list[CostLine]:
        """Return what each model cost that answered, the dearest first."""
        return self._by(lambda each: each.served)

    def by_step(self) -> list[CostLine]:
        """Return what each step cost; its name is its path in the pipeline, such as ``s2.p1``."""
        return self._by(lambda each: each.path)

    def by_branch(self) -> list[CostLine]:
        """Return what each branch of ADK's cost; the one without a name is the trunk."""
        return self._by(lambda each: each.branch)

    def _by(self, key: Callable[[CostRecord], str]) -> list[CostLine]:
        groups: dict[str, list[CostRecord]] = {}
        for each in self.records:
            groups.setdefault(key(each), []).append(each)
        lines = [CostLine.of(name, records) for name, records in groups.items()]
        return sorted(lines, key=lambda line: (-line.cost.usd, line.name))

    def _sum(self) -> CostLine:
        return CostLine.of("total", self.records)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON data: amounts are texts, so that none is rounded."""
        total = self._sum().to_dict()
        del total["name"]
        return {
            **total,
            "unpriced_models": self.unpriced,
            "agents": [each.to_dict() for each in self.by_agent()],
            "models": [each.to_dict() for each in self.by_model()],
            "steps": [each.to_dict() for each in self.by_step()],
            "branches": [each.to_dict() for each in self.by_branch()],
            "records": [each.to_dict() for each in self.records],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CostReport:
        """Return the report that `to_dict` was called on.

        Raises:
            ValueError: The data is no report.
        """
        records: Any = data.get("records") if isinstance(data, dict) else None  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
        if not isinstance(records, list):
            raise ValueError("this is no report of costs: it has no records")  # noqa: TRY004  # of the data
        return cls(CostRecord.from_dict(each) for each in cast("list[Any]", records))

    def to_markdown(self) -> str:
        """Return the report as tables in Markdown."""
        parts = [self.summary()]
        for title, lines in (("agent", self.by_agent()), ("model", self.by_model())):
            if lines:
                parts.append("\n".join(_table(title, lines)))
        return "\n\n".join(parts)

    def summary(self) -> str:
        """Return one line: the total, and what is not in it or not exact."""
        line = self._sum()
        text = f"{shown(line.cost)} for {plural(line.calls, 'model call')}"
        if line.estimated:
            text += f", {line.estimated} of them with estimated tokens"
        untold = Counter(each.model for each in self.records if each.cost == _UNTOLD)
        if unpriced := Counter(self.unpriced) - untold:
            names = ", ".join(f"{name} ({n})" for name, n in unpriced.items())
            text += f"; not in it, since no price is known: {names}"
        if untold:
            text += f"; not in it: {plural(untold.total(), 'call')}, since {_UNTOLD.reason}"
        return text

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"CostReport({self.summary()!r})"


_MOST: Final = 6  # digits after the point: a millionth of a dollar is some tokens


def shown(cost: Money) -> str:
    """Return an amount with up to six digits after the point."""
    rounded = round(cost.usd, _MOST)
    if cost.usd and not rounded:
        return "less than $0.000001"
    return str(Money(rounded))


def in_table(name: str) -> str:
    """Return a name as it can stand in a table of Markdown."""
    return " ".join(name.replace("|", "\\|").split()) or "-"


def _table(title: str, lines: list[CostLine]) -> Iterator[str]:
    yield f"| {title} | cost | calls | input tokens | output tokens |"
    yield "|---|---:|---:|---:|---:|"
    for each in lines:
        cost = shown(each.cost)
        if each.unpriced:
            cost = f"{cost} + {each.unpriced} unpriced" if each.unpriced < each.calls else "unknown"
        took = f"{each.usage.prompt + each.usage.tool:,}"
        gave = f"{each.usage.output + each.usage.thoughts:,}"
        yield f"| {in_table(each.name)} | {cost} | {each.calls} | {took} | {gave} |"


def cost_of(result: Iterable[AgentEvent], *, prices: Prices | None = None) -> CostReport:
    """Return what a run cost.

    Where `cost_attribution` stood around it, its records are read from the events: they have what
    was thrown away, too. A request that ends after the last answer of the run, as that of a race's
    loser may, is on no event: the result has it. Other events are priced by the tokens that they
    report and the model that they name.

    Args:
        result: What ``run`` returned, or any events.
        prices: As in `cost_attribution`; with them, records are priced anew.

    Raises:
        PriceError: The events or the prices are none.
    """
    help = "cost_of(await pipeline.run(...))"
    must_be(Iterable, result, "cost_of takes the result of a run", help, PriceError)
    books = price_books(prices)
    records: list[CostRecord] = []
    for event in result:
        must_be(AgentEvent, event, "cost_of takes the events of a run", help, PriceError)
        if event.is_partial:
            continue
        kept = records_on(event.custom_metadata)
        records += _reported(event, books) if kept is None else kept
    records += late_records(result)
    return CostReport(records if prices is None else (_again(each, books) for each in records))


def late_records(result: object) -> list[CostRecord]:
    """Return the records of a result that are on no event."""
    notes = result.notes if isinstance(result, RunResult) else ()
    return [record for each in notes for record in records_on(each) or ()]


def _reported(event: AgentEvent, books: PriceBooks) -> Iterator[CostRecord]:
    """What an event says itself of the model call that made it."""
    usage = event.usage
    if usage is None or not usage.total:
        return
    model = str(event.metadata.get("model_version") or "")
    record = CostRecord(
        agent=event.node or event.author,
        model=model or "unknown",
        served=model or "unknown",
        cost=Money() if model else _UNTOLD,
        usage=usage,
        path=event.path or "",
        branch=event.branch or "",
        at=event.timestamp,
    )
    yield _again(record, books)


def _again(record: CostRecord, books: PriceBooks) -> CostRecord:
    if record.cost == _UNTOLD:
        return record
    spent = Spent(record.usage, record.estimated, record.served, record.tier)
    quote = quoted(books, record.model, spent, datetime.fromtimestamp(record.at, UTC))
    return record._replace(cost=quote.money, source=quote.source)
