"""The page of `adk web` in a browser: an app chosen, messages sent, answers, state and traces seen.

Pictures of it are kept in the directory that `ADK_FLUENT_PICTURES` names.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from adk_commands import USER

from adk_fluent.backends.adk._caps import CAPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adk_commands import Conversation, Server

playwright: Any = pytest.importorskip(
    "playwright.sync_api", reason="the group `browser` is not installed"
)

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER: Final = next(filter(None, map(shutil.which, _NAMES)), None)
PICTURES: Final = os.environ.get("ADK_FLUENT_PICTURES")
PATIENCE: Final = 30_000  # milliseconds

pytestmark = [
    pytest.mark.adk,
    pytest.mark.skipif(BROWSER is None, reason=f"there is none of {', '.join(_NAMES)} on PATH"),
    pytest.mark.skipif(not CAPS.context, reason="the page of ADK 1.25 is another one"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BROWSER)
        yield opened
        opened.close()


@pytest.fixture
def opened(
    web: Server, browser: Any, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Page]]:
    """Opens the page and chooses an app."""
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    tab.set_default_timeout(PATIENCE)
    yield lambda app: Page(tab, web.url, app)
    if PICTURES is not None:
        tab.screenshot(path=Path(PICTURES) / f"{request.node.name}.png")
    tab.close()


class Page:
    """The page of `adk web`, as somebody in front of it uses it."""

    def __init__(self, tab: Any, url: str, app: str) -> None:
        self._tab = tab
        self._url = url
        refused = tab.get_by_text("No Thanks", exact=True)  # ADK 2.x wants to collect usage
        tab.add_locator_handler(refused, refused.click)
        tab.goto(url)
        tab.get_by_text(re.compile(r"^\s*Select an (app|agent)\s*$")).first.click()
        self.click(app)

    def _seen(self, text: str | re.Pattern[str]) -> Any:
        return self._tab.get_by_text(text, exact=True).filter(visible=True)

    def click(self, text: str) -> None:
        self._seen(text).last.click()

    def look_at(self, conversation: Conversation) -> None:
        """Open a session that was begun elsewhere."""
        known = f"app={conversation.app}&session={conversation.id}&userId={USER}"
        self._tab.goto(f"{self._url}/dev-ui/?{known}")

    def fill(self, label: str, value: str | bool) -> None:
        """Fill in a field of the last form."""
        field = self._tab.locator(f"input#{label}").filter(visible=True).last
        if isinstance(value, str):
            field.fill(value)
        else:
            field.set_checked(value)

    def send(self, message: str) -> None:
        box = self._tab.locator("textarea").last
        box.fill(message)
        box.press("Enter")

    def shows(self, *texts: str | re.Pattern[str]) -> None:
        """Wait until all of these stand somewhere on the page."""
        for text in texts:
            self._seen(text).last.wait_for()


def test_a_conversation_its_state_and_its_traces(opened: Callable[[str], Page]) -> None:
    page = opened("desk")
    page.send("Where is A1?")
    page.shows("It arrives on Monday.", "Dear customer, it is on its way.", "good")
    page.click("Traces")
    page.shows("desk", "classify", "mood", "clerk", "look_up", "writer", "judge")
    page.click("Events")
    page.send("Hello.")
    page.shows("Hello! Ask about an order.")
    page.click("State")
    page.shows("topic", '"other"', "answer", '"Dear customer, it is on its way."')


def test_a_question_and_its_answer(opened: Callable[[str], Page]) -> None:
    page = opened("refunds")
    page.send("Refund A1.")
    page.shows("adk_request_confirmation", '"A1"')
    page.click("Confirmed")
    page.click("Submit")
    page.shows("Done, A1 is paid back.", "Anything else?")


def test_a_gate_is_answered_in_its_form(opened: Callable[[str], Page]) -> None:
    page = opened("press")
    page.send("Write.")
    page.shows("We open in Rome.", "Publish this?")
    page.click("Payload")
    page.shows(re.compile(r'"release": "We open in Rome\."'))
    page.click("Form")
    page.fill("approved", True)
    page.click("Submit")
    page.shows("It is out: We open in Rome.")
    page.send("Once more.")
    page.fill("note", "too long")
    page.click("Submit")
    page.shows("approve was refused: too long. Nothing after it was run.")


def test_what_another_process_asked_is_answered_here(
    opened: Callable[[str], Page], api: Server
) -> None:
    press, refunds = api.session("press"), api.session("refunds")
    press.send("Write.")
    refunds.send("Refund A1.")
    page = opened("press")
    page.look_at(press)
    page.shows("Publish this?")
    page.fill("approved", True)
    page.click("Submit")
    page.shows("It is out: We open in Rome.")
    page.look_at(refunds)
    page.click("Confirmed")
    page.click("Submit")
    page.shows("Done, A1 is paid back.", "Anything else?")


def test_what_fails_is_shown(opened: Callable[[str], Page]) -> None:
    page = opened("broken")
    page.send("Hello.")
    page.shows("heavy", re.compile("'weight'"))
