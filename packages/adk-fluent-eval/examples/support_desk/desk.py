"""The desk: four agents look at a message at once, a route finds who answers it.

`desk()` is a desk as it should be; ``desk({"no_guard"})`` is one with a defect: something that
people get wrong in a prompt, in a tool, or in how steps are put together; `defects` has them all.
"""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_UP
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from adk_fluent import Agent, Fallback, FanOut, Pipeline, Route, S, map_over, until

from .defects import KINDS
from .literal_model import literal_model
from .shop import Shop

if TYPE_CHECKING:
    from collections.abc import Collection

    from adk_fluent.builders import Builder, State, StepLike

INTENTS: Final = (
    *("several", "human", "refund", "damage", "account", "billing"),
    *("technical", "ticket", "overview", "tracking", "question", "greeting"),
)


class Triage(BaseModel):
    """What a message is about, and how sure that is, 0 to 1."""

    intent: str
    confidence: float


class Mentioned(BaseModel):
    """The orders that a message names."""

    orders: list[str]


def desk(defects: Collection[str] = ()) -> Builder:
    """A support desk.

    Args:
        defects: What is wrong with it, of `KINDS`.

    Raises:
        ValueError: There is no such defect.
    """
    if unknown := sorted(set(defects) - KINDS.keys()):
        raise ValueError(f"there is no defect {', '.join(unknown)}")
    return _Desk(frozenset(defects)).pipeline()


# --- functions of state --------------------------------------------------------------------------


def read_quote(state: State) -> dict[str, float]:
    """The quote as a number; 0 if it says why there is none."""
    try:
        return {"refund_amount": float(state["quote"])}
    except ValueError:
        return {"refund_amount": 0.0}


def review(state: State) -> dict[str, str]:
    """What the findings have and the draft has not."""
    names = (name for name in ("warranty", "ticket") if f"{name}=" in state["findings"])
    return {"missing": ", ".join(name for name in names if name not in state["draft"])}


def is_complete(state: State) -> bool:
    return state["missing"] == ""


def has_no_gaps(state: State) -> bool:  # which never holds: it is a text
    return state["missing"] is None


def count_visit(state: State) -> dict[str, int]:
    return {"visits": state.get("visits", 0) + 1}


def as_percentage(confidence: float) -> str:
    return f"{confidence:.0%}"


# --- the desk ------------------------------------------------------------------------------------

_LANGUAGE: Final = "Answer in {language?}."
_SIGNED_IN: Final = "The customer is {user:email?}"
_CATALOGUE: Final = "\n".join(f"Item {n} costs {n % 90 + 10} EUR plus tax." for n in range(400))


class _Desk:
    def __init__(self, defects: frozenset[str]) -> None:
        self._defects = defects
        self._shop = Shop(
            limit=1000 if "limit_too_high" in defects else 100,
            rounding=ROUND_DOWN if "cuts_cents" in defects else ROUND_HALF_UP,
        )
        # what all who answer customers are told
        self._honest = self._unless("ignores_tool_errors", "If a tool reports an error, say so.")
        self._discreet = self._unless("leaks_note", "Keep internal notes to yourself.")
        self._named = self._unless("ticket_unnamed", "Name the ticket.")
        self._kind = "The customer is {mood?}.\nApologise to angry customers."
        self._urgent = self._unless(
            "priority_forgotten", "A ticket of an angry customer is of high priority."
        )

    def _unless(self, defect: str, text: str, otherwise: str = "") -> str:
        return otherwise if defect in self._defects else text

    def pipeline(self) -> Builder:
        refuse = Agent("refuse").instruct("Say that we want no numbers of cards.").history("own")
        clarify = Agent("clarify").instruct("Ask what it is about.").history("own")
        answer: StepLike = Route("confidence").lt(0.5, clarify).otherwise(self._by_intent())
        if "reads_cards" not in self._defects:
            answer = Route("safety").eq("card", refuse).otherwise(answer)
        steps: list[StepLike] = [self._front(), answer]
        if "visits_not_counted" not in self._defects:
            steps.append(count_visit)
        if "confidence_as_text" in self._defects:
            steps.append(S.transform("confidence", as_percentage))
        return (
            Pipeline("support_desk", *steps)
            .model(literal_model())
            .allow("FLW008")  # what it leaves in state is for those who run it
        )

    def _front(self) -> FanOut:
        intents = [each for each in INTENTS if each != "human" or "no_person" not in self._defects]
        classify = (
            Agent("classify")
            .instruct(f"Which is it about: {', '.join(intents)}? Say how sure you are.")
            .history("own")
            .produces(Triage)
        )
        language = Agent("language").instruct("Which language: de or en?").writes("language")
        mood = Agent("mood").instruct("Is the customer angry or calm?").writes("mood")
        screen = Agent("screen").instruct("Is there a number of a card?").writes("safety")
        front = FanOut("front", classify, language.history("own"), screen.history("own"))
        return front if "mood_dropped" in self._defects else front.branch(mood.history("own"))

    def _by_intent(self) -> Route:
        greet = Agent("greet").instruct(f"Greet. {_LANGUAGE}").history("own")
        recall = Agent("recall").instruct("The ticket is {ticket?}.").history("own")
        return (
            Route("intent")
            .eq("tracking", self._tracking())
            .eq("several", self._several())
            .eq("overview", self._overview())
            .eq("refund", self._refunds())
            .eq("billing", self._billing())
            .eq("account", self._account())
            .eq("technical", self._technical())
            .eq("damage", self._damage())
            .eq("question", self._faq())
            .eq("human", self._human())
            .eq("ticket", recall)
            .otherwise(greet)
        )

    # --- orders --------------------------------------------------------------------------------

    def _tracking(self) -> StepLike:
        again = self._unless("looks_up_twice", "", ", then look_up_order")
        tracker = self._remembering(
            Agent("tracker")
            .instruct(
                f"Call look_up_order, then track_parcel if it has shipped{again}.\n"
                f"{self._honest}\n{self._discreet}\n"
                f"{self._unless('english_only', _LANGUAGE)}\n"
                f"{self._unless('long_prompt', '', _CATALOGUE)}"
            )
            .tool(self._shop.look_up_order)
            .tool(self._shop.track_parcel)
        )
        offline = (
            Agent("offline_tracker")
            .instruct(f"Call look_up_order.\n{self._honest}\n{self._discreet}")
            .history("own")
            .tool(self._shop.look_up_order)
        )
        if "no_offline_tracker" in self._defects:
            return Pipeline("tracking", tracker)
        return Fallback("tracking", tracker, offline)

    def _several(self) -> Pipeline:
        extract = Agent("extract").instruct("Which orders?").history("own").produces(Mentioned)
        status = (
            Agent("status")
            .instruct(f"The order is {{_item}}.\nCall look_up_order.\n{self._honest}")
            .history("none")
            .tool(self._shop.look_up_order)
            .writes("status")
        )
        key = self._unless("items_lost", "statuses", "status")
        summary = Agent("summary").instruct(f"Sum up: {{{key}}}").history("own")
        each = map_over("orders", status, output_key="statuses", concurrency=4)
        return Pipeline("several", extract, each, summary)

    def _overview(self) -> Pipeline:
        one, other = (
            ("facts", "facts") if "facts_overwritten" in self._defects else ("bought", "spent")
        )
        purchases = (
            Agent("purchases")
            .instruct(f"{_SIGNED_IN}\nCall list_orders.")
            .history("own")
            .tool(self._shop.list_orders)
            .writes(one)
        )
        spending = (
            Agent("spending")
            .instruct(f"{_SIGNED_IN}\nCall list_invoices.")
            .history("own")
            .tool(self._shop.list_invoices)
            .writes(other)
        )
        facts = " and ".join(f"{{{key}}}" for key in dict.fromkeys((one, other)))
        overview = Agent("overview").instruct(f"Sum up: {facts}").history("own")
        return Pipeline("overviews", FanOut(purchases, spending), overview)

    # --- money ---------------------------------------------------------------------------------

    def _refunds(self) -> Pipeline:
        quote = self._remembering(
            Agent("quote")
            .instruct("Call quote_refund.\nAnswer with the amount alone, or with the error.")
            .tool(self._shop.quote_refund)
            .writes("quote")
        )
        pay = self._remembering(
            Agent("pay")
            .instruct(f"The refund in EUR is {{refund_amount}}\nCall process_refund.\n{_LANGUAGE}")
            .tool(self._shop.process_refund)
        )
        manager = self._with_ticket("manager", "refund")
        explain = Agent("explain").instruct("It cannot be paid back: {quote}").history("own")
        allowed = pay if "no_guard" in self._defects else S.guard(self._is_allowed, "limit") >> pay
        paid = Fallback("payment", allowed, manager)
        return Pipeline(
            "refunds", quote, read_quote, Route("refund_amount").gt(0, paid).otherwise(explain)
        )

    def _is_allowed(self, state: State) -> bool:
        return state["refund_amount"] <= self._shop.limit_of(state.get("user:tier"))

    def _billing(self) -> Agent:
        plan = "Call find_invoice, then create_ticket if it is disputed."
        return self._with_ticket("billing", "invoice", plan).tool(self._shop.find_invoice)

    # --- accounts and help ---------------------------------------------------------------------

    def _account(self) -> Agent:
        calls = [
            "verify_identity",
            "unlock_account if the account is locked",
            "reset_password if the password is forgotten",
        ]
        if "resets_locked_accounts" in self._defects:
            calls[1:] = ["reset_password if the customer cannot sign in"]
        if "resets_unverified" in self._defects:
            calls = [*calls[1:], calls[0]]
        whose = self._unless(
            "email_from_message", _SIGNED_IN, "Take the e-mail address from the message."
        )
        return (
            Agent("account")
            .instruct(f"{whose}\nCall {', then '.join(calls)}.\n{self._honest}")
            .history("own")
            .tool(self._shop.verify_identity)
            .tool(self._shop.unlock_account)
            .tool(self._shop.reset_password)
        )

    def _technical(self) -> Pipeline:
        calls = [
            "search_docs",
            "search_docs if nothing was found",
            "check_warranty if there is a serial number",
            "create_ticket if nothing was found",
        ]
        if "warranty_unchecked" in self._defects:
            del calls[2]
        diagnose = (
            Agent("diagnose")
            .instruct(
                f"Call {', then '.join(calls)}.\nThe customer is {{mood?}}.\n"
                f"The kind of ticket is technical\n{self._urgent}\n{self._honest}"
            )
            .history("own")
            .tool(self._shop.search_docs)
            .tool(self._shop.check_warranty)
            .tool(self._shop.create_ticket)
            .writes("findings")
        )
        draft = (
            Agent("draft")
            .instruct(
                "Answer from these findings: {findings}\nAdd what is missing: {missing?}\n"
                f"{self._kind}"
            )
            .history("own")
            .writes("draft")
        )
        done = has_no_gaps if "endless_review" in self._defects else is_complete
        # what was missing in an answer before is no matter of this one
        return Pipeline(
            "technical", S.drop("missing"), diagnose, (draft >> review) * until(done, max=6)
        )

    def _damage(self) -> Agent:
        photo = self._unless("photo_forgotten", "Say whether there is a photo.")
        return self._with_ticket(
            "damage", "damage", "Call look_up_order, then create_ticket.", photo
        ).tool(self._shop.look_up_order)

    def _faq(self) -> Agent:
        return (
            Agent("faq")
            .instruct("Call search_docs, then search_docs if nothing was found.")
            .history("own")
            .tool(self._shop.search_docs)
        )

    def _human(self) -> Agent:
        return self._with_ticket("human", "callback")

    # --- what they share -----------------------------------------------------------------------

    def _with_ticket(
        self, name: str, kind: str, plan: str = "Call create_ticket.", more: str = ""
    ) -> Agent:
        """An agent that may open a ticket."""
        told = (plan, self._kind, f"The kind of ticket is {kind}", self._urgent, more)
        return (
            Agent(name)
            .instruct("\n".join((*told, self._named, self._honest, self._discreet)))
            .history("own")
            .tool(self._shop.create_ticket)
        )

    def _remembering(self, agent: Agent) -> Agent:
        """An agent that sees what the user said before."""
        agent.history("own")
        return agent.include_contents("none") if "forgets_order" in self._defects else agent
