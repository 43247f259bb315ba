"""Random pipelines over typed state, as programs."""

from __future__ import annotations

import linecache
import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Final

from typed_pipelines.fields import (
    ADDED,
    ITEMS,
    KINDS,
    ORDERED,
    SCOPES,
    WIDER,
    Field,
    Have,
    Made,
    Place,
)
from typed_pipelines.leaves import Leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hypothesis.strategies import SearchStrategy


HEADER: Final = """\
{future}
import datetime as dt
import operator
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from adk_fluent import *
from adk_fluent.state import *
from typed_pipelines.parts import *
"""
_TOKEN: Final = re.compile("\x01(\\d+)\x02(.*?)\x03(.*?)\x04", re.DOTALL)
_FILE: Final = "<typed program>"
_COMMON: Final = ("text", "text", "texts", "texts", "wholes", "whole")  # others, too, need these
_MOST_PARTS: Final = 12
_BYTES: Final = 1_500  # more than one needs


class Program:
    """A pipeline as source text. Its repr is the text.

    Attributes:
        text: The text, with tokens.
        flaws: What a mutation does, by the number of its tokens.
        chance: The seed of what is left to chance when it runs.
    """

    def __init__(self, text: str, flaws: dict[int, str], chance: int) -> None:
        self._text = text
        self.flaws = flaws
        self.chance = chance

    @property
    def text(self) -> str:
        """As it should be."""
        return self.mutated(None)

    def mutated(self, flaw: int | None) -> str:
        """With one mutation."""
        return _TOKEN.sub(lambda token: token[3] if int(token[1]) == flaw else token[2], self._text)

    def __repr__(self) -> str:
        return f"\n{self.text}\n# chance {self.chance}"


_numbers = iter(range(10**9))


def load(text: str) -> ModuleType:
    """The module that a text makes; its functions have their source."""
    module = ModuleType(f"typed_program_{next(_numbers)}")
    linecache.cache[_FILE] = (len(text), None, text.splitlines(keepends=True), _FILE)
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, _FILE, "exec", dont_inherit=True), vars(module))
    finally:
        del sys.modules[module.__name__]
    return module


def generate(choose: Callable[[int, int], int]) -> Program:
    """A random pipeline.

    Args:
        choose: Gives a random integer between two, both included; the lower the simpler.
    """
    return _Programs(choose).program()


def programs() -> SearchStrategy[Program]:
    """Random pipelines, as a strategy of hypothesis, which draws bytes quicker than numbers."""
    from hypothesis import strategies as st

    return st.binary(min_size=_BYTES, max_size=_BYTES).map(lambda drawn: generate(_Bytes(drawn)))


class _Bytes:
    """Makes choices by bytes, two for each; when they are used up, the simplest."""

    def __init__(self, drawn: bytes) -> None:
        self._drawn = drawn
        self._at = 0

    def __call__(self, low: int, high: int) -> int:
        two = self._drawn[self._at : self._at + 2]
        self._at += 2
        return low + int.from_bytes(two, "big") % (high - low + 1)


class _Programs(Leaves):
    """Writes a whole program."""

    def program(self) -> Program:
        self.bold = max(0, self.choose(-2, 4))
        self._schema()
        given = frozenset(f for f in self.fields if f.scope != "temp" and self.happens(40))
        inputs, start = self._start(sorted(given))
        self.define(
            "def leave(tool_context) -> str:",
            '    """End the loop."""',
            "    tool_context.actions.escalate = True",
            "    return 'left'",
        )
        place = Place(given, tuple(self.fields))
        parts: list[str] = []
        for _ in range(self.choose(1, 4)):
            part, have = self.part(3, place)
            place = place._replace(have=have)
            parts.append(part)
        steps = ", ".join(parts)
        self.define(
            f'root = Pipeline("root", {steps}).state(Shop).contract(inputs=[{inputs}])',
            f"start = Shop.initial({start})",
            f"kinds = {sorted({f.kind for f in self.fields})}",
        )
        future = "from __future__ import annotations" if self.happens(50) else ""
        text = HEADER.format(future=future) + "\n".join(self.lines) + "\n"
        return Program(text, self.flaws, self.choose(0, 1000))

    def _schema(self) -> None:
        """The schema, as one class or as several."""
        for at in range(self.choose(3, 9)):
            scope = self.one_of(["session"] * 6 + ["user", "app", "temp"])
            kind = self.one_of([*KINDS, *_COMMON])
            optional, default = self.happens(12), self.happens(12)
            reduced = kind in ADDED and not optional and self.happens(60)
            self.fields.append(Field(f"k{at}", kind, scope, optional, default, reduced))
        lines: dict[str, list[str]] = {"Shop": [], "Base": []}
        for field in self.fields:
            kind = KINDS[field.kind]
            type_ = kind.type + (" | None" if field.optional else "")
            if field.reduced:
                type_ = f"Annotated[{type_}, Reduce(operator.add)]"
            # pydantic warns of a default that is no JSON, such as bytes that are no text
            last = KINDS[field.kind].values[-1]
            default = f" = field(default={last})" if field.default else ""
            scope = SCOPES[field.scope]
            spelling = self.choose(0, 2)
            if spelling == 0:
                said = f"{scope}[{type_}]"
            elif spelling == 1 or field.scope != "session":
                said = f"Annotated[{type_}, {scope}]"
            else:
                said = type_
            where = "Base" if self.happens(25) else "Shop"
            lines[where].append(f"    {field.name}: {said}{default}")
        self.lines += ["from pydantic import Field"]
        base = "StateSchema"
        if lines["Base"]:
            self.define("class Base(StateSchema):", *lines["Base"])
            base = "Base"
        self.define(f"class Shop({base}):", *(lines["Shop"] or ['    """All of it."""']))
        self.part_fields = [f for f in self.fields if f.required and self.happens(40)]
        part = [
            f"    {f.name}: {SCOPES[f.scope]}[{WIDER.get(f.kind, KINDS[f.kind].type)}]"
            for f in self.part_fields
        ]
        same = [f"    {f.name}: {SCOPES[f.scope]}[{KINDS[f.kind].type}]" for f in self.part_fields]
        for name, declared in (("Part", part), ("Same", same)):
            self.define(f"class {name}(StateSchema):", *(declared or ['    """Nothing of it."""']))

    def _start(self, given: list[Field]) -> tuple[str, str]:
        """What the pipeline begins with: declared, and in fact."""
        inputs, start = "", ""
        for field in given:
            # the key is not there, and nobody says it is
            inputs += self.flaw("input", f"{field.ref}, ", "")
            start += self.again(len(self.flaws) - 1, f"{field.name}={self.value(field)}, ", "")
        return inputs, start

    # --- parts ---------------------------------------------------------------------------------

    def part(self, depth: int, place: Place) -> Made:
        made = self._part(depth, place)
        if not made.text.startswith(("Pipeline(", "FanOut(", "Route(", "Loop(", "Fallback(")):
            return made
        text = made.text
        if self.happens(10):
            refs = ", ".join(f.ref for f in self.some(sorted(place.have), 0, 2))
            text += f".contract({self.one_of(['inputs', 'outputs'])}=[{refs}])"
        if self.part_fields and self.happens(8):
            text += ".state(Same, extra='allow')"
        return Made(text, made.have)

    def _part(self, depth: int, place: Place) -> Made:
        if depth < 1 or self.count > _MOST_PARTS or self.happens(35):
            return self.leaf(place)
        kinds = [
            *[self.sequence] * 4,
            *[self.route, self.parallel] * 3,
            *[self.loop, self.fallback, self.race, self.mapped] * 2,
            self.timeout,
        ]
        return self.one_of(kinds)(depth - 1, place)

    def leaf(self, place: Place) -> Made:
        made = self.one_of([self.agent, self.agent, self.step, self.transform])(place)
        apart = place.loop or place.attempt or place.apart or place.beside
        if made.text[0] != "a" or apart:
            return made
        if self.agents and self.happens(20):
            return self._transfer(place)
        self.agents.append((made.text, made.have - place.have))
        return made

    def _transfer(self, place: Place) -> Made:
        """Let an agent that stands before this run once more."""
        target, written = self.one_of(self.agents)
        if self.happens(50):
            return Made(f'transfer("{target}")', place.have | written)
        return Made(f'transfer("{target}", when={self.test(place, "toss()")})', place.have)

    def sequence(self, depth: int, place: Place) -> Made:
        parts: list[str] = []
        for _ in range(self.choose(2, 4)):
            part, have = self.part(depth, place)
            place = place._replace(have=have)
            parts.append(part)
        return Made(f"Pipeline({', '.join(parts)})", place.have)

    def route(self, depth: int, place: Place) -> Made:
        """Tests in order, then one branch."""
        keys = [f for f in self.readable(place) if f.kind in ("text", "whole", "word", "yes")]
        made = "Route()"
        by = self.one_of(keys) if keys and self.happens(50) else None
        if by is not None:
            made = f"Route({by.ref})"
        after: list[Have] = []
        for _ in range(self.choose(1, 2)):
            part, have = self.part(depth, place)
            after.append(have)
            if by is not None and self.happens(80):
                operator = "eq"
                value = self.one_of(KINDS[by.kind].values)
                if by.kind in ORDERED and self.happens(50):
                    operator, value = self.one_of(["gt", "lt"]), self.one_of(ORDERED[by.kind])
                made += f".{operator}({value}, {part})"
            else:
                made += f".when({self.test(place, 'toss()')}, {part})"
        if self.happens(60):
            part, have = self.part(depth, place)
            after.append(have)
            made += f".otherwise({part})"
        else:
            after.append(place.have)
        return Made(made, _common(after))

    def parallel(self, depth: int, place: Place) -> Made:
        """Branches that write different keys, or those that have a reducer."""
        count = self.choose(2, 3)
        shared = [f for f in place.own if f.reduced and self.happens(60)]
        alone = self.some([f for f in place.own if f not in shared], count, 2 * count)
        parts: list[str] = []
        lost: set[Field] = set()
        written: set[Field] = set()
        for at in range(count):
            own = (*alone[at::count], *shared)
            beside = place.beside.union(shared, (f for f in alone if f not in own))
            part, after = self.part(depth, place._replace(own=own, loop=False, beside=beside))
            parts.append(part)
            written |= after - place.have
            lost |= place.have - after
        have = (place.have - lost) | written
        if self.happens(30):
            return Made(f"({' | '.join(_whole(p) for p in parts)})", have)
        merge = ", merge='interleave'" if self.happens(10) else ""
        return Made(f"FanOut({', '.join(parts)}{merge})", have)

    def race(self, depth: int, place: Place) -> Made:
        inside = place._replace(apart=True, loop=False)
        made = [
            self.part(depth, inside._replace(attempt=at > 0)) for at in range(self.choose(1, 2) + 1)
        ]
        have = _common(after for _, after in made)
        if self.happens(50):
            return Made(f"FanOut({', '.join(p for p, _ in made)}, merge='first_complete')", have)
        return Made(f"race({', '.join(p for p, _ in made)})", have)

    def fallback(self, depth: int, place: Place) -> Made:
        inside = place._replace(apart=True)
        made = [self.part(depth, inside._replace(attempt=True)) for _ in range(self.choose(1, 2))]
        made.append(self.part(depth, place))
        have = _common(after for _, after in made)
        if self.happens(40):
            return Made(f"({' // '.join(_whole(part) for part, _ in made)})", have)
        return Made(f"Fallback({', '.join(part for part, _ in made)})", have)

    def loop(self, depth: int, place: Place) -> Made:
        times = self.choose(1, 3)
        outside, self.leaves = self.leaves, False
        body, have = self.part(depth, place._replace(loop=True))
        if self.leaves:  # before anything is written, perhaps
            have = have & place.have
        self.leaves = outside
        form = self.choose(0, 2)
        if form == 0:
            return Made(f"({_whole(body)} * {times})", have)
        test = self.test(place._replace(have=have), "toss()")
        if form == 1:
            return Made(f"Loop({body}, until={test}, max={times})", have)
        return Made(f"({_whole(body)} * until({test}, max={times}))", have)

    def mapped(self, depth: int, place: Place) -> Made:
        """A body for each item of a list."""
        lists = [f for f in self.readable(place, raw=True) if f.kind in ITEMS]
        outputs = [f for f in self.writable(place) if f.kind == "texts" and f.scope == "session"]
        if not lists or not outputs:
            return self.sequence(depth, place)
        output, source = self.one_of(outputs), self.one_of(lists)
        inside = place._replace(
            own=tuple(f for f in place.own if f is not output), apart=True, loop=False
        )
        options = [f"output_key={output.ref}"]
        item = "_item"
        items = [f for f in inside.own if f.kind == ITEMS[source.kind] and f.required]
        if items and self.happens(80):
            field = self.one_of(items)
            item = field.key
            options.append(f"item_key={field.ref}")
            inside = inside._replace(have=inside.have | {field})
        body, have = self.agent(inside)
        if self.happens(40):
            name = self.name("f")
            self.define(f"def {name}(state):", f'    note(state["{item}"])', "    return None")
            body = f"Pipeline({name}, {body})"
        texts = [f for f in inside.own if f.kind == "text" and f.scope == "session"]
        if texts and self.happens(50):
            result = self.one_of(texts)
            body = f"Pipeline({body}, S.set({result.name}={self.value(result)}))"
            options.append(f"result_key={result.ref}")
        if self.happens(30):
            options.append("concurrency=1")
        made = f"map_over({source.ref}, {body}, {', '.join(options)})"
        return Made(made, (place.have & have) | {output})

    def timeout(self, depth: int, place: Place) -> Made:
        body, have = self.part(depth, place)
        return Made(f"timeout({body}, 100)", have)


def _common(after: Iterable[Have]) -> Have:
    """What has a value behind each of several parts."""
    first, *rest = after
    return first.intersection(*rest)


def _whole(part: str) -> str:
    """A part that an operator can stand beside: a plain function is none."""
    return f"Pipeline({part})" if part.startswith("f") and part[1:].isdigit() else part
