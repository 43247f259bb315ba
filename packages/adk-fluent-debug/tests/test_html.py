"""The page of a recording: what it has, that nothing in it can act, and how it is in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest

from adk_fluent.cli import OK, USAGE, main
from adk_fluent.debug import Recording, RecordingFileError
from adk_fluent.debug._html import html_page
from adk_fluent.debug._recorded_run import RecordedRun
from adk_fluent.errors import UsageError
from adk_fluent.protocol import Money, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

Data = dict[str, Any]

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER: Final = next(filter(None, map(shutil.which, _NAMES)), None)

HOSTILE: Final = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\" onload='alert(1)' x=\"",
    "$title ${data} </style></title><iframe src='http://example.com'>",
    "<!--<script>",
    "&lt;b&gt;",
    "\u2028alert(1)\u2029",
    "\x00\x1b[31m\u202etxt.exe\ud800 \u05e9\u05dc\u05d5\u05dd",
    "__proto__",
)


@pytest.fixture(autouse=True)
def no_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed here says nothing, unless a test wants it to."""
    provide(monkeypatch)


def provide(monkeypatch: pytest.MonkeyPatch, *books: Any) -> None:
    def provided(slot: str) -> list[Any]:
        return [SimpleNamespace(object=each) for each in books if slot == "price_books"]

    monkeypatch.setattr("adk_fluent._prices.provided", provided)


def message(text: str, role: str = "user") -> Data:
    return {"role": role, "parts": [{"text": text}]}


def model(t: float, number: int, *said: str, agent: str = "a", **more: Any) -> list[Data]:
    """A model call of 2 ms, whose answer is the last of what is said."""
    *asked, answer = said
    request = {
        "model": "m",
        "contents": [message(each) for each in asked],
        "config": {"system_instruction": more.pop("says", "Be kind.")},
    }
    usage = {"prompt_token_count": 7, "candidates_token_count": 5}
    response = {"content": message(answer, "model"), "usage_metadata": usage}
    return [
        {"t": t, "model_call": number, "agent": agent, "model": "m", "request": request, **more},
        {"t": t + 2, "reply_of": number, "responses": [response]},
    ]


def event(t: float, author: str = "a", **fields: Any) -> Data:
    return {"t": t, "event": {"author": author, **fields}}


def recording(*tape: Data, **known: Any) -> Recording:
    run = {"message": message("Hello"), "state": {}, "status": "completed", **known}
    return Recording([RecordedRun({**run, "tape": list(tape)})], {"recorded_at": "2026-01-02"})


def full_recording(text: str) -> Recording:
    """A recording with the text wherever a text can be."""
    error = {"type": f"builtins:{text}", "message": text}
    args = {text: text}
    made = recording(
        *model(1, 0, text, "x", text, agent=text, says=text, branch=text),
        {"t": 4, "tool_call": 1, "agent": text, "tool": text, "args": args},
        {"t": 5, "result_of": 1, "result": {text: [text]}, "effects": {"state_delta": args}},
        {"t": 6, "tool_call": 2, "agent": text, "tool": text, "args": args},
        {"t": 7, "result_of": 2, "error": error},
        event(8, text, content=text, state_delta=args, error={"code": text, "message": text}),
        message=message(text),
        state=args,
        status="failed",
        error=error,
    )
    made.metadata |= {"recorded_at": text, "versions": {f"adk {text}": text}}
    made.path = Path(f"{text.replace(chr(0), '').replace('/', '')}.json")
    return made


class Parsed(HTMLParser):
    """A page's elements, and what stands in its scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {}
        self._tag = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._tag = tag

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""

    def handle_data(self, data: str) -> None:
        self.inside.setdefault(self._tag, []).append(data)

    @property
    def data(self) -> Any:
        return json.loads(self.inside["script"][0])


def side(made: Recording) -> Any:
    return Parsed(html_page(made)).data["sides"][0]


def texts(found: Any, pairs: list[list[Any]]) -> list[list[Any]]:
    """Pairs or triples with the texts that they name by number."""
    return [
        [first, *(each if each is None else found["texts"][each] for each in rest)]
        for first, *rest in pairs
    ]


# --- what it has ---------------------------------------------------------------------------------


def test_rows_stand_in_lanes_with_their_times_tokens_and_errors() -> None:
    found = side(
        recording(
            *model(1, 0, "Hi", "Hello, Ann", agent="b", branch="p.b"),
            {"t": 4, "tool_call": 1, "agent": "a", "tool": "pay", "args": {"n": 1}},
            {"t": 6, "result_of": 1, "error": {"type": "builtins:OSError", "message": "down"}},
            {"t": 7, "model_call": 2, "agent": "a", "model": "m"},
            event(9, "a", branch="p.a", transfer_to="b"),
            status="",
        )
    )
    run, asked, tool, open_call, said = found["rows"]
    assert [each["lane"] for each in found["rows"][1:]] == ["b", "a", "a", "a"]
    assert (run["message"], run["status"], run["end_ms"]) == ("Hello", "", 9)
    assert (asked["start_ms"], asked["end_ms"], asked["tokens"], asked["summary"]) == (
        1,
        3,
        12,
        "Hello, Ann",
    )
    assert (tool["status"], tool["error"], tool["summary"]) == (
        "error",
        "OSError: down",
        "pay(n=1)",
    )
    assert open_call["status"] == "cancelled"
    assert said["summary"] == "transfers to b"
    assert (asked["usage"]["prompt"], asked["usage"]["output"]) == (7, 5)


def test_a_run_lasts_as_long_as_its_spans() -> None:
    around = {"name": "invocation", "start": -2.0, "end": 12.0}
    run, span, _ = side(recording(event(10), spans=[around]))["rows"]
    assert (run["duration_ms"], run["end_ms"], span["end_ms"]) == (10.0, 12.0, 12.0)


def test_a_prompt_holds_the_texts_of_the_call_before() -> None:
    found = side(
        recording(*model(1, 0, "Hi", "Yes?"), *model(4, 1, "Hi", "Yes?", "Refund", "Done"))
    )
    one, two = (each["prompt"] for each in found["rows"][1:])
    assert two[: len(one)] == one
    assert texts(found, two) == [
        *(["instruction", "Be kind."], ["user", "Hi"], ["user", "Yes?"], ["user", "Refund"]),
    ]
    assert len(found["texts"]) == len(set(found["texts"]))


def test_events_have_what_they_write() -> None:
    found = side(written(state={"k": 1}))
    run, part, *rows = found["rows"]
    assert texts(found, run["state"]) == [["k", "1"]]
    assert part["partial"]
    assert "writes" not in part
    assert [texts(found, each["writes"]) for each in rows] == [
        [["k", "2"], ["new", "[\n  1\n]"]],
        [["k", "9"]],
        [["k", None]],
    ]


def written(**known: Any) -> Recording:
    """A run whose events write to state, one of them within a tool."""
    partial = event(2, content="part", is_partial=True, state_delta={"k": 5})
    wrote = event(3, state_delta={"k": 2, "new": [1]})
    inside = {**event(4, state_delta={"k": 9}), "within": 0}
    return recording(partial, wrote, inside, event(5, state_delta={"k": None}), **known)


def streamed() -> list[Data]:
    start, end = model(1, 0, "Hi", "Hello")
    parts = [{"t": t, "chunk_of": 0, "response": {"partial": True}} for t in (1.5, 2.5)]
    return [start, *parts, end]


def test_streams_say_when_their_first_part_came() -> None:
    call = side(recording(*streamed()))["rows"][1]
    assert (call["fragments"], call["first_ms"]) == (2, 0.5)


def test_costs_are_those_that_were_noted() -> None:
    noted = [{"usd": "0.25"}, {"unknown": "who knows"}]
    found = side(
        recording(
            *model(1, 0, "Hi", "Hello"),
            event(4, custom_metadata={"adk_fluent_cost": json.dumps(noted)}),
            event(5, custom_metadata={"adk_fluent_cost": "[]"}),
            event(6, custom_metadata={"adk_fluent_cost": "[{}]"}),
        )
    )
    run, asked, charged, free, broken = found["rows"]
    assert run["cost"] == {"usd": "$0.25", "unknown": "who knows"}
    assert (charged["cost"], run["noted"]) == (run["cost"], True)
    assert broken["cost"] == {"usd": "$0.00", "unknown": "what was noted cannot be read"}
    assert not any("cost" in row for row in (asked, free))


def test_else_an_installed_price_book_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def price(name: str, usage: Any, at: Any) -> Any:
        asked.append((name, usage.total, at.isoformat()))
        if len(asked) == 3:
            raise OSError("no file")
        return Money(Decimal("0.002")) if len(asked) == 1 else Unknown("too new")

    provide(monkeypatch, SimpleNamespace(price=price))
    calls = [each for n in range(3) for each in model(n * 3 + 1, n, "Hi", "Hello")]
    run, *rows = side(recording(*calls))["rows"]
    assert asked[0] == ("m", 12, "2026-01-02T00:00:00+00:00")
    assert (run["cost"], run["noted"]) == ({"usd": "$0.002", "unknown": "too new"}, False)
    assert [(each["cost"]["usd"], each["cost"]["unknown"]) for each in rows] == [
        ("$0.002", ""),
        ("$0.00", "too new"),
        ("$0.00", "the price book raised OSError: no file"),
    ]
    assert side(Recording([], {}))["rows"] == []


def test_two_recordings_with_their_differences_marked() -> None:
    before = recording(
        *model(1, 0, "Hi", "Yes"), event(3, "b", content="x"), event(4, content="Yes")
    )
    after = recording(
        *model(1, 0, "Hi", "No", says="Be rude."),
        event(4, content="No"),
        event(5, "b", content="x"),
    )
    found = Parsed(html_page(before, after)).data
    assert [each["rows"] for each in found["differences"]] == [[1, 1], [3, 2]]
    prompt, said = (each["text"] for each in found["differences"])
    assert prompt == (
        "the prompt of model call 1 of a differs at .config.system_instruction:"
        " 'Be kind.' -> 'Be rude.'"
    )
    assert said == "event 1 (a) differs at .content: 'Yes' -> 'No'"
    same = Parsed(html_page(before, before)).data
    assert (same["differences"], same["summary"]) == ([], "no difference in 2 events")


def test_what_is_in_one_recording_alone_and_what_came_in_another_order() -> None:
    a, b = event(1, "a", content="x"), event(2, "b", content="y")
    [gone] = Parsed(html_page(recording(a, b), recording(a))).data["differences"]
    assert gone["rows"] == [2, None]
    [order] = Parsed(html_page(recording(a, b), recording(b, a))).data["differences"]
    assert order["rows"] == [1, 1]
    assert "in another order" in order["text"]


def test_files(tmp_path: Path) -> None:
    made = recording(event(1))
    path = made.to_html(tmp_path / "deep" / "r.html")
    assert path.read_text("utf-8") == html_page(made)
    with pytest.raises(RecordingFileError, match="cannot be written"):
        made.to_html(tmp_path)
    with pytest.raises(UsageError, match="takes a recording"):
        made.to_html(path, against="b.json")  # pyright: ignore[reportArgumentType]


def call(*args: str) -> Any:
    with pytest.raises(SystemExit) as stopped:
        main(args)
    return stopped.value.code


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recording(event(1, content="x")).save("a.json")
    recording(event(1, content="y")).save("b.json")
    assert call("html", "a.json", "--against", "b.json", "--output", "r.html") == OK
    found = Parsed(Path("r.html").read_text("utf-8")).data
    assert [each["name"] for each in found["sides"]] == ["a.json", "b.json"]
    assert call("html", "c.json", "-o", "s.html") == USAGE
    assert not Path("s.html").exists()


# --- nothing in it can act -----------------------------------------------------------------------


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_texts(text: str) -> None:
    made = full_recording(text)
    page, plain = (Parsed(html_page(each, each)) for each in (made, full_recording("hm")))
    assert page.tags == plain.tags
    assert not any(name.startswith("on") or name == "src" for _, each in page.tags for name in each)
    assert page.inside["script"][1:] == plain.inside["script"][1:]
    assert page.inside["style"] == plain.inside["style"]
    raw = page.inside["script"][0]
    assert raw.isascii()
    assert not set("<>&") & set(raw)
    assert text in page.data["sides"][0]["texts"]  # nothing is lost
    "".join(page.inside["title"]).encode()


def test_the_policy_allows_its_own_script_and_style_alone() -> None:
    page = Parsed(html_page(recording(event(1))))
    policy = next(str(attrs["content"]) for _, attrs in page.tags if "http-equiv" in attrs)
    style, script = (
        base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()
        for each in (page.inside["style"][0], page.inside["script"][1])
    )
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}';"
        " base-uri 'none'; form-action 'none'"
    )


# --- in a browser --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright: Any = pytest.importorskip(
        "playwright.sync_api", reason="the group `browser` is not installed"
    )
    if BROWSER is None:
        pytest.skip(f"there is none of {', '.join(_NAMES)} on PATH")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


def _open(browser: Any, path: Path, **options: Any) -> tuple[Any, list[Any]]:
    """The page, and what it complains of or asks for."""
    tab = browser.new_page(**options)
    seen: list[Any] = []

    def note(what: Any) -> None:
        seen.append(what)

    for each in ("console", "pageerror", "dialog", "request"):
        tab.on(each, note)
    tab.goto(path.as_uri())
    return tab, seen


def test_hostile_texts_in_a_browser(browser: Any, tmp_path: Path) -> None:
    runs = [run for text in HOSTILE for run in full_recording(text).runs]
    path = Recording(runs, {}).to_html(tmp_path / "r.html")
    tab, seen = _open(browser, path, viewport={"width": 390, "height": 800})
    count = len(HOSTILE) * 5
    assert tab.inner_text("#found") == f"{count} of {count}"
    for key in ("Home", "j", "k", "End"):
        tab.keyboard.press(key)
    assert tab.locator(".row[aria-selected=true] .what").inner_text().startswith("says '__proto__'")
    tab.keyboard.press("Enter")
    assert tab.locator(".detail.open").is_visible()
    tab.keyboard.press("Escape")
    assert not tab.locator(".detail").is_visible()
    tab.fill("#search", "TXT.EXE")
    assert tab.inner_text("#found") == f"5 of {count}"
    assert "\\u202etxt.exe\\ud800" in tab.locator(".row.tool .what").first.inner_text()
    assert tab.evaluate("document.documentElement.scrollWidth") == 390  # nothing sticks out
    for scheme, ground in (("light", "rgb(246, 247, 248)"), ("dark", "rgb(17, 20, 23)")):
        tab.emulate_media(color_scheme=scheme)
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == ground
    assert [getattr(each, "url", each) for each in seen] == [path.as_uri()]  # nothing else happened


def test_differences_in_a_browser(browser: Any, tmp_path: Path) -> None:
    sides = [
        recording(
            *model(1, 0, "Hi", "Yes"),
            *model(4, 1, "Hi", "Yes", "Go on", says, says="Be kind.\nBe brief."),
            event(7, content=says, state_delta={"k": says}),
            event(8, "b", error={"code": "BAD", "message": "broken"}, content="z" * 30_000),
            state={"k": "old"},
        )
        for says in ("fine", "bad")
    ]
    path = sides[0].to_html(tmp_path / "r.html", against=sides[1])
    tab, seen = _open(browser, path, viewport={"width": 1200, "height": 800})
    left, right = tab.locator(".side").all()
    assert "differs at .content: 'fine' -> 'bad'" in tab.inner_text("#difference")
    assert left.locator(".row.first").count() == right.locator(".row.first").count() == 1
    assert "old\nbad" in right.locator("td").inner_text()
    right.locator("summary", has_text="state after").click()
    right.locator("details pre", has_text="k = bad").wait_for()
    tab.keyboard.press("ArrowLeft")  # the call before it in the lane
    detail = left.locator(".detail")
    assert detail.locator("ins").all_inner_texts() == ["Be brief."]
    assert detail.locator(".said.new, pre.new").all_inner_texts()[-1] == "Go on"
    assert "1 unchanged" not in right.locator(".detail").inner_text()  # all is as on the left
    tab.keyboard.press("e")
    assert "BAD: broken" in detail.inner_text()
    assert detail.inner_text().count("z") < 25_000
    detail.get_by_text("all of 30,000 characters").click()
    assert detail.inner_text().count("z") == 30_000
    tab.keyboard.press("s")
    tab.keyboard.press("d")
    assert right.locator("[aria-selected=true].first").count() == 1
    lanes = left.locator(".lanes")
    wide = lanes.bounding_box()["width"]
    lanes.locator("canvas").click(position={"x": wide - 8, "y": 20 + 26 + 22})  # the last event
    assert "broken" in left.locator("[aria-selected=true]").inner_text()
    tab.keyboard.press("+")
    assert lanes.evaluate("each => each.scrollWidth") > 1.5 * wide
    tab.keyboard.press("/")
    tab.keyboard.type("nowhere")
    assert tab.inner_text("#found") == "0 of 5 and 0 of 5"
    assert left.locator(".list").inner_text() == "Nothing is found."
    tab.keyboard.press("Escape")
    assert tab.inner_text("#found") == "5 of 5 and 5 of 5"
    assert len(seen) == 1


def _shown(tab: Any, row: int) -> list[str]:
    """What is told of a row, part by part, when it is chosen."""
    tab.locator(".row").nth(row).click()
    parts = tab.locator(".detail dl > div, .detail tr").all_inner_texts()
    return [" ".join(each.split()) for each in parts]


def test_figures_and_state_in_a_browser(browser: Any, tmp_path: Path) -> None:
    noted = json.dumps([{"usd": "0.25"}, {"unknown": "who knows"}])
    costs = event(4, custom_metadata={"adk_fluent_cost": noted})
    path = recording(*streamed(), costs).to_html(tmp_path / "r.html")
    tab, _ = _open(browser, path, viewport={"width": 1200, "height": 800})
    run = ["status completed", "time 4 ms", "tokens 12", "model calls 1", "tool calls 0"]
    assert _shown(tab, 0) == [*run, "cost at least $0.25, as recorded"]
    tokens, first = "tokens 12 (7 prompt, 5 output)", "the first after 0.5 ms"
    call = ["lane a", "began 1 ms", "took 2 ms", tokens, f"streamed 2 fragments, {first}"]
    assert _shown(tab, 1) == call
    assert _shown(tab, 2) == ["lane a", "began 4 ms", "cost at least $0.25: who knows"]
    assert "2026-01-02" in tab.inner_text(".about")

    path = Recording([*written(state={"k": 1}).runs, *written(state=None).runs], {}).to_html(path)
    tab, seen = _open(browser, path, viewport={"width": 1200, "height": 800})
    assert "k 1" in _shown(tab, 0)
    assert _shown(tab, 1)[2:] == ["k 1 2", "new [ 1 ]"]
    assert _shown(tab, 2)[2:] == ["k (not recorded) 9"]
    assert _shown(tab, 3)[2:] == ["k 2"]
    assert "(event 2)" in tab.inner_text(".detail h2")  # as `recording.events` counts them
    assert _shown(tab, 5)[2:] == ["k (not recorded) 2", "new (not recorded) [ 1 ]"]
    lanes = tab.locator(".lanes")
    wide = lanes.bounding_box()["width"]
    for x, place in ((wide - 12, 7), ((wide + 190) / 2 - 8, 3)):  # runs follow each other
        lanes.locator("canvas").click(position={"x": x, "y": 20 + 22})
        assert tab.locator(".row").nth(place).get_attribute("aria-selected") == "true"
    assert len(seen) == 1


@pytest.mark.full
def test_ten_thousand_events_in_a_browser(browser: Any, tmp_path: Path) -> None:
    tape: list[Data] = []
    for n in range(5000):
        agent = f"agent {n % 300}"
        said = [f"question {each}" for each in range(n // 300 + 1)]
        tape += model(n * 10, n, *said, f"answer {n}", agent=agent)
        for at in (5, 6):
            tape.append(event(n * 10 + at, agent, content=f"event {n}", state_delta={"k": n}))
    path = recording(*tape).to_html(tmp_path / "r.html")
    assert path.stat().st_size < 12_000_000
    tab, seen = _open(browser, path, viewport={"width": 1200, "height": 800})
    assert tab.inner_text("#found") == "15,001 of 15,001"
    assert tab.locator(".row").count() < 60
    took = tab.evaluate(
        "async () => { const times = [];"
        " for (const key of ['End', 'k', 'PageUp', 'ArrowLeft', '+', 'Home']) {"
        "  const began = performance.now();"
        "  document.dispatchEvent(new KeyboardEvent('keydown', {key}));"
        "  document.body.offsetHeight;"
        "  times.push(performance.now() - began); }"
        " const search = document.getElementById('search'); search.value = 'answer 4999';"
        " const began = performance.now(); search.dispatchEvent(new Event('input'));"
        " times.push(performance.now() - began); return times; }"
    )
    assert tab.inner_text("#found") == "1 of 15,001"
    assert max(took) < 2000  # milliseconds; a tenth of it where nothing else runs
    assert len(seen) == 1
