"""A model that does what its instruction says, to the letter, by rules and without a network.

It calls the tools that the instruction lists (``Call a, then b if it has shipped.``), finds their
arguments in what it is shown, and leaves out of its answer what nobody has told it to say. So a
word that is missing in a prompt changes what the desk does, as it does with a real model.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.testing import Call, ScriptedModel, rule

from .answers import ANSWERS, ASK
from .shown import ORDER, Shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from adk_fluent.testing import Answer, Asked

_SERIAL: Final = re.compile(r"\bSN-\d{4}\b")
_CARD: Final = re.compile(r"\b(?:\d{4}[ -]?){4}\b")
_PLAN: Final = re.compile(r"\bCall ([^.]+)\.")

#: What tells an intent, the strongest first.
_SIGNS: Final = {
    "human": r"person|human|complain|call me",
    "refund": r"refund|money back|pay back|geld zurück",
    "damage": r"broken|scratched|\[image/",
    "account": r"password|locked",
    "billing": r"invoice|charged|\bVAT\b",
    "technical": r"bluetooth|battery|does not work|SN-",
    "ticket": r"ticket",
    "overview": r"overview|everything i bought",
    "tracking": r"where|when|arrive|\bwo ist\b",
    "question": r"opening|shipping",
    "greeting": r"\bhello\b|thanks|hallo|danke",
}


def literal_model() -> ScriptedModel:
    """The model of the whole desk."""
    return ScriptedModel(
        rules=[
            rule(agent="classify", reply=_classify),
            rule(agent="language", reply=_language),
            rule(agent="mood", reply=_mood),
            rule(agent="screen", reply=_screen),
            rule(agent="extract", reply=_extract),
        ],
        default=_clerk,
    )


# --- sorting -------------------------------------------------------------------------------------


def _classify(asked: Asked) -> str:
    shown = Shown.of(asked)
    for age, said in enumerate(reversed(shown.said)):
        intents = [each for each in _intents(said) if each in shown.told]
        if intents:
            sure = 0.6 if age else 0.9 if len(intents) == 1 else 0.7
            return json.dumps({"intent": intents[0], "confidence": sure})
    return json.dumps({"intent": "other", "confidence": 0.2})


def _intents(said: str) -> Iterator[str]:
    if len(ORDER.findall(said)) > 1:
        yield "several"
    for intent, signs in _SIGNS.items():
        if re.search(signs, said, re.IGNORECASE):
            yield intent


def _language(asked: Asked) -> str:
    german = re.search(r"\b(wo|ist|ich|hallo|danke|bitte)\b", Shown.of(asked).now, re.IGNORECASE)
    return "de" if german else "en"


def _mood(asked: Asked) -> str:
    return "angry" if re.search(r"!|unacceptable", Shown.of(asked).now) else "calm"


def _screen(asked: Asked) -> str:
    return "card" if _CARD.search(Shown.of(asked).now) else "fine"


def _extract(asked: Asked) -> str:
    return json.dumps({"orders": ORDER.findall(Shown.of(asked).now)})


# --- tools ---------------------------------------------------------------------------------------

_CONDITIONS: Final[Mapping[str, Callable[[Shown], bool]]] = {
    "it has shipped": lambda shown: shown.result("look_up_order", "status") == "shipped",
    "nothing was found": lambda shown: not shown.result("search_docs", "found"),
    "there is a serial number": lambda shown: bool(_SERIAL.search(shown.now)),
    "it is disputed": lambda shown: bool(re.search("wrong|twice", shown.now)),
    "the account is locked": lambda shown: "locked" in shown.now,
    "the password is forgotten": lambda shown: "password" in shown.now,
    "the customer cannot sign in": lambda shown: bool(re.search("locked|password", shown.now)),
}


def _ticket(shown: Shown) -> dict[str, Any]:
    urgent = shown.is_angry and "is of high priority" in shown.told
    made: dict[str, Any] = {
        "kind": shown.rest("The kind of ticket is "),
        "priority": "high" if urgent else "normal",
    }
    if "whether there is a photo" in shown.told:
        made["photo"] = "[image/" in shown.now
    return made


#: What a tool is given; None for what nobody has said.
_ARGUMENTS: Final[Mapping[str, Callable[[Shown], dict[str, Any]]]] = {
    **dict.fromkeys(
        ("look_up_order", "track_parcel", "find_invoice", "quote_refund"),
        lambda shown: {"order": shown.order},
    ),
    **dict.fromkeys(
        ("verify_identity", "reset_password", "unlock_account", "list_orders", "list_invoices"),
        lambda shown: {"email": shown.email},
    ),
    "search_docs": lambda shown: {"query": shown.query},
    "check_warranty": lambda shown: {"serial": _SERIAL.findall(shown.now)[0]},
    "process_refund": lambda shown: {
        "order": shown.order,
        "amount": float(shown.rest("The refund in EUR is ")),
    },
    "create_ticket": _ticket,
}


def _clerk(asked: Asked) -> Answer:
    """Call the tools of the instruction, one after the other, then answer."""
    shown = Shown.of(asked)
    errors = [text for each in shown.results.values() if (text := each.get("error"))]
    if errors and "If a tool reports an error, say so." in shown.told:
        return f"I am sorry: {errors[-1]}."
    name = next(_left_to_call(shown), None)
    if name is None:
        return _answer(asked.agent or "", shown)
    args = _ARGUMENTS[name](shown)
    missing = next((key for key, value in args.items() if value is None), None)
    return Call(name, args) if missing is None else ASK[missing]


def _left_to_call(shown: Shown) -> Iterator[str]:
    called = list(shown.called)
    plan = _PLAN.search(shown.told)
    for step in plan[1].split(", then ") if plan else ():
        name, _, condition = step.partition(" if ")
        if called and called[0] == name:
            called.pop(0)
        elif not condition or _CONDITIONS[condition](shown):
            yield name


# --- answers -------------------------------------------------------------------------------------


def _answer(agent: str, shown: Shown) -> str:
    text = ANSWERS[agent](shown)
    if shown.is_angry and "Apologise to angry customers." in shown.told:
        text = f"I am sorry for the trouble. {text}"
    ticket = shown.result("create_ticket", "ticket")
    if ticket and "Name the ticket." in shown.told:
        text = f"{text} Your ticket is {ticket}."
    note = shown.result("look_up_order", "note")
    if note and "Keep internal notes to yourself." not in shown.told:
        text = f"{text} (Internal note: {note}.)"
    return text
