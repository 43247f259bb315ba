"""Where a pipeline is cut, and where it cannot be."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import pytest
from pydantic import Field, create_model

from adk_fluent import Agent, FanOut, Route, race
from adk_fluent.builders import Pipeline, map_over
from adk_fluent.distributed import (
    BoundaryError,
    ScalingConfig,
    SegmentPlan,
    TransportConfig,
    idempotency_key,
    split,
)
from adk_fluent.distributed._segments import check_hosting
from adk_fluent.errors import UsageError
from adk_fluent.ir import SequenceNode, StateFieldRef


def heavy() -> Agent:
    return Agent("heavy").execution_boundary()


@pytest.mark.parametrize(
    ("pipeline", "names"),
    [
        (Agent("a") >> Agent("b"), ("pipeline",)),
        (Agent("a") >> heavy() >> Agent("c"), ("pipeline", "heavy")),
        (heavy(), ("heavy",)),
        (Pipeline("desk", Agent("a"), heavy()).execution_boundary(), ("desk", "heavy")),
        (Agent("a") >> Route("k").eq(1, heavy()).otherwise(Agent("z")), ("pipeline", "heavy")),
        (Agent("a") >> (heavy() >> Agent("b")) * 3, ("pipeline", "heavy")),
        (FanOut(heavy(), Agent("light").execution_boundary()), ("parallel", "heavy", "light")),
        (Agent("a") >> (heavy() // Agent("b")), ("pipeline", "heavy")),
        (Agent("a") >> map_over("items", heavy()), ("pipeline", "heavy")),
        (Agent("a") >> race(Agent("b"), Agent("c")).named("fast").execution_boundary(), None),
    ],
)
def test_a_segment_has_the_name_of_the_step_it_bounds(
    pipeline: Any, names: tuple[str, ...] | None
) -> None:
    plan = split(pipeline)
    assert plan.names == (names or ("pipeline", "fast"))
    assert plan.name == plan.names[0]
    assert split(pipeline.to_ir()).fingerprint == plan.fingerprint


@pytest.mark.parametrize(
    ("pipeline", "entered"),
    [
        (
            Pipeline("desk", heavy(), Pipeline("in", Agent("b").execution_boundary())),
            ["heavy", "b"],
        ),
        (heavy(), ["heavy"]),
        (Agent("a") >> heavy(), ["pipeline", "heavy"]),
        (Pipeline("desk", heavy() * 2), ["desk", "heavy"]),
        (SequenceNode(name="desk"), ["desk"]),
    ],
)
def test_what_no_step_stands_in_is_never_entered(pipeline: Any, entered: list[str]) -> None:
    assert [*split(pipeline).entered] == entered


def test_the_fingerprint_is_that_of_the_steps() -> None:
    one = split(Agent("a").instruct("Be brief.") >> heavy())
    assert one.fingerprint == split(Agent("a").instruct("Be long.") >> heavy()).fingerprint
    assert one.fingerprint != split(Agent("b") >> heavy()).fingerprint


def typed(kind: Any) -> str:
    """The fingerprint of a pipeline whose state holds such a value."""

    class Rules:
        __state_fields__: ClassVar = {"n": StateFieldRef("n", kind)}

        @classmethod
        def __state_encode__(cls, delta: Any, where: str) -> Any:
            return delta

    return split(Agent("a").state(Rules) >> heavy()).fingerprint


def test_schemas_are_part_of_the_fingerprint() -> None:
    one = create_model("One", title=(int, ...))
    same = create_model("Two", title=(int, Field(description="How often.")))
    other = create_model("One", title=(str, ...))
    more = create_model("One", title=(int, ...), body=(str, ""))
    assert typed(one) == typed(same)
    assert len({typed(kind) for kind in (int, str, one, other, more, list[one], object())}) == 7
    said = [
        split(Agent("a").output_schema(kind) >> heavy()).fingerprint for kind in (one, same, other)
    ]
    assert said[0] == said[1] != said[2]
    assert typed(int) != split(Agent("a") >> heavy()).fingerprint


@pytest.mark.parametrize(
    ("pipeline", "says"),
    [
        (race(heavy(), Agent("b")), "'heavy' stands inside a race"),
        (Agent("a").sub_agents(heavy()) >> Agent("b"), "'heavy' stands below an agent, 'a'"),
        (
            heavy() >> Pipeline("heavy", Agent("b")).execution_boundary(),
            "two steps named 'heavy' would be one segment",
        ),
        (object(), "a distributed run takes a pipeline"),
    ],
)
def test_a_boundary_where_a_run_cannot_be_cut(pipeline: Any, says: str) -> None:
    with pytest.raises(BoundaryError, match=re.escape(says)) as raised:
        split(pipeline)
    assert raised.value.code == "ADKF850"
    assert raised.value.help


def test_one_step_in_two_places_is_one_segment() -> None:
    step = heavy()
    assert split(step >> Agent("b") >> step).names == ("pipeline", "heavy")


def test_an_unknown_segment() -> None:
    plan = split(Agent("a") >> heavy())
    assert plan["heavy"].boundary is not None
    with pytest.raises(BoundaryError, match="pipeline has no segment 'light'"):
        _ = plan["light"]


@pytest.mark.parametrize(
    ("boundary", "found"),
    [
        ({"isolation": "process"}, "isolation='process'"),
        ({"isolation": "container"}, "isolation='container'"),
        ({"transport": TransportConfig("queue", "pubsub://topics/heavy")}, "pubsub://topics/heavy"),
        ({"transport": TransportConfig("queue", "mqtt://u:pa55@h")}, "mqtt://h"),
        ({"transport": TransportConfig("queue", "sqlite:///other.db")}, "other.db"),
        ({"transport": TransportConfig("queue", timeout_seconds=3.0)}, "timeout_seconds="),
        ({"scaling": ScalingConfig(min_instances=1)}, "min_instances="),
    ],
)
def test_what_no_engine_of_this_version_hosts(boundary: dict[str, Any], found: str) -> None:
    plan = split(Agent("a") >> Agent("heavy").execution_boundary(**boundary))
    with pytest.raises(BoundaryError, match="cannot host segment 'heavy'") as raised:
        check_hosting(plan["heavy"], url="")
    assert found in (raised.value.found or "")
    assert "it needs" in (raised.value.help or "")


@pytest.mark.parametrize(
    "transport",
    [None, TransportConfig(), TransportConfig("queue"), TransportConfig("queue", "sqlite:///r.db")],
)
def test_what_an_engine_hosts(transport: TransportConfig | None) -> None:
    scaling = ScalingConfig(max_instances=2, concurrency=3)
    step = Agent("heavy").execution_boundary(transport=transport, scaling=scaling)
    plan = split(Agent("a") >> step)
    assert isinstance(plan, SegmentPlan)
    check_hosting(plan["heavy"], url="sqlite:///r.db")


def test_an_idempotency_key_outside_of_a_run() -> None:
    with pytest.raises(UsageError, match="outside of a distributed run"):
        idempotency_key()
