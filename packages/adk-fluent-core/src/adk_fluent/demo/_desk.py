"""The pipeline: a support desk. This is what a program with adk-fluent looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.builders import Agent, Fallback, FanOut, Pipeline, Route, until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.demo._database import Database

#: What a ticket may be about.
CATEGORIES = ("billing", "technical", "account", "general")


def approved(state: Mapping[str, Any]) -> bool:
    """Whether the reviewer let the draft pass."""
    return str(state.get("verdict")).strip().upper().startswith("APPROVED")


def filed_under(state: Mapping[str, Any]) -> dict[str, str]:
    """The category as one of the four known words, whatever the model made of it."""
    said = str(state.get("category")).lower()
    return {"category": next((known for known in CATEGORIES if known in said), "general")}


def support_desk(database: Database, primary: Any, backup: Any) -> Pipeline:
    """Classify, look up, draft and review until approved, file the reply.

    Args:
        database: What the tools work on.
        primary: The model; a name or an ADK model.
        backup: The model that drafts when `primary` fails.
    """
    classify = (
        Agent("classify")
        .instruct(
            "Read the support ticket. Answer with exactly one word: "
            "billing, technical, account or general."
        )
        .writes("category")
    )
    customer = (
        Agent("customer")
        .instruct("Find the sender with your tool. Say in one sentence who this customer is.")
        .tool(database.find_customer)
        .writes("customer")
    )
    orders = (
        Agent("orders")
        .instruct("List the sender's orders with your tool. Sum them up in one sentence.")
        .tool(database.recent_orders)
        .writes("facts")
    )
    issues = (
        Agent("issues")
        .instruct("Look for known issues of the product with your tool. Give the advice that fits.")
        .tool(database.known_issues)
        .writes("facts")
    )
    drafting = (
        "Answer the customer of the ticket in a few friendly sentences, in their language. "
        "Customer: {customer?} Facts: {facts?} "
        "Your last draft: {reply?} The reviewer said: {verdict?}"
    )
    draft = Agent("draft").instruct(drafting).writes("reply")
    draft_backup = Agent("draft_backup", backup).instruct(drafting).writes("reply")
    review = (
        Agent("review")
        .instruct(
            "Review the reply to the ticket: {reply} "
            "Answer APPROVED, or say in one sentence what must change."
        )
        .history("own")
        .writes("verdict")
    )
    look_up = (
        Route("category")
        .eq("billing", FanOut(customer, orders))
        .eq("technical", FanOut(customer, issues))
        .otherwise(customer)
    )
    write = Fallback(draft, draft_backup) >> review
    return (
        (
            classify
            >> filed_under
            >> look_up
            >> write * until(approved, max=3)
            >> database.file_reply
        )
        .named("support_desk")
        .model(primary)
    )
