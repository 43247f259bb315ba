"""``adk-fluent viz``: a picture on standard output, or in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Cli, Write

DESK = """
from adk_fluent import Agent, FanOut

classify = Agent("classify").instruct("What is it?").writes("topic")
look_up = FanOut(Agent("orders"), Agent("faq"))
root_agent = classify >> look_up >> Agent("answer").instruct("About {topic}.")
"""


@pytest.fixture(autouse=True)
def desk(write: Write) -> None:
    write("desk.py", DESK)


def test_mermaid_is_printed(cli: Cli) -> None:
    done = cli("viz", "desk.py")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("flowchart")
    assert '-.->|"topic"|' in done.out
    assert done.out.endswith("\n")
    assert "-.->" not in cli("viz", "desk.py", "--no-data-flow").out


@pytest.mark.parametrize(
    ("name", "begin"),
    [("desk.svg", "<svg"), ("desk.html", "<!"), ("desk.dot", "digraph"), ("desk.mmd", "flowchart")],
)
def test_a_file_says_the_format(here: Cli, place: Path, name: str, begin: str) -> None:
    done = here("viz", "desk.py", "-o", name)
    assert (done.code, done.out) == (0, "")
    assert (place / name).read_text("utf-8").lower().startswith(begin)


def test_options(here: Cli) -> None:
    svg = here("viz", "desk.py", "--format", "svg", "--model", "gemini-2.5-pro").out
    assert "gemini-2.5-pro" in "".join(ET.fromstring(svg).itertext())
    assert "orders" not in here("viz", "desk.py", "--depth", "1").out
    assert "orders" not in here("viz", "desk.py", "--max-nodes", "3").out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["-o", "desk.png"], "desk.png"),
        (["-o", "no/where/desk.svg"], "cannot be written"),
        (["-o", "."], "is a directory"),
        (["--format", "png"], "'png' is not one of"),
        (["--depth", "0"], "--depth"),
    ],
)
def test_mistakes(cli: Cli, args: list[str], said: str) -> None:
    done = cli("viz", "desk.py", *args)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
