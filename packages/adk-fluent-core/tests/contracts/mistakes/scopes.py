"""Keys that are kept in another scope than they are read from, and keys of earlier sessions."""

from __future__ import annotations

from typing import Final

from ._mistake import Mistake

_KIND: Final = "ScopeMismatch"
_EXTERNAL: Final = "ExternalState"

MISTAKES: Final = (
    Mistake(
        title="a key of the user that is read without its prefix",
        of="preferences",
        right="known: {user:preferences}",
        wrong="known: {preferences}",
        finding=_KIND,
        at=(("confirmer", "preferences"),),
        help="`user:preferences`",
    ),
    Mistake(
        title="a key of the user that is read as the application's",
        of="ticket agent",
        right="Repeat {ticket}; {user:last_ticket}.",
        wrong="Repeat {ticket}; {app:last_ticket}.",
        finding=_KIND,
        severity="warning",
        at=(("echo", "app:last_ticket"),),
        help="`user:last_ticket`",
    ),
    Mistake(
        title="a key of the run that is read as the session's",
        of="column report",
        right="Explain the columns {temp:columns}.",
        wrong="Explain the columns {columns}.",
        finding=_KIND,
        at=(("column_reporter", "columns"),),
        help="`temp:columns`",
    ),
    Mistake(
        title="a key of the session that is read as the user's",
        of="inspiration",
        right="Sum up the itinerary {itinerary}.",
        wrong="Sum up the itinerary {user:itinerary}.",
        finding=_KIND,
        severity="warning",
        at=(("summarizer", "user:itinerary"),),
        help="`itinerary`",
    ),
    Mistake(
        title="a verdict that is written for the run, and read from the session",
        of="stale issues",
        right='"Did the author answer: {said}").writes(ANSWERED)',
        wrong='"Did the author answer: {said}").writes(StateFieldRef("temp:answered", bool))',
        finding=_KIND,
        at=(("loop", "answered"), ("route", "answered")),
        help="`temp:answered`",
    ),
    Mistake(
        title="an outline that is written for the user, and read from the session",
        of="blog writer",
        right='.writes("outline")',
        wrong='.writes("user:outline")',
        finding=_KIND,
        at=(("outline_checker", "outline"), ("post_writer", "outline")),
        help="`user:outline`",
    ),
    Mistake(
        title="a map over a list that is kept for the run",
        of="payroll",
        right=".writes(PEOPLE)",
        wrong='.writes(StateFieldRef("temp:people", list[str]))',
        finding=_KIND,
        severity="warning",
        at=(("map_over", "people"),),
        help="`temp:people`",
        silent=True,
    ),
    Mistake(
        title="an input of the user's that is read from the session",
        of="financial advisor",
        right="attitude {user:risk_attitude}.",
        wrong="attitude {risk_attitude}.",
        finding=_KIND,
        at=(("trading_analyst", "risk_attitude"),),
        help="`user:risk_attitude`",
    ),
    Mistake(
        title="a key of the user that no earlier session need have written",
        of="financial advisor",
        right='inputs=["ticker", "user:risk_attitude"]',
        wrong='inputs=["ticker"]',
        finding=_EXTERNAL,
        at=(("trading_analyst", "user:risk_attitude"),),
        help='inputs=["user:risk_attitude"]',
    ),
    Mistake(
        title="a key of the application that nobody has set up",
        of="picture",
        right='inputs=["app:house_style"]',
        wrong="inputs=[]",
        finding=_EXTERNAL,
        at=(("drawer", "app:house_style"),),
        help='inputs=["app:house_style"]',
    ),
    Mistake(
        title="a key of the user that a declared read needs",
        of="customer service",
        right='inputs=["user:first_name", "user:standing", CART]',
        wrong='inputs=["user:first_name", CART]',
        finding=_EXTERNAL,
        at=(("shop_assistant", "user:standing"),),
        help='inputs=["user:standing"]',
    ),
)
