"""Whole programs, and word for word what is printed about them.

The pages are in `golden/`. A section there is a file `app.py` that makes a `pipeline`, and what
stands below it is the report: messages, places in the source, notes and helps. Those of streams and
content are written by hand; those of state, by ``python tests/contracts/write_golden.py``.
"""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

import pytest
from mistakes import MISTAKES as OF_STATE
from mistakes import _pages

import adk_fluent
from adk_fluent import builders, contracts, ir
from adk_fluent.contracts import (
    CODES,
    ContractReport,
    Diagnostic,
    check_all,
    check_modality_contracts,
    check_streaming_contracts,
)
from adk_fluent.contracts._streams import _models

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.contracts import Checkable

FOLDER: Final = Path(__file__).with_name("golden")
#: A page, what checks it, and how its codes begin.
PAGES: Final[dict[str, tuple[Callable[[Checkable], list[Diagnostic]], str]]] = {
    "streaming": (check_streaming_contracts, "FLW2"),
    "content": (check_modality_contracts, "FLW3"),
}
#: What the programs need not import.
NAMES: Final = {
    **{name: getattr(ir, name) for name in ir.__all__},
    **{name: getattr(builders, name) for name in builders.__all__},
    **{name: getattr(adk_fluent, name) for name in adk_fluent.__all__},
    "TypedDict": TypedDict,
}


@dataclass(frozen=True)
class Case:
    """A program that makes a `pipeline`, and what is printed about it."""

    page: str
    title: str
    program: str
    printed: str

    def pipeline(self, folder: Path) -> Any:
        file = folder / "app.py"
        file.write_text(self.program, "utf-8")
        linecache.checkcache(str(file))
        names: dict[str, Any] = {"__name__": "app", **NAMES}
        exec(compile(self.program, str(file), "exec"), names)  # a page of ours
        return names["pipeline"]


def cases(page: str, ending: str = "") -> list[Case]:
    text = (FOLDER / f"{page}{ending}.md").read_text("utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return [
        Case(page, title, block("python", rest), block("text", rest))
        for title, rest in zip(parts[::2], parts[1::2], strict=True)
    ]


def block(kind: str, text: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


MISTAKES: Final = [case for page in PAGES for case in cases(page)]
CORRECT: Final = [case for page in PAGES for case in cases(page, "_correct")]


@pytest.fixture(autouse=True)
def known_models_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_models, "_registered", {})


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.title)
def test_a_mistake_is_reported_word_for_word(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check, prefix = PAGES[case.page]
    pipeline = case.pipeline(tmp_path)
    found = check(pipeline)
    assert f"{ContractReport.of(found).render()}\n" == case.printed
    assert len(set(found)) == len(found)
    everything = check_all(pipeline)
    assert [d for d in everything if d.code.startswith(prefix)] == list(ContractReport.of(found))
    name = check.__name__.removeprefix("check_").removesuffix("_contracts")
    assert sum(each.startswith(name) for each in everything.checked) == 1


@pytest.mark.parametrize("page", _pages.PAGES)
def test_a_page_about_state_is_what_checks_say_word_for_word(page: str) -> None:
    text = _pages.FOLDER.joinpath(f"{page}.md").read_text("utf-8")
    assert text == _pages.written(page)


def test_every_mistake_of_state_is_on_a_page() -> None:
    known = [each.title for page in _pages.PAGES for each in _pages.mistakes(page)]
    assert sorted(known) == sorted(each.title for each in OF_STATE)


@pytest.mark.parametrize("case", CORRECT, ids=lambda case: case.title)
def test_nothing_is_held_against_what_is_correct(case: Case, tmp_path: Path) -> None:
    check, _ = PAGES[case.page]
    assert check(case.pipeline(tmp_path)) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_finding_has_a_mistake(page: str) -> None:
    prefix = PAGES[page][1]
    found = {code for case in cases(page) for code in re.findall(r"\[(FLW\d+)\]", case.printed)}
    assert found == {code for code in CODES if code.startswith(prefix)}


def test_there_are_enough_of_them() -> None:
    assert len(MISTAKES) >= 55
    assert len(CORRECT) >= 30
    assert len({case.program for case in [*MISTAKES, *CORRECT]}) == len(MISTAKES) + len(CORRECT)


@pytest.mark.parametrize("page", PAGES)
def test_a_check_takes_builders_nodes_and_graphs(page: str, tmp_path: Path) -> None:
    check, _ = PAGES[page]
    pipeline = cases(page)[0].pipeline(tmp_path)
    node = pipeline.to_ir()
    assert check(pipeline) == check(node) == check(contracts.Graph(node)) != []
    assert isinstance(check(node), list)


def test_what_is_meant_to_be_so_can_be_allowed() -> None:
    write = adk_fluent.Agent("write").stream_to("token")
    joke = adk_fluent.Agent("joke").accepts(ir.Modality.IMAGE).history("none")
    assert [d.code for d in check_all(write >> joke)] == ["FLW206", "FLW301"]
    report = check_all(write >> joke.allow("FLW206", "FLW301"))
    assert [*report] == []
    assert [d.code for d in report.allowed] == ["FLW206", "FLW301"]


@pytest.mark.parametrize("right", [True, False])
def test_deep_pipelines_are_checked_without_recursion(right: bool) -> None:
    content = ir.ContentSpec({ir.Modality.TEXT}, {ir.Modality.TEXT, ir.Modality.IMAGE})
    token = ir.EdgeSemantics("token")
    node: ir.Node = ir.AgentNode("a", content=content)
    for at in range(3_000):
        pair = (ir.AgentNode(f"a{at}"), node) if right else (node, ir.AgentNode(f"a{at}"))
        node = ir.SequenceNode("s", pair, (token, token))
    assert check_streaming_contracts(node) == []
    assert check_modality_contracts(node) == []
    route = ir.RouteNode("r", "k", default=ir.AgentNode("z"))
    last = ir.SequenceNode("all", (node, route))
    assert [each.code for each in check_streaming_contracts(last)] == ["FLW201"]
