"""What a suite has to reach: every field says what it takes, and refuses the rest."""

from __future__ import annotations

import math
from typing import Any

import pytest

from adk_fluent.eval import EvalError, Gate


def test_by_default_everything_passes_and_nothing_gets_worse() -> None:
    gate = Gate()
    assert (gate.min_pass_rate, gate.max_regressions, gate.significant_only) == (1.0, 0, False)
    assert (gate.min_tag_pass_rate, gate.min_metric, gate.max_cost_usd) == ({}, {}, None)
    assert gate == Gate()


@pytest.mark.parametrize(
    "fields",
    [
        {"min_pass_rate": 0},
        {"min_pass_rate": 0.95, "min_tag_pass_rate": {"billing": 1}},
        {"min_metric": {"response_match_score": 0.8, "token_usage_v1": -1, "score": 5}},
        {"max_regressions": None},
        {"max_regressions": 3, "significant_only": True, "allow_flaky": False},
        {"max_cost_usd": 0},
        {"max_cost_usd": 1.5},
    ],
)
def test_what_a_gate_takes(fields: dict[str, Any]) -> None:
    gate = Gate(**fields)
    assert {name: getattr(gate, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        *(
            ({"min_pass_rate": value}, "min_pass_rate= is no share from 0 to 1")
            for value in (-0.1, 1.1, 95, math.nan, math.inf, True, "0.9", None)
        ),
        *(
            ({"min_tag_pass_rate": {"a": 1.0, "b": value}}, r"min_tag_pass_rate\['b'\]= is no")
            for value in (2, math.nan, None, True)
        ),
        *(
            ({"min_tag_pass_rate": value}, "min_tag_pass_rate= is no mapping of tags to shares")
            for value in (0.9, None, ["a"], "a")
        ),
        *(
            ({"min_metric": {"m": value}}, r"min_metric\['m'\] is no number")
            for value in (math.nan, math.inf, None, "1", True)
        ),
        *(
            ({"min_metric": value}, "min_metric= is no mapping of metrics to scores")
            for value in (0.9, None, [("m", 1)])
        ),
        *(
            ({"max_regressions": value}, "max_regressions= is no whole number from 0 up")
            for value in (-1, 1.5, math.nan, True, "1")
        ),
        *(
            ({"max_cost_usd": value}, "max_cost_usd= is no number from 0 up")
            for value in (-1, math.nan, math.inf, True, "1")
        ),
        ({"significant_only": 1}, "significant_only= is neither True nor False"),
        ({"allow_flaky": "no"}, "allow_flaky= is neither True nor False"),
    ],
)
def test_what_a_gate_refuses(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(EvalError, match=f"^{message}") as caught:
        Gate(**fields)
    assert f"where: {__file__}:" in str(caught.value)
    assert "found: " in str(caught.value)
