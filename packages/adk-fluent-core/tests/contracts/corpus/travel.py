"""Travel: trips thought up, planned, booked and watched over."""

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
    race,
    timeout,
    until,
)
from adk_fluent.ir import StateFieldRef
from adk_fluent.testing import Call, reply

from ._case import Case, data, told

if TYPE_CHECKING:
    from adk_fluent.builders import Builder, State

BUDGET = StateFieldRef("budget", float)
COST = StateFieldRef("cost", float)
STOPS = StateFieldRef("stops", list[str])
DELAY = StateFieldRef("delay", int)
DESTINATION = StateFieldRef("destination", str)


def memorize(key: str, value: str, tool_context: Any) -> str:
    """Keep a fact about the trip."""
    tool_context.state["itinerary"] = {**tool_context.state["itinerary"], key: value}
    return "Kept."


def inspiration() -> Builder:
    """An agent that asks two others as tools, and keeps what the traveller settles on."""
    places = Agent("place_agent").instruct("Propose three places.")
    sights = Agent("sight_agent").instruct("Propose sights of a place.")
    root = (
        Agent("inspirer")
        .instruct("Help to choose a destination. So far: {itinerary}. The traveller: {user:taste?}")
        .tool(memorize)
        .agent_tool(places, sights)
        .writes("itinerary", via="tool")
    )
    closing = Agent("summarizer").instruct("Sum up the itinerary {itinerary}.")
    return (S.default(itinerary={}) >> root >> closing).contract(inputs=[], outputs=["itinerary"])


def trip_planning() -> Builder:
    """Flights, hotels and trips looked for at once, until they fit the budget; then booked."""
    look = FanOut(
        "look",
        Agent("flight_agent").instruct("Flights to {place}. {wish?}").writes("flight"),
        Agent("hotel_agent").instruct("Hotels in {place}. {wish?}").writes("hotel"),
        Agent("trip_agent").instruct("Day trips from {place}. {wish?}").writes("trips"),
    )
    cost = (
        Agent("cost_agent")
        .instruct("The cost of {flight}, {hotel}, {trips}, and what to save on.")
        .writes(COST, "wish")
    )
    fits = (look >> cost) * until(lambda s: s["cost"] <= s["budget"], max=3)
    book = (
        gate(message="Book this?", key="consent")
        >> Agent("booking_agent").instruct("Book {flight} and {hotel}. Consent: {consent}")
        >> S.set(status="booked")
    )
    give_up = Agent("adviser").instruct("Say what to save on: {wish}") >> S.set(status="open")
    affordable = Route().when(lambda s: s["cost"] <= s["budget"], book).otherwise(give_up)
    return (fits >> affordable).contract(inputs=["place", BUDGET], outputs=["status", "cost"])


def pre_trip() -> Builder:
    """What a traveller must know before the journey, looked up at once."""
    facts = FanOut("facts")
    for topic in ("visa", "vaccines", "storms", "warnings"):
        facts.branch(
            Agent(f"{topic}_agent")
            .instruct(f"What must a citizen of {{user:nation}} know of {topic} in {{country}}?")
            .writes(topic)
        )
    pack = Agent("packer").instruct("A list: {visa} {vaccines} {storms} {warnings}")
    return (facts >> pack.writes("list")).contract(
        inputs=["user:nation", "country"], outputs=["list"]
    )


def booking() -> Builder:
    """The first airline that has a seat, in the order of preference."""
    seats = Fallback("seats")
    for airline in ("alba", "borea", "corva"):
        agent = Agent(f"{airline}_desk").instruct(f"Ask {airline} for a seat on {{date}}.")
        seats.attempt(timeout(agent.writes("seat"), 20))
    return (seats >> Agent("confirmer").instruct("Confirm {seat}.")).contract(
        inputs=["date"], outputs=["seat"]
    )


def weekend() -> Builder:
    """A budget is read from what the user says, and decides what is proposed."""
    extract = Agent("budget_reader").instruct("The budget in USD; 100 if none.").writes(BUDGET)
    cheap = Agent("cheap_guide").instruct("Ideas for at most {budget} USD.")
    grand = Agent("grand_guide").instruct("Fine ideas for {budget} USD.")
    low = S.set(proposal="Below 5 USD there is nothing to do.")
    return (
        extract
        >> Route("budget")
        .lt(5, low)
        .lt(100, cheap.writes("proposal"))
        .otherwise(grand.writes("proposal"))
    ).contract(inputs=[], outputs=["budget", "proposal"])


def leg_notes(state: State) -> dict[str, Any]:
    """The stops with what is known of each."""
    pairs = zip(state["stops"], state["facts"], strict=True)
    return {"walk": "; ".join(f"{stop}: {fact}" for stop, fact in pairs)}


def city_walk() -> Builder:
    """Stops found, each described by the quicker of two guides, until the walk is short."""
    find = Agent("stop_finder").instruct("Stops for a walk in {city}.").writes(STOPS)
    guides = race(
        Agent("map_guide").instruct("What the map says of {stop}.").writes("fact"),
        Agent("book_guide").instruct("What the guidebook says of {stop}.").writes("fact"),
        name="guides",
    )
    describe = map_over("stops", guides, item_key="stop", output_key="facts", result_key="fact")
    judge = Agent("walk_judge").instruct("short or long: {walk}").writes("length")
    cut = Agent("walk_cutter").instruct("Leave out stops: {walk}").writes(STOPS)
    rounds = Loop("rounds", describe, leg_notes, judge, Route("length").eq("long", cut), max=2)
    rounds.until(lambda s: s["length"] == "short")
    return (find >> rounds >> Agent("walk_writer").instruct("Write the walk: {walk}")).contract(
        inputs=["city"], outputs=["walk"]
    )


def trip_monitor() -> Builder:
    """Flight and weather are watched; as long as there is a delay, the day is planned anew."""
    watch = FanOut(
        "watch",
        Agent("flight_watch").instruct("How late is {flight}, in minutes?").writes(DELAY),
        Agent("weather_watch").instruct("The weather at the destination.").writes("forecast"),
    )
    replan = (
        Agent("day_planner").instruct("Plan for {forecast}, {delay} late. {day?}").writes("day")
    )
    late = Route("delay").gt(30, replan)
    steady = Loop("steady", watch, late, max=3).until(lambda s: s["delay"] <= 30)
    return (
        S.default(day="as booked")
        >> steady
        >> Agent("companion").instruct("Tell the traveller: {day}")
    ).contract(inputs=["flight"], outputs=["day", "delay"])


def capital() -> Builder:
    """An answer with a type, and a step that reads it."""
    ask = Agent("capital_agent").instruct("The capital of {country}.").writes("capital", "people")
    return (ask >> Agent("guide").instruct("Greet the {people} people of {capital}.")).contract(
        inputs=["country"], outputs=["capital"]
    )


CASES: Final = (
    Case(
        name="inspiration",
        source="google/adk-samples: python/agents/travel-concierge/travel_concierge/"
        "sub_agents/inspiration/agent.py",
        pipeline=inspiration,
        message="Somewhere warm.",
        replies={
            "inspirer": [
                Call("place_agent", {"request": "warm"}),
                Call("sight_agent", {"request": "Malta"}),
                Call("memorize", {"key": "place", "value": "Malta"}),
                "Malta it is.",
            ],
            "place_agent": ["Malta"],
            "sight_agent": ["Valletta"],
            "summarizer": [told("Malta", says="To Malta.")],
        },
        text="To Malta.",
        after={"itinerary": {"place": "Malta"}},
    ),
    Case(
        name="trip planning",
        source="google/adk-samples: python/agents/travel-concierge/travel_concierge/"
        "sub_agents/planning/agent.py",
        pipeline=trip_planning,
        state={"place": "Oslo", "budget": 900.0},
        inputs=("place", "budget"),
        replies={
            "flight_agent": ["f1", told("cheaper hotel", says="f2")],
            "hotel_agent": ["h1", "h2"],
            "trip_agent": ["t1", "t2"],
            "cost_agent": [
                data(cost=1200, wish="cheaper hotel"),
                data(cost=850, wish=""),
            ],
            "booking_agent": [told("f2", "h2", says="Booked.")],
        },
        answers=(True,),
        after={"status": "booked", "cost": 850},
    ),
    Case(
        name="pre-trip",
        source="google/adk-samples: python/agents/travel-concierge/travel_concierge/"
        "sub_agents/pre_trip/agent.py",
        pipeline=pre_trip,
        state={"user:nation": "Chile", "country": "Japan"},
        inputs=("user:nation", "country"),
        replies={
            "visa_agent": [told("citizen of Chile", says="none")],
            "vaccines_agent": ["none"],
            "storms_agent": ["typhoon"],
            "warnings_agent": ["none"],
            "packer": [told("typhoon", says="An umbrella.")],
        },
        after={"list": "An umbrella."},
    ),
    Case(
        name="booking",
        source="google/adk-samples: python/agents/travel-concierge/travel_concierge/"
        "sub_agents/booking/agent.py",
        pipeline=booking,
        state={"date": "May 1"},
        inputs=("date",),
        replies={
            "alba_desk": [reply(status=503)],
            "borea_desk": ["14C"],
            "confirmer": [told("14C", says="Confirmed.")],
        },
        text="Confirmed.",
        after={"seat": "14C"},
    ),
    Case(
        name="weekend",
        source="google/adk-docs: examples/python/snippets/agents/workflow-agents/"
        "conditional-routing.py",
        pipeline=weekend,
        message="I have 40 dollars.",
        replies={
            "budget_reader": [data(budget=40)],
            "cheap_guide": [told("most 40", says="A picnic.")],
        },
        after={"budget": 40, "proposal": "A picnic."},
    ),
    Case(
        name="city walk",
        source="google/adk-samples: python/agents/travel-concierge/travel_concierge/agent.py",
        pipeline=city_walk,
        state={"city": "Graz"},
        inputs=("city",),
        replies={
            "stop_finder": [data(stops=["tower", "park"])],
            "map_guide": {"of tower": ["high", "tall"], "of park": ["green"]},
            "book_guide": {
                "of tower": [reply("late", latency=5), reply("late", latency=5)],
                "of park": [reply("late", latency=5)],
            },
            "walk_judge": [told("tower: high; park: green", says="long"), "short"],
            "walk_cutter": [data(stops=["tower"])],
            "walk_writer": [told("tower: tall", says="Walk up.")],
        },
        text="Walk up.",
        after={"walk": "tower: tall"},
    ),
    Case(
        name="trip monitor",
        source="google/adk-samples: python/agents/travel-concierge/travel_concierge/"
        "sub_agents/in_trip/agent.py",
        pipeline=trip_monitor,
        state={"flight": "OS 1"},
        inputs=("flight",),
        replies={
            "flight_watch": [data(delay=60), data(delay=10)],
            "weather_watch": ["rain", "sun"],
            "day_planner": [told("60 late", "as booked", says="A museum.")],
            "companion": [told("A museum.", says="Come in.")],
        },
        text="Come in.",
        after={"day": "A museum.", "delay": 10},
    ),
    Case(
        name="capital",
        source="google/adk-docs: examples/python/snippets/agents/llm-agent/capital_agent.py",
        pipeline=capital,
        state={"country": "Peru"},
        inputs=("country",),
        replies={
            "capital_agent": [data(capital="Lima", people="10000000")],
            "guide": [told("10000000 people of Lima", says="Hola.")],
        },
        text="Hola.",
        after={"capital": "Lima"},
    ),
)
