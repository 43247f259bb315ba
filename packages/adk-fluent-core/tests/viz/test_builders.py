"""What builders show: files, Mermaid, notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, Pipeline
from adk_fluent.backends.viz import render
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

desk = Agent("draft").writes("text") >> Agent("review").instruct("Is {text} good?")


@pytest.mark.parametrize("format", ["svg", "html", "mermaid", "dot"])
def test_visualize_gives_the_picture(format: Any) -> None:
    assert desk.visualize(format) == render(desk.to_ir(), format)
    assert desk.visualize() == desk.visualize("svg")


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.svg", "svg"),
        ("a.HTML", "html"),
        ("a.htm", "html"),
        ("a.mmd", "mermaid"),
        ("a.mermaid", "mermaid"),
        ("a.dot", "dot"),
        ("a.gv", "dot"),
    ],
)
def test_the_name_of_a_file_says_its_format(tmp_path: Path, name: str, format: Any) -> None:
    text = desk.visualize(path=tmp_path / name)
    assert text == desk.visualize(format)
    assert (tmp_path / name).read_bytes() == text.encode()


def test_a_format_beats_the_name_of_the_file(tmp_path: Path) -> None:
    desk.visualize("dot", str(tmp_path / "a.svg"))
    assert (tmp_path / "a.svg").read_text("utf-8").startswith("digraph")


def test_a_name_that_says_nothing_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'a\.png' does not say what the picture shall be"):
        desk.visualize(path=tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


def test_options() -> None:
    config = ExecutionConfig(default_model="gemini-2.5-flash")
    text = desk.to_mermaid(config=config, data_flow=False, max_nodes=1)
    assert "2 steps" in text
    assert "gemini-2.5-flash" in desk.to_mermaid(config=config)
    assert "-.->|" not in desk.to_mermaid(data_flow=False)
    assert '-.->|"text"|' in desk.to_mermaid()


def test_notebooks_show_the_picture() -> None:
    assert desk._repr_svg_() == desk.visualize()
    assert desk._repr_mimebundle_(include=None, exclude=None) == {
        "image/svg+xml": desk.visualize(),
        "text/plain": repr(desk),
    }


def test_notebooks_show_the_name_of_what_is_still_empty() -> None:
    later = Pipeline("later")
    assert later._repr_svg_() is None
    assert later._repr_mimebundle_() == {"text/plain": repr(later)}


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="takes no 'max_node'") as caught:
        desk.visualize(max_node=3)  # pyright: ignore[reportCallIssue]  # what is tested
    assert "max_nodes" in str(caught.value)
