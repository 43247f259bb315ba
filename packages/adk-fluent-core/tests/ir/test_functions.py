"""Functions that are data: `ir.function`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import ir
from adk_fluent.errors import IRFormatError
from adk_fluent.ir._functions import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    before = dict(FUNCTIONS)
    yield
    FUNCTIONS.clear()
    FUNCTIONS.update(before)


def greet() -> type[Any]:
    @ir.function
    class Greet:
        """Greets.

        Attributes:
            whom: Whom.
        """

        whom: str
        times: tuple[int, ...] = ()

        def __call__(self, state: Any) -> dict[str, Any]:
            return {"text": f"hello {self.whom}"}

    return Greet


def test_it_is_a_record_that_files_spell_out() -> None:
    kind = greet()
    one, other = kind("you", [1]), kind("you", times=(1,))
    assert one == other
    assert hash(one) == hash(other)
    node = ir.FunctionNode("f", ir.Ref.to(one))
    again: Any = ir.from_json(ir.to_json(node))
    assert again == node
    assert again.fn.value({}) == {"text": "hello you"}
    assert ir.content_hash(again) == ir.content_hash(node)
    del FUNCTIONS["Greet"]
    with pytest.raises(IRFormatError, match="there is no function 'Greet'"):
        ir.from_json('{"format":"adk-fluent-ir","version":1,"nodes":[{"kind":"FunctionNode",'
                     '"data":{"name":"f","fn":{"ref":"f","record":{"$":"Greet"}}}}]}')  # fmt: skip


def test_a_record_that_is_no_function_stays_a_live_object() -> None:
    @ir.record
    class Plain:
        whom: str

        def __call__(self, state: Any) -> None:
            raise AssertionError(state)

    node = ir.FunctionNode("f", ir.Ref.to(Plain("secret")))
    assert "secret" not in ir.to_json(node)
    assert list(ir.registry_of(node)) == ["Plain"]


def test_a_subclass_is_another_class() -> None:
    class Loud(greet()): ...

    node = ir.FunctionNode("f", ir.Ref.to(Loud("you")))
    assert list(ir.registry_of(node)) == ["Loud"]


def test_it_must_be_callable() -> None:
    with pytest.raises(TypeError, match="has no __call__, so it is no function"):

        @ir.function
        class Idle:
            whom: str


def test_a_name_in_files_is_taken_once() -> None:
    with pytest.raises(TypeError, match=r"_state_functions:Assign has that name in files"):

        @ir.function
        class Assign:
            def __call__(self, state: Any) -> None: ...

    assert FUNCTIONS["Assign"].__module__ == "adk_fluent.builders._state_functions"


def test_a_module_may_be_loaded_again() -> None:
    first, second = greet(), greet()
    assert first is not second
    assert FUNCTIONS["Greet"] is second


def test_no_function_has_the_name_of_a_value() -> None:
    taken = {kind.__name__ for kind in (*ir.NODES, *ir.VALUES)}
    assert not taken & FUNCTIONS.keys()
