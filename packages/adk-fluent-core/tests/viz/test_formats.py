"""Every format is well formed and does nothing, whatever names, keys and texts a pipeline has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import ir_strategies
import pytest
from hypothesis import given
from pictured_pipelines import FOLDER, pictures

from adk_fluent.backends.viz import VizBackend, render, to_dot, to_html, to_mermaid, to_svg
from adk_fluent.backends.viz import diagram as drawn
from adk_fluent.backends.viz._html import SCRIPT
from adk_fluent.errors import UsageError
from adk_fluent.ir import (
    AgentNode,
    ExecutionBoundary,
    ExpectNode,
    FallbackNode,
    GateNode,
    LoopNode,
    MapOverNode,
    Match,
    MiddlewareNode,
    Node,
    ParallelNode,
    Ref,
    RemoteAgentNode,
    RouteNode,
    SequenceNode,
    StateFieldRef,
    TapNode,
    ToolSpec,
    TransferNode,
    TransportConfig,
)
from adk_fluent.protocol import Compiler

if TYPE_CHECKING:
    from pictured_pipelines import Picture

    from adk_fluent.backends.viz import Format

FORMATS: tuple[Format, ...] = ("mermaid", "dot", "svg", "html")
PICTURES = {each.name: each for each in pictures()}
HOSTILE = {
    "quotes": "a\"b'c`d",
    "newlines": "a\r\nb\n\nc\u2028d\x85e",
    "arrow": "a --> b; n1 --> n2",
    "bracket": 'a"] --> n1["b',
    "script": "</script><script>alert(1)</script>",
    "title": "</title></svg><img src=x onerror=alert(1)>",
    "cdata": "<![CDATA[ x ]]> y ]]>",
    "entity": "&lt;b&gt; &#60;i&#62; &xxe; #quot; #35; #lt;",
    "comment": "<!-- a --> %% b",
    "directive": "%%{init: {'securityLevel': 'loose'}}%%",
    "statement": "end\nclick n1 call alert(1)\nsubgraph x",
    "class": "x:::agent style n1 fill:#f00; linkStyle 0",
    "backslash": 'a\\" b\\N \\G \\l \\',
    "dot": 'a"]; n1 [URL="javascript:alert(1)"]; //',
    "braces": "{{x}} {a|b} (c) [d] <e> $$x$$ fa:fa-bomb",
    "direction": "abc\u202egpj.exe\u202c \u2066x\u2069 \u200f",
    "arabic": "مرحبا بالعالم",
    "emoji": "👩‍👩‍👧 🎉 ☁️",
    "cjk": "审核员 レビュー担当者",
    "control": "a\x00b\x07c\x1b[31md\x7f\ufffe\uffff\ud800",
    "marks": "e" + "\u0301" * 300,
    "wide": "\ufdfd" * 20,
    "long": "x" * 10_000,
    "words": "lorem ipsum " * 1_000,
    "blank": " \t ",
}


def pipeline(text: str) -> Node:
    """A pipeline with a text wherever a text can be."""
    key = text
    agent = AgentNode(
        text,
        text,
        instruction=text,
        description=text,
        tools=(ToolSpec(Ref(len, text)),),
        reads_keys=(StateFieldRef(key), StateFieldRef("other")),
        writes_keys=(StateFieldRef(key),),
        agent_tools=(AgentNode(f"{text}2", reads_keys=(StateFieldRef(key),)),),
        output_schema=Ref(int, text),
        boundary=ExecutionBoundary(transport=TransportConfig("queue", text)),
    )
    steps = (
        agent,
        LoopNode(text, agent, until=Ref(len, text)),
        GateNode(text, Ref(len, text), text, key=key),
        ExpectNode(text, Match("eq", key, text), text),
        TapNode(text, Ref(len, text)),
        MiddlewareNode(text, agent, (Ref(len, text),)),
        RouteNode(
            text, key, (Match("contains", key, text),), (agent,), ParallelNode(text, (agent,))
        ),
        FallbackNode(text, (agent, RemoteAgentNode(text, text, fallback=agent))),
        MapOverNode(text, key, SequenceNode(text, (agent, agent)), key, key, key),
        TransferNode(text, text, Ref(len, text)),
    )
    return SequenceNode(text, steps)


@pytest.fixture(params=HOSTILE.values(), ids=list(HOSTILE))
def hostile(request: pytest.FixtureRequest) -> Node:
    return pipeline(request.param)


# --- SVG and HTML --------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"
TAGS = {"svg", "title", "desc", "style", "rect", "path", "circle", "g", "text"}
ATTRIBUTES = {
    *("class", "x", "y", "width", "height", "rx", "d", "cx", "cy", "r", "font-size"),
    *("text-anchor", "id", "viewBox", "role", "aria-labelledby"),
}
PLAIN_VALUE = re.compile(r"[\w .\-#%,]*")


def check_svg(text: str) -> None:
    root = ET.fromstring(text)
    assert root.tag == f"{SVG}svg"
    styles: list[str] = []
    for element in root.iter():
        tag = element.tag.removeprefix(SVG)
        assert tag in TAGS
        assert set(element.attrib) <= ATTRIBUTES
        assert all(map(PLAIN_VALUE.fullmatch, element.attrib.values()))
        if tag == "style":
            styles.append(element.text or "")
        elif tag not in {"title", "desc", "text"}:
            assert not (element.text or "").strip()
    (style,) = styles
    assert "url(" not in style
    assert "@import" not in style
    assert root[0].tag == f"{SVG}title"
    assert root[1].tag == f"{SVG}desc"
    names = root.attrib["aria-labelledby"].split()
    assert names == [root[0].attrib["id"], root[1].attrib["id"]]


class Page(HTMLParser):
    """What a browser would see in a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script":
            self.scripts.append(data)

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


def check_html(text: str) -> None:
    page = Page()
    page.feed(text)
    page.close()
    assert page.tags.count("script") == 1
    assert page.scripts in ([SCRIPT, "\n"], [SCRIPT])
    allowed = TAGS | {"html", "head", "meta", "body", "div", "script"}
    assert {tag.removeprefix("/") for tag in page.tags} <= allowed
    assert not {name for name in page.names if name.startswith("on")}
    assert not page.names & {"href", "src", "style", "xlink:href", "srcdoc"}
    assert "default-src 'none'" in text
    check_svg(text[text.index("<svg") : text.index("</svg>") + len("</svg>")])


# --- Mermaid and DOT -----------------------------------------------------------------------------

LABEL = r'"(?:[^\x00-\x7f]|[A-Za-z0-9 .,_\-+=?!()/]|#\d{1,3};|<br/>)+"'
OPEN = r"(?:\(\(\(|\(\(|\(\[|\(|\[\[|\[/|\[\\|\[|>|\{\{)"
CLOSE = r"(?:\)\)\)|\)\)|\]\)|\)|\]\]|/\]|\]|\}\})"
STATEMENTS = [
    r"flowchart TD",
    rf"  n\d+{OPEN}{LABEL}{CLOSE}",
    rf"  subgraph c\d+\[{LABEL}\]",
    r"  end",
    rf"  n\d+ (?:-->|-\.->|==>)(?:\|{LABEL}\|)? n\d+",
    r"  classDef [a-z]+ [a-z0-9:#,\- ]+",
    r"  class (?:[nc]\d+,?)+ [a-z]+",
]
MERMAID = re.compile("|".join(f"(?:{each})" for each in STATEMENTS))

QUOTED = r'"(?:[^"\\\x00-\x1f]|\\n|\\\\|\\")*"'
VALUE = rf"(?:{QUOTED}|[a-z0-9.]+)"
LIST = rf"\[[a-z]+={VALUE}(?:, [a-z]+={VALUE})*\]"
DOT = re.compile(
    rf"digraph pipeline \{{|  (?:graph|node|edge) {LIST}|  n\d+ {LIST}|  n\d+ -> n\d+ {LIST}"
    r"|  subgraph cluster_\d+ \{|  \}|\}"
)


def check_mermaid(text: str) -> None:
    lines = text.removesuffix("\n").split("\n")
    assert lines[0] == "flowchart TD"
    for line in lines:
        assert MERMAID.fullmatch(line), line
    assert sum(line.startswith("  subgraph") for line in lines) == lines.count("  end")


def check_dot(text: str) -> None:
    lines = text.removesuffix("\n").split("\n")
    for line in lines:
        assert DOT.fullmatch(line), line
    opened = sum(line.endswith("{") for line in lines)
    assert opened == sum(line.strip() == "}" for line in lines)
    for entity in re.findall(r"&[^;]{0,6};?", text):
        assert entity == "&amp;"


CHECKS = {"svg": check_svg, "html": check_html, "mermaid": check_mermaid, "dot": check_dot}


@pytest.mark.parametrize("format", FORMATS)
def test_hostile_texts_break_nothing(format: Format, hostile: Node) -> None:
    CHECKS[format](render(hostile, format))


def test_notes_and_texts_break_nothing() -> None:
    picture = drawn(AgentNode("a"), notes=lambda node: HOSTILE.values())
    check_html(to_html(picture, "\n".join(HOSTILE.values())))
    check_dot(to_dot(picture))
    check_mermaid(to_mermaid(picture))


def test_notes_stand_in_the_boxes_of_their_nodes() -> None:
    inner = SequenceNode("s", (AgentNode("a"), LoopNode("l", AgentNode("b"))))
    picture = drawn(inner, notes=lambda node: [f"note of {node.name}"])
    noted = {box.title: box.lines[-1] for box in picture.boxes if "note of" in str(box.lines)}
    assert noted == {"a": "note of a", "loop l": "note of l", "b": "note of b"}
    folded = drawn(inner, depth=1, notes=lambda node: [f"note of {node.name}"])
    assert folded.boxes[2].kind == "folded"
    assert folded.boxes[2].lines[-1] == "note of l"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
def test_pictures_are_well_formed(format: Format, picture: Picture) -> None:
    CHECKS[format](render(picture.node, format))


@ir_strategies.laws
@given(ir_strategies.graphs())
def test_any_legal_ir_is_well_formed(root: Node) -> None:
    picture = drawn(root)
    check_mermaid(to_mermaid(picture))
    check_dot(to_dot(picture))
    check_svg(to_svg(picture))


def test_secrets_of_addresses_are_not_shown() -> None:
    remote = RemoteAgentNode("r", "https://me:hunter2@example.com/a2a?key=hunter2#hunter2")
    queue = TransportConfig("queue", "redis://:hunter2@queue/0?password=hunter2")
    root = SequenceNode("s", (remote, AgentNode("a", boundary=ExecutionBoundary(transport=queue))))
    for format in FORMATS:
        text = render(root, format)
        assert "hunter2" not in text
        assert "example.com" in text


def test_a_key_of_a_broken_address_is_not_shown() -> None:
    assert "hunter2" not in render(RemoteAgentNode("r", "https://[hunter2"), "svg")


# --- always the same -----------------------------------------------------------------------------


def test_the_same_pipeline_gives_the_same_text_in_every_process() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pictured_pipelines import pictures\n"
        "from hashlib import sha256; from adk_fluent.backends.viz import render\n"
        "text = ''.join(render(p.node, f) for p in pictures() "
        "for f in ('mermaid', 'dot', 'svg', 'html'))\n"
        "print(sha256(text.encode()).hexdigest())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code, str(Path(__file__).parents[1])],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(seen) == 1


@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
def test_the_pictures_of_the_documentation_are_current(picture: Picture) -> None:
    """Draw them anew with ``python tests/pictured_pipelines.py``."""
    assert (FOLDER / f"{picture.name}.svg").read_text("utf-8") == picture.svg


def test_no_other_picture_lies_about() -> None:
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(PICTURES)


# --- the compiler --------------------------------------------------------------------------------


def test_it_is_a_compiler_and_gives_mermaid_unless_asked() -> None:
    backend = VizBackend()
    assert isinstance(backend, Compiler)
    assert backend.compile(AgentNode("a")).startswith("flowchart TD\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"format": "png"}, "there is no picture format 'png'"),
        ({"depth": -1}, "depth= takes a whole number from 0"),
        ({"depth": True}, "depth= takes a whole number from 0"),
        ({"max_nodes": 0}, "max_nodes= takes a whole number from 1"),
        ({"max_nodes": 1.5}, "max_nodes= takes a whole number from 1"),
    ],
)
def test_what_has_no_meaning_is_refused(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        VizBackend(**arguments)  # pyright: ignore[reportArgumentType]  # what is tested
