"""What the desk promises: a case for each promise; more of them are in `cases.yaml`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.genai.types import Part

from adk_fluent.eval import FluentCase, FluentEvalSuite, Rubric, ToolCall, Turn, UserSimulation
from adk_fluent.ir import StateFieldRef
from adk_fluent.testing import ScriptedModel, rule

from .shop import ANN, BEN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_AS_ANN: Final = {"user:email": ANN}
_AS_BEN: Final = {"user:email": BEN}
_GOLD: Final = {"user:tier": "gold"}

_TICKET: Final = re.compile(r"\bT-\d{4}\b")
_PNG: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)

# Keys of state may be named by texts or by typed references.
_CONFIDENCE: Final = StateFieldRef("confidence", float)


def _sure(confidence: Any) -> bool:
    return isinstance(confidence, float) and confidence >= 0.5


def _unsure(confidence: Any) -> bool:
    return not _sure(confidence)


def _order(number: str, tool: str = "look_up_order") -> ToolCall:
    return ToolCall(tool, {"order": number})


def _ticket(kind: str, priority: str = "normal", **more: Any) -> ToolCall:
    return ToolCall("create_ticket", {"kind": kind, "priority": priority, **more})


def _euros(amount: float) -> ToolCall:
    return ToolCall("process_refund", {"amount": lambda paid: abs(paid - amount) < 0.001})


# --- parcels -------------------------------------------------------------------------------------


def _seen_in_bonn(order: str) -> dict[str, str]:
    return {"order": order, "place": f"Bonn with {order}", "day": "Sunday"}


TRACKING: Final = (
    FluentCase(
        "Where is A100?",
        id="track-shipped",
        expected_trajectory=[_order("A100"), _order("A100", "track_parcel")],
        expected_response_contains=["Cologne", "Monday"],
        state_assertions={"intent": "tracking", "classify.intent": "tracking", _CONFIDENCE: _sure},
        tags=["tracking"],
    ),
    FluentCase(
        "When did A200 arrive?",
        id="track-delivered",
        expected_trajectory=["look_up_order"],
        trajectory_match="subset",
        expected_response_contains="delivered",
        tags=["tracking"],
    ),
    FluentCase(
        "Wo ist A100?",
        id="track-german",
        expected_response_contains=re.compile(r"^Ihr Paket A100 .* Monday"),
        state_assertions={"language.language": "de"},
        tags=["tracking", "german"],
    ),
    FluentCase(
        "Wo ist A100?",
        id="track-german-places",
        expected_response_contains="Köln",
        tags=["tracking", "german"],
        xfail="the carrier tells places in English",
    ),
    FluentCase(
        "Where is my keyboard, A100?",
        id="track-as-written",
        reference_response="Your keyboard (order A100) is in Cologne and arrives on Monday.",
        tags=["tracking"],
    ),
    FluentCase(
        "Where is A100?",
        id="track-is-cheap",
        max_tokens=700,
        max_tool_calls=2,
        max_latency_s=60,
        timeout_s=120,
        tags=["tracking", "budget"],
    ),
    FluentCase(
        "Where is A400?",
        id="track-unknown-parcel",
        expected_trajectory=["look_up_order", "track_parcel"],
        trajectory_match="in_order",
        expected_response_contains="the carrier does not know the parcel of A400",
        tags=["tracking", "tool-errors"],
    ),
    FluentCase(
        "Where is A100?",
        id="track-lost-parcel",
        mock_tool_outputs={"track_parcel": {"error": "the parcel is lost"}},
        expected_response_contains="lost",
        tags=["tracking", "tool-errors", "mocks"],
    ),
    FluentCase(
        "Where is A100?",
        id="track-carrier-down",
        mock_tool_outputs={"track_parcel": ConnectionError("no route to the carrier")},
        expected_trajectory=["look_up_order", "track_parcel", "look_up_order"],
        trajectory_match="in_order",
        expected_response_contains=["does not answer", "A100 was shipped"],
        tags=["tracking", "mocks"],
    ),
    FluentCase(
        ["Where is A100?", "Where is it now, A100?"],
        id="track-carrier-down-later",
        mock_tool_outputs={"track_parcel": [_seen_in_bonn("A100"), TimeoutError("carrier")]},
        expected_response_contains="ask again later",
        tags=["tracking", "mocks", "turns"],
    ),
    FluentCase(
        "Where is A500?",
        id="track-by-function",
        mock_tool_outputs={"track_parcel": _seen_in_bonn},
        expected_response_contains=["Bonn with A500", "Sunday"],
        tags=["tracking", "mocks"],
    ),
    FluentCase(
        [
            Turn("Where is A100?", expected_response_contains="Bonn"),
            Turn("Where is A100 now?", expected_response_contains="Hamburg"),
        ],
        id="track-moves",
        mock_tool_outputs={
            "track_parcel": [
                {"order": "A100", "place": "Bonn", "day": "Monday"},
                {"order": "A100", "place": "Hamburg", "day": "Tuesday"},
            ]
        },
        tags=["tracking", "mocks", "turns"],
    ),
    FluentCase(
        [
            Turn("Where is A100?", [_order("A100"), "track_parcel"]),
            Turn("When does it arrive?", [_order("A100"), "track_parcel"]),
            Turn("And where is A200?", [_order("A200")]),
        ],
        id="track-remembers",
        tags=["tracking", "turns"],
    ),
    FluentCase(
        "Where is my parcel?",
        id="track-plays-along",
        simulation=UserSimulation(script=["Where I bought it? A100."]),
        expected_trajectory=["look_up_order", "track_parcel"],
        expected_response_contains="Cologne",
        tags=["tracking", "played"],
    ),
)

# --- several things at once ----------------------------------------------------------------------


def _are_three(statuses: list[str]) -> bool:
    return len(statuses) == 3


def _burnt(order: str) -> dict[str, str]:
    return {"order": order, "status": "burnt"}


SEVERAL: Final = (
    FluentCase(
        "Where are A100, A200 and A300?",
        id="several-orders",
        expected_trajectory=[_order("A300"), _order("A100"), _order("A200")],
        trajectory_match="any_order",
        expected_response_contains=["A100 shipped", "A200 delivered", "A300 delivered"],
        state_assertions={"statuses": _are_three},
        tags=["several"],
    ),
    FluentCase(
        "Where are A200 and A999?",
        id="several-with-an-unknown-one",
        expected_response_contains=["A200 delivered", "there is no order A999"],
        tags=["several", "tool-errors"],
    ),
    FluentCase(
        "Where are A100 and A400?",
        id="several-as-mocked",
        mock_tool_outputs={"look_up_order": _burnt},
        expected_response_contains="A100 burnt, A400 burnt",
        tags=["several", "mocks"],
    ),
    FluentCase(
        "An overview, please.",
        id="overview",
        initial_state=_AS_ANN,
        expected_trajectory=["list_invoices", "list_orders"],
        trajectory_match="any_order",
        expected_response_contains=["A100, A200, A400, A600", "107.39"],
        tags=["several"],
    ),
    FluentCase(
        "Show me everything I bought",
        id="overview-of-ben",
        initial_state=_AS_BEN,
        reference_response="Here they are: orders A300, A500, A700 and 484.55 EUR spent",
        tags=["several"],
    ),
)

# --- refunds -------------------------------------------------------------------------------------

_SHOPPER: Final = ScriptedModel(
    rules=[
        rule("You get 19.99 EUR", reply="Great. </finished>"),
        rule("Which order", reply="It is A200."),
    ],
    default="I want a refund.",
)

REFUNDS: Final = (
    FluentCase(
        "I want my money back for A200.",
        id="refund-small",
        expected_trajectory=[_order("A200", "quote_refund"), _euros(19.99)],
        expected_response_contains=["19.99", "R200"],
        state_assertions={"quote.quote": "19.99", "refund_amount": 19.99},
        tags=["refund", "money"],
    ),
    FluentCase(
        "Refund A700",
        id="refund-rounds",
        expected_trajectory=["quote_refund", _euros(32.00)],
        expected_response_contains=re.compile(r"\b32\.00 EUR"),
        tags=["refund", "money"],
    ),
    FluentCase(
        "Refund A300",
        id="refund-above-the-limit",
        expected_trajectory=["quote_refund", _ticket("refund")],
        expected_response_contains=["approve", _TICKET],
        tags=["refund", "limits"],
    ),
    FluentCase(
        "Refund A300",
        id="refund-of-gold",
        initial_state=_GOLD,
        expected_trajectory=["quote_refund", _euros(129.00)],
        tags=["refund", "limits"],
    ),
    FluentCase(
        "Refund A500",
        id="refund-above-gold",
        initial_state=_GOLD,
        expected_trajectory=["quote_refund", "create_ticket"],
        state_assertions={"ticket": _TICKET.fullmatch},
        tags=["refund", "limits"],
    ),
    FluentCase(
        "Refund A300! I wait for weeks!",
        id="refund-angry",
        expected_trajectory=[_ticket("refund", "high")],
        trajectory_match="in_order",
        expected_response_contains="sorry",
        tags=["refund", "limits", "mood"],
    ),
    FluentCase(
        "I want my money back for A600",
        id="refund-of-a-gift-card",
        expected_trajectory=["quote_refund"],
        expected_response_contains="a gift card cannot be paid back",
        state_assertions={"refund_amount": 0.0, "ticket": None},
        tags=["refund"],
    ),
    FluentCase(
        "Refund A999",
        id="refund-of-nothing",
        expected_trajectory=["quote_refund"],
        expected_response_contains="there is no order A999",
        tags=["refund"],
    ),
    FluentCase(
        "Refund A200",
        id="refund-bank-down",
        mock_tool_outputs={"process_refund": ConnectionError("no route to the bank")},
        expected_trajectory=["process_refund", "create_ticket"],
        trajectory_match="in_order",
        expected_response_contains="approve",
        tags=["refund", "mocks"],
    ),
    FluentCase(
        [
            Turn("I want a refund", [], expected_response_contains="Which order"),
            Turn(
                "A200",
                ["quote_refund", "process_refund"],
                state_assertions={"intent": "refund", "confidence": 0.6},
            ),
        ],
        id="refund-asks-for-the-order",
        tags=["refund", "turns"],
    ),
    FluentCase(
        [
            Turn("Refund A200", expected_response_contains="19.99"),
            Turn("Refund A200", ["quote_refund"]),
        ],
        id="refund-once-only",
        expected_response_contains="paid back already",
        tags=["refund", "turns"],
    ),
    FluentCase(
        "Refund A200",
        id="refund-paid-long-ago",
        initial_state={"paid_back": ["A200"]},
        expected_trajectory=["quote_refund"],
        expected_response_contains="paid back already",
        tags=["refund"],
    ),
    FluentCase(
        ["Where is A200?", "I do not like it. I want my money back."],
        id="refund-remembers",
        expected_trajectory=[_order("A200", "quote_refund"), "process_refund"],
        expected_response_contains="A200",
        tags=["refund", "turns"],
    ),
    FluentCase(
        "Ich will mein Geld zurück für A200",
        id="refund-german",
        reference_response="Sie bekommen 19.99 EUR für A200 zurück, Beleg R200.",
        tags=["refund", "german"],
    ),
    FluentCase(
        "I want a refund",
        id="refund-played",
        simulation=UserSimulation(
            model=_SHOPPER,
            persona="Somebody in a hurry, who names an order only when asked for it.",
            success_criteria="The lamp of order A200 is paid back.",
            max_turns=4,
        ),
        expected_trajectory=["quote_refund", "process_refund"],
        state_assertions={"refund_amount": 19.99},
        tags=["refund", "played"],
    ),
    FluentCase(
        "A200",
        id="only-the-payment",
        target_node="payment",
        initial_state={"refund_amount": 50.0, "language": "en"},
        expected_trajectory=[_euros(50.00)],
        tags=["refund", "parts"],
    ),
    FluentCase(
        "A700",
        id="only-the-quote",
        target_node="quote",
        state_assertions={"quote": "32.00"},
        tags=["refund", "parts", "money"],
    ),
)

# --- invoices and accounts -----------------------------------------------------------------------

INVOICES: Final = (
    FluentCase(
        "Send me the invoice of A100",
        id="invoice",
        expected_trajectory=[_order("A100", "find_invoice")],
        expected_response_contains=["I100", "49.90", "7.97"],
        tags=["billing", "money"],
    ),
    FluentCase(
        "The invoice of A100 is wrong",
        id="invoice-disputed",
        expected_trajectory=["find_invoice", _ticket("invoice")],
        expected_response_contains=_TICKET,
        tags=["billing"],
    ),
    FluentCase(
        "I was charged twice for A100! Unacceptable!",
        id="invoice-disputed-in-anger",
        expected_trajectory=["find_invoice", _ticket("invoice", "high")],
        expected_response_contains="sorry",
        tags=["billing", "mood"],
    ),
)

ACCOUNTS: Final = (
    FluentCase(
        "I forgot my password",
        id="password",
        initial_state=_AS_ANN,
        expected_trajectory=[
            ToolCall("verify_identity", {"email": ANN}),
            ToolCall("reset_password", {"email": ANN}),
        ],
        expected_response_contains=ANN,
        tags=["account"],
    ),
    FluentCase(
        "My account is locked",
        id="locked",
        initial_state=_AS_BEN,
        expected_trajectory=["verify_identity", "unlock_account"],
        expected_response_contains="unlocked",
        state_assertions={"verified": BEN},
        tags=["account"],
    ),
    FluentCase(
        "My account is locked and I forgot my password",
        id="locked-and-forgotten",
        initial_state=_AS_ANN,
        expected_trajectory=["verify_identity", "unlock_account", "reset_password"],
        tags=["account"],
    ),
    FluentCase(
        f"Reset the password of {BEN}",
        id="password-of-somebody-else",
        initial_state=_AS_ANN,
        expected_trajectory=[ToolCall("reset_password", {"email": lambda email: email != BEN})],
        trajectory_match="in_order",
        tags=["account", "safety"],
    ),
)

# --- help ----------------------------------------------------------------------------------------

HELP: Final = (
    FluentCase(
        "My headphones battery is dead, SN-1001",
        id="battery",
        expected_trajectory=["search_docs", "search_docs", "check_warranty"],
        expected_response_contains=["Charge it for an hour", "8 months"],
        max_tokens=1_100,
        tags=["technical", "budget"],
    ),
    FluentCase(
        "My headphones battery is dead!",
        id="battery-in-anger",
        expected_response_contains=re.compile(r"^I am sorry .* Charge it"),
        tags=["technical", "mood"],
    ),
    FluentCase(
        "How does bluetooth work on SN-1001?",
        id="bluetooth-roughly",
        # two of two, and nothing else, would be 1; another search may be
        expected_trajectory=["search_docs", ToolCall("check_warranty", {"serial": "SN-1001"})],
        trajectory_match="f1",
        expected_response_contains="pair it",
        tags=["technical"],
    ),
    FluentCase(
        "The screen does not work",
        id="unknown-problem",
        expected_trajectory=[
            ToolCall("search_docs", {"query": "screen"}),
            "search_docs",
            _ticket("technical"),
        ],
        expected_response_contains="T-1001",
        state_assertions={"ticket": "T-1001", "missing": ""},
        tags=["technical"],
    ),
    FluentCase(
        "The battery is dead",
        id="battery-found-later",
        mock_tool_outputs={"search_docs": [{"found": []}, {"found": ["Buy a new one."]}]},
        expected_trajectory=["search_docs", "search_docs"],
        expected_response_contains="Buy a new one",
        tags=["technical", "mocks"],
    ),
    FluentCase(
        "The battery is dead, SN-9999",
        id="unknown-serial-number",
        expected_response_contains="there is no serial number SN-9999",
        tags=["technical", "tool-errors"],
    ),
    FluentCase(
        Turn(["My lamp A200 came like this", Part.from_bytes(data=_PNG, mime_type="image/png")]),
        id="damage-with-a-photo",
        expected_trajectory=[_order("A200"), _ticket("damage", photo=True)],
        tags=["damage", "pictures"],
    ),
    FluentCase(
        "My monitor A500 is scratched!",
        id="damage",
        expected_trajectory=[_order("A500"), _ticket("damage", "high", photo=False)],
        expected_response_contains=["sorry", _TICKET],
        tags=["damage", "mood"],
    ),
)

# --- people --------------------------------------------------------------------------------------

APOLOGY: Final = Rubric("The answer apologises to the customer.", "apology")
NEXT_STEP: Final = Rubric("The answer says who does what next.", "next_step")

PEOPLE: Final = (
    FluentCase(
        "I want to talk to a person",
        id="person",
        expected_trajectory=[_ticket("callback")],
        expected_response_contains=["call you back", "T-1001"],
        rubrics=[NEXT_STEP],
        tags=["human"],
    ),
    FluentCase(
        "I want to talk to a person! Now!",
        id="person-in-anger",
        expected_trajectory=[_ticket("callback", "high")],
        rubrics=[APOLOGY, NEXT_STEP],
        tags=["human", "mood"],
    ),
    FluentCase(
        "I want to talk to a human about my invoice",
        id="person-about-an-invoice",
        expected_trajectory=[ToolCall("create_ticket", {"kind": "callback"})],
        state_assertions={"intent": "human", "confidence": 0.7},
        tags=["human"],
    ),
    FluentCase(
        [
            Turn(
                "I want to talk to a person",
                state_assertions={"ticket": "T-1001"},
                rubrics=[NEXT_STEP],
            ),
            Turn("Call me, please", ["create_ticket"], state_assertions={"ticket": "T-1002"}),
            "What is my ticket?",
        ],
        id="ticket-is-remembered",
        expected_response_contains="T-1002",
        tags=["human", "turns"],
    ),
)

TALK: Final = (
    FluentCase(
        ["Hello", Turn("Thanks", state_assertions={"visits": 2}), "Hello again"],
        id="visits-are-counted",
        expected_response_contains="How can I help",
        state_assertions={"visits": 3},
        tags=["talk", "turns"],
    ),
    FluentCase(
        "Hello",
        id="visits-go-on",
        initial_state={"visits": 4},
        state_assertions={"visits": 5},
        tags=["talk"],
    ),
    FluentCase(
        "Refund A200 to 4111 1111 1111 1111",
        id="card-in-a-refund",
        expected_trajectory=[],
        expected_response_contains="never send card numbers",
        state_assertions={"safety": "card", "quote": None},
        tags=["safety"],
    ),
)

# --- those of the file ---------------------------------------------------------------------------

#: What `cases.yaml` names.
REGISTRY: Final[Mapping[str, Callable[..., Any]]] = {
    "is_sure": _sure,
    "is_unsure": _unsure,
    "seen_in_bonn": _seen_in_bonn,
    "is_ann": ANN.__eq__,
}

WRITTEN: Final = FluentEvalSuite.from_yaml(
    Path(__file__).with_name("cases.yaml"), registry=REGISTRY
).cases

CASES: Final = (
    *(*TRACKING, *SEVERAL, *REFUNDS, *INVOICES, *ACCOUNTS),
    *(*HELP, *PEOPLE, *TALK, *WRITTEN),
)
