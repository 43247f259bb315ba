"""Branches that run at the same time, and read or write what another of them writes."""

from __future__ import annotations

from typing import Final

from ._mistake import Mistake

_READ: Final = "ReadRace"
_WRITE: Final = "WriteRace"

MISTAKES: Final = (
    Mistake(
        title="a chart of what the branch beside it finds out",
        of="data science",
        right="Describe a chart of {rows}.",
        wrong="Describe a chart of {rows}, for {analysis}.",
        finding=_READ,
        at=(("plotter", "analysis"),),
        help="`statistician`",
    ),
    Mistake(
        title="a logo for a plan that is being made",
        of="marketing agency",
        right="Describe a logo for {brand}.",
        wrong="Describe a logo for {brand} that fits {plan}.",
        finding=_READ,
        at=(("logo_maker", "plan"),),
        help="`strategist`",
    ),
    Mistake(
        title="a stock for a demand that is being forecast within a limit of time",
        of="supply chain",
        right="What is in stock for {region}?",
        wrong="What is in stock for {region} and {demand}?",
        finding=_READ,
        at=(("stock_keeper", "demand"),),
        help="`demand_forecaster`",
    ),
    Mistake(
        title="a label that depends on the reviewer",
        of="pull request triage",
        right="A label for {title}: {description}",
        wrong="A label for {title} that {reviewer} knows: {description}",
        finding=_READ,
        at=(("label_finder", "reviewer"),),
        help="`reviewer_finder`",
    ),
    Mistake(
        title="a long post made of the short one",
        of="blog writer",
        right="Three lines about {post}",
        wrong="Three lines like {short_post} about {post}",
        finding=_READ,
        at=(("long_poster", "short_post"),),
        help="`short_poster`",
    ),
    Mistake(
        title="a cover for a treatment that is being read",
        of="pre-authorization",
        right="What does {policy} cover?",
        wrong="Does {policy} cover {treatment}?",
        finding=_READ,
        at=(("policy_reader", "treatment"),),
        help="`record_reader`",
    ),
    Mistake(
        title="features of a summary that is written in the same moment, in a loop",
        of="document generation",
        right="List the features in: {body}",
        wrong="List the features in: {summary}",
        finding=_READ,
        at=(("feature_writer", "summary"),),
        help="`summary_writer`",
    ),
    Mistake(
        title="an optional read of what a branch beside it writes",
        of="image scoring",
        right="Score {picture} from 0 to 10.",
        wrong="Score {picture} from 0 to 10. Safe: {safe?}",
        finding=_READ,
        severity="warning",
        at=(("taste_judge", "safe"),),
        help="`policy_judge`",
        silent=True,
    ),
    Mistake(
        title="two searches that write the same notes",
        of="deep search",
        right="paper_notes",
        wrong="web_notes",
        finding=_WRITE,
        at=(("search", "web_notes"),),
        help="different keys",
    ),
    Mistake(
        title="two checks that write one status",
        of="returns desk",
        right="policy_status",
        wrong="order_status",
        finding=_WRITE,
        at=(("return_checks", "order_status"),),
        help="different keys",
    ),
    Mistake(
        title="intelligence and logs in one key",
        of="cyber guardian",
        right="logs",
        wrong="intel",
        finding=_WRITE,
        at=(("gather", "intel"),),
        help="different keys",
    ),
    Mistake(
        title="two reviews that write one report",
        of="code review",
        uses=("summed",),
        right="audit_report",
        wrong="lint_report",
        finding=_WRITE,
        at=(("checks", "lint_report"),),
        help="different keys",
    ),
)
