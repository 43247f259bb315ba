"""`record`: the behaviour of a frozen, slotted dataclass."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import typing
from collections import deque
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from adk_fluent import ir
from adk_fluent.ir._record import field, record, schema_of
from adk_fluent.ir._types import field_tests


@record
class Point:
    """A point.

    Attributes:
        x: Across.
        y: Up.
        label: Its name; not compared.
        tags: Not hashed.
        scale: By keyword.
    """

    origin: ClassVar[str] = "here"

    x: int
    y: int = 0
    label: str = field(default="", compare=False)
    tags: Any = field(default=(), hash=False)
    scale: int = field(default=1, kw_only=True)

    def norm(self) -> int:
        return abs(self.x) + abs(self.y)


@record
class Checked:
    """One that looks at its values.

    Attributes:
        x: Positive.
    """

    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is negative")


@record
class Special:
    """One that compares in its own way.

    Attributes:
        x: Not compared.
    """

    x: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Special)

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "special"


@record
class Lists:
    """One that holds several things.

    Attributes:
        ordered: Given as any sequence.
        exact: The same, said of what is held.
        several: Given as any collection.
        pair: Two of a kind.
        maybe: None is no sequence.
    """

    ordered: Sequence[Any] = ()
    exact: tuple[Any, ...] = ()
    several: Collection[Any] = frozenset()
    pair: frozenset[Any] = field(default=frozenset(), kw_only=True)
    maybe: tuple[Any, ...] | None = None


def test_arguments_are_positional_in_order_then_by_keyword() -> None:
    point = Point(1, 2, "a", (3,), scale=4)
    assert (point.x, point.y, point.label, point.tags, point.scale) == (1, 2, "a", (3,), 4)
    assert (Point(1).y, Point(x=1).scale, Point.origin) == (0, 1, "here")
    assert point.norm() == 3


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, r"Point.__init__\(\) missing 1 required positional argument: 'x'"),
        ((1, 2, "a", (), 5), {}, "positional arguments"),
        ((1,), {"z": 1}, "unexpected keyword argument 'z'"),
    ],
)
def test_wrong_arguments_are_a_type_error(
    args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        Point(*args, **kwargs)


def test_signature_before_and_after_the_first_instance() -> None:
    @record
    class Fresh:
        """Not made yet.

        Attributes:
            x: Something.
        """

        x: int = 3

    assert str(inspect.signature(Fresh)) == "(x: 'int' = 3) -> None"
    assert Fresh().x == 3
    assert str(inspect.signature(Fresh)) == "(x: 'int' = 3) -> None"
    assert Fresh.__init__.__qualname__ == f"{Fresh.__qualname__}.__init__"


@pytest.mark.parametrize("given", [[1, 2], (1, 2), deque([1, 2]), range(1, 3)], ids=repr)
def test_sequences_become_tuples(given: Sequence[int]) -> None:
    made = Lists(given, tuple(given), maybe=tuple(given))
    assert (type(made.ordered), made.ordered) == (tuple, (1, 2))
    assert made == Lists(exact=cast("Any", given), ordered=(1, 2), maybe=cast("Any", given))
    assert hash(made) == hash(Lists((1, 2), (1, 2), maybe=(1, 2)))


@pytest.mark.parametrize("given", [[1, 2, 1], (2, 1), {1, 2}, {1: 0, 2: 0}.keys()], ids=repr)
def test_collections_become_frozensets(given: Collection[int]) -> None:
    made = Lists(several=given, pair=cast("Any", given))
    assert type(made.several) is type(made.pair) is frozenset
    assert made.several == made.pair == {1, 2}
    assert hash(made) == hash(Lists(several={2, 1}, pair=frozenset({1, 2})))


def test_what_was_given_may_change_afterwards() -> None:
    given = [1]
    made = Lists(given)
    given.append(2)
    assert made.ordered == (1,)
    assert dataclasses.replace(made, ordered=given).ordered == (1, 2)


@pytest.mark.parametrize("given", ["ab", b"ab", {"a": 1}, 3, None], ids=repr)
def test_text_and_mappings_are_no_sequences_of_their_items(given: Any) -> None:
    """They are held as they are, so that `ir.verify` says what is wrong with them."""
    assert (Lists(given).ordered, Lists(several=given).several) == (given, given)


def test_nodes_hold_what_they_are_given() -> None:
    """Whatever makes nodes, builders or passes, makes tuples."""
    steps: Any = [ir.AgentNode("a")]
    assert ir.SequenceNode("s", steps).steps is steps


@pytest.mark.parametrize(
    "made",
    [
        ir.TelemetryConfig(custom_exporters=[object()]),
        ir.ExecutionConfig(middlewares=[object()]),
        ir.AuthConfig("oauth2", scopes=["read", "write"]),
        ir.ContentSpec({ir.Modality.TEXT}, [ir.Modality.TEXT, ir.Modality.PDF]),
        ir.Effects(reads=cast("Any", [ir.StateFieldRef("k")])),
    ],
    ids=lambda made: type(made).__name__,
)
def test_values_of_the_ir_may_be_written_with_lists_and_sets(made: Any) -> None:
    assert hash(made) == hash(copy.copy(made))
    for name, fits in field_tests(made.__class__).items():
        assert fits(getattr(made, name)), name


def test_it_is_frozen_and_slotted() -> None:
    point: Any = Point(1)
    for name in ("x", "new"):
        with pytest.raises(dataclasses.FrozenInstanceError, match=name):
            setattr(point, name, 2)
        with pytest.raises(dataclasses.FrozenInstanceError, match=name):
            delattr(point, name)
    assert not hasattr(point, "__dict__")
    assert point.x == 1


def test_equality_and_hash_take_the_fields_that_say_so() -> None:
    assert Point(1, label="a") == Point(1, label="b")
    assert hash(Point(1, label="a", tags=[1])) == hash(Point(1, tags=[2]))
    assert Point(1) != Point(2)
    assert Point(1, tags=[1]) != Point(1)
    assert Point(1) != (1, 0)
    assert len({Point(1), Point(1), Point(2)}) == 2


def test_a_subclass_is_another_type() -> None:
    class Sub(Point):
        pass

    assert Sub(1) != Point(1)
    assert Sub(1) == Sub(1)
    assert "Sub" in repr(Sub(1))


def test_repr_leaves_defaults_out() -> None:
    assert repr(Point(1, 2, "shown?", scale=3)) == "Point(x=1, y=2, scale=3)"


def test_what_a_class_defines_itself_is_kept() -> None:
    assert Special(1) == Special(2)
    assert hash(Special(1)) == 7
    assert repr(Special(1)) == "special"


def test_post_init_runs() -> None:
    assert Checked(1).x == 1
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)


def test_records_extend_records() -> None:
    @record
    class Solid(Point):
        """A point in space.

        Attributes:
            z: Away.
        """

        z: int = 5

    assert list(schema_of(Solid).fields) == ["x", "y", "label", "tags", "scale", "z"]
    assert Solid(1, z=2) == Solid(1, 0, "other", (), 2)
    assert Solid.__match_args__ == ("x", "y", "label", "tags", "z")


def test_a_required_field_after_an_optional_one_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"field 'b' has no default but follows 'a'"):

        @record
        class _Wrong:
            a: int = 1
            b: int  # pyright: ignore[reportGeneralTypeIssues]


def test_dataclasses_functions_work() -> None:
    point = Point(1, tags=(Checked(2),))
    assert dataclasses.is_dataclass(Point)
    assert dataclasses.is_dataclass(point)
    by_name = {f.name: f for f in dataclasses.fields(Point)}
    assert list(by_name) == ["x", "y", "label", "tags", "scale"]
    assert by_name["x"].default is dataclasses.MISSING
    assert by_name["y"].default == 0
    assert not by_name["label"].compare
    assert by_name["tags"].hash is False
    assert by_name["scale"].kw_only
    assert dataclasses.replace(point, y=9) == Point(1, 9, tags=(Checked(2),))
    assert dataclasses.asdict(point)["tags"] == ({"x": 2},)
    assert dataclasses.astuple(Point(1)) == (1, 0, "", (), 1)


def test_child_fields_are_marked_for_dataclasses() -> None:
    marks = {f.name: dict(f.metadata) for f in dataclasses.fields(ir.LoopNode)}
    assert marks["body"] == {"child": True}
    assert marks["until"] == {}


def test_an_ordinary_dataclass_may_extend_a_record() -> None:
    @dataclasses.dataclass(frozen=True)
    class Extended(Point):
        more: int = 0

    assert Extended(1, more=2).more == 2
    assert dataclasses.fields(Extended)[-1].name == "more"


@pytest.mark.skipif(sys.version_info < (3, 13), reason="copy.replace came with Python 3.13")
def test_copy_replace() -> None:
    replace = getattr(copy, "replace")  # noqa: B009  # pyright checks against 3.11
    assert replace(Point(1), y=2) == Point(1, 2)


def test_pattern_matching() -> None:
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol: int) -> None:
    point = Point(1, label="kept", scale=3)
    again = pickle.loads(pickle.dumps(point, protocol))
    assert again == point
    assert again.label == "kept"


def test_copies_are_the_object_itself() -> None:
    point = Point(1, tags=[1])
    assert copy.copy(point) is point
    assert copy.deepcopy(point) is point


@pytest.mark.parametrize("cls", [*ir.NODES, *ir.VALUES], ids=lambda cls: cls.__name__)
def test_annotations_of_the_ir_resolve(cls: type) -> None:
    hints = typing.get_type_hints(cls)
    assert set(schema_of(cls).fields) <= set(hints)


ALONE = """
import sys
from types import ModuleType

sys.path.insert(0, {source!r})
root = sys.modules["adk_fluent"] = ModuleType("adk_fluent")
root.__path__, root._layers = [{source!r} + "/adk_fluent"], True
import typing
before = set(sys.modules)
import adk_fluent.ir
print(*(set(sys.modules) - before))
"""


def test_importing_the_ir_alone_imports_nothing_heavy() -> None:
    """`adk_fluent` itself stays out of it: what that imports is another matter."""
    source = str(Path(ir.__file__).parents[2])
    program = [sys.executable, "-S", "-c", ALONE.format(source=source)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if not name.startswith("adk_fluent")}
    heavy = {
        "dataclasses",
        "inspect",
        "ast",
        "tokenize",
        "hashlib",
        "pathlib",
        "json",
        "importlib.util",
    }
    assert not heavy & loaded
