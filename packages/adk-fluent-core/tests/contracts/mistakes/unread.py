"""Keys that are written and never read."""

from __future__ import annotations

from typing import Final

from ._mistake import Mistake

_KIND: Final = "DeadState"

MISTAKES: Final = (
    Mistake(
        title="a review that the writer never sees",
        of="economic research",
        right=" Heed the review: {review?}",
        wrong="",
        finding=_KIND,
        severity="warning",
        at=(("reviewer", "review"),),
        help="outputs",
    ),
    Mistake(
        title="warnings that nobody passes on",
        of="pre-trip",
        right="{visa} {vaccines} {storms} {warnings}",
        wrong="{visa} {vaccines} {storms}",
        finding=_KIND,
        severity="warning",
        at=(("warnings_agent", "warnings"),),
        help="outputs",
    ),
    Mistake(
        title="weather that the plan leaves out",
        of="supply chain",
        right="Plan for {weather}, {demand}, {stock}.",
        wrong="Plan for {demand}, {stock}.",
        finding=_KIND,
        severity="warning",
        at=(("weather_watcher", "weather"),),
        help="outputs",
    ),
    Mistake(
        title="comments that are read for nothing",
        of="channel analyst",
        right="Insights from {figure}, {comments}.",
        wrong="Insights from {figure}.",
        finding=_KIND,
        severity="warning",
        at=(("comment_reader", "comments"),),
        help="outputs",
    ),
    Mistake(
        title="a plan that is made and made anew before anybody reads it",
        of="story flow",
        right="storyteller >> (critic",
        wrong='storyteller >> S.set(story="Once upon a time") >> (critic',
        finding=_KIND,
        at=(("storyteller", "story"),),
        help="another key",
    ),
    Mistake(
        title="an output that is no longer declared",
        of="podcast",
        right='outputs=["talk", "title"]',
        wrong='outputs=["talk"]',
        finding=_KIND,
        severity="warning",
        at=(("titler", "title"),),
        help="outputs",
    ),
    Mistake(
        title="a key of each item that nobody reads",
        of="warehouse docs",
        right='"Describe the table {table}.")',
        wrong='"Describe the table {table}.").writes("description")',
        finding=_KIND,
        severity="warning",
        at=(("table_describer", "description"),),
        help="outputs",
    ),
    Mistake(
        title="hits that the diagnosis names twice in the place of others",
        of="bug assistant",
        right="commits}, {threads}",
        wrong="tickets}, {threads}",
        finding=_KIND,
        severity="warning",
        at=(("code_searcher", "commits"),),
        help="outputs",
    ),
)
