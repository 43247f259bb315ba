"""State keys and effects."""

from __future__ import annotations

import copy
import pickle

import pytest

from adk_fluent import ir


@pytest.mark.parametrize(
    ("key", "scope", "name"),
    [
        ("intent", "session", "intent"),
        ("user:tier", "user", "tier"),
        ("app:rate", "app", "rate"),
        ("temp:x", "temp", "x"),
        ("temp:a:b", "temp", "a:b"),
        ("other:x", "session", "other:x"),
        ("session:x", "session", "session:x"),
    ],
)
def test_the_prefix_decides_the_scope(key: str, scope: str, name: str) -> None:
    ref = ir.StateFieldRef(key)
    assert (ref.scope, ref.name, str(ref)) == (scope, name, key)


def test_a_scope_that_the_prefix_contradicts_is_refused() -> None:
    with pytest.raises(ValueError, match="state key 'x' has scope 'session', not 'user'"):
        ir.StateFieldRef("x", scope="user")
    assert ir.StateFieldRef("user:x", scope="user").scope == "user"


def test_type_and_default_take_part_in_equality() -> None:
    assert ir.StateFieldRef("x", int) != ir.StateFieldRef("x")
    assert ir.StateFieldRef("x", default=None) != ir.StateFieldRef("x")
    assert ir.StateFieldRef("x", default=[1]) == ir.StateFieldRef("x", default=[1])
    assert hash(ir.StateFieldRef("x", default=[1])) == hash(ir.StateFieldRef("x"))


def test_unset_is_one_object_wherever_it_goes() -> None:
    assert not ir.UNSET
    assert repr(ir.UNSET) == "UNSET"
    assert pickle.loads(pickle.dumps(ir.UNSET)) is ir.UNSET
    assert copy.deepcopy(ir.UNSET) is ir.UNSET


def test_effects_are_opaque_unless_stated() -> None:
    assert ir.Effects() == ir.OPAQUE
    assert ir.OPAQUE.opaque
