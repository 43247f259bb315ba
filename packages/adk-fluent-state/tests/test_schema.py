"""What a schema declares, in every spelling, and what it refuses."""

from __future__ import annotations

import datetime as dt
import operator
import pickle
import re
import subprocess
import sys
from copy import copy, deepcopy
from enum import Enum
from time import process_time
from typing import Annotated, Any, ClassVar, Literal, cast

import pytest
from annotated_types import Len
from pydantic import AfterValidator, BaseModel, Field
from typing_extensions import TypeAliasType

from adk_fluent.errors import UnknownNameError, UsageError
from adk_fluent.ir import UNSET
from adk_fluent.protocol import FieldRef, StateRules
from adk_fluent.state import (
    AppScoped,
    Reduce,
    SchemaCompositionError,
    SchemaError,
    SessionScoped,
    StateFieldRef,
    StateSchema,
    Temp,
    UserScoped,
    field,
)

Tree = TypeAliasType("Tree", "dict[str, Tree] | str | None")


class Billing(StateSchema):
    """What billing keeps."""

    intent: str
    confidence: float
    ticket_id: str | None = None
    user_tier: Annotated[str, UserScoped]
    app_version: Annotated[str, AppScoped]
    scratch: Annotated[dict[str, Any], Temp]


class Typed(StateSchema):
    intent: SessionScoped[str]
    confidence: SessionScoped[float]
    ticket_id: SessionScoped[str | None] = field(default=None)
    user_tier: UserScoped[str]
    app_version: AppScoped[str]
    scratch: Temp[dict[str, Any]]


class Both(StateSchema):
    intent: SessionScoped[str]
    confidence: float


def made(source: str) -> dict[str, Any]:
    """What a module of this source has, whose annotations are no text unless it says so."""
    given = (AppScoped, Reduce, SessionScoped, StateSchema, Temp, UserScoped, field)
    space: dict[str, Any] = {"__name__": __name__, **{each.__name__: each for each in given}}
    exec(compile(source, "<schema>", "exec", dont_inherit=True), space)
    return space


def as_rows(schema: Any) -> list[tuple[Any, ...]]:
    refs = schema.__state_fields__.values()
    return [(ref.key, ref.name, ref.type, ref.scope, ref.default) for ref in refs]


def test_both_spellings_declare_the_same() -> None:
    assert as_rows(Billing) == as_rows(Typed)
    assert as_rows(Billing) == [
        ("intent", "intent", str, "session", UNSET),
        ("confidence", "confidence", float, "session", UNSET),
        ("ticket_id", "ticket_id", str | None, "session", None),
        ("user:user_tier", "user_tier", str, "user", UNSET),
        ("app:app_version", "app_version", str, "app", UNSET),
        ("temp:scratch", "scratch", dict[str, Any], "temp", UNSET),
    ]
    assert [ref.key for ref in Both.__state_fields__.values()] == ["intent", "confidence"]


def test_a_scope_in_annotated_may_have_a_type() -> None:
    class Schema(StateSchema):
        tier: Annotated[str, UserScoped[str]]

    assert list(Schema.__state_fields__) == ["user:tier"]


def test_a_default_of_a_float_is_one() -> None:
    class Schema(StateSchema):
        one: float = 1
        two: float | None = 2
        three: float = field(default=3, ge=0)

    bound = Schema.bind({})
    assert [type(each) for each in (bound.one, bound.two, bound.three)] == [float] * 3


def test_annotations_may_be_types_text_or_a_mixture() -> None:
    source = """
from typing import Annotated, Any
class Schema(StateSchema):
    intent: SessionScoped[str]
    confidence: "float"
    ticket_id: SessionScoped["str | None"] = None
    user_tier: Annotated["str", UserScoped]
    app_version: AppScoped["str"]
    scratch: Temp[dict[str, "Any"]]
"""
    assert as_rows(made(source)["Schema"]) == as_rows(Billing)
    later = f"from __future__ import annotations\n{source}"
    assert as_rows(made(later)["Schema"]) == as_rows(Billing)


def test_class_variables_and_private_names_are_no_fields() -> None:
    class Schema(StateSchema):
        intent: str
        other: Annotated[ClassVar[int], "as Python 3.13 allows"] = 3
        limit: ClassVar[int] = 3
        _hidden: int = 4
        _Unknown: Nowhere  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

    assert list(Schema.__state_fields__) == ["intent"]
    assert (Schema.limit, Schema._hidden) == (3, 4)


def test_types_may_be_local() -> None:
    class Colour(Enum):
        RED = "red"

    class Home(BaseModel):
        street: str

    class Schema(StateSchema):
        class Size(Enum):
            SMALL = 1

        colour: Colour
        homes: SessionScoped[list[Home]]
        size: Size
        date: dt.date | None = None  # its own default is no type

    assert Schema.ref("colour").type is Colour
    assert Schema.ref("size").type is Schema.Size
    bound = Schema.bind(state := {})
    bound.homes = [Home(street="Main")]
    bound.size = Schema.Size.SMALL
    assert state == {"homes": [{"street": "Main"}], "size": 1}
    assert bound.homes == [Home(street="Main")]


def test_a_default_that_is_called_as_its_type_is_no_type() -> None:
    space = made(
        "from __future__ import annotations\n"
        "from datetime import date\n"
        "class Schema(StateSchema):\n    date: date | None = None\n"
    )
    assert space["Schema"].ref("date").type == dt.date | None


LATER = """
from __future__ import annotations
class Early(StateSchema):
    first: str
    one: UserScoped[Later]
    other: list[Later] = []
class Below(Early):
    more: int
"""


def test_types_may_be_defined_later() -> None:
    space = made(LATER)
    early, below = space["Early"], space["Below"]
    assert str(early.first) == "first"
    with pytest.raises(SchemaError, match=r"Early\.one names 'Later', which is not defined"):
        _ = early.one
    with pytest.raises(SchemaError, match=r"Early\.one names 'Later'"):
        below.bind({}).one = 3
    with pytest.raises(SchemaError, match=r"Early\.one names 'Later'"):
        _ = below.__state_fields__
    space["Later"] = int
    assert str(below.one) == "user:one"
    below.bind(state := {}).one = 3
    assert state == {"user:one": 3}
    assert early.bind(state).one == 3
    assert early.bind({}).other == []
    assert list(below.__state_fields__) == ["first", "user:one", "other", "more"]


def test_what_is_written_first_finds_types_that_came_later() -> None:
    space = made(LATER)
    space["Later"] = int
    state: dict[str, Any] = {}
    space["Below"].bind(state).one = 3
    assert state == {"user:one": 3}


@pytest.mark.parametrize("first", ["", "from __future__ import annotations\n"])
@pytest.mark.parametrize(
    ("annotation", "found"),
    [
        ("'list['", r"found: .*'list\['.*: SyntaxError: "),
        ("SessionScoped['1+']", r"found: .*'1\+'.*: SyntaxError: "),
        ("UserScoped[list['1+']]", r"found: .*1\+.*: SyntaxError: "),
        ("'int[3]'", r"found: .*'int\[3\]'.*: TypeError: "),
        ("'1/0'", "found: .*'1/0'.*: ZeroDivisionError: "),
        ("'dt.Nothing'", "found: .*'dt.Nothing'.*: AttributeError: "),
    ],
)
def test_an_annotation_that_cannot_be_evaluated_is_refused(
    first: str, annotation: str, found: str
) -> None:
    with pytest.raises(
        SchemaError, match=r"the annotation of Schema\.a cannot be evaluated"
    ) as caught:
        made(f"{first}import datetime as dt\nclass Schema(StateSchema):\n    a: {annotation}")
    assert re.search(found, str(caught.value))


def test_a_declaration_that_makes_no_sense_later_never_does() -> None:
    space = made("class Schema(StateSchema):\n    a: 'Later' = None\n    b: int")
    space["Later"] = int
    for _ in range(2):  # the error does not make the field go away
        with pytest.raises(SchemaError, match=r"the default of Schema\.a is no int"):
            _ = space["Schema"].__state_fields__


def test_large_schemas_take_time_by_the_field() -> None:
    before = process_time()
    declare: Any = type(StateSchema)
    fields = {f"f{at}": SessionScoped[int] for at in range(5000)}
    body = {"__annotations__": fields, "__module__": __name__}
    large: Any = declare("Large", (StateSchema,), body)
    more = {"__annotations__": {"more": "SessionScoped[int]"}, "__module__": __name__}
    below: Any = declare("Below", (large,), more)
    assert len(below.__state_fields__) == 5001
    assert len(below.initial(**dict.fromkeys(fields, 1))) == 5000
    assert process_time() - before < 3  # it takes 0.2; when each looked at all others, 60
    assert below.__state_fields__ is below.__state_fields__  # every write looks there


def test_a_field_tells_what_is_known_of_it() -> None:
    class Schema(StateSchema):
        count: SessionScoped[int] = field(default=1, doc="How many", key="n", ge=0, le=9)
        tags: SessionScoped[list[str]] = field(default_factory=list)
        hits: SessionScoped[Annotated[list[str], Reduce(operator.add)]]

    ref = Schema.count
    assert (ref.key, ref.name, ref.scope, ref.doc) == ("n", "count", "session", "How many")
    assert (ref.default, ref.owner, ref.required) == (1, Schema, False)
    assert "Ge(ge=0), Le(le=9)" in repr(ref.type)
    assert ref.reducer is None
    assert repr(ref) == "Schema.count: int ('n')"
    assert str(ref) == f"{ref}" == "n"
    assert Schema.tags.default == []
    assert Schema.tags.default is not Schema.tags.default
    assert Schema.hits.type == list[str]
    assert Schema.hits.required
    assert isinstance(ref, FieldRef)
    assert isinstance(Schema, StateRules)


def test_pydantic_s_field_means_the_same() -> None:
    class Schema(StateSchema):
        one: Annotated[int, Field(ge=0, default=3, description="How many")]
        two: int = Field(default=3, ge=0, description="How many")
        tags: list[str] = Field(default_factory=list, max_length=1)

    bound: Any = Schema.bind({})
    for name in ("one", "two"):
        ref = Schema.ref(name)
        assert (ref.default, ref.doc, ref.required) == (3, "How many", False)
        assert getattr(bound, name) == 3
        with pytest.raises(TypeError, match="greater than or equal to 0"):
            setattr(bound, name, -1)
    assert bound.tags == []
    with pytest.raises(TypeError, match="at most 1 item"):
        bound.tags = ["a", "b"]


def test_refs_are_equal_by_key_and_type() -> None:
    class One(StateSchema):
        a: Annotated[int, Field(ge=0)]
        b: int = field(ge=0)

    class Two(StateSchema):
        a: Annotated[int, Field(ge=0)]
        b: int = field(ge=0)

    assert One.ref("a") == Two.ref("a")
    assert One.ref("b") == Two.ref("b")
    assert Billing.ref("intent") == Typed.intent
    assert hash(Billing.ref("intent")) == hash(Typed.intent)
    assert Billing.ref("intent") != Billing.ref("confidence")
    assert Typed.intent != "intent"

    class Other(StateSchema):
        intent: int

    assert Billing.ref("intent") != Other.ref("intent")


def test_refs_are_copied_and_pickled_as_themselves() -> None:
    assert copy(Typed.intent) is deepcopy(Typed.intent) is Typed.intent
    assert pickle.loads(pickle.dumps(Typed.intent)) is Typed.intent


def test_schemas_are_put_together() -> None:
    class Classified(StateSchema):
        intent: str
        confidence: float = 0.5

    class Resolved(StateSchema):
        ticket: UserScoped[str]
        intent: SessionScoped[str]

    class Whole(Classified, Resolved):  # pyright: ignore[reportIncompatibleVariableOverride]
        confidence: float = 0.9
        note: str = ""

    assert set(Whole.__state_fields__) == {"intent", "confidence", "user:ticket", "note"}
    assert Whole.bind({}).confidence == 0.9
    assert Classified.bind({}).confidence == 0.5
    assert Whole.ref("intent").owner is Classified
    assert Whole.ref("confidence").owner is Whole


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        ("a: str", "a: int", r"One.a: str \(session, 'a'\), and Two.a: int"),
        ("a: str", "a: UserScoped[str]", r"\(session, 'a'\), and Two.a: str \(user, 'user:a'\)"),
        ("a: str", "a: str = field(key='b')", r"\(session, 'b'\)"),
        ("a: str", "b: str = field(key='a')", "One.a: str .*, and Two.b: str"),
        ("a: int = field(ge=0)", "a: int = field(ge=1)", "One.a: .*, and Two.a: "),
    ],
)
def test_schemas_that_contradict_each_other_are_refused(one: str, other: str, says: str) -> None:
    source = f"""
class One(StateSchema):
    {one}
class Two(StateSchema):
    {other}
"""
    for text in (
        f"{source}class Three(Two, One): ...",
        source.replace("Two(StateSchema)", "Two(One)"),
    ):
        with pytest.raises(SchemaCompositionError, match=says) as caught:
            made(text)
        assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        (
            "Annotated[list, Reduce(max)]",
            "list",
            r"One\.a: list \(session, 'a', <Reducer One\.a by max>\), and Two\.a: list \(session",
        ),
        ("Annotated[list, Reduce(max)]", "Annotated[list, Reduce(min)]", "One.a by max.*a by min"),
        ("int = 1", "int", r"One\.a: int \(session, 'a', default 1 \(int\)\), and Two\.a: int"),
        ("int = 1", "int = field(default=2)", r"default 1 .* default 2"),
        ("int | None", "int | None = 2", r"default None .* default 2"),
        ("list = []", "list = field(default_factory=lambda: [])", r"default \[\] .*default <func"),
    ],
)
def test_schemas_that_differ_are_refused_in_either_order(one: str, other: str, says: str) -> None:
    source = (
        "from typing import Annotated\n"
        f"class One(StateSchema):\n    a: {one}\n"
        f"class Two(StateSchema):\n    a: {other}\n"
    )
    for text, found in (
        ("class Three(Two, One): ...", says),
        ("class Three(One, Two): ...", r"and One\.a: "),
    ):
        with pytest.raises(SchemaCompositionError, match="Three has two fields 'a'") as caught:
            made(source + text)
        assert re.search(found, str(caught.value))
        assert "declare 'a' in Three, too" in str(caught.value)
    whole = made(f"{source}class Three(Two, One):\n    a: {one}\n")["Three"]
    assert whole.ref("a").owner is whole  # says which holds
    below = made(f"{source}class Three(One):\n    a: {other}\nclass Four(Three, One): ...")
    assert below["Four"].ref("a") is below["Three"].ref("a")


def test_schemas_that_say_the_same_in_other_words_agree() -> None:
    source = """
class One(StateSchema):
    a: list[str] = []
    b: int | None = None
    c: str = field(default="x", doc="The first says it")
class Two(StateSchema):
    a: list[str] = field(default_factory=list[str])
    b: int | None
    c: str = "x"
class Three(One, Two): ...
class Four(Two, One): ...
"""
    space = made(source)
    assert [space[name].ref("a").default for name in ("Three", "Four")] == [[], []]
    assert [space[name].ref("c").doc for name in ("Three", "Four")] == ["The first says it", ""]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("bind: str", "cannot have a field 'bind'"),
        ("template: UserScoped[str]", r'template_: ... = field\(key="template"\)'),
        ("a: UserScoped", "has a scope, and no type"),
        ("a: UserScoped[str] | None", "has a scope inside of its type"),
        ("a: Annotated[str, UserScoped, Temp]", "has two scopes"),
        ("a: Annotated[UserScoped[str], Temp]", "has two scopes"),
        ("a: Annotated[list, Reduce]", "Reduce without a function"),
        ("a: Annotated[list, Reduce(max), Reduce(min)]", "two reducers"),
        ("a: Annotated[str, UserScoped[str], Temp]", "has two scopes"),
        ("a = field(default=1)", "Schema.a has no type"),
        ("a: Final[str]", "is Final, but state changes"),
        ("a: SessionScoped[Final]", "is Final, but state changes"),
        ("a: Required[int]", "cannot be Required"),
        ("a: SessionScoped[NotRequired[int]]", "cannot be NotRequired"),
        ("a: SessionScoped[ClassVar[int]]", "cannot be ClassVar"),
        ("a: SessionScoped[Self]", "cannot be Self"),
        ("a: InitVar[int]", "cannot be InitVar"),
        ("a: 3", r"the annotation of Schema\.a is no type"),
        ("a: (int, str)", r"found: \(<class 'int'>, <class 'str'>\) \(tuple\)"),
        ("a: any", r"the annotation of Schema\.a is no type"),
        ("a: SessionScoped[...]", r"the annotation of Schema\.a is no type"),
        ("a: list[UserScoped[int]]", "has a scope inside of its type"),
        ("a: dict[str, list[Annotated[int, UserScoped]]]", "has a scope inside of its type"),
        ("a: list[Annotated[int, Reduce(max)]]", "has a reducer inside of its type"),
        ("a: UserScoped[StateSchema]", "has a state schema as its type"),
        ("a: list[StateSchema]", "has a state schema as its type"),
        ("a = UserScoped[int]", r"found: a = UserScoped\[int\]"),
        ("a = UserScoped", r"Schema\.a is assigned a type"),
        ("a: str = field(key=3)", r"the key of Schema\.a is no str"),
        ("a: list = field(default_factory=lambda more: [])", "called without arguments"),
        ("a: str = field(key='user:a')", "the key of Schema.a has a prefix"),
        ("a: str = field(key='_adk_x')", "cannot have this key"),
        ("a: str = field(key='  ')", "cannot have this key"),
        ("a: list = field(default=[], default_factory=list)", "a default and a default_factory"),
        ("a: list = field(default_factory=[])", "cannot be called"),
        ("a: str = 3", "the default of Schema.a is no str"),
        ("a: str = None", "the default of Schema.a is no str"),
        ("a: list[str] = None", r"the default of Schema.a is no list\[str\]"),
        ("a: int = True", "the default of Schema.a is no int"),
        ("__version__ = 0", "Schema.__version__ is no version"),
        ("__version__ = '2'", "Schema.__version__ is no version"),
    ],
)
def test_a_declaration_without_meaning_is_refused(body: str, says: str) -> None:
    source = "from typing import *\nfrom dataclasses import InitVar\nclass Schema(StateSchema):\n"
    with pytest.raises(SchemaError, match=says):
        made(f"{source}    {body}")


@pytest.mark.parametrize(
    "function", ["operator.add", "max", "set.union", "lambda one, two: one", "''.join", "twice"]
)
@pytest.mark.parametrize("scope", ["{}", "UserScoped[{}]"])
def test_a_function_is_a_reducer_only_if_that_is_said(scope: str, function: str) -> None:
    annotation = scope.format(f"Annotated[list[str], {function}]")
    source = f"""
import operator
def twice(one, two):
    return one + two
class Schema(StateSchema):
    a: {annotation}
"""
    with pytest.raises(SchemaError, match=r"Schema\.a has a function among") as caught:
        made(f"from typing import *\n{source}")
    assert "Reduce(operator.add)" in str(caught.value)


def test_other_objects_beside_a_type_stay() -> None:
    class Schema(StateSchema):
        a: Annotated[str, AfterValidator(str.strip), object(), "a note", Len(1, 3)]
        b: SessionScoped[list[Annotated[str, str.strip]]]  # no reducer: pydantic takes no notice

    bound: Any = Schema.bind({})
    bound.a, bound.b = " x ", ["y"]
    assert (bound.a, bound.b) == ("x", ["y"])
    with pytest.raises(TypeError, match="at most 3"):
        bound.a = "long"


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        ("a: str = 3", "write a default of its type, or str | int as the type"),
        ("a: list[str] = None", r"leave the default out, or write list[str] | None as the type"),
    ],
)
def test_a_wrong_default_has_a_way_out(body: str, advice: str) -> None:
    with pytest.raises(SchemaError) as caught:
        made(f"class Schema(StateSchema):\n    {body}")
    assert str(caught.value).endswith(f"help: {advice}")


def test_a_recursive_type_is_one() -> None:
    class Schema(StateSchema):
        value: SessionScoped[Tree]

    bound: Any = Schema.bind({})
    bound.value = {"a": {"b": "c"}}
    assert bound.value == {"a": {"b": "c"}}
    with pytest.raises(TypeError, match=r"Schema\.value: Tree cannot be given"):
        bound.value = {"a": 3}


def test_an_attribute_that_hides_a_field_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"Below\.intent hides the field Billing\.intent"):

        class Below(Billing):  # pyright: ignore[reportUnusedClass]
            def intent(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
                return ""


def test_a_class_before_a_schema_does_not_hide_a_field() -> None:
    class Other:
        intent = "mine"

    class Below(Billing, Other):  # Python finds the field
        pass

    assert Below.ref("intent") is cast("Any", Below).intent
    with pytest.raises(SchemaError, match=r"Other\.intent hides the field Billing\.intent"):

        class Hidden(Other, Billing):  # pyright: ignore[reportUnusedClass]
            pass

    class Again(Other, Billing):
        intent: str = "said again"

    assert Again.bind({}).intent == "said again"


def test_a_field_may_have_the_key_of_what_a_schema_has() -> None:
    class Schema(StateSchema):
        template_: SessionScoped[str] = field(key="template")

    Schema.bind(state := {}).template_ = "x"
    assert state == {"template": "x"}


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (list[str], field(default="x")),
        (list[str], field(default=[1])),
        (list[str], field(default=[])),
        (int, field(default=-1)),
        (int | None, field(default=True)),
        (dt.date, field(default="2020-01-01")),
        (Literal["a", "b"], field(default="c")),
        (float, field(default=float("nan"))),
        (str, field(default="\ud800")),
        (dict[str, int], field(default_factory=list)),
        (dict[str, int], field(default_factory=list[str])),
        (tuple[int], field(default_factory=tuple)),
        (list[str], field(default_factory=list)),
    ],
)
def test_a_default_that_does_not_fit_is_refused_where_it_is_declared(
    kind: Any, default: Any
) -> None:
    if default.default == [] or default.default_factory is list:
        kind = Annotated[kind, Field(min_length=1)]
    elif kind is int:
        kind = Annotated[kind, Field(ge=0)]
    with pytest.raises(SchemaError, match=r"the default of Schema\.value: .* does not fit: "):

        class Schema(StateSchema):  # pyright: ignore[reportUnusedClass]
            value: kind = default  # pyright: ignore[reportInvalidTypeForm]


@pytest.mark.parametrize(
    ("kind", "limits", "default", "fits"),
    [
        (int, {"gt": 1}, 1, False),
        (int, {"gt": 1}, 2, True),
        (int, {"ge": 5}, 1, False),
        (float, {"ge": 0, "le": 1}, 0, True),
        (float | None, {"lt": 1}, 1.0, False),
        (int, {"le": 3}, 4, False),
        (int, {"multiple_of": 2}, 3, False),
        (int, {"multiple_of": 2}, 4, True),
        (str, {"min_length": 1}, "", False),
        (str, {"max_length": 1}, "ab", False),
        (str, {"pattern": "^a"}, "b", False),
        (str, {"pattern": "^a"}, "a", True),
        (list[str], {"min_length": 1}, [], False),
        (list[str], {"max_length": 1}, [], True),
    ],
)
def test_the_constraints_of_a_field_hold_for_its_default(
    kind: Any, limits: dict[str, Any], default: Any, fits: bool
) -> None:
    body = {"__annotations__": {"value": kind}, "value": field(default=default, **limits)}
    declare: Any = type(StateSchema)
    if fits:
        assert declare("Schema", (StateSchema,), body).bind({}).value == default
    else:
        with pytest.raises(SchemaError, match=r"the default of Schema\.value"):
            declare("Schema", (StateSchema,), body)


def test_a_factory_of_somebody_s_is_not_called_where_it_is_declared() -> None:
    called: list[int] = []

    def wrong() -> Any:
        called.append(1)
        return ["x"]

    class Schema(StateSchema):
        few: list[int] = field(default_factory=wrong)

        none: list[int] = field(default_factory=lambda: cast("Any", None))

    assert not called
    bound = Schema.bind({})
    for name in ("few", "none"):
        for read in (
            lambda name=name: getattr(bound, name),
            lambda name=name: bound.edit(name).__enter__(),
            Schema.json_schema,
        ):
            with pytest.raises(SchemaError, match=r"the default of Schema\.\w+: .* does not fit"):
                read()


def test_a_type_that_cannot_be_stored_is_refused_where_it_is_used() -> None:
    class Plain:
        pass

    class Schema(StateSchema):
        plain: Plain
        odd: str = field(ge=Plain())

    bound = Schema.bind({})
    with pytest.raises(SchemaError, match=r"values of Schema\.plain: Plain cannot be stored"):
        bound.plain = Plain()
    with pytest.raises(SchemaError, match=r"values of Schema\.odd"):
        bound.odd = "x"

    class Wrong(StateSchema):
        count: SessionScoped[int] = field(ge="a")

    with pytest.raises(SchemaError, match=r'found: Error building "int" validator: \w+: .*ge'):
        Wrong.bind({}).count = 3


def test_a_model_may_name_what_is_defined_later() -> None:
    space = made(
        "from __future__ import annotations\n"
        "from pydantic import BaseModel\n"
        "class Model(BaseModel):\n    late: Late\n"
        "class Schema(StateSchema):\n"
        "    one: Model\n    more: list[Model] = []\n    odd: list[Model] = [1]\n"
    )
    bound = space["Schema"].bind({"one": {"late": 1}})
    for name in ("one", "odd"):
        with pytest.raises(SchemaError, match=rf"Schema\.{name}: .* waits for a name"):
            getattr(bound, name)
    assert space["Schema"].bind({"_": 1}).__state__ == {"_": 1}
    space["Late"] = int
    space["Model"].model_rebuild(_types_namespace=space)
    assert bound.one.late == 1
    assert bound.more == []
    with pytest.raises(SchemaError, match=r"the default of Schema\.odd"):
        _ = bound.odd


@pytest.mark.parametrize(
    "kind",
    [Any, object, str | None, Literal["a"] | None, Annotated[str | None, Field(max_length=3)]],
)
def test_a_type_that_includes_none_need_not_be_there(kind: Any) -> None:
    class Schema(StateSchema):
        value: kind  # pyright: ignore[reportInvalidTypeForm]

    bound: Any = Schema.bind(state := {})
    assert bound.value is None
    assert Schema.template.value == "{value?}"
    bound.value = "a"
    bound.value = None
    assert state == {"value": None}


def test_unknown_names_come_with_the_nearest() -> None:
    whatever: Any = Billing
    for ask in (
        lambda: whatever.intnt,
        lambda: Billing.ref("intnt"),
        lambda: Billing.template.intnt,
        lambda: Billing.delta(intnt="x"),
        lambda: Billing.initial(intnt="x"),
    ):
        with pytest.raises(UnknownNameError, match="did you mean 'intent'") as caught:
            ask()
        assert caught.value.what == "Billing has no field 'intnt'"
    assert not hasattr(Billing, "__nothing__")


@pytest.mark.parametrize("given", [3, None, ["intent"], str])
def test_a_field_is_meant_by_its_name(given: Any) -> None:
    bound = Billing.bind({})
    for ask in (lambda: Billing.ref(given), lambda: bound.unset(given), lambda: bound.edit(given)):
        with pytest.raises(UsageError, match="a field of Billing is meant by its name") as caught:
            ask()
        assert "such as 'intent'" in str(caught.value)


def test_a_key_is_no_name_of_a_field() -> None:
    with pytest.raises(UnknownNameError, match="it is the key of the field 'user_tier'"):
        Billing.ref("user:user_tier")


def test_a_field_of_the_class_is_not_assigned() -> None:
    with pytest.raises(UsageError, match=r"Billing\.bind\(ctx\)\.intent = \.\.\. writes"):
        Billing.intent = "x"
    setattr(Billing, "extra", 1)  # noqa: B010  # anything else may be
    delattr(Billing, "extra")
    with pytest.raises(UsageError, match=r"Billing\.intent is a field, and stays one"):
        del Billing.intent
    assert isinstance(Billing.ref("intent"), StateFieldRef)


def test_a_schema_is_not_made() -> None:
    with pytest.raises(UsageError, match=r"Billing\.bind\(ctx\) reads and writes it"):
        Billing()


# --- what a schema gives --------------------------------------------------------------------------


def test_templates_are_placeholders_that_adk_fills() -> None:
    assert Billing.template.intent == "{intent}"
    assert Billing.template.user_tier == Billing.ref("user_tier").template == "{user:user_tier}"
    assert Billing.template.ticket_id == "{ticket_id?}"
    assert f"About {Typed.template.scratch}" == "About {temp:scratch}"
    assert Billing.bind({}).template.intent == "{intent}"
    assert dir(Billing.template) == sorted(
        ["app_version", "confidence", "intent", "scratch", "ticket_id", "user_tier"]
    )


@pytest.mark.parametrize("key", ["my-key", "other:key", "1a", "a b"])
def test_a_key_that_adk_does_not_fill_has_no_template(key: str) -> None:
    class Schema(StateSchema):
        value: SessionScoped[str] = field(key=key)

    with pytest.raises(SchemaError, match="ADK fills only keys that are names"):
        _ = Schema.template.value


def test_initial_is_what_a_session_starts_with() -> None:
    class Schema(StateSchema):
        when: dt.date
        tier: UserScoped[str]
        note: str | None
        scratch: Temp[int]
        count: int = 0

    state = Schema.initial(when=dt.date(2024, 1, 1), tier="gold", note=None)
    assert state == {"when": "2024-01-01", "user:tier": "gold"}
    assert Schema.initial() == {}
    with pytest.raises(TypeError, match=r"Schema\.tier: str .* cannot be given 3 \(int\)"):
        Schema.initial(tier=3)
    with pytest.raises(UsageError, match="cannot start with scratch"):
        Schema.initial(scratch=1)
    with pytest.raises(UsageError, match=r"no tier \(str\)"):
        Schema.initial(_complete=True, when=dt.date(2024, 1, 1))
    assert Schema.initial(_complete=True, when=dt.date(2024, 1, 1), tier="x") == {
        "when": "2024-01-01",
        "user:tier": "x",
    }


def test_a_delta_is_what_a_function_step_returns() -> None:
    assert Billing.delta(intent="x", user_tier="gold", scratch={"a": 1}, ticket_id=None) == {
        "intent": "x",
        "user:user_tier": "gold",
        "temp:scratch": {"a": 1},
        "ticket_id": None,
    }
    with pytest.raises(TypeError, match="intent"):
        Billing.delta(intent=3)


def test_a_schema_is_exported_as_json_schema() -> None:
    class Home(BaseModel):
        street: str

    class Schema(StateSchema):
        """What is kept."""

        intent: SessionScoped[str] = field(doc="What is wanted", min_length=1)
        when: dt.date | None
        tier: UserScoped[str] = field(default="free")
        homes: list[Home] = field(default_factory=list)
        blob: bytes
        more: Any = field(default=3)
        scratch: Temp[str]

    absent: Any = {"type": "null"}  # as session services have it, which remove no key
    assert Schema.json_schema() == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Schema",
        "description": "What is kept.",
        "type": "object",
        "required": ["intent", "blob"],
        "properties": {
            "intent": {"type": "string", "minLength": 1, "description": "What is wanted"},
            "when": {"anyOf": [{"type": "string", "format": "date"}, absent]},
            "user:tier": {"anyOf": [{"type": "string"}, absent], "default": "free"},
            "homes": {
                "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Home"}}, absent],
                "default": [],
            },
            "blob": {"type": "string", "format": "base64url"},
            "more": {"default": 3},
        },
        "$defs": {
            "Home": {
                "title": "Home",
                "type": "object",
                "required": ["street"],
                "properties": {"street": {"type": "string", "title": "Street"}},
            }
        },
    }


def test_importing_it_loads_neither_adk_nor_pydantic() -> None:
    program = """
import sys
from adk_fluent.state import StateSchema, UserScoped, field
class Schema(StateSchema):
    intent: str
    tier: UserScoped[str | None]
    sure: float = field(default=0, ge=0, le=1)
    note: str | None = field(default="", max_length=9)
    tags: list[str] = field(default_factory=list)
    more: dict[str, int] = {}
    seen: set[int] | None = set()
bound = Schema.bind({})
bound.intent, bound.tier = "x", None
assert (bound.intent, bound.tier) == ("x", None)
print(*sys.modules.keys() & {"google.adk", "google.genai", "pydantic"})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
