"""Random functions that read and write typed state: steps, tests, tools, callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from typed_pipelines.fields import ADDED, KINDS, Field, Have, Made, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


class Maker:
    """Makes choices, and keeps what has been written so far."""

    def __init__(self, choose: Callable[[int, int], int]) -> None:
        self.choose = choose
        self.lines: list[str] = []
        self.flaws: dict[int, str] = {}
        self.fields: list[Field] = []
        self.count = 0
        self.bold = 0
        self.agents: list[tuple[str, Have]] = []
        self.part_fields: list[Field] = []
        self.leaves = False

    def one_of(self, options: Sequence[T]) -> T:
        return options[self.choose(0, len(options) - 1)]

    def happens(self, percent: int) -> bool:
        return self.choose(0, 99) >= 100 - percent

    def some(self, options: Sequence[T], least: int, most: int) -> list[T]:
        left = list(options)
        count = min(self.choose(least, most), len(left))
        return [left.pop(self.choose(0, len(left) - 1)) for _ in range(count)]

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def define(self, *lines: str) -> None:
        self.lines += ["", "", *lines]

    def flaw(self, why: str, as_it_is: str, mutated: str) -> str:
        """Text that a mutation changes."""
        number = len(self.flaws)
        self.flaws[number] = why
        return self.again(number, as_it_is, mutated)

    def again(self, number: int, as_it_is: str, mutated: str) -> str:
        """Text that the same mutation changes, too."""
        return f"\x01{number}\x02{as_it_is}\x03{mutated}\x04"

    # --- fields and values ---------------------------------------------------------------------

    def value(self, field: Field) -> str:
        return self.one_of(KINDS[field.kind].values)

    def readable(self, place: Place, *, raw: bool = False) -> list[Field]:
        """What can be read: what has a value, or a default; sometimes anything."""
        if self.bold and self.happens(30):
            self.bold -= 1
            return self.fields
        known = [f for f in self.fields if f in place.have or not (raw or f.required)]
        return [f for f in known if f not in place.beside]

    def writable(self, place: Place) -> list[Field]:
        lasting = ("user", "app")
        return [f for f in place.own if not (place.apart and f.scope in lasting)]


class Functions(Maker):
    """Writes functions that read and write."""

    def reads(self, place: Place, manner: str, most: int = 2) -> list[str]:
        """Statements that read; `state` is what they read, `s` is it bound."""
        lines: list[str] = []
        for _ in range(self.choose(0, most)):
            form = self.choose(0, 9)
            free = [f for f in self.fields if f not in place.beside]
            if not free:
                continue
            fields = self.readable(place, raw=5 <= form <= 6)
            if not fields:
                continue
            field = self.one_of(fields)
            if manner == "view" and field in self.part_fields and self.happens(50):
                lines.append(f"note(Part.bind(state).{field.name})")
            elif form <= 4 or manner == "bound":
                lines.append(f"note(s.{field.name})")
            elif form == 5:
                lines.append(f'note(state["{field.key}"])')
            elif form == 6:
                lines.append(f"note(str(state[{field.ref}.key]))")
            elif form == 7:
                field = self.one_of(free)
                lines.append(f'note(state.get("{field.key}"))')
            elif form == 8:
                field = self.one_of(free)
                lines += [f'if "{field.key}" in state:', f'    note(state["{field.key}"])']
            else:
                field = self.one_of(free)
                lines += [
                    f'if state.get("{field.key}") is not None:',
                    f"    note(s.{field.name})",
                ]
        return lines

    def step(self, place: Place) -> Made:
        """A function step."""
        name = self.name("f")
        fields = self.some(self.writable(place), 0, 2)
        form = self.choose(0, 4)
        if form == 4:
            return self._declared(name, fields, place)
        body = ["s = Shop.bind(state)", *self.reads(place, "view")]
        if place.attempt and self.happens(30):
            body += ["if toss():", "    raise BrokenError"]
        returns, sure = self._returns(form, fields, "\n".join(body))
        kind = "async def" if self.happens(30) else "def"
        self.define(f"{kind} {name}(state):", *("    " + line for line in [*body, *returns]))
        return Made(name, place.have.union(sure))

    def _returns(self, form: int, fields: list[Field], body: str) -> tuple[list[str], list[Field]]:
        """What a step returns, and what it so surely writes."""
        if not fields:
            return ["return None"], []
        delta = f"Shop.delta({''.join(self._argument(f) for f in fields)})"
        if form == 1 and all(KINDS[f.kind].plain for f in fields):
            return [f"return {{{''.join(self._item(f, body) for f in fields)}}}"], fields
        first = f"Shop.delta({self._argument(fields[0])})"
        if form == 2:
            return [f"out = {first}", "if toss():", f"    out |= {delta}", "return out"], fields[:1]
        if form == 3:
            return ["if toss():", f"    return {delta}", f"return {first}"], fields[:1]
        return [f"return {delta}"], fields

    def _argument(self, field: Field) -> str:
        return self.flaw("write", f"{field.name}={self.value(field)}, ", "")

    def _item(self, field: Field, body: str) -> str:
        said = f'"{field.key}": {self.value(field)}, '
        # of a field that the same function reads checks see no wrong type; see test_typed_values
        if self.happens(50) and f".{field.name})" not in body:
            return self.flaw("type", said, f'"{field.key}": {KINDS[field.kind].wrong}, ')
        return self.flaw("write", said, "")

    def _declared(self, name: str, fields: list[Field], place: Place) -> Made:
        """A step that says what it does, since nobody can see it."""
        reads = self.some(self.readable(place), 0, 2)
        arguments = "".join(f", {f.name}={self.value(f)}" for f in fields)
        names = [f.name for f in reads]
        self.define(
            f"@effects(reads=[{', '.join(f.ref for f in reads)}], "
            f"writes=[{', '.join(f.ref for f in fields)}])",
            f"def {name}(state):",
            f"    return work(state, Shop, {names!r}{arguments})",
        )
        return Made(name, place.have.union(fields))

    def test(self, place: Place, end: str) -> str:
        """A function that reads, and gives `end`."""
        fields = self.readable(place)
        if not fields or self.happens(20):
            return f"lambda state: {end}"
        reads = ", ".join(
            f"Shop.bind(state).{self.one_of(fields).name}" for _ in range(self.choose(1, 2))
        )
        return f"lambda state: note({reads}) and {end}"

    def tool(self, place: Place) -> tuple[str, list[Field]]:
        """A tool; its name, and what it surely writes."""
        name = self.name("t")
        fields = self.some(self.writable(place), 0, 2)
        bound = self.happens(60)
        body = self.reads(place, "bound" if bound else "adk")
        sure: list[Field] = []
        for field in fields:
            form = self.choose(0, 4)
            write = f"s.{field.name} = {self.value(field)}"
            if form == 1 and field.kind in ADDED and field in place.have:
                body += [
                    f'with s.edit("{field.name}") as it:',
                    "    it.append(it[0] if it else 0)"
                    if field.kind == "wholes"
                    else "    it.append('more')",
                ]
            elif form == 2:
                body += ["if toss():", f"    {write}"]
            elif form == 3 and not bound and KINDS[field.kind].plain:
                body.append(f'state["{field.key}"] = {self.value(field)}')
                sure.append(field)
            else:
                body.append(self.flaw("write", write, "note()"))
                sure.append(field)
        if bound:
            head = ["@tool", f"def {name}(s: Shop) -> str:"]
        else:
            head = [f"def {name}(tool_context) -> str:"]
            body = ["state = tool_context.state", "s = Shop.bind(tool_context)", *body]
        doc = '    """Do something."""'
        self.define(*head, doc, *("    " + line for line in [*body, "return 'done'"]))
        return name, sure

    def callback(self, place: Place) -> str:
        """A callback that reads and may write."""
        name = self.name("c")
        body = ["state = callback_context.state", "s = Shop.bind(callback_context)"]
        body += self.reads(place, "adk")
        for field in self.some(self.writable(place), 0, 1):
            body.append(f"s.{field.name} = {self.value(field)}")
        self.define(f"def {name}(callback_context, **more):", *("    " + line for line in body))
        return name
