"""The support desk's parts: tickets, database, script and pipeline; no ADK in here."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from adk_fluent.demo import CATEGORIES, Database, script, support_desk, tickets
from adk_fluent.demo._desk import approved, filed_under
from adk_fluent.ir import AgentNode, FallbackNode, LoopNode, ParallelNode, RouteNode, walk
from adk_fluent.testing import Asked, Call, Reply, Turn

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "desk.sqlite")


# --- tickets -------------------------------------------------------------------------------------


def test_there_are_fifty_tickets_of_every_category() -> None:
    todo = tickets()
    assert [ticket.id for ticket in todo] == [f"T{n:02}" for n in range(1, 51)]
    counts = Counter(ticket.expected for ticket in todo)
    assert set(counts) == set(CATEGORIES)
    assert min(counts.values()) >= 8


def test_the_tickets_are_as_varied_as_real_ones() -> None:
    bodies = [ticket.body for ticket in tickets()]
    assert len(set(bodies)) == 50
    assert any("{" in body for body in bodies), "template braces"
    assert any("<script>" in body for body in bodies), "markup"
    assert any("Ignore all previous instructions" in body for body in bodies), "an injection"
    assert any("请" in body for body in bodies), "Chinese"
    assert any("🙂" in body for body in bodies), "outside of the basic plane"
    assert max(map(len, bodies)) > 200
    assert min(map(len, bodies)) < 10


# --- database ------------------------------------------------------------------------------------


def test_tools_look_into_the_database(database: Database) -> None:
    assert database.find_customer("ana@example.com")["name"] == "Ana"
    [order] = database.recent_orders("ana@example.com")["orders"]
    assert order["product"] == "Hub"
    assert "red light" in {issue["sign"] for issue in database.known_issues("Hub")["issues"]}


def test_tools_find_nothing_for_strangers_and_attackers(database: Database) -> None:
    for email in ("nobody@example.com", "' OR 1=1 --"):
        assert "error" in database.find_customer(email)
        assert database.recent_orders(email) == {"orders": []}
    assert database.known_issues("Toaster") == {"issues": []}


def test_replies_are_filed(database: Database) -> None:
    assert database.replies() == 0
    state = {"ticket": "T01", "category": "billing", "reply": "Hello"}
    assert database.file_reply(state) == {"filed": True}
    assert database.replies() == 1


def test_no_file_is_overwritten(database: Database) -> None:
    database.file_reply({"ticket": "T01"})
    with pytest.raises(sqlite3.Error):
        Database(database.path)
    assert database.replies() == 1


# --- the pipeline --------------------------------------------------------------------------------


def test_the_desk_shows_what_the_language_can_do(database: Database) -> None:
    desk = support_desk(database, "gemini-2.5-flash", "gemini-2.5-flash-lite").to_ir()
    kinds = {type(node) for node in walk(desk)}
    assert {RouteNode, ParallelNode, LoopNode, FallbackNode} <= kinds
    models = {node.name: node.model for node in walk(desk) if isinstance(node, AgentNode)}
    assert models.pop("draft_backup") == "gemini-2.5-flash-lite"
    assert set(models.values()) == {"gemini-2.5-flash"}


def test_the_desk_is_without_a_finding(database: Database) -> None:
    report = support_desk(database, "gemini-2.5-flash", "gemini-2.5-flash-lite").check()
    assert report.ok
    assert not report.errors
    assert not report.warnings


@pytest.mark.parametrize(
    ("said", "category"),
    [
        ("billing", "billing"),
        ("Technical.", "technical"),
        ("The category is: **ACCOUNT**", "account"),
        ("I cannot tell", "general"),
        (None, "general"),
    ],
)
def test_the_category_is_one_of_four_whatever_a_model_says(said: str, category: str) -> None:
    assert filed_under({"category": said}) == {"category": category}


@pytest.mark.parametrize(
    ("verdict", "passes"),
    [
        ("APPROVED", True),
        (" approved.\n", True),
        ("Not approved", False),
        ("Please apologise first.", False),
        (None, False),
    ],
)
def test_a_draft_passes_when_the_reviewer_says_so(verdict: str, passes: bool) -> None:
    assert approved({"verdict": verdict}) is passes
    assert approved({}) is False


# --- the script ----------------------------------------------------------------------------------


def asked(agent: str, ticket: str, *more: Turn, system: str = "") -> Asked:
    text = next(each.text for each in tickets() if each.id == ticket)
    return Asked(turns=(Turn("user", text), *more), agent=agent, system=system)


async def test_the_script_classifies_like_a_person_nearly_always() -> None:
    model = script()
    said = {
        ticket.id: (await model.answer(asked("classify", ticket.id))).text for ticket in tickets()
    }
    right = sum(said[ticket.id] == ticket.expected for ticket in tickets())
    assert right >= 46


async def test_the_script_calls_tools_and_reads_what_they_return() -> None:
    first = await script().answer(asked("issues", "T02"))
    assert first.parts == (Call("known_issues", {"product": "Hub"}),)
    result = '[result known_issues {"issues": [{"sign": "red light", "advice": "Unplug it."}]}]'
    then = await script().answer(asked("issues", "T02", Turn("user", result)))
    assert then.text == "Known issue (red light): Unplug it."


async def test_the_script_revises_when_the_reviewer_asks_for_it() -> None:
    model = script()
    draft = await model.answer(asked("draft", "T05"))
    assert "sorry" not in draft.text
    verdict = await model.answer(asked("review", "T05", system=f"Review: {draft.text}"))
    assert verdict.text == "Please apologise first."
    system = f"Your last draft: {draft.text} The reviewer said: {verdict.text}"
    draft = await model.answer(asked("draft", "T05", system=system))
    assert "I am sorry" in draft.text
    verdict = await model.answer(asked("review", "T05", system=f"Review: {draft.text}"))
    assert verdict.text == "APPROVED"


async def test_the_scripted_model_is_unavailable_now_and_then() -> None:
    model = script()
    replies: list[Reply] = [await model.answer(asked("draft", t.id)) for t in tickets()]
    down = [t.id for t, reply in zip(tickets(), replies, strict=True) if reply.status == 503]
    assert down == ["T07", "T14", "T21", "T28", "T35", "T42", "T49"]
    assert (await model.answer(asked("draft_backup", "T07"))).text.startswith("Hello")
