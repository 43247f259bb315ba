"""Support: what a customer wants is found out, and whoever can help is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent import (
    Agent,
    FanOut,
    Loop,
    Pipeline,
    Route,
    S,
    expect,
    gate,
    race,
    tap,
    timeout,
    transfer,
    until,
)
from adk_fluent.ir import StateFieldRef
from adk_fluent.testing import Call, reply

from ._case import Case, data, told

if TYPE_CHECKING:
    from adk_fluent.builders import Builder, State

CONFIDENCE = StateFieldRef("confidence", float)
SEVERITY = StateFieldRef("severity", int)
CART = StateFieldRef("cart", list[str])


def intent_desk() -> Builder:
    """A classifier, and a specialist for each of its answers."""
    classify = (
        Agent("classifier").instruct("billing, technical or sales? One word.").writes("intent")
    )
    return (
        classify
        >> {
            "billing": Agent("billing").instruct("Help with bills."),
            "technical": Agent("technical").instruct("Help with devices."),
            "sales": Agent("sales").instruct("Help to choose."),
        }
    ).contract(inputs=[], outputs=["intent"])


def change_cart(add: str, tool_context: Any) -> str:
    """Put something into the cart."""
    tool_context.state["cart"] = [*tool_context.state["cart"], add]
    return f"Added {add}."


def offer_discount(percent: int, tool_context: Any) -> str:
    """Offer a discount, as far as the customer's standing allows."""
    allowed = 20 if tool_context.state["user:standing"] == "gold" else 5
    tool_context.state["discount"] = min(percent, allowed)
    return "Offered."


def customer_service() -> Builder:
    """One agent with tools that work on the cart, after the customer is known."""
    assistant = (
        Agent("shop_assistant")
        .instruct("Greet {user:first_name}. The cart holds {cart}. Advise, and change the cart.")
        .tool(change_cart)
        .tool(offer_discount)
        .reads("user:standing")
        .writes(CART, "discount", via="tool")
    )
    receipt = Agent("receipt").instruct("Sum up the cart {cart}, less {discount} percent.")
    return (assistant >> receipt).contract(
        inputs=["user:first_name", "user:standing", CART], outputs=["cart"]
    )


def bug_assistant() -> Builder:
    """Old tickets, code and forums are searched at once; a diagnosis is made until it is likely."""
    search = FanOut(
        "search",
        Agent("ticket_searcher").instruct("Find tickets like {bug}").writes("tickets"),
        Agent("code_searcher").instruct("Find commits that explain {bug}").writes("commits"),
        Agent("forum_searcher").instruct("Find threads about {bug}").writes("threads"),
    )
    diagnose = (
        Agent("diagnostician")
        .instruct("Diagnose {bug} from {tickets}, {commits}, {threads}. Not this: {diagnosis?}")
        .writes("diagnosis", CONFIDENCE, SEVERITY)
    )
    likely = diagnose * until(lambda s: s["confidence"] > 0.8, max=3)
    page = Agent("pager").instruct("Wake the engineer on call: {diagnosis}")
    file = Agent("filer").instruct("File a ticket: {diagnosis}")
    return (search >> likely >> Route("severity").gt(2, page).otherwise(file)).contract(
        inputs=["bug"], outputs=["diagnosis"]
    )


def help_desk() -> Builder:
    """A coordinator that hands the conversation over to whoever is in charge."""
    billing = Agent("billing_desk").description("Bills and refunds.").instruct("Help with bills.")
    support = Agent("support_desk").description("Logins and devices.").instruct("Help to log in.")
    coordinator = (
        Agent("coordinator")
        .instruct("Hand over to the desk that is in charge. The customer speaks {user:language?}.")
        .delegates(billing, support)
    )
    return Pipeline("help_desk", coordinator).contract(inputs=[], outputs=[])


def hand_to_support(tool_context: Any) -> str:
    """Hand an urgent case over."""
    tool_context.state["urgent"] = "yes"
    tool_context.actions.transfer_to_agent = "urgent_support"
    return "Handing over."


def urgent_desk() -> Builder:
    """A tool that notes an urgent case, and hands it over."""
    urgent = Agent("urgent_support").instruct("Help at once. Urgent: {urgent?}")
    front = (
        Agent("front_desk")
        .instruct("Answer; what is urgent is handed over.")
        .tool(hand_to_support)
        .delegates(urgent)
    )
    return Pipeline("front", front).contract(inputs=[], outputs=[])


def weather(city: str, tool_context: Any) -> str:
    """The weather, in the unit that the user likes."""
    unit = tool_context.state.get("user:unit", "Celsius")
    tool_context.state["last_city"] = city
    return f"{city}: 20 {unit}"


def weather_team() -> Builder:
    """An agent for the weather, with one for greetings and one for farewells."""
    greeter = Agent("greeter").description("Greets.").instruct("Greet, nothing else.")
    goodbye = Agent("goodbye").description("Takes leave.").instruct("Say goodbye, nothing else.")
    root = (
        Agent("weather_agent")
        .instruct("Tell the weather. Hand greetings and farewells over.")
        .tool(weather)
        .delegates(greeter, goodbye)
        .writes("last_city", via="tool")
        .writes("report")
    )
    # whoever greets or takes leave has none of them
    city, report = StateFieldRef("last_city", default=None), StateFieldRef("report", default=None)
    return Pipeline("team", root).contract(inputs=[], outputs=[city, report])


def rephrased(state: State) -> dict[str, Any]:
    """What is asked: the question, or what the customer made of it."""
    return {"asked": state.get("clarified") or state["question"]}


def answer_desk() -> Builder:
    """Two sources race for an answer; as long as it is doubtful, the question is clarified."""
    sources = race(
        timeout(Agent("faq").instruct("Answer from the FAQ: {asked}").writes("answer"), 20),
        timeout(Agent("manuals").instruct("Answer from manuals: {asked}").writes("answer"), 20),
        name="sources",
    )
    rate = Agent("rater").instruct("How sure is {answer} for {asked}?").writes(CONFIDENCE)
    clarify = Agent("clarifier").instruct("Say more clearly: {asked}").writes("clarified")
    tries = Loop(
        "tries", rephrased, sources, rate, Route("confidence").lt(0.6, clarify), max=3
    ).until(lambda s: s["confidence"] >= 0.6)
    send = Agent("sender").instruct("Send this answer: {answer}")
    escalate = Agent("escalator").instruct("Pass this on to a person: {question}")
    sure = Route().when(lambda s: s["confidence"] >= 0.6, send)
    return (tries >> sure.otherwise(escalate)).contract(inputs=["question"], outputs=["answer"])


def note_sentiment(sentiment: str, tool_context: Any) -> str:
    """Note how the user feels."""
    tool_context.state["sentiment"] = sentiment
    return "Noted."


def sentiment_desk() -> Builder:
    """A tool notes the sentiment, a route answers to it."""
    listener = (
        Agent("listener")
        .instruct("Note how the user feels.")
        .tool(note_sentiment)
        .writes("sentiment", via="tool")
    )
    return (
        listener
        >> Route("sentiment")
        .eq("negative", Agent("soother").instruct("Apologise, and offer help."))
        .eq("positive", Agent("thanker").instruct("Thank the user."))
        .otherwise(Agent("answerer").instruct("Answer plainly."))
    ).contract(inputs=[], outputs=["sentiment"])


def set_preference(preference: str, value: str, tool_context: Any) -> str:
    """Remember what a user likes, for all of the user's sessions."""
    known = tool_context.state.get("user:preferences", {})
    tool_context.state["user:preferences"] = {**known, preference: value}
    return "Remembered."


def preferences() -> Builder:
    """What a user likes is kept for the user."""
    keeper = (
        Agent("preference_keeper")
        .instruct("Remember what the user likes.")
        .tool(set_preference)
        .writes("user:preferences", via="tool")
    )
    confirm = Agent("confirmer").instruct("Repeat what is known: {user:preferences}")
    return (keeper >> confirm).contract(inputs=[], outputs=["user:preferences"])


def returns_desk() -> Builder:
    """A return is checked from three sides; doubts are cleared up; large refunds are approved."""
    checks = FanOut(
        "return_checks",
        Agent("order_checker").instruct("Is {order} real?").writes("order_status"),
        Agent("policy_checker").instruct("Does the policy allow {reason}?").writes("policy_status"),
    )
    decide = (
        Agent("decider")
        .instruct("refund, refuse or unclear: {order_status}, {policy_status}, {reason}")
        .writes("decision")
    )
    ask = Agent("asker").instruct("Ask why {order} is returned: {reason}").writes("reason")
    settle = Loop("settle", checks, decide, Route("decision").eq("unclear", ask), max=2)
    settle.until(lambda s: s["decision"] != "unclear")
    pay = (
        gate(lambda s: s["amount"] > 100, message="Pay this back?", key="payment_approval")
        >> Agent("payer").instruct("Pay {amount} back for {order}. Approval: {payment_approval?}")
        >> S.set(outcome="paid")
    )
    refuse = Agent("refuser").instruct("Refuse kindly: {policy_status}") >> S.set(outcome="refused")
    return (
        settle
        >> Route("decision").eq("refund", pay).otherwise(refuse)
        >> tap(print_outcome)
        >> expect(lambda s: s["outcome"] in {"paid", "refused"}, "every return has an outcome")
    ).contract(inputs=["order", "reason", "amount"], outputs=["outcome"])


def print_outcome(state: State) -> None:
    """Look at how it ended."""
    assert state["outcome"]


def callback_desk() -> Builder:
    """Who cannot be helped now is called back, as is whoever asks for it in the first place."""
    callback = Agent("callback").instruct("Arrange a call about {question}.").writes("outcome")
    helper = Agent("helper").instruct("Answer {question}, or say 'later'.").writes("outcome")
    help_now = helper >> transfer("callback", when=lambda s: s["outcome"] == "later")
    return (Route("wants").eq("call", callback).otherwise(help_now)).contract(
        inputs=["question", "wants"], outputs=["outcome"]
    )


CASES: Final = (
    Case(
        name="intent desk",
        source="google/adk-python: contributing/samples/workflows/streaming_route/agent.py",
        pipeline=intent_desk,
        message="My bill is wrong.",
        replies={"classifier": ["billing"], "billing": ["It is mended."]},
        text="It is mended.",
    ),
    Case(
        name="customer service",
        source="google/adk-samples: python/agents/customer-service/customer_service/agent.py",
        pipeline=customer_service,
        message="A pot for my fern, please.",
        state={"user:first_name": "Ada", "user:standing": "gold", "cart": ["fern"]},
        inputs=("user:first_name", "user:standing", "cart"),
        replies={
            "shop_assistant": [
                reply(Call("change_cart", {"add": "pot"}), Call("offer_discount", {"percent": 15})),
                told("Greet Ada", says="Done."),
            ],
            "receipt": [told("pot", "15 percent", says="Fern and pot.")],
        },
        text="Fern and pot.",
        after={"cart": ["fern", "pot"], "discount": 15},
    ),
    Case(
        name="bug assistant",
        source="google/adk-samples: python/agents/software-bug-assistant/software_bug_assistant/"
        "agent.py",
        pipeline=bug_assistant,
        state={"bug": "login hangs"},
        inputs=("bug",),
        replies={
            "ticket_searcher": ["T-1"],
            "code_searcher": ["abc"],
            "forum_searcher": ["none"],
            "diagnostician": [
                data(diagnosis="dns", confidence=0.4, severity=1),
                told("this: dns", says=data(diagnosis="lock", confidence=0.9, severity=3)),
            ],
            "pager": ["Woken."],
        },
        text="Woken.",
        after={"diagnosis": "lock"},
    ),
    Case(
        name="help desk",
        source="google/adk-docs: docs/workflows/collaboration.md",
        pipeline=help_desk,
        message="I cannot log in.",
        replies={
            "coordinator": [Call("transfer_to_agent", {"agent_name": "support_desk"})],
            "support_desk": ["Try again."],
        },
        text="Try again.",
    ),
    Case(
        name="urgent desk",
        source="google/adk-docs: examples/python/snippets/tools/overview/customer_support_agent.py",
        pipeline=urgent_desk,
        message="Now!",
        replies={
            "front_desk": [Call("hand_to_support")],
            "urgent_support": [told("Urgent: yes", says="At once.")],
        },
        text="At once.",
    ),
    Case(
        name="weather team",
        source="google/adk-docs: docs/tutorials/agent-team.md",
        pipeline=weather_team,
        message="Paris?",
        state={"user:unit": "Kelvin"},
        replies={"weather_agent": [Call("weather", {"city": "Paris"}), "20 Kelvin."]},
        after={"last_city": "Paris", "report": "20 Kelvin."},
    ),
    Case(
        name="answer desk",
        source="google/adk-python: contributing/samples/workflows/fan_out_preempt/agent.py",
        pipeline=answer_desk,
        state={"question": "how"},
        inputs=("question",),
        replies={
            "faq": ["Maybe.", reply("late", latency=5)],
            "manuals": [reply("late", latency=5), told("how to reset", says="Press 3 s.")],
            "rater": [data(confidence=0.2), data(confidence=0.9)],
            "clarifier": ["how to reset"],
            "sender": [told("Press 3 s.", says="Sent.")],
        },
        text="Sent.",
        after={"answer": "Press 3 s."},
    ),
    Case(
        name="sentiment desk",
        source="google/adk-docs: examples/python/snippets/tools/overview/weather_sentiment.py",
        pipeline=sentiment_desk,
        message="Rain again!",
        replies={
            "listener": [Call("note_sentiment", {"sentiment": "negative"}), "Noted."],
            "soother": ["Sorry."],
        },
        text="Sorry.",
    ),
    Case(
        name="preferences",
        source="google/adk-docs: examples/python/snippets/tools/overview/user_preference.py",
        pipeline=preferences,
        message="I like dark.",
        replies={
            "preference_keeper": [
                Call("set_preference", {"preference": "theme", "value": "dark"}),
                "Ok.",
            ],
            "confirmer": [told("dark", says="Dark it is.")],
        },
        text="Dark it is.",
        after={"user:preferences": {"theme": "dark"}},
    ),
    Case(
        name="returns desk",
        source="google/adk-docs: docs/graphs/human-input.md",
        pipeline=returns_desk,
        state={"order": "A-1", "reason": "?", "amount": 120},
        inputs=("order", "reason", "amount"),
        replies={
            "order_checker": ["real", "real"],
            "policy_checker": ["no reason", "allowed"],
            "decider": ["unclear", "refund"],
            "asker": ["broken"],
            "payer": ["Paid."],
        },
        answers=(True,),
        after={"outcome": "paid", "reason": "broken"},
    ),
    Case(
        name="callback desk",
        source="google/adk-docs: docs/agents/routing.md",
        pipeline=callback_desk,
        state={"question": "pension", "wants": "answer"},
        inputs=("question", "wants"),
        replies={"helper": ["later"], "callback": [told("pension", says="Tomorrow at nine.")]},
        after={"outcome": "Tomorrow at nine."},
    ),
)
