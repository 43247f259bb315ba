"""Commerce: products found, compared, described and ordered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent import (
    Agent,
    Fallback,
    FanOut,
    Loop,
    Route,
    S,
    gate,
    map_over,
    timeout,
    until,
)
from adk_fluent.ir import StateFieldRef
from adk_fluent.testing import Call, reply

from ._case import Case, data, told

if TYPE_CHECKING:
    from adk_fluent.builders import Builder, State

KEYWORDS = StateFieldRef("keywords", list[str])
SCORE = StateFieldRef("score", float)
SAFE = StateFieldRef("safe", bool)
QUANTITY = StateFieldRef("quantity", int)
TOTAL = StateFieldRef("total", float)
RISK = StateFieldRef("risk", float)
FITS = StateFieldRef("fits", bool)


def search_shop(query: str, tool_context: Any) -> list[str]:
    """Search the shop, and keep what was found."""
    found = [f"{query} A", f"{query} B"]
    tool_context.state["products"] = found
    return found


def shopping() -> Builder:
    """Searches until the shopper is content, then a recommendation."""
    shopper = (
        Agent("shop_searcher")
        .instruct("Search for {wish}. The last search brought: {products?}")
        .tool(search_shop)
        .writes("products", via="tool")
    )
    judge = Agent("wish_judge").instruct("Is one of {products} what {wish} means?").writes(FITS)
    search = (shopper >> judge) * until(lambda s: s["fits"], max=3)
    return (search >> Agent("recommender").instruct("Recommend one of {products}.")).contract(
        inputs=["wish"], outputs=["products"]
    )


def brand_search() -> Builder:
    """Keywords of a brand, what competitors show for each, and a title that is criticised."""
    keywords = Agent("keyword_finder").instruct("Keywords for {brand}.").writes(KEYWORDS)
    competitor = Agent("result_reader").instruct("Read the first results for {keyword}.")
    compare = (
        Agent("comparer")
        .instruct("Compare our titles with {results}. Criticism: {criticism?}")
        .writes("proposal")
    )
    critic = (
        Agent("proposal_critic").instruct("ok, or what to change: {proposal}").writes("criticism")
    )
    agreed = (compare >> critic) * until(lambda s: s["criticism"] == "ok", max=3)
    write = Agent("catalog_writer").instruct("Enter {proposal} into the catalogue.")
    note = Agent("gap_reporter").instruct("Report what is left to do: {proposal} {criticism}")
    return (
        keywords
        >> map_over("keywords", competitor, item_key="keyword", output_key="results", concurrency=3)
        >> agreed
        >> Route("criticism").eq("ok", write).otherwise(note)
    ).contract(inputs=["brand"], outputs=["proposal"])


def priced(state: State) -> dict[str, Any]:
    """The total of an order."""
    return {"total": state["quantity"] * state["price"]}


def order_approval() -> Builder:
    """Small orders go through, large ones wait for a person."""
    reader = (
        Agent("order_reader").instruct("What is ordered, and how many?").writes("product", QUANTITY)
    )
    ask = gate(
        message="Approve this order?",
        payload=lambda s: {"product": s["product"], "total": s["total"]},
        key="approval",
    )
    large = ask >> Agent("large_placer").instruct("Order {product}; approval: {approval}")
    small = Agent("small_placer").instruct("Order {product}.")
    return (reader >> priced >> Route("total").gt(500, large).otherwise(small)).contract(
        inputs=["price"], outputs=["total"]
    )


def supply_chain() -> Builder:
    """Weather, demand and stock at once; a plan that is renegotiated until its risk is low."""
    watch = FanOut(
        "watch",
        Agent("weather_watcher").instruct("The weather that {region} will have.").writes("weather"),
        timeout(
            Agent("demand_forecaster").instruct("Forecast demand in {region}.").writes("demand"), 30
        ),
        Agent("stock_keeper").instruct("What is in stock for {region}?").writes("stock"),
    )
    plan = (
        Agent("supply_planner")
        .instruct("Plan for {weather}, {demand}, {stock}. Objections: {objections?}")
        .writes("plan")
    )
    assess = (
        Agent("risk_assessor").instruct("Assess the risk of {plan}.").writes(RISK, "objections")
    )
    negotiate = Loop("negotiate", plan, assess, until=lambda s: s["risk"] < 0.3, max=3)
    act = Agent("buyer").instruct("Buy by {plan}.")
    warn = Agent("warner").instruct("Warn of {objections} in {plan}.")
    return (watch >> negotiate >> Route("risk").lt(0.3, act).otherwise(warn)).contract(
        inputs=["region"], outputs=["plan"]
    )


def graded(state: State) -> dict[str, Any]:
    """How many of the pictures are good enough."""
    good = [text for text in state["pictures"] if text.startswith("good")]
    return {"usable": good, "usable_count": len(good)}


def product_pictures() -> Builder:
    """A picture for each garment, made again until it fits; then a page of those that do."""
    make = Agent("dresser").instruct("Show {garment} on a model. Mind: {remark?}").writes("picture")
    fit = Agent("fit_judge").instruct("Does {picture} fit {garment}?").writes(FITS, "remark")
    each = Loop("attempts", make, fit, until=lambda s: s["fits"], max=2)
    page = Agent("page_maker").instruct("Make a page of {usable}.")
    none = Agent("regretter").instruct("Say that no picture came out well, of {garments}.")
    return (
        map_over(
            "garments",
            each,
            item_key="garment",
            output_key="pictures",
            result_key="picture",
            concurrency=2,
        )
        >> graded
        >> Route("usable_count").gt(0, page).otherwise(none)
    ).contract(inputs=["garments"], outputs=["usable_count"])


def image_scoring() -> Builder:
    """Pictures made until two judges find that they keep to the policy."""
    prompt = (
        Agent("prompt_maker")
        .instruct("A prompt for a picture of {subject} by the policy {policy}. Was: {prompt?}")
        .writes("prompt")
    )
    paint = Agent("painter").instruct("Paint: {prompt}").writes("picture")
    judges = FanOut(
        "judges",
        Agent("policy_judge").instruct("Does {picture} keep to {policy}?").writes(SAFE),
        Agent("taste_judge").instruct("Score {picture} from 0 to 10.").writes(SCORE),
    )
    rounds = Loop("rounds", prompt, paint, judges).max(3)
    rounds.until(lambda s: s["safe"] and s["score"] > 7)
    keep = Agent("keeper").instruct("File {picture} with its score {score}.")
    drop = Agent("dropper").instruct("Say why no picture of {subject} was kept.")
    return (S.guard("policy") >> rounds >> Route("safe").eq(True, keep).otherwise(drop)).contract(
        inputs=["subject", "policy"], outputs=["score"]
    )


def catalog_lookup() -> Builder:
    """The stock system, else the cached catalogue, else an honest answer."""
    live = timeout(Agent("stock_system").instruct("Stock of {product}?").writes("stock"), 5)
    cached = Agent("catalog_cache").instruct("Last known stock of {product}?").writes("stock")
    lookup = Fallback("lookup", live, cached, S.set(stock="unknown"))
    return (lookup >> Agent("teller").instruct("Tell of the stock: {stock}")).contract(
        inputs=["product"], outputs=["stock"]
    )


CASES: Final = (
    Case(
        name="shopping",
        source="google/adk-samples: python/agents/personalized-shopping/personalized_shopping/"
        "agent.py",
        pipeline=shopping,
        state={"wish": "a red lamp"},
        inputs=("wish",),
        replies={
            "shop_searcher": [
                Call("search_shop", {"query": "lamp"}),
                "Lamps.",
                told("lamp A", says=Call("search_shop", {"query": "red lamp"})),
                "Red lamps.",
            ],
            "wish_judge": [data(fits=False), data(fits=True)],
            "recommender": [told("red lamp B", says="B.")],
        },
        text="B.",
        after={"products": ["red lamp A", "red lamp B"]},
    ),
    Case(
        name="brand search",
        source="google/adk-samples: python/agents/brand-search-optimization/"
        "brand_search_optimization/agent.py",
        pipeline=brand_search,
        state={"brand": "Shoe"},
        inputs=("brand",),
        replies={
            "keyword_finder": [data(keywords=["kids", "run"])],
            "result_reader": {"for kids": ["k"], "for run": ["r"]},
            "comparer": ["p1", told("Criticism: shorter", says="p2")],
            "proposal_critic": ["shorter", "ok"],
            "catalog_writer": [told("p2", says="Entered.")],
        },
        text="Entered.",
        after={"results": ["k", "r"]},
    ),
    Case(
        name="order approval",
        source="google/adk-docs: examples/python/snippets/tools/function-tools/"
        "human_in_the_loop.py",
        pipeline=order_approval,
        state={"price": 300},
        inputs=("price",),
        replies={
            "order_reader": [data(product="desk", quantity=2)],
            "large_placer": [told("desk", says="Ordered.")],
        },
        answers=(True,),
        text="Ordered.",
        after={"total": 600},
    ),
    Case(
        name="supply chain",
        source="google/adk-samples: python/agents/README.md",
        pipeline=supply_chain,
        state={"region": "north"},
        inputs=("region",),
        replies={
            "weather_watcher": ["storm"],
            "demand_forecaster": ["high"],
            "stock_keeper": ["low"],
            "supply_planner": ["p1", told("Objections: late", says="p2")],
            "risk_assessor": [data(risk=0.7, objections="late"), data(risk=0.1, objections="")],
            "buyer": [told("p2", says="Bought.")],
        },
        text="Bought.",
    ),
    Case(
        name="product pictures",
        source="google/adk-samples: python/agents/genmedia-for-commerce/genmedia4commerce/"
        "workflows/image_vto/clothes/pipeline.py",
        pipeline=product_pictures,
        state={"garments": ["coat", "hat"]},
        inputs=("garments",),
        replies={
            "dresser": {"coat": ["bad coat", "good coat"], "hat": ["good hat"]},
            "fit_judge": {
                "bad coat": [data(fits=False, remark="long")],
                "good coat": [data(fits=True, remark="")],
                "good hat": [data(fits=True, remark="")],
            },
            "page_maker": [told("good coat", "good hat", says="A page.")],
        },
        text="A page.",
        after={"usable_count": 2},
    ),
    Case(
        name="image scoring",
        source="google/adk-samples: python/agents/image-scoring/README.md",
        pipeline=image_scoring,
        state={"subject": "a dog", "policy": "no people"},
        inputs=("subject", "policy"),
        replies={
            "prompt_maker": ["q1", told("Was: q1", says="q2")],
            "painter": ["a1", "a2"],
            "policy_judge": [data(safe=False), data(safe=True)],
            "taste_judge": [data(score=8), data(score=9)],
            "keeper": [told("a2", says="Filed.")],
        },
        text="Filed.",
        after={"score": 9},
    ),
    Case(
        name="catalog lookup",
        source="google/adk-docs: docs/agents/models/routing.md",
        pipeline=catalog_lookup,
        state={"product": "lamp"},
        inputs=("product",),
        replies={
            "stock_system": [reply(status=503)],
            "catalog_cache": ["7"],
            "teller": [told("stock: 7", says="Seven.")],
        },
        text="Seven.",
        after={"stock": "7"},
    ),
)
