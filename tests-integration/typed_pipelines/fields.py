"""What random schemas declare, and what is known of it at a place of a pipeline."""

from __future__ import annotations

from typing import Final, NamedTuple


class Kind(NamedTuple):
    """A type of values.

    Attributes:
        type: The type, as source.
        values: Values, as source.
        plain: Whether JSON keeps them as they are.
        wrong: A value of another type, as source.
    """

    type: str
    values: tuple[str, ...]
    plain: bool = False
    wrong: str = "['other']"


KINDS: Final = {
    "text": Kind("str", ("'one'", "'ü→🙂 two'", "'{nope} {brace'", "'1'"), plain=True, wrong="7"),
    "whole": Kind("int", ("0", "-3", "2**40", "7"), plain=True, wrong="'seven'"),
    "number": Kind("float", ("0.5", "-1e10", "3.0"), plain=True, wrong="'half'"),
    "yes": Kind("bool", ("True", "False"), plain=True, wrong="'perhaps'"),
    "word": Kind("Literal['lo', 'hi']", ("'lo'", "'hi'"), wrong="'middle'"),
    "level": Kind("Level", ("Level.LOW", "Level.HIGH"), wrong="'middle'"),
    "grade": Kind("Grade", ("Grade.GOOD", "Grade.BAD"), wrong="9"),
    "when": Kind(
        "dt.datetime",
        ("dt.datetime(2026, 1, 2, tzinfo=dt.UTC)", "dt.datetime(1999, 12, 31, 23, 59, 59, 7)"),
        wrong="'soon'",
    ),
    "day": Kind("dt.date", ("dt.date(2024, 2, 29)",), wrong="'soon'"),
    "money": Kind("Decimal", ("Decimal('1.10')", "Decimal('-0.00')"), wrong="'much'"),
    "id": Kind("UUID", ("UUID(int=7)", "UUID(int=2**127)"), wrong="'mine'"),
    "raw": Kind("bytes", ("b'\\x00\\xff'", "b'plain'"), wrong="7"),
    "texts": Kind("list[str]", ("[]", "['one', 'two']"), plain=True, wrong="'one'"),
    "wholes": Kind("list[int]", ("[]", "[1, 2, 3]", "[5]"), plain=True, wrong="'none'"),
    "days": Kind("list[dt.date]", ("[dt.date(2024, 2, 29)]",), wrong="['soon']"),
    "counts": Kind(
        "dict[str, int]", ("{}", "{'a': 1}", "{'b': 2, 'c': 3}"), plain=True, wrong="[]"
    ),
    "rates": Kind("dict[Level, Decimal]", ("{Level.LOW: Decimal('0.5')}", "{}"), wrong="{'x': 1}"),
    "pair": Kind("tuple[int, str]", ("(1, 'a')",), wrong="[1]"),
    "some": Kind("set[int]", ("{1, 2}", "set()"), wrong="['x']"),
    "home": Kind(
        "Address",
        ("Address(street='Main')", "Address(street='', since=dt.date(2020, 1, 1))"),
        wrong="{'city': 'x'}",
    ),
    "homes": Kind("list[Address]", ("[Address(street='Main')]", "[]"), wrong="[{}]"),
    "order": Kind("Order", ("Order(to=Address(street='A'), notes=['n'])",), wrong="{}"),
    "either": Kind("int | str", ("3", "'three'"), wrong="[]"),
    "limited": Kind("Annotated[int, Field(ge=0, lt=10)]", ("0", "9"), wrong="11"),
}
#: Types that the values of another one can be read as.
WIDER: Final = {
    "text": "str | int",
    "whole": "float",
    "word": "str",
    "texts": "list[str | int]",
    "wholes": "list[float]",
    "counts": "dict[str, float]",
    "some": "list[int]",
    "limited": "int",
}
SCOPES: Final = {
    "session": "SessionScoped",
    "user": "UserScoped",
    "app": "AppScoped",
    "temp": "Temp",
}
#: Lists, with the type of their items.
ITEMS: Final = {"texts": "text", "wholes": "whole", "homes": "home", "days": "day"}
ADDED: Final = ("texts", "wholes")
ORDERED: Final = {
    "text": ("'one'", "'m'"),
    "whole": ("0", "5"),
    "number": ("0.5", "2"),
    "limited": ("4",),
}


class Field(NamedTuple):
    """A field of the schema.

    Attributes:
        name: Its name.
        kind: Its type, a name of `KINDS`.
        scope: Its scope.
        optional: Whether it may be None.
        default: Whether it has a default.
        reduced: Whether it has a reducer.
    """

    name: str
    kind: str
    scope: str
    optional: bool = False
    default: bool = False
    reduced: bool = False

    @property
    def key(self) -> str:
        return self.name if self.scope == "session" else f"{self.scope}:{self.name}"

    @property
    def ref(self) -> str:
        return f"Shop.{self.name}"

    @property
    def required(self) -> bool:
        return not self.optional and not self.default


class Place(NamedTuple):
    """What a part may do, given what stands around it.

    Attributes:
        have: Fields that surely have a value.
        own: Fields that it may write.
        loop: Whether it may end a loop.
        attempt: Whether it may fail.
        apart: Whether what it writes may be lost, so that nothing lasting is written.
        beside: Fields that something beside it may write.
    """

    have: frozenset[Field]
    own: tuple[Field, ...]
    loop: bool = False
    attempt: bool = False
    apart: bool = False
    beside: frozenset[Field] = frozenset()


#: Fields that surely have a value.
Have = frozenset[Field]


class Made(NamedTuple):
    """A part that was written.

    Attributes:
        text: An expression.
        have: What surely has a value behind it.
    """

    text: str
    have: Have
