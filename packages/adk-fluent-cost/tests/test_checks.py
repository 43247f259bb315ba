"""What `check` finds about money: each kind where it is wrong, and nothing where it is right."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from adk_fluent import Agent, map_over
from adk_fluent.contracts import check_cost_contracts
from adk_fluent.cost import Budget, cost_attribution, price_limit
from adk_fluent.ir import (
    AgentNode,
    AppNode,
    Contract,
    ExecutionConfig,
    LoopNode,
    MapOverNode,
    MiddlewareNode,
    MiddlewareRef,
    ModelCandidate,
    Ref,
    SequenceNode,
    StateFieldRef,
    TelemetryConfig,
)

PRICES = {name: {"input": n, "output": 10 * n} for name, n in (("m", 1), ("n", 10), ("o", 100))}
TIERS = {"m": 1, "n": 2, "o": 3}


def found(pipeline: Any) -> list[tuple[str, str]]:
    return [(each.code, each.severity.name.lower()) for each in check_cost_contracts(pipeline)]


def says(pipeline: Any) -> str:
    (only,) = check_cost_contracts(pipeline)
    return only.message


def budget(limit: float = 5, **options: Any) -> Budget:
    return Budget(limit, prices=PRICES, **options)


def no(ctx: Any, request: Any) -> bool:
    return False


def house() -> Agent:
    return Agent("a", "house-9")


def pro() -> Agent:
    return Agent("a", "gemini-2.5-pro")


def mapped() -> Any:
    return map_over("items", Agent("a", "m"))


def chooses(*candidates: Any, **options: Any) -> Agent:
    made = [
        ModelCandidate(each, quality_tier=TIERS[each], prices=PRICES[each])
        if isinstance(each, str)
        else each
        for each in candidates
    ]
    if options.get("strategy") == "budget_bounded":
        options.setdefault("fallback_model", "gemini-2.5-flash-lite")
    return Agent("a").model_select(candidates=made, **options)


def only_if(model: str, **more: Any) -> ModelCandidate:
    return ModelCandidate(
        model, quality_tier=TIERS[model], prices=PRICES[model], condition=no, **more
    )


# --- prices --------------------------------------------------------------------------------------


def test_a_model_under_a_budget_has_a_price() -> None:
    assert found(house()) == []
    assert found(house().middleware(budget())) == [("CST002", "error")]
    (finding,) = check_cost_contracts(house().middleware(budget()))
    assert "held to budget of $5.00, and nobody knows the price of 'house-9': its calls fail" in (
        finding.message
    )
    row = 'prices={"house-9": {"input": ..., "output": ...}}'
    assert f'Budget({row}), USD per million tokens; or on_unknown="allow"' == finding.help
    assert found(Agent("a", "m").middleware(budget())) == []
    assert found(house().middleware(budget(on_unknown="allow"))) == []
    assert found(house().mock("M").middleware(budget())) == []
    named = MiddlewareRef("price_limit", {"max_price": 0.5})
    assert found(house().middleware(named)) == [("CST002", "error")]


def test_what_is_counted_has_a_price() -> None:
    assert found(house().middleware(cost_attribution())) == [("CST002", "warning")]
    assert "is in no total" in says(house().middleware(cost_attribution()))
    assert found(Agent("a", "m").middleware(cost_attribution(prices=PRICES))) == []
    config = ExecutionConfig(telemetry=TelemetryConfig(enable_cost_metrics=True))
    assert found(AppNode("app", root=house().to_ir(), execution=config)) == [("CST002", "warning")]


def test_a_delegate_has_the_model_above_it() -> None:
    helper = Agent("b").description("Helps.")
    assert found(Agent("a", "m").delegates(helper).middleware(budget())) == []
    two = found(Agent("a", "house-9").delegates(helper).middleware(budget()))
    assert two == [("CST002", "error")] * 2


def test_a_candidate_without_a_price_may_never_be_asked() -> None:
    def both() -> Agent:
        return chooses(only_if("m"), ModelCandidate("house-9", quality_tier=2))

    assert found(both().middleware(budget())) == [("CST002", "warning")]
    own = {"house-9": {"input": 1, "output": 1}}
    assert found(both().middleware(Budget(5, prices=own))) == []


# --- budgets -------------------------------------------------------------------------------------


def test_who_goes_by_a_budget_has_one() -> None:
    def bounded() -> Agent:
        return chooses("m", strategy="budget_bounded")

    assert found(bounded()) == [("CST003", "warning")]
    assert found(bounded().middleware(budget())) == []
    assert found((bounded() >> Agent("b", "m")).middleware(budget())) == []
    mirrored = chooses("m", budget_key="left")
    assert "shows what is left of a budget as 'left'" in says(mirrored)
    assert found(chooses("m")) == []


def test_a_budget_has_room_for_a_call() -> None:
    assert found(pro().middleware(price_limit(0.01))) == [("CST007", "warning")]
    assert "for 4096 answer tokens of 'gemini-2.5-pro', $0.040961 is reserved" in (
        says(pro().middleware(price_limit(0.01)))
    )
    assert found(pro().middleware(price_limit(0.05))) == []
    assert found(pro().middleware(price_limit(0.01, reserve_output=500))) == []
    assert found(pro().middleware(price_limit(0.01, on_exceed="warn"))) == []


def test_a_budget_around_a_part_holds_there_alone() -> None:
    parts = pro().to_ir(), Agent("b", "house-9").to_ir()
    stack = (Ref(price_limit(0.01), "limit"),)
    inner = MiddlewareNode("limited", body=parts[0], stack=stack)
    assert found(SequenceNode("all", steps=(inner, parts[1]))) == [("CST007", "warning")]
    outer = MiddlewareNode("limited", body=SequenceNode("all", steps=parts), stack=stack)
    assert found(outer) == [("CST007", "warning"), ("CST002", "error")]


def test_a_call_may_set_its_own_limit() -> None:
    from google.genai.types import GenerateContentConfig

    short = GenerateContentConfig(max_output_tokens=100)
    assert found(pro().generate_content_config(short).middleware(price_limit(0.01))) == []


def test_a_fallback_is_cheaper_than_what_it_stands_in_for() -> None:
    def falls_back(to: str, limit: float = 5) -> Any:
        options = {"on_exceed": "fallback", "fallback_model": to}
        return Agent("a", "n").middleware(budget(limit, **options))

    assert found(falls_back("m")) == []
    assert "it is no cheaper than 'n', which it stands in for" in says(falls_back("o"))
    assert "of no use" in says(falls_back("n"))
    # 4096 answer tokens are 0.04 USD of m and 0.4 of n
    small = check_cost_contracts(falls_back("m", 0.03))
    assert [each.code for each in small] == ["CST007", "CST006"]
    assert "for 4096 answer tokens of that, $0.040961 is reserved" in small[1].message
    assert found(falls_back("m", 0.1)) == [("CST007", "warning")]


def test_a_selectors_fallback_is_cheaper_too() -> None:
    def bounded(fallback: str, *candidates: Any) -> Any:
        made = chooses(*candidates, strategy="budget_bounded", fallback_model=fallback)
        return made.middleware(budget())

    assert found(bounded("gemini-2.5-flash-lite", "m")) == []
    assert "is no cheaper than any of its candidates" in says(bounded("gemini-2.5-pro", "m"))
    # the dearer candidate is never asked: it does not excuse the fallback
    codes = [code for code, _ in found(bounded("gemini-2.5-pro", "m", "o"))]
    assert codes == ["CST005", "CST006"]
    assert found(bounded("gemini-2.5-pro", "o", only_if("m"))) == []
    other = chooses("m", fallback_model="gemini-2.5-pro")  # for calls that no candidate takes
    assert found(other.middleware(budget())) == []


# --- what nothing bounds -------------------------------------------------------------------------


def test_what_repeats_without_end_needs_a_budget() -> None:
    assert found(mapped()) == []
    assert found(mapped().middleware(cost_attribution(prices=PRICES))) == [("CST004", "info")]
    assert found(mapped().middleware(budget(on_exceed="warn"))) == [("CST004", "warning")]
    assert found(mapped().middleware(budget())) == []
    inside = MiddlewareNode("own", body=Agent("a", "m").to_ir(), stack=(Ref(budget(), "own"),))
    assert found(MapOverNode("each", "items", body=inside)) == []
    free = map_over("items", Agent("a").mock("M"))
    assert found(free.middleware(cost_attribution())) == []
    endless = LoopNode("again", body=chooses("m").to_ir(), max_iterations=0)
    assert "it calls models without end" in says(endless)
    assert found(LoopNode("again", body=chooses("m").to_ir(), max_iterations=3)) == []


# --- candidates ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("candidates", "strategy", "never"),
    [
        (("m", "n"), "cost_optimized", ["n"]),
        (("n", "m"), "budget_bounded", ["n"]),
        (("m", "n", "o"), "quality_optimized", ["m", "n"]),
        (("m", "n", "o"), "adaptive", []),
        ((only_if("m"), "n", "o"), "cost_optimized", ["o"]),
        (("m", only_if("o")), "quality_optimized", []),
        (("m", only_if("o")), "cost_optimized", ["o"]),
        ((ModelCandidate("m", prices=PRICES["m"], max_tokens=9), "n"), "cost_optimized", []),
        (("m", ModelCandidate("house-9", quality_tier=1)), "cost_optimized", ["house-9"]),
        # for an answer of some length
        (
            (
                ModelCandidate("x", prices={"input": 1, "output": 2}),
                ModelCandidate("y", prices={"input": 2, "output": 1}),
            ),
            "cost_optimized",
            [],
        ),
    ],
)
def test_candidates_that_are_never_asked(candidates: Any, strategy: Any, never: list[str]) -> None:
    judge = {"judge": bool} if strategy == "adaptive" else {}
    made = chooses(*candidates, strategy=strategy, **judge)
    told = [each for each in check_cost_contracts(made) if each.code == "CST005"]
    assert [each.message.split("'")[1] for each in told] == never


def test_adaptive_ones_do_not_go_down() -> None:
    better = ModelCandidate("x", quality_tier=5, prices={"input": 0.5, "output": 5})
    made = chooses(better, "m", strategy="adaptive", judge=bool)
    assert "is better, for no more" in says(made)


# --- state ---------------------------------------------------------------------------------------


class Desk:
    """What checks need of a state schema."""

    __state_fields__: ClassVar = {"left": StateFieldRef("left", float)}


@pytest.mark.parametrize(
    ("key", "rules", "codes"),
    [
        ("money", {}, ["CST008"]),
        ("left", {}, []),
        (None, {}, []),
        ("money", {"extra": "allow"}, []),
        ("money", {"enforce": "warn"}, []),
    ],
)
def test_a_schema_has_the_key_that_a_budget_is_copied_to(key: Any, rules: Any, codes: Any) -> None:
    inside = AgentNode("a", model="m", contract=Contract(schema=Ref(Desk), **rules))
    held = MiddlewareNode("held", body=inside, stack=(Ref(budget(budget_key=key)),))
    assert [code for code, _ in found(held)] == codes
