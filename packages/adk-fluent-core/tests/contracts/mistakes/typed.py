"""Values of another type than their readers take, and state that its schema does not allow."""

from __future__ import annotations

from typing import Final

from ._mistake import Mistake

_KIND: Final = "TypeMismatch"
_SCHEMA: Final = "SchemaViolation"

MISTAKES: Final = (
    Mistake(
        title="a number that is written as text, and compared by a route",
        of="bug assistant",
        right='.writes("diagnosis", CONFIDENCE, SEVERITY)',
        wrong='.writes("diagnosis", CONFIDENCE, StateFieldRef("severity", str))',
        finding=_KIND,
        at=(("route", "severity"),),
        help="`severity`",
    ),
    Mistake(
        title="a score that an agent answers as text",
        of="loan",
        right='"The credit score of {applicant}.").writes(SCORE)',
        wrong='"The credit score of {applicant}.").writes("credit_score")',
        finding=_KIND,
        at=(("route", "credit_score"),),
        help="`credit_score`",
    ),
    Mistake(
        title="a budget that is text",
        of="weekend",
        right=".writes(BUDGET)",
        wrong='.writes("budget")',
        finding=_KIND,
        at=(("route", "budget"),),
        help="`budget`",
    ),
    Mistake(
        title="a map over a text",
        of="warehouse docs",
        right=".writes(TABLES)",
        wrong='.writes("tables")',
        finding=_KIND,
        at=(("map_over", "tables"),),
        help="`tables`",
    ),
    Mistake(
        title="a map over a list, which a step in the loop replaces by a text",
        of="city walk",
        right='"Leave out stops: {walk}").writes(STOPS)',
        wrong='"Leave out stops: {walk}").writes("stops")',
        finding=_KIND,
        at=(("map_over", "stops"),),
        help="`stops`",
    ),
    Mistake(
        title="a map over keywords in one line",
        of="brand search",
        right=".writes(KEYWORDS)",
        wrong='.writes("keywords")',
        finding=_KIND,
        at=(("map_over", "keywords"),),
        help="`keywords`",
    ),
    Mistake(
        title="a map over a number",
        of="payroll",
        right=".writes(PEOPLE)",
        wrong='.writes(StateFieldRef("people", int))',
        finding=_KIND,
        at=(("map_over", "people"),),
        help="`people`",
    ),
    Mistake(
        title="an output that is declared as another type than it is written as",
        of="economic research",
        right='outputs=["paper", "score"]',
        wrong='outputs=["paper", StateFieldRef("score", list[str])]',
        finding=_KIND,
        at=(("pipeline", "score"),),
        help="`score`",
    ),
    Mistake(
        title="an input that is declared as another type than it is read as",
        of="product pictures",
        right='inputs=["garments"]',
        wrong='inputs=[StateFieldRef("garments", str)]',
        finding=_KIND,
        at=(("map_over", "garments"),),
        help="`garments`",
    ),
    Mistake(
        title="a reader that declares another type than the writer",
        of="marketing agency",
        right='"keep or redo: {logo}")',
        wrong='"keep or redo: {logo}").reads(StateFieldRef("logo", bytes))',
        finding=_KIND,
        at=(("art_director", "logo"),),
        help="`logo`",
    ),
    Mistake(
        title="a key that the schema does not declare",
        of="llm auditor",
        right="contract(\n        inputs=[]",
        wrong="state(ReviewState).contract(\n        inputs=[]",
        finding=_SCHEMA,
        at=(("critic", "findings"), ("reviser", "findings")),
        help="ReviewState",
    ),
    Mistake(
        title="a key that the schema declares as a number",
        of="deep search",
        right="contract(\n        inputs=[]",
        wrong="state(SearchState).contract(\n        inputs=[]",
        finding=_SCHEMA,
        at=(("evaluator", "grade"),),
        help="float",
    ),
    Mistake(
        title="a reader of a key that the schema does not declare",
        of="slide deck",
        right='contract(inputs=["topic", "brand"]',
        wrong='state(DeckState).contract(inputs=["topic", "brand"]',
        finding=_SCHEMA,
        at=(("deck_outliner", "topic"),),
        help="DeckState",
    ),
    Mistake(
        title="a key that the schema keeps in another scope",
        of="ticket agent",
        right="contract(\n        inputs=[]",
        wrong="state(TicketState).contract(\n        inputs=[]",
        finding=_SCHEMA,
        at=(
            ("ticket_agent", "user:last_ticket"),
            ("echo", "user:last_ticket"),
            ("pipeline", "user:last_ticket"),
        ),
        help="`app:last_ticket`",
    ),
)
