"""From what a person writes to a pipeline: `explain` takes every target, and needs no ADK."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adk_fluent.cli import Target, find_target
from adk_fluent.errors import TargetError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Cli, Write

DESK = """
    from adk_fluent import Agent

    classify = Agent("classify", "gemini-2.5-flash").writes("category")
    pipeline = classify >> Agent("draft", "gemini-2.5-flash")
"""


@pytest.mark.parametrize(
    ("text", "source", "attribute", "is_file"),
    [
        ("shop.desk:pipeline", "shop.desk", "pipeline", False),
        ("shop.desk", "shop.desk", None, False),
        ("shop.desk:Desk.main", "shop.desk", "Desk.main", False),
        ("desk.py", "desk.py", None, True),
        ("desk.py:triage", "desk.py", "triage", True),
        ("./desk", "./desk", None, True),
        ("/opt/desk.py:triage", "/opt/desk.py", "triage", True),
        (r"C:\desk.py:triage", r"C:\desk.py", "triage", True),
        (r"C:\desk.py", r"C:\desk.py", None, True),
        ("C:/shop/desk.py:triage.agent", "C:/shop/desk.py", "triage.agent", True),
        ("/opt/a:b/desk.py:triage", "/opt/a:b/desk.py", "triage", True),
        ("c:desk", "c", "desk", False),
        ("/opt/a:b/desk.py", "/opt/a:b/desk.py", None, True),
        ("https://example.com/desk.py", "https://example.com/desk.py", None, True),
        (".", ".", None, True),
        ("..:triage", "..", "triage", True),
        ("../desk.py:triage", "../desk.py", "triage", True),
        ("..desk:triage", "..desk", "triage", False),
        ("a:b:c", "a:b", "c", False),
    ],
)
def test_a_target_is_a_source_and_an_attribute(
    text: str, source: str, attribute: str | None, is_file: bool
) -> None:
    target = Target.parse(text)
    assert (target.source, target.attribute, target.is_file) == (source, attribute, is_file)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "no module and no file"),
        (" ", "no module and no file"),
        (":", "no module and no file before the colon"),
        ("::", "no attribute after the colon"),
        (":pipeline", "no module and no file before the colon"),
        ("desk:", "no attribute after the colon"),
        ("desk.py:", "no attribute after the colon"),
        ("C:", "no attribute after the colon"),
        (r"C:\desk.py:", "no attribute after the colon"),
        ("desk:.", "a name is missing in '.'"),
        ("desk:pipeline..name", "a name is missing in 'pipeline..name'"),
    ],
)
def test_a_target_without_one_of_them_is_none(text: str, found: str) -> None:
    with pytest.raises(TargetError, match="is no target") as caught:
        Target.parse(text)
    assert (caught.value.target, caught.value.found) == (text, found)
    assert caught.value.help == "write module:attribute or path.py:attribute"


# --- what works ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target", ["desk.py", "desk.py:pipeline", "desk", "desk:pipeline", "./desk.py"]
)
def test_a_pipeline_is_found(target: str, write: Write, cli: Cli) -> None:
    write("desk.py", DESK)
    done = cli("explain", target)
    assert (done.code, done.err) == (0, "")
    first, *steps = done.out.splitlines()
    assert first.startswith("pipeline  [")
    assert first.endswith("desk.py:5]")
    assert "├─ agent classify" in steps[0]


def test_explain_shows_the_model_it_is_asked_about(write: Write, here: Cli) -> None:
    write("desk.py", 'from adk_fluent import Agent\npipeline = Agent("a")')
    assert "ADK's default" in here("explain", "desk.py").out
    assert "gemini-9" in here("explain", "desk.py", "--model", "gemini-9").out


@pytest.mark.skipif(os.name == "nt", reason="a backslash is part of a name on POSIX only")
def test_a_windows_path_is_a_file(write: Write, here: Cli) -> None:
    write(r"C:\desk.py", DESK)
    assert "agent classify" in here("explain", r"C:\desk.py:classify").out


@pytest.mark.parametrize(
    "target", ["my shop/my desk.py:classify", "./my shop/../my shop/my desk.py"]
)
def test_a_path_may_have_blanks(target: str, write: Write, here: Cli) -> None:
    write("my shop/my desk.py", DESK)
    assert "agent classify" in here("explain", target).out


@pytest.mark.parametrize("name", ["pipeline", "root_agent", "agent"])
def test_the_usual_names_need_not_be_given(name: str, write: Write, here: Cli) -> None:
    write("desk.py", f'from adk_fluent import Agent\n{name} = Agent("found")')
    assert "agent found" in here("explain", "desk.py").out


def test_an_attribute_of_an_attribute_is_found(write: Write, here: Cli) -> None:
    write("desk.py", 'from adk_fluent import Agent\nclass Desk:\n    main = Agent("found")')
    assert "agent found" in here("explain", "desk.py:Desk.main").out


def test_what_a_function_returns_is_a_pipeline_too(write: Write, here: Cli) -> None:
    write("desk.py", 'from adk_fluent import Agent\ndef make():\n    return Agent("found")')
    assert "agent found" in here("explain", "desk.py:make").out


def test_ir_is_a_pipeline_too(write: Write, here: Cli) -> None:
    write("desk.py", 'from adk_fluent.ir import AgentNode\npipeline = AgentNode("found")')
    assert "agent found" in here("explain", "desk.py").out


def test_a_file_may_import_its_neighbours(write: Write, here: Cli) -> None:
    write("shop/models.py", 'NAME = "gemini-2.5-flash"')
    write(
        "shop/desk.py",
        'from models import NAME\nfrom adk_fluent import Agent\npipeline = Agent("a", NAME)',
    )
    assert "gemini-2.5-flash" in here("explain", "shop/desk.py").out


@pytest.mark.parametrize(
    "target", ["shop/agent.py", "shop", "shop.agent", "shop/agent.py:root_agent"]
)
def test_a_file_of_a_package_may_import_relatively(target: str, write: Write, here: Cli) -> None:
    """The layout that ADK's own tools ask for: the package imports its agent."""
    write("shop/__init__.py", "from . import agent")
    write("shop/prompts.py", 'TEXT = "Be kind."')
    write(
        "shop/agent.py",
        """
        from adk_fluent import Agent
        from .prompts import TEXT
        root_agent = Agent("found").instruct(TEXT)
        """,
    )
    done = here("explain", target)
    assert done.code == 0, done.err
    assert "Be kind." in done.out


def test_a_package_need_not_import_its_agent(write: Write, here: Cli) -> None:
    write("shop/__init__.py", "")
    write("shop/agent.py", "from adk_fluent import Agent\nroot_agent = Agent('found')")
    assert "agent found" in here("explain", "shop").out


def test_two_files_of_one_name_are_two_modules(write: Write, here: Cli) -> None:
    for name in ("one", "two"):
        write(f"{name}/desk.py", f'from adk_fluent import Agent\npipeline = Agent("{name}")')
    assert "agent one" in here("explain", "one/desk.py").out
    assert "agent two" in here("explain", "two/desk.py").out


def test_what_an_import_prints_is_kept_off_the_answer(write: Write, cli: Cli) -> None:
    write("desk.py", 'print("loading")\n' + "from adk_fluent import Agent\npipeline = Agent('a')")
    done = cli("explain", "desk.py")
    assert done.out.startswith("agent a")
    assert done.err == "loading\n"


# --- what does not -------------------------------------------------------------------------------

PARTS = """
from adk_fluent import Agent
classify, answer = Agent("classify"), Agent("answer")
desk = classify >> answer
"""

#: What is wrong: files, the target, and what the message says.
WRONG: dict[str, tuple[dict[str, str], str, tuple[str, ...]]] = {
    "no such file": ({}, "desk.py", ("there is no file desk.py", "check the path")),
    "no such file, but one like it": (
        {"desk.py": DESK},
        "dsek.py:pipeline",
        ("there is no file dsek.py", "did you mean desk.py?"),
    ),
    "a directory": (
        {"shop/b.py": "", "shop/a.py": "", "shop/__init__.py": "", "shop/notes.txt": ""},
        "./shop",
        ("./shop is a directory", "found: a.py, b.py\n", "such as shop/a.py\n"),
    ),
    "a directory with an agent for ADK's tools": (
        {"shop/agent.py": "", "shop/a.py": ""},
        "shop/:root_agent",
        ("shop/ is a directory", "such as shop/agent.py:root_agent\n"),
    ),
    "a directory with many files": (
        {f"shop/{name}.py": "" for name in "abcdefg"},
        "shop/",
        ("found: a.py, b.py, c.py, d.py, e.py...\n",),
    ),
    "a directory by its name": (
        {"my shop/desk.py": DESK},
        "my shop:pipeline",
        ("my shop is a directory", "such as my shop/desk.py:pipeline\n"),
    ),
    "a directory in a directory": (
        {"shop/eu/desk.py": DESK},
        "shop.eu",
        ("shop.eu is a directory", "such as shop/eu/desk.py\n"),
    ),
    "the current directory": (
        {"desk.py": DESK},
        ".",
        (". is a directory", "found: desk.py", "such as desk.py\n"),
    ),
    "an attribute of the current directory": (
        {"desk.py": DESK},
        ".:classify",
        (". is a directory", "such as desk.py:classify\n"),
    ),
    "the directory above": ({}, "..", (".. is a directory", "such as ../agent.py\n")),
    "an empty directory": ({}, "./", ("./ is a directory", "found: no Python file in it")),
    "the package of an agent, as ADK's tools ask for": (
        {"shop/__init__.py": "from . import agent", "shop/agent.py": "root_agent = None"},
        "shop:agent",
        ("shop:agent is no pipeline", "found: a module", "such as shop.agent:root_agent\n"),
    ),
    "the package of an agent that is none": (
        {"shop/__init__.py": "from . import agent", "shop/agent.py": "root_agent = None"},
        "shop",
        ("shop is no pipeline", "found: a NoneType"),
    ),
    "a package whose modules hold pipelines": (
        {"shop/__init__.py": "from . import desk", "shop/desk.py": PARTS},
        "shop",
        (
            "shop has no pipeline or root_agent or agent",
            "found: shop.desk:desk, shop.desk:classify, shop.desk:answer\n",
            "such as shop.desk:desk\n",
        ),
    ),
    "a package whose modules were not imported": (
        {"shop/__init__.py": "", "shop/desk.py": PARTS, "shop/prices.py": ""},
        "shop",
        ("found: the modules desk, prices\n", "such as shop.desk:desk\n"),
    ),
    "a pipeline and its parts": (
        {"desk.py": PARTS},
        "desk",
        ("found: desk, classify, answer\n", "name the attribute, such as desk:desk\n"),
    ),
    "the same in a file": ({"desk.py": PARTS}, "desk.py", ("such as desk.py:desk\n",)),
    "a relative name": (
        {"desk.py": DESK},
        "..desk:pipeline",
        (
            "'..desk' is no name of a module",
            "found: a dot without a name on either side",
            "as it is imported from here, such as shop.desk:pipeline, or name the file: path/to/",
        ),
    ),
    "dots alone": ({}, "...", ("'...' is no name of a module",)),
    "a name that ends with a dot": ({"desk.py": DESK}, "desk.", ("'desk.' is no name of",)),
    "a name with a gap": ({}, "shop..desk:x", ("'shop..desk' is no name of a module",)),
    "a colon too many": (
        {"a.py": DESK},
        "a:b:c",
        ("'a:b:c' is no target", "found: another colon in 'a:b'", "write module:attribute or"),
    ),
    "a test's way of naming": (
        {"desk.py": DESK},
        "desk.py::pipeline",
        ("'desk.py::pipeline' is no target", "did you mean desk.py:pipeline?"),
    ),
    "nothing": ({}, "", ("'' is no target", "found: no module and no file", "path.py:attribute")),
    "blanks": ({}, "  ", ("'  ' is no target",)),
    "a colon": ({}, ":", ("':' is no target", "before the colon")),
    "no attribute": ({"a.py": DESK}, "a:", ("'a:' is no target", "after the colon")),
    "an address": (
        {},
        "https://example.com/desk.py",
        ("there is no file https://example.com/desk.py", "check the path"),
    ),
    "a path with blanks": (
        {"my shop/my desk.py": DESK},
        "my shop/my dsek.py:pipeline",
        ("there is no file my shop/my dsek.py", "did you mean my shop/my desk.py?"),
    ),
    "a path of Windows": ({}, r"C:\x.py:attr", (r"there is no file C:\x.py", "check the path")),
    "a file below a file": ({"desk.py": DESK}, "desk.py/x.py", ("there is no file desk.py/x.py",)),
    "a path too long for a file": ({}, f"{'x' * 300}.py", ("there is no file xxx", "check the")),
    "a directory too long for one": ({}, f"{'x' * 300}/desk.py", ("there is no file xxx",)),
    "a name too long for a module": ({}, "x" * 300, ("there is no module 'xxx", "check the name")),
    "a text": ({"notes.txt": ""}, "notes.txt", ("notes.txt is no Python file", "name a .py file")),
    "no Python file": ({"desk/notes.txt": ""}, "desk/notes.txt", ("no Python file", ".py file")),
    "no such module": ({}, "deskk", ("there is no module 'deskk'", "path/to/file.py:attribute")),
    "no such submodule": (
        {"shop/__init__.py": ""},
        "shop.desk:pipeline",
        ("there is no module 'shop.desk'",),
    ),
    "no such attribute": (
        {"desk.py": DESK},
        "desk.py:pipelin",
        ("desk.py has no attribute 'pipelin'", "did you mean 'pipeline'?"),
    ),
    "nothing like it": (
        {"desk.py": DESK},
        "desk.py:x",
        ("desk.py has no attribute 'x'", "pipelines pipeline, classify"),
    ),
    "no such attribute of an attribute": (
        {"desk.py": DESK},
        "desk.py:pipeline.nmae",
        ("desk.py:pipeline has no attribute 'nmae'", "did you mean 'name'?"),
    ),
    "none of the usual names": (
        {"desk.py": "from adk_fluent import Agent\na = Agent('a')\nb = Agent('b')"},
        "desk.py",
        ("desk.py has no pipeline or root_agent or agent", "found: a, b", "such as desk.py:a"),
    ),
    "nothing in it": ({"desk.py": ""}, "desk.py", ("found: no pipeline at all",)),
    "a number": (
        {"desk.py": "pipeline = 3"},
        "desk.py",
        ("desk.py is no pipeline", "found: an int", "name a builder"),
    ),
    "a class": (
        {"desk.py": "class Desk: ..."},
        "desk.py:Desk",
        ("desk.py:Desk is no pipeline", "found: the class Desk"),
    ),
    "a function that makes none": (
        {"desk.py": "def make(): ..."},
        "desk.py:make",
        ("desk.py:make is no pipeline", "found: a NoneType", "a function that returns one"),
    ),
    "a function that needs something": (
        {"desk.py": "def make(model): ..."},
        "desk.py:make",
        ("desk.py:make cannot be called", "argument: 'model'", "made = make(...)"),
    ),
    "a function that raises": (
        {"desk.py": "def make():\n    raise OSError('no key' + ' x' * 200 + ' end')"},
        "desk.py:make",
        ("desk.py:make raised", "found: OSError: no key", "x end"),
    ),
    "a syntax error": (
        {"desk.py": "x = 1\npipeline = Agent(\n"},
        "desk.py",
        ("desk.py has a syntax error", "desk.py:2", "was never closed: pipeline = Agent("),
    ),
    "a syntax error in a neighbour": (
        {"desk.py": "import prices", "prices.py": "\nx = = 1\n"},
        "desk.py",
        ("prices.py has a syntax error", "prices.py:2", "invalid syntax: x = = 1"),
    ),
    "a syntax error in what it evaluates": (
        {"desk.py": "x = 1\neval('1 +')"},
        "desk.py",
        ("importing desk.py failed", "desk.py:2", "SyntaxError: invalid syntax"),
    ),
    "no text": (
        {"desk.py": "# -*- coding: nonsense -*-"},
        "desk.py",
        ("desk.py has a syntax error", "unknown encoding"),
    ),
    "an error while it is imported": (
        {"desk.py": "import json\n\nprices = json.loads('{')"},
        "desk.py",
        ("importing desk.py failed", "desk.py:3", "JSONDecodeError: Expecting", "--debug"),
    ),
    "an import of what is not there": (
        {"desk.py": "import no_such_thing"},
        "desk:pipeline",
        ("importing desk failed", "desk.py:1", "No module named 'no_such_thing'"),
    ),
    "an exit": (
        {"desk.py": "import sys\nsys.exit()"},
        "desk.py",
        ("importing desk.py failed", "desk.py:2", "it called exit()", "__main__"),
    ),
    "an exit with a code": ({"desk.py": "exit(4)"}, "desk.py", ("it called exit(4)",)),
    "a mistake in a pipeline": (
        {"desk.py": "from adk_fluent import Agent\npipeline = Agent('a') >> 3"},
        "desk.py",
        ("3 cannot be a step", "desk.py:2"),
    ),
    "no target": ({}, ":pipeline", ("':pipeline' is no target", "module:attribute")),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_target_is_said(case: str, write: Write, cli: Cli) -> None:
    files, target, said = WRONG[case]
    for name, source in files.items():
        write(name, source)
    done = cli("explain", target)
    assert done.code == 2, done.err
    assert done.out == ""
    assert done.err.startswith(("error[ADKF108]: ", "error[ADKF101]: 3 cannot be a step"))
    for text in said:
        assert text in done.err.replace(os.sep, "/") or text in done.err
    assert "importlib" not in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("target", [".", "..desk:pipeline", ":", ""])
def test_run_says_it_too(target: str, write: Write, here: Cli) -> None:
    write("desk.py", DESK)
    done, explained = here("run", target, "hi"), here("explain", target)
    assert (done.code, done.out) == (2, "")
    assert done.err == explained.err


@pytest.mark.parametrize(
    ("source", "wheel"),
    [
        ("import adk_fluent.debug", "adk-fluent-debug"),
        ("from adk_fluent.debug import Recorder", "adk-fluent-debug"),
        ("from adk_fluent import diff_events", "adk-fluent-debug"),
    ],
)
def test_an_absent_layer_names_the_wheel_to_install(
    source: str, wheel: str, absent: Callable[[str], None], write: Write, cli: Cli
) -> None:
    absent("debug")
    write("desk.py", f"x = 1\n{source}")
    done = cli("explain", "desk.py")
    assert done.code == 3
    assert f"pip install {wheel}" in done.err
    assert "Traceback" not in done.err


def test_the_line_that_imports_an_absent_layer_is_shown(
    absent: Callable[[str], None], write: Write, here: Cli
) -> None:
    absent("debug")
    write("desk.py", "x = 1\nimport adk_fluent.debug")
    assert "desk.py:2" in here("explain", "desk.py").err


def test_the_traceback_is_shown_when_asked_for(write: Write, cli: Cli) -> None:
    write("desk.py", "pipeline = 1 / 0")
    for args in (("--debug", "explain", "desk.py"), ("explain", "desk.py", "--debug")):
        done = cli(*args)
        assert done.code == 2
        assert "Traceback (most recent call last)" in done.err
        assert "ZeroDivisionError" in done.err
        assert "error[ADKF108]: importing desk.py failed" in done.err


def test_a_module_that_failed_is_not_kept(write: Write, here: Cli, place: Path) -> None:
    path = write("desk.py", "pipeline = 1 / 0")
    assert here("explain", "desk.py").code == 2
    path.write_text('from adk_fluent import Agent\npipeline = Agent("mended")')
    assert "agent mended" in here("explain", "desk.py").out


def test_text_that_a_terminal_would_obey_is_only_shown(write: Write, here: Cli) -> None:
    write("desk.py", 'from adk_fluent import Agent\npipeline = Agent("a").instruct("\\x1b[31mred")')
    assert "\x1b" not in here("explain", "desk.py").out


def test_a_name_is_looked_for_without_an_import(write: Write, place: Path) -> None:
    write("desk.py", "1 / 0\nimport shop.till\n\ndef made(): ...\nclass Desk: main = made()")
    for name in ("shop", "made", "Desk.main"):
        assert find_target(f"{place}/desk.py:{name}").attribute == name
    with pytest.raises(TargetError, match="did you mean 'made'"):
        find_target(f"{place}/desk.py:mode")
    write("any.py", "from shop import *")
    write("broken.py", "def")
    write("set.py", "import sys\nhere = sys.modules[__name__]\nhere.mode = 1")
    for file in ("any.py", "broken.py", "set.py"):
        assert find_target(f"{place}/{file}:mode").is_file
    assert find_target("no.such.module:mode").source == "no.such.module"
    with pytest.raises(TargetError, match="has no attribute 'pathsep_'"):
        find_target("os:pathsep_")
