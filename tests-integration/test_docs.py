"""What the documentation shows is what happens: its blocks and the examples run, offline.

A page is read from top to bottom, as by somebody who types along in one empty directory:

- ``python`` blocks run one after the other and share their names, as in one session; each is a
  file, whose source is there to look into;
- a ``text`` block is what the block before it prints, ``...`` standing for anything;
- ``console`` blocks are commands (``$ ...``) with what they print; ``$ echo $?`` is the exit code;
- ``toml`` and ``yaml`` blocks are parsed; ``sh`` blocks (what to install, what to set) are not run.

HTML comments above a block say more about it: ``file: NAME`` saves it and runs it as that file, or
with ``pytest`` beside it the tests in it, with ``process`` in a Python of its own, ``from: PATH``
is an excerpt of that file of the repository, ``raises`` ends in an error, whose last lines are its
output, ``without: LAYER`` runs as if the wheel of that layer was not installed, and ``gemini``
needs a model from the network, which is replaced. Above a table, ``names:
MODULE:ATTRIBUTE`` says whose names its first column lists, all but those in tables of the page with
``some names: ...`` of the same; a second column called "default" has their defaults, one called
"also a" their bases. ``folders: PATH`` says that it lists every folder there. Above a picture,
``of: EXPRESSION`` says what it shows of the blocks before it.

``monolith`` stands above a program for the monolith, and above what it prints; `test_from_monolith`
runs those. ``adk`` stands above what `adk` prints; `adk_tools/test_page.py` runs it.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
import traceback
from collections.abc import Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import MISSING, dataclass, fields, is_dataclass
from doctest import ELLIPSIS, OutputChecker
from importlib import import_module, metadata
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast, is_typeddict

import pytest
import yaml

import adk_fluent.builders
from adk_fluent._registry import GROUP, layers, refresh
from adk_fluent.builders import BuilderBase
from adk_fluent.cli import main
from adk_fluent.contracts import _checkers

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from adk_fluent.builders import Builder

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    path
    for pattern in (
        "README.md",
        "packages/*/README.md",
        "packages/*/docs/*.md",
        "tests-integration/*/README.md",
    )
    for path in ROOT.glob(pattern)
)
EXAMPLES = sorted(ROOT.glob("packages/*/examples/*.py"))
HERE = "/home/me"  # where readers are, as the pages show it
REPOSITORY = re.compile(r"https://github\.com/adk-fluent/adk-fluent/(?:blob|tree)/main/")
KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI")

runs_on_adk = pytest.mark.adk
# 1.x says so of tools that need a confirmation
pytestmark = pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")


def runs_here(path: Path) -> None:
    """Skip what needs a wheel that needs a newer google-adk."""
    if "adk-fluent-a2a" in path.parts and "a2a" not in layers():
        pytest.skip("adk-fluent-a2a needs google-adk 2.13")


def title(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """A fenced block, a table or a picture, with the comment above it."""

    page: Path
    line: int  # of its first line of content
    kind: str
    text: str
    says: Mapping[str, str]

    @property
    def place(self) -> str:
        return f"{title(self.page)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    says: dict[str, str] = {}
    lines = page.read_text("utf-8").splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if comment := re.fullmatch(r"<!-- ([a-z ]+)(?:: (.+))? -->", line):
            says[comment[1]] = comment[2] or ""
        elif line.startswith("!["):
            found.append(Block(page, at, "picture", line, says))
            says = {}
        elif line.startswith(("```", "|")):
            kind = line.removeprefix("```") if line.startswith("```") else "table"
            start = at - 1 if kind == "table" else at
            end = next(i for i in range(start, len(lines) + 1) if _ends(kind, lines[i : i + 1]))
            text = "".join(f"{each}\n" for each in lines[start:end])
            found.append(Block(page, start + 1, kind, text, says))
            says, at = {}, end if kind == "table" else end + 1
        elif line.strip():
            assert not says, f"{title(page)}:{at}: a comment about no block: {says}"
    return found


def parsed(block: Block) -> Any:
    """What a file of data holds."""
    return tomllib.loads(block.text) if block.kind == "toml" else yaml.safe_load(block.text)


def _ends(kind: str, line: list[str]) -> bool:
    return not line or (not line[0].startswith("|") if kind == "table" else line[0] == "```")


# --- what a page says runs ------------------------------------------------------------------------


class Reader:
    """Somebody who does what a page says, in a directory of their own."""

    def __init__(self, folder: Path, *, draws: bool = False) -> None:
        self.folder = folder
        self.draws = draws
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.printed: str | None = None

    def do(self, block: Block) -> None:
        says = block.says
        match block.kind:
            case "python" | "text" | "console" if {"monolith", "adk"} & says.keys():
                return  # runs elsewhere, see test_from_monolith.py and adk_tools/test_page.py
            case "python" if "from" in says:
                assert block.text in (ROOT / says["from"]).read_text("utf-8"), block.place
            case "python":
                self.printed = self._shown(self._run(block))
            case "text":
                assert self.printed is not None, f"{block.place}: nothing ran that prints"
                self._compare(block, block.text, self.printed)
                self.printed = None
            case "console":
                self._type(block)
            case "picture":
                self._look_at(block)
            case "toml" if "from" in says:
                assert block.text in (ROOT / says["from"]).read_text("utf-8"), block.place
            case "toml" | "yaml":
                assert parsed(block), block.place
            case "sh":
                self._check_commands(block)
            case "table" if "folders" in says:
                check_folders(block)
            case "table":
                check_names(block)
            case other:
                pytest.fail(f"{block.place}: what is a block of {other!r}?")

    def _run(self, block: Block) -> str:
        error: Exception | None = None
        printed = Printed()
        try:
            with printed.here():
                self._execute(block)
        except Exception as raised:  # noqa: BLE001  # whatever the page says is raised
            error = raised
        if error is None:
            assert "raises" not in block.says, f"{block.place} raises nothing"
            return printed.text
        if "raises" not in block.says:
            error.add_note(f"in the block at {block.place}")
            raise error
        return printed.text + "".join(traceback.format_exception_only(error))

    def _execute(self, block: Block) -> None:
        with without(block.says.get("without")):
            self._execute_it(block)

    def _execute_it(self, block: Block) -> None:
        if (file := block.says.get("file")) is not None:
            path = self.folder / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text, "utf-8")
            if "pytest" in block.says:
                self._test(path)
            elif "process" in block.says:
                self._start(path)
            else:
                runpy.run_path(str(path), run_name="__main__")
            return
        # as a file, since checks see into functions whose source is there, as in a reader's program
        padded = "\n" * (block.line - 1) + block.text  # an error names the line of the page
        path = self.folder / f"{block.page.stem}_{block.line}.py"
        path.write_text(padded, "utf-8")
        exec(compile(padded, str(path), "exec"), self.names)

    def _start(self, path: Path) -> None:
        """Run a file as a process, which looks for what is installed anew."""
        command = (sys.executable, str(path))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            command, capture_output=True, env=environment, text=True, encoding="utf-8", check=False
        )
        sys.stdout.write(done.stdout + done.stderr)

    def _test(self, path: Path) -> None:
        """Run tests as a reader does, who has core installed and pytest find its fixtures."""
        installed = entry_points(group="pytest11", name="adk_fluent")
        plugin = () if installed else ("-p", "adk_fluent.testing.pytest_plugin")
        options = ("-q", "-p", "no:cacheprovider", *plugin, str(path))
        command = (sys.executable, "-m", "pytest", "--rootdir", str(self.folder), *options)
        done = subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _type(self, block: Block) -> None:
        code = 0
        for typed in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, wanted = typed.partition("\n")
            if command == "echo $?":
                self._compare(block, wanted, f"{code}\n")
                continue
            program, *arguments = shlex.split(command)
            assert program == "adk-fluent", f"{block.place}: {command}"
            printed = Printed()
            with printed.here(), pytest.raises(SystemExit) as ended:
                main(arguments)
            code = ended.value.code
            self._compare(block, wanted, self._shown(printed.text))

    def _look_at(self, block: Block) -> None:
        if (shown := block.says.get("of")) is None:
            return
        (link,) = re.findall(r"\]\((.+)\)", block.text)
        picture = block.page.parent / link
        builder: Builder = eval(shown, self.names)
        if self.draws:
            picture.write_text(builder.visualize(), "utf-8", newline="\n")
        now = f"{block.place}: draw it anew with pytest {title(Path(__file__))} --draw"
        assert picture.read_text("utf-8") == builder.visualize(), now

    def _check_commands(self, block: Block) -> None:
        for command in re.findall(r"adk-fluent (\w+)", block.text):
            printed = Printed()
            with printed.here(), pytest.raises(SystemExit) as ended:
                main([command, "--help"])
            assert ended.value.code == 0, f"{block.place}: {printed.text}"

    def _shown(self, text: str) -> str:
        lines = text.replace(str(self.folder), HERE).splitlines()
        return "".join(f"{line.rstrip()}\n" for line in lines)

    def _compare(self, block: Block, wanted: str, printed: str) -> None:
        if not OutputChecker().check_output(wanted, printed, ELLIPSIS):
            pytest.fail(f"{block.place} shows\n{wanted}\nbut this is printed:\n{printed}")


@contextmanager
def without(layer: str | None) -> Generator[None]:
    """As where the wheel of a layer is not installed."""
    if layer is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        known = metadata.entry_points

        def rest(**chosen: Any) -> list[metadata.EntryPoint]:
            hidden = layer if chosen.get("group") == GROUP else None
            points = cast("Iterable[metadata.EntryPoint]", known(**chosen))
            return [each for each in points if each.name != hidden]

        patch.setattr(metadata, "entry_points", rest)
        refresh()
        yield
    refresh()


class Printed:
    """Standard output and error as one text; a real text stream, as the command line expects."""

    def __init__(self) -> None:
        self._stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)

    @property
    def text(self) -> str:
        self._stream.seek(0)
        return self._stream.read()

    @contextmanager
    def here(self) -> Generator[None]:
        with redirect_stdout(self._stream), redirect_stderr(self._stream):
            yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory to be in; what is imported from it and registered there is forgotten."""
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(_checkers, "_users", dict(_checkers._users))
    before = set(sys.modules)
    log = logging.getLogger("adk_fluent")
    level = log.level
    yield tmp_path
    log.setLevel(level)  # a page may make it quiet, and the next one shows what is logged
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Models of the network: an answer where a block says that it needs one, else an error."""
    from google.adk.models.registry import LLMRegistry

    from adk_fluent.testing import ScriptedModel

    allowed = {"now": False}

    def new_llm(name: str) -> ScriptedModel:
        assert allowed["now"], f"{name} is asked for in a block that does not say so"
        return ScriptedModel(default=f"an answer of {name}", model=name)

    monkeypatch.setattr(LLMRegistry, "new_llm", staticmethod(new_llm))
    return allowed


# --- what a page lists ----------------------------------------------------------------------------


def check_names(block: Block) -> None:
    """That a table lists the names it claims to list, with their defaults if it says so."""
    target = block.says.get("names") or block.says.get("some names")
    if target is None:
        return
    header, _, *rows = cells_of(block)
    known = names_of(target)
    listed = listed_in(block, known)
    assert not set(listed) - set(known), f"{block.place}: unknown {set(listed) - set(known)}"
    if "names" in block.says:
        others = (each for each in blocks(block.page) if each.says.get("some names") == target)
        missing = set(known).difference(listed, *(listed_in(each, known) for each in others))
        assert not missing, f"{block.place} lacks {missing}"
    if header[1] == "default":
        shown = {name: cells[1] for name, cells in zip(listed, rows, strict=True)}
        made = [name for name in listed if known[name] is not MISSING]  # by what, a page may say
        assert [shown[name] for name in made] == [f"`{known[name]!r}`" for name in made], (
            block.place
        )
    if header[1] == "also a":
        for name, cells in zip(listed, rows, strict=True):
            bases = {base.__name__ for base in getattr(import_module(target), name).__mro__}
            assert set(re.findall(r"\w+", cells[1])) <= bases, f"{block.place}: {name}"


def check_folders(block: Block) -> None:
    """That a table lists every folder below one, and nothing that is not there."""
    top = ROOT / block.says["folders"]
    listed = {name for row in _rows(block) for name in re.findall(r"`([\w/]+)`", row.split("|")[1])}
    absent = [
        name for name in listed if not ((top / name).is_dir() or (top / f"{name}.py").exists())
    ]
    assert not absent, f"{block.place}: there is no {absent}"
    there = {path.parent.relative_to(top).as_posix() for path in top.rglob("*.py")} - {"."}
    assert not there - listed, f"{block.place} lacks {there - listed}"


def _rows(block: Block) -> list[str]:
    return block.text.replace("\\|", "/").splitlines()


def cells_of(block: Block) -> list[list[str]]:
    """The cells of a table by row, the header and the line below it first."""
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in _rows(block)]


def listed_in(block: Block, known: Mapping[str, Any]) -> list[str]:
    """The names that the first column of a table lists."""
    cells = (row[0] for row in cells_of(block)[2:])
    found = [each for cell in cells for each in re.findall(r"`[.\"]?((\w+)[\w.]*)[^`]*`", cell)]
    return [whole if whole in known else first for whole, first in found]


def names_of(target: str) -> Mapping[str, Any]:
    """The names of a module, class or mapping; of a dataclass with their defaults."""
    module, _, attribute = target.partition(":")
    thing: Any = import_module(module)
    for part in attribute.split(".") if attribute else ():
        thing = getattr(thing, part)
    if isinstance(thing, ModuleType):
        return dict.fromkeys(thing.__all__)
    if is_typeddict(thing):
        return thing.__annotations__
    if is_dataclass(thing):
        return {each.name: each.default for each in fields(thing) if each.init}
    if isinstance(thing, Mapping | tuple):
        return dict.fromkeys(cast("Iterable[str]", thing))
    return dict.fromkeys(name for name in dir(thing) if not name.startswith("_"))


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8")):
        local = REPOSITORY.sub("/", link)
        if "://" in local:
            continue
        path, _, anchor = local.partition("#")
        there = ROOT / path[1:] if path.startswith("/") else page.parent / path if path else page
        assert there.exists(), f"{title(page)}: {link}"
        assert not anchor or anchor in anchors(there), f"{title(page)}: {link}"


def anchors(page: Path) -> set[str]:
    """What GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


# --- tests ----------------------------------------------------------------------------------------


@runs_on_adk
@pytest.mark.parametrize("page", PAGES, ids=title)
def test_what_a_page_says_happens(
    page: Path, folder: Path, gemini: dict[str, bool], pytestconfig: pytest.Config
) -> None:
    runs_here(page)
    reader = Reader(folder, draws=pytestconfig.option.draw)
    for block in blocks(page):
        gemini["now"] = "gemini" in block.says
        reader.do(block)


@runs_on_adk
@pytest.mark.parametrize("example", EXAMPLES, ids=title)
def test_an_example_prints_what_it_says(
    example: Path, folder: Path, gemini: dict[str, bool]
) -> None:
    runs_here(example)
    printed = Printed()
    with printed.here():
        names = runpy.run_path(str(example), run_name="__main__")
    _, _, shown = str(names["__doc__"]).partition("Prints::\n\n")
    wanted = "".join(f"{line.removeprefix('    ')}\n" for line in shown.rstrip().splitlines())
    assert wanted, "its docstring ends with Prints:: and what it prints"
    assert OutputChecker().check_output(wanted, printed.text, ELLIPSIS), printed.text


@pytest.mark.full
def test_pages_are_strictly_typed_programs(tmp_path: Path) -> None:
    """What a reader copies passes pyright strict: each page as one module, its files as others."""
    for page in PAGES:
        lines = [""] * len(page.read_text("utf-8").splitlines())
        for block in blocks(page):
            if block.kind != "python" or {"from", "raises", "monolith"} & block.says.keys():
                continue
            if (file := block.says.get("file")) is not None:
                path = tmp_path / page.parent.relative_to(ROOT) / page.stem / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, "utf-8")
            else:
                code = block.text.splitlines()
                lines[block.line - 1 : block.line - 1 + len(code)] = code
        module = tmp_path / page.parent.relative_to(ROOT) / page.stem / "page.py"
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text("\n".join(lines), "utf-8")
    config = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "enableTypeIgnoreComments": False,
        "reportDeprecated": False,  # a page compares with what ADK 2.x deprecates
        "reportUnusedImport": False,  # a block that raises, which is not looked at, may use it
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config), "utf-8")
    command = (sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson")
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert [
        (each["file"], each["range"]["start"]["line"] + 1, each["message"]) for each in found
    ] == []


def test_the_language_page_has_a_picture_of_every_arrangement() -> None:
    docs = ROOT / "packages" / "adk-fluent-core" / "docs"
    page = docs / "language.md"
    sections = re.split(r"^##+ (.+)$", page.read_text("utf-8"), flags=re.MULTILINE)[1:]
    for heading, section in zip(sections[::2], sections[1::2], strict=True):
        if "`" in heading or heading in ("Routes", "Agents", "Remote agents"):
            assert "\n![" in section, heading
    shown = [each for each in blocks(page) if each.kind == "picture"]
    assert all("of" in each.says for each in shown)
    files = {f"pictures/language/{path.name}" for path in docs.glob("pictures/language/*")}
    assert {re.findall(r"\]\((.+)\)", each.text)[0] for each in shown} == files


def test_the_language_page_has_every_method_of_every_builder() -> None:
    page = (ROOT / "packages" / "adk-fluent-core" / "docs" / "language.md").read_text("utf-8")
    for name in adk_fluent.builders.__all__:
        kind: Any = getattr(adk_fluent.builders, name)
        if isinstance(kind, type) and BuilderBase in kind.__mro__:
            public = {each for each in dir(kind) if not each.startswith("_")}
            assert not {each for each in public if not re.search(rf"\.{each}\b", page)}, name
    for name in set(adk_fluent.__all__) - {"Resource", "injected", "layers"}:  # of other pages
        assert re.search(rf"\b{name}\b", page), name


def test_the_versions_of_adk_that_are_named_are_those_that_are_tested() -> None:
    readme = (ROOT / "packages" / "adk-fluent-core" / "README.md").read_text("utf-8")
    for column in ROOT.glob("tools/constraints/adk-*.txt"):
        (version,) = re.findall(r"^google-adk==(\S+)", column.read_text("utf-8"), re.MULTILINE)
        assert version in readme, f"{title(column)} has google-adk {version}"
