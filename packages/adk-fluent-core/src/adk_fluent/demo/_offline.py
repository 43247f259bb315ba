"""The demo's own model: a script that reads tickets as a (very) small language model might.

It works through ADK's real model interface, so everything but the wording is what would happen
with a real one: prompts, tool calls, streaming, state, retries, the fallback.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from adk_fluent.testing import Call, Script, reply, rule

if TYPE_CHECKING:
    from adk_fluent.testing import Asked

_WORDS = {
    "account": r"password|passwort|login|locked|account|账户|two-factor|newsletter|e-mail address",
    "billing": r"charg|refund|rembours|invoice|bill\b|vat\b|coupon|payment|cancel my|débit",
    "technical": r"error|fehler|cannot connect|red light|roja|offline|update|blurred|battery|heiß"
    r"|timeout|broken|crash|slow|sensor shows|接続",
}
_ANGRY = re.compile(r"angry|outrageous|scandal|terrible|!!!|fix it!", re.IGNORECASE)
_UNAVAILABLE = re.compile(r"Ticket: T(07|14|21|28|35|42|49)")


def script(latency: float = 0.0) -> Script:
    """A script for every agent of the support desk.

    Args:
        latency: Seconds each answer takes.
    """
    return Script(
        rules=[
            rule(agent="classify", reply=_classify),
            rule(agent="customer", reply=_customer),
            rule(agent="orders", reply=_orders),
            rule(agent="issues", reply=_issues),
            rule(_busy, agent="draft", reply=reply(status=503)),
            rule(agent="draft", reply=_draft),
            rule(agent="draft_backup", reply=_draft),
            rule(agent="review", reply=_review),
        ],
        latency=latency,
    )


def _ticket(asked: Asked) -> str:
    return next((turn.text for turn in asked.turns if "Ticket: T" in turn.text), asked.system)


def _field(asked: Asked, name: str) -> str:
    found = re.search(rf"^{name}: (.*)$", _ticket(asked), re.MULTILINE)
    return found[1] if found else ""


def _results(asked: Asked) -> str | None:
    """What the tool said, once it was called."""
    found = [turn.text for turn in asked.turns if turn.text.startswith("[result")]
    return found[-1] if found else None


def _busy(asked: Asked) -> bool:
    return _UNAVAILABLE.search(_ticket(asked)) is not None


def _classify(asked: Asked) -> str:
    text = _ticket(asked).partition("Subject:")[2].lower()
    for category in ("billing", "technical", "account"):
        if re.search(_WORDS[category], text):
            return category
    return "general"


def _customer(asked: Asked) -> Any:
    result = _results(asked)
    if result is None:
        return Call("find_customer", {"email": _field(asked, "From")})
    name = re.search(r'"name": "([^"]+)"', result)
    plan = re.search(r'"plan": "([^"]+)"', result)
    return (
        f"{name[1]} is on the {plan[1]} plan."
        if name and plan
        else "The sender is no customer yet."
    )


def _orders(asked: Asked) -> Any:
    result = _results(asked)
    if result is None:
        return Call("recent_orders", {"email": _field(asked, "From")})
    orders = re.findall(
        r'"id": (\d+), "product": "(\w+)", "eur": ([\d.]+), "status": "(\w+)"', result
    )
    listed = ", ".join(
        f"{number} ({product}, {eur} EUR, {status})" for number, product, eur, status in orders
    )
    return f"Orders: {listed}." if listed else "There are no orders."


def _issues(asked: Asked) -> Any:
    result = _results(asked)
    if result is None:
        return Call("known_issues", {"product": _field(asked, "Product")})
    ticket = _ticket(asked).lower()
    for sign, advice in re.findall(r'"sign": "([^"]+)", "advice": "([^"]+)"', result):
        if sign.lower() in ticket:
            return f"Known issue ({sign}): {advice}"
    return "No known issue fits; a technician has to look at it."


def _draft(asked: Asked) -> Any:
    said = re.search(r"The reviewer said: (.*)", asked.system)
    facts = re.search(r"Facts: (.*?) Your last draft", asked.system, re.DOTALL)
    customer = re.search(r"Customer: (\w+) is on", asked.system)
    text = f"Hello {customer[1]}" if customer else "Hello"
    text += f", thank you for writing about “{_field(asked, 'Subject')}”. "
    text += "I am sorry for the trouble. " if said and "apologise" in said[1].lower() else ""
    text += (facts[1].strip() + " ") if facts and facts[1].strip() else ""
    text += "We will get back to you within one working day."
    return reply(chunks=re.findall(r"\S+\s*", text))


def _review(asked: Asked) -> str:
    angry = _ANGRY.search(_ticket(asked)) is not None
    return "Please apologise first." if angry and "sorry" not in asked.system else "APPROVED"
