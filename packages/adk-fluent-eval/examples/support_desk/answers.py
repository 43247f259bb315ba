"""What each agent says when its tools have been called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .shown import Shown

#: What to ask for when nobody has said it.
ASK: Final = {"order": "Which order is it about?", "email": "Please sign in first."}


def _track(shown: Shown) -> str:
    item, order = shown.result("look_up_order", "item"), shown.order
    place, day = shown.result("track_parcel", "place"), shown.result("track_parcel", "day")
    if shown.result("look_up_order", "status") == "delivered":
        return f"Your {item} (order {order}) was delivered."
    if shown.is_german:
        return f"Ihr Paket {order} ist in {place} und kommt am {day} an."
    where = f"is in {place} and arrives on {day}" if place else "is on its way"
    return f"Your {item} (order {order}) {where}."


def _offline(shown: Shown) -> str:
    status = shown.result("look_up_order", "status")
    return f"The carrier does not answer. Order {shown.order} was {status}; please ask again later."


def _quote(shown: Shown) -> str:
    amount = shown.result("quote_refund", "amount")
    return f"{amount:.2f}" if amount else shown.result("quote_refund", "error")


def _pay(shown: Shown) -> str:
    paid = shown.results["process_refund"]
    order, amount, receipt = paid["order"], paid["amount"], paid["receipt"]
    if shown.is_german:
        return f"Sie bekommen {amount:.2f} EUR für {order} zurück, Beleg {receipt}."
    return f"You get {amount:.2f} EUR back for order {order}, receipt {receipt}."


def _explain(shown: Shown) -> str:
    why = shown.rest("It cannot be paid back: ")
    return why if why in ASK.values() else f"I cannot pay this back: {why}."


def _bill(shown: Shown) -> str:
    bill = shown.results["find_invoice"]
    if "invoice" not in bill:
        return "Your invoice is on its way."
    text = f"Invoice {bill['invoice']} is {bill['total']:.2f} EUR, {bill['vat']:.2f} EUR of it VAT."
    return f"{text} A colleague will look at it." if "create_ticket" in shown.results else text


def _account(shown: Shown) -> str:
    if shown.result("unlock_account", "unlocked"):
        return f"The account of {shown.email} is unlocked."
    return f"A link for a new password is on its way to {shown.email}."


def _findings(shown: Shown) -> str:
    advice = shown.result("search_docs", "found")
    months, ticket = (
        shown.result("check_warranty", "months"),
        shown.result("create_ticket", "ticket"),
    )
    known = [
        f"advice={advice[0]}" if advice else "",
        f"warranty={months} months" if months is not None else "",
        f"ticket={ticket}" if ticket else "",
    ]
    return " | ".join(filter(None, known))


def _draft(shown: Shown) -> str:
    findings = shown.rest("Answer from these findings: ")
    if "=" not in findings:
        return findings
    known = dict(each.split("=", 1) for each in findings.split(" | ") if "=" in each)
    add = shown.rest("Add what is missing: ")
    text = (
        f"Please try this: {known['advice']}" if "advice" in known else "A colleague looks at it."
    )
    if "warranty" in add:
        text += f" Your warranty lasts {known['warranty']}."
    if "ticket" in add:
        text += f" Your ticket is {known['ticket']}."
    return text


def _summary(shown: Shown) -> str:
    facts = re.sub(r"['\[\]]", "", shown.rest("Sum up: "))
    return f"Here they are: {facts}"


def _recall(shown: Shown) -> str:
    ticket = shown.rest("The ticket is ")
    return f"Your ticket is {ticket}" if ticket.startswith("T-") else "You have no ticket yet."


def _greet(shown: Shown) -> str:
    return "Hallo! Wie kann ich helfen?" if shown.is_german else "Hello! How can I help?"


ANSWERS: Final[Mapping[str, Callable[[Shown], str]]] = {
    "tracker": _track,
    "offline_tracker": _offline,
    "quote": _quote,
    "pay": _pay,
    "explain": _explain,
    "manager": lambda _: "A colleague has to approve this.",
    "billing": _bill,
    "account": _account,
    "diagnose": _findings,
    "draft": _draft,
    "damage": lambda _: "A colleague will look at the damage.",
    "status": lambda shown: f"{shown.order} {shown.result('look_up_order', 'status')}",
    "summary": _summary,
    "purchases": lambda shown: f"orders {', '.join(shown.result('list_orders', 'orders'))}",
    "spending": lambda shown: f"{shown.result('list_invoices', 'total'):.2f} EUR spent",
    "overview": _summary,
    "human": lambda _: "A colleague will call you back.",
    "recall": _recall,
    "faq": lambda shown: (shown.result("search_docs", "found") or ["I do not know."])[0],
    "greet": _greet,
    "clarify": lambda _: "Is it about an order, a refund, an invoice or your account?",
    "refuse": lambda _: "Please never send card numbers.",
}
