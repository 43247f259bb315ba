"""Random agents and changes to typed state."""

from __future__ import annotations

from dataclasses import dataclass, field

from typed_pipelines.fields import KINDS, Field, Have, Made, Place
from typed_pipelines.functions import Functions


@dataclass
class Draft:
    """An agent that is being written.

    Attributes:
        name: Its name.
        place: Where it stands.
        inner: Whether ADK runs it, for another agent.
        leaves: Whether it may end the loop around it.
        lines: What is said of it so far.
        calls: Tools that it calls.
        told: Fields that its tools write, as it says.
    """

    name: str
    place: Place
    inner: bool
    leaves: bool
    lines: list[str] = field(default_factory=list[str])
    calls: list[str] = field(default_factory=list[str])
    told: list[Field] = field(default_factory=list[Field])


class Leaves(Functions):
    """Writes agents and changes to state."""

    def agent(self, place: Place, *, inner: bool = False) -> Made:
        """An agent."""
        leaves = place.loop and not inner and self.happens(15)
        self.leaves = self.leaves or leaves
        draft = Draft(self.name("a"), place, inner, leaves)
        if self.happens(25):
            draft.lines.append(f".before_agent({self.callback(place)})")
        self._tools(draft)
        transfers = None if inner else self._others(draft)
        if leaves:
            draft.lines.append(".tool(leave)")
            draft.calls = ["leave"] if self.happens(60) else []
        fields = self._answered(draft)
        script = [", ".join(self._answers(fields))]
        if leaves:  # it would owe them
            fields = []
        draft.lines += self._writes(fields)
        draft.lines += self._instruction(place)
        if self.happens(30) and (readable := self.readable(place)):
            draft.lines.append(f".reads({', '.join(f.ref for f in self.some(readable, 1, 2))})")
        if self.happens(15):
            draft.lines.append(f".after_agent({self.callback(place)})")
        script += self._behaviour(draft, transfers)
        draft.lines.append(f".mock(says({', '.join(script)}))")
        first = f'    Agent("{draft.name}")'
        self.define(f"{draft.name} = (", first, *("    " + line for line in draft.lines), ")")
        if transfers is not None:  # who hands over owes nothing
            return Made(draft.name, place.have)
        return Made(draft.name, place.have.union(draft.told, (f for f in fields if not f.optional)))

    def _tools(self, draft: Draft) -> None:
        for _ in range(self.choose(1, 2) if self.happens(35) else 0):
            tool, writes = self.tool(draft.place)
            draft.lines.append(f".tool({tool})")
            if not self.happens(80):
                continue
            draft.calls.append(tool)
            told = [f for f in writes if f not in draft.told]
            if told and not draft.leaves and self.happens(70):
                draft.lines.append(f'.writes({", ".join(f.ref for f in told)}, via="tool")')
                draft.told += told

    def _others(self, draft: Draft) -> str | None:
        """Agents that are tools, and one that it may hand over to, whose name is returned."""
        if self.happens(8):
            helper = self._helper(draft.place)
            draft.lines.append(f".agent_tool({helper})")
            if self.happens(70):
                draft.calls.append(helper)
        if not self.happens(6):
            return None
        inside = draft.place._replace(loop=False, attempt=False)
        delegate = self.agent(inside, inner=True).text
        draft.lines.append(f".delegates({delegate})")
        return delegate

    def _helper(self, place: Place) -> str:
        """An agent that is a tool; ADK gives it a session of its own, without what is `Temp`."""
        bold, self.bold = self.bold, 0
        temp = frozenset(f for f in self.fields if f.scope == "temp")
        inside = place._replace(
            own=tuple(f for f in place.own if f not in temp),
            loop=False,
            attempt=False,
            beside=place.beside | temp,
        )
        made = self.agent(inside, inner=True).text
        self.bold = bold
        return made

    def _answered(self, draft: Draft) -> list[Field]:
        """The fields that its answer writes."""
        fields = [f for f in self.some(self.writable(draft.place), 0, 2) if f not in draft.told]
        if not draft.inner:
            tools = any("tool(" in line for line in draft.lines)
            # ADK 1.x gets what an agent with tools answers by a tool, which takes simple types
            return [f for f in fields if not tools or (KINDS[f.kind].plain and not f.optional)]
        return [f for f in fields if f.kind == "text" and not f.optional][:1]  # all that ADK writes

    def _answers(self, fields: list[Field]) -> list[str]:
        """What it may say."""
        if not fields or (len(fields) == 1 and fields[0].kind == "text" and not fields[0].optional):
            return self.some(["'yes'", "'ü'", "'a {b} c'"], 1, 2)
        said: list[str] = []
        for _ in range(self.choose(1, 2)):
            values = ["None" if f.optional and self.happens(40) else self.value(f) for f in fields]
            pairs = [f"{f.ref}, {value}" for f, value in zip(fields, values, strict=True)]
            said.append(f"data({', '.join(pairs)})")
        return said

    def _writes(self, fields: list[Field]) -> list[str]:
        if len(fields) == 1:
            return [self.flaw("write", f".writes({fields[0].ref})", "")]
        return [f".writes({', '.join(f.ref for f in fields)})"] if fields else []

    def _instruction(self, place: Place) -> list[str]:
        form, fields = self.choose(0, 4), self.readable(place)
        if form == 0 or not fields:
            return []
        several = self.some(fields, 1, 2)
        if form == 1:
            name = self.name("i")
            body = [
                "s = Shop.bind(ctx)",
                f"note({', '.join(f's.{f.name}' for f in several)})",
                "return 'Go.'",
            ]
            self.define(f"def {name}(ctx):", *("    " + line for line in body))
            return [f".instruct({name})"]
        if form == 2 and place.have.issuperset(several):
            return [f".instruct('Say {' '.join('{' + f.key + '}' for f in several)}')"]
        return [f".instruct(f'Say {' '.join('{Shop.template.' + f.name + '}' for f in several)}')"]

    def _behaviour(self, draft: Draft, transfers: str | None) -> list[str]:
        made = [f"calls={draft.calls!r}"] if draft.calls else []
        if transfers is not None:
            made.append(f"transfers={transfers!r}")
        if draft.told:
            values = ", ".join(f"{f.name}={self.value(f)}" for f in draft.told)
            made.append(f"instead=lambda: Shop.delta({values})")
        if draft.place.attempt and self.happens(30):
            made.append("breaks=True")
        return made

    # --- changes to state ----------------------------------------------------------------------

    def transform(self, place: Place) -> Made:
        """A change to state with a stated meaning; where there is nothing to change, a tap."""
        ways = [
            *(self._set, self._set, self._drop, self._rename, self._merge),
            *(self._apply, self._compute, self._look),
        ]
        made = self.one_of(ways)(place)
        return made or Made(f"tap({self.test(place, 'True')})", place.have)

    def _plain(self, place: Place) -> list[Field]:
        return [f for f in self.writable(place) if KINDS[f.kind].plain]

    def _set(self, place: Place) -> Made | None:
        plain = self._plain(place)
        if not plain:
            return None
        to = self.one_of(plain)
        method = self.one_of(["set", "default"])
        wrong = f"{to.name}={KINDS[to.kind].wrong}"
        said = self.flaw("type", f"{to.name}={self.value(to)}", wrong)
        return Made(f"{_scoped(to)}.{method}({said})", place.have | {to})

    def _drop(self, place: Place) -> Made | None:
        own = self.writable(place)
        if not own:
            return None
        gone = self.one_of(own)
        return Made(f'{_scoped(gone)}.drop("{gone.name}")', place.have - {gone})

    def _rename(self, place: Place) -> Made | None:
        own = self.writable(place)
        pairs = [
            (old, new)
            for old in own
            for new in own
            if old is not new and old[1:4] == new[1:4]  # of the same type and scope
        ]
        if not pairs:
            return None
        old, new = self.one_of(pairs)
        have = place.have - {old}
        after: Have = have | {new} if old in place.have else have
        return Made(f'{_scoped(old)}.rename({old.name}="{new.name}")', after)

    def _merge(self, place: Place) -> Made | None:
        texts = [f for f in self.writable(place) if f.kind == "text" and f.scope == "session"]
        known = self.readable(place, raw=True)
        sources = [f for f in known if f.kind in ("text", "whole")]
        if not texts or not sources:
            return None
        into = self.one_of(texts)
        keys = ", ".join(f'"{f.key}"' for f in self.some(sources, 1, 2))
        return Made(f'S.merge({keys}, into="{into.name}")', place.have | {into})

    def _apply(self, place: Place) -> Made | None:
        texts = [f for f in self.writable(place) if f.kind == "text"]
        if not texts:
            return None
        to = self.one_of(texts)
        return Made(f'{_scoped(to)}.transform("{to.name}", str.upper)', place.have)

    def _compute(self, place: Place) -> Made | None:
        plain = self._plain(place)
        if not plain:
            return None
        to = self.one_of(plain)
        function = self.test(place, self.value(to))
        return Made(f"{_scoped(to)}.compute({to.name}={function})", place.have | {to})

    def _look(self, place: Place) -> Made | None:
        known = self.readable(place, raw=True)
        if not known:
            return None
        method = self.one_of(["guard", "log"])
        return Made(f'S.{method}("{self.one_of(known).key}")', place.have)


def _scoped(field: Field) -> str:
    return "S" if field.scope == "session" else f"S.{field.scope}"
