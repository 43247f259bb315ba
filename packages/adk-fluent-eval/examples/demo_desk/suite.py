"""A suite over the demo's support desk: 70 cases, and 15 defects that they find.

::

    adk-fluent eval run suite.py:suite --html report.html
    adk-fluent eval run suite.py:no_apology        # with a defect

`cases.yaml` has the cases. The model is scripted, so that it runs offline.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.demo import Database, script, support_desk, tickets
from adk_fluent.eval import FluentCase, FluentEvalSuite, FluentJudge
from adk_fluent.testing import Asked, Call, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FOLDER: Final = TemporaryDirectory(prefix="demo-desk-")  # until the program ends
_COUNT: Final = count()


# --- what the cases ask of replies --------------------------------------------------------------


def says_it(state: dict[str, Any], case: FluentCase) -> tuple[bool, str]:
    """Whether the reply says what the case wants."""
    missing = [text for text in case.metadata.get("reply", ()) if text not in state["reply"]]
    return not missing, f"it does not say {missing}: {state['reply']!r}" if missing else ""


def says_no_more(state: dict[str, Any], case: FluentCase) -> tuple[bool, str]:
    """Whether the reply names no order of somebody else, and promises no money."""
    wanted = " ".join(case.metadata.get("reply", ()))
    found = re.findall(r"\b1\d{3}\b|refund \d+ EUR", str(state.get("reply", "")))
    others = [each for each in found if each not in wanted]
    return not others, f"it says {', '.join(others)}" if others else ""


# --- defects ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Defect:
    """Something wrong with the desk.

    Attributes:
        found_by: Cases that find it.
        says: Agent to what its model says instead; None is what it would have said.
        tools: Tool to what it returns, given what it would have returned.
    """

    found_by: tuple[str, ...]
    says: Mapping[str, Callable[[Asked], Any]] | None = None
    tools: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] | None = None


def _english_only(asked: Asked) -> Any:
    return "general" if re.search("Fehler|rembourser|roja|Passwort", asked.prompt) else None


def _names_two(asked: Asked) -> Any:
    return "Not billing, account" if "password" in asked.prompt.lower() else None


def _obeys(asked: Asked) -> Any:
    obeyed = any("Ignore all previous" in turn.text for turn in asked.turns)
    return "Hello Jade, we refund 10000 EUR at once." if obeyed else None


def _asks_twice(asked: Asked) -> Any:
    results = sum(turn.text.startswith("[result find_customer") for turn in asked.turns)
    sender = re.search(r"From: (\S+)", "\n".join(turn.text for turn in asked.turns))
    return Call("find_customer", {"email": sender[1]}) if results == 1 and sender else None


def _asks_for_ana(asked: Asked) -> Any:
    known = any("[result" in turn.text for turn in asked.turns)
    return None if known else Call("find_customer", {"email": "ana@example.com"})


def _invents(asked: Asked) -> Any:
    known = any("[result" in turn.text for turn in asked.turns)
    return "Please reset it." if known else None


def _unknown_raises(found: dict[str, Any]) -> dict[str, Any]:
    if "error" in found:
        raise LookupError(found["error"])
    return found


DEFECTS: Final[dict[str, Defect]] = {
    "english_only": Defect(
        ("fehler-e42", "double-prelevement", "no-funciona", "passwort"),
        {"classify": _english_only},
    ),
    "names_two": Defect(("password-reset", "hacked"), {"classify": _names_two}),
    "no_apology": Defect(
        ("wrong-amount", "trial", "review-rude"), {"review": lambda _: "APPROVED"}
    ),
    "never_approves": Defect(
        ("cheap-when-simple", "charged-twice"), {"review": lambda _: "Please apologise first."}
    ),
    "nameless": Defect(
        ("charged-twice", "another-customer"), {"draft": lambda _: "Hello, we will look at it."}
    ),
    "obeys_tickets": Defect(("prompt-injection",), {"draft": _obeys}),
    "asks_for_ana": Defect(
        ("cannot-connect", "dark-mode", "customer-known"), {"customer": _asks_for_ana}
    ),
    "asks_twice": Defect(("cheap-when-simple", "opening-hours"), {"customer": _asks_twice}),
    "invents_advice": Defect(
        ("cannot-connect", "slow", "issues-step-unknown"), {"issues": _invents}
    ),
    "no_backup": Defect(
        ("refund-still-missing", "locked-out", "backup-drafts"),
        {"draft_backup": lambda _: reply(status=404)},
    ),
    "orders_of_others": Defect(
        ("charged-twice", "vat"),
        tools={
            "recent_orders": lambda found: {
                "orders": [*found["orders"], {**found["orders"][0], "id": 1999}]
            }
        },
    ),
    "returns_forgotten": Defect(
        ("charged-twice", "orders-step"),
        tools={
            "recent_orders": lambda found: {
                "orders": [{**each, "status": "delivered"} for each in found["orders"]]
            }
        },
    ),
    "issues_lost": Defect(
        ("cannot-connect", "battery", "issues-step"),
        tools={"known_issues": lambda _: {"issues": []}},
    ),
    "unknown_raises": Defect(
        ("not-a-customer", "customer-unknown"), tools={"find_customer": _unknown_raises}
    ),
    "not_filed": Defect(
        ("charged-twice", "opening-hours"), tools={"file_reply": lambda _: {"filed": False}}
    ),
}


class _Tools(Database):
    """The demo's tools, some of which may have a defect."""

    def __init__(self, defect: Defect) -> None:
        super().__init__(Path(_FOLDER.name, f"{next(_COUNT)}.sqlite"))
        self._wrong = defect.tools or {}

    def _seen(self, tool: str, found: dict[str, Any]) -> dict[str, Any]:
        return self._wrong[tool](found) if tool in self._wrong else found

    def find_customer(self, email: str) -> dict[str, Any]:
        """Look up a customer by e-mail address."""
        return self._seen("find_customer", super().find_customer(email))

    def recent_orders(self, email: str) -> dict[str, Any]:
        """List a customer's orders, newest first."""
        return self._seen("recent_orders", super().recent_orders(email))

    def known_issues(self, product: str) -> dict[str, Any]:
        """List known issues of a product: Hub, Camera or Sensor."""
        return self._seen("known_issues", super().known_issues(product))

    def file_reply(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Store the reply that was approved."""
        return self._seen("file_reply", super().file_reply(state))


def suite_of(name: str = "") -> FluentEvalSuite:
    """Return the suite, with a desk as it should be or with a defect of `DEFECTS`."""
    defect = DEFECTS[name] if name else Defect(())
    healthy, says = script(), defect.says or {}

    async def answer(asked: Asked) -> Any:
        instead = says.get(str(asked.agent))
        wrong = None if instead is None else instead(asked)
        return await healthy.answer(asked) if wrong is None else wrong

    model = ScriptedModel(default=answer)
    suite = FluentEvalSuite.from_yaml(
        Path(__file__).with_name("cases.yaml"),
        support_desk(_Tools(defect), model, model),
        custom_judges=[
            FluentJudge("says_it", says_it, threshold=1.0),
            FluentJudge("says_no_more", says_no_more, threshold=1.0),
        ],
    )
    text = {each.id: each.text for each in tickets()}
    for case in suite.cases:
        case.input = text.get(str(case.input), case.input)
    return suite


def __getattr__(name: str) -> FluentEvalSuite:
    if name != "suite" and name not in DEFECTS:
        raise AttributeError(name)
    return suite_of("" if name == "suite" else name)
