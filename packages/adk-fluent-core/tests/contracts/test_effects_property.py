"""Random functions do nothing to state that their derived effects do not say."""

from __future__ import annotations

import importlib.util
import itertools
from typing import TYPE_CHECKING, Any, get_args, get_origin

import pytest
from effects_sources import HEADER, KEYS, Context, Noted, NotedState, NotedView, Source
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from adk_fluent.contracts._effects import Derived, effects_of_function, effects_of_tool
from adk_fluent.ir import UNSET, Ref

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random
    from types import ModuleType

_numbers = itertools.count()
#: More examples with ``--full``.
FULL = settings.get_current_profile_name() == "full"
RANDOMS = st.randoms(use_true_random=False)
VALUES = st.sampled_from([None, 0, 1, "x", "", True, [1]])
STATES = st.dictionaries(st.sampled_from(KEYS), VALUES)
RUNS = st.lists(st.tuples(STATES, st.lists(st.booleans(), max_size=8)), min_size=4, max_size=8)
QUICKLY = settings(
    max_examples=150 if FULL else 20,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def load(source: str, folder: Path) -> ModuleType:
    """A module made of a file, since functions without a file have no source."""
    file = folder / f"made_{next(_numbers)}.py"
    file.write_text(HEADER + "\n\n" + source, "utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_reads(derived: Derived, noted: Noted, error: Exception | None) -> None:
    """Whatever was looked up is known, and whatever was missed is known to be needed."""
    known = {ref.key for ref in derived.reads}
    assert derived.reads_all or noted.asked <= known
    assert derived.reads_all or not noted.all
    if id(error) in noted.missed:
        needed = {ref.key for ref in derived.reads if ref.default is UNSET}
        assert noted.missed[id(error)] in needed


def is_of(value: Any, kind: Any) -> bool:
    """Whether a value is of just that type, and so are all parts of it."""
    whole, inside = get_origin(kind) or kind, get_args(kind)
    if type(value) is not whole:
        return False
    if whole is tuple:
        return not inside or all(map(is_of, value, inside))
    groups = (value, value.values()) if whole is dict else (value,)
    return all(is_of(each, of) for group, of in zip(groups, inside, strict=False) for each in group)


def check_writes(derived: Derived, delta: dict[str, Any]) -> None:
    """What is written always is, what is written sometimes is known, and so is what is removed."""
    writes = {ref.key: ref for ref in (*derived.writes, *derived.may_write)}
    removes = {*derived.removes, *derived.may_remove, *derived.assumed}
    for key, value in delta.items():
        assert key in (removes if value is None else writes)
        kind = None if value is None else writes[key].type
        assert kind is None or is_of(value, kind)
    for ref in derived.writes:
        assert delta[ref.key] is not None or ref.key in derived.assumed
    for key in derived.removes:
        assert delta[key] is None


def check_tool_writes(derived: Derived, before: dict[str, Any], state: NotedState) -> None:
    """The same of a tool, which may also leave alone what is there already."""
    sure = {ref.key for ref in derived.writes}
    after = {**before, **state.delta}
    check_writes(derived, {key: after[key] for key in {*state.delta, *sure}})


@QUICKLY
@given(random=RANDOMS, runs=RUNS)
def test_function_steps(
    random: Random, runs: list[tuple[dict[str, Any], list[bool]]], tmp_path: Path
) -> None:
    source = Source(random, tool=False).text()
    module = load(source, tmp_path)
    derived = effects_of_function(Ref.to(module.made))
    assume(derived.opaque is None)
    for state, tosses in runs:
        noted, error, found = Noted(), None, None
        module.TOSSES[:] = tosses
        try:
            found = module.made(NotedView(state, noted))
        except Exception as raised:  # noqa: BLE001  # random code fails in every way
            error = raised
        check_reads(derived, noted, error)
        if error is None:
            check_writes(derived, found or {})


@QUICKLY
@given(random=RANDOMS, runs=RUNS)
def test_tools(
    random: Random, runs: list[tuple[dict[str, Any], list[bool]]], tmp_path: Path
) -> None:
    source = Source(random, tool=True).text()
    module = load(source, tmp_path)
    derived = effects_of_tool(Ref.to(module.made))
    assume(derived.opaque is None)
    for value, tosses in runs:
        noted, error = Noted(), None
        state = NotedState(dict(value), noted)
        module.TOSSES[:] = tosses
        try:
            module.made(Context(state))
        except Exception as raised:  # noqa: BLE001  # random code fails in every way
            error = raised
        check_reads(derived, noted, error)
        if error is None:
            check_tool_writes(derived, value, state)


@pytest.mark.parametrize("tool", [False, True])
def test_most_random_functions_are_understood(tool: bool, tmp_path: Path) -> None:
    from random import Random

    look = effects_of_tool if tool else effects_of_function
    opaque: list[str] = []
    functions = 200 if FULL else 50
    for seed in range(functions):
        made = load(Source(Random(seed), tool=tool).text(), tmp_path).made
        found = look(Ref.to(made)).opaque
        opaque += [] if found is None else [found]
    assert len(opaque) < functions / 5, opaque
