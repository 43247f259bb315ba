"""The command group: help, layers' commands, mistakes in the call, and exit codes."""

from __future__ import annotations

import errno
import importlib.metadata
import logging
import os
import re
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import click
import pytest

from adk_fluent._core import CORE
from adk_fluent._registry import GROUP, refresh
from adk_fluent.cli import _main, main
from adk_fluent.cli._failures import exit_code, report
from adk_fluent.cli._text import plain, short
from adk_fluent.errors import (
    AgentReportedError,
    BuildError,
    ContractError,
    CredentialsError,
    ExpectationError,
    LayerError,
    MissingLayerError,
    OutputMissingError,
    RemoteError,
    SessionStoreError,
    StepTimeoutError,
    TargetError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Cli, Write

LAYER = """
    from adk_fluent.protocol import Entry, Layer

    LAYER = Layer(
        "toy", {"commands": Entry("toy_heavy:play", "play", "Play with a toy pipeline.")}
    )
"""
HEAVY = """
    import click

    @click.command()
    @click.argument("times", type=int)
    def play(times):
        if times > 3:
            raise ValueError("too wild")
        click.echo("played " * times)
"""


@pytest.fixture
def layer(place: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Install a layer called toy, of which `toy_heavy` should be imported when it is used."""
    install(write, "toy", "toy_layer:LAYER")
    write("site/toy_layer.py", LAYER)
    write("site/toy_heavy.py", HEAVY)
    monkeypatch.setattr(sys, "path", [str(place / "site"), *sys.path])
    paths = [str(place / "site"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    refresh()
    return write


def install(write: Write, name: str, target: str) -> None:
    info = f"site/acme_{name}-0.3.dist-info"
    write(f"{info}/METADATA", f"Name: acme-{name}\nVersion: 0.3\n")
    write(f"{info}/entry_points.txt", f"[{GROUP}]\n{name} = {target}\n")


# --- help ----------------------------------------------------------------------------------------


def test_help_lists_the_commands(cli: Cli) -> None:
    done = cli("--help")
    assert done.code == 0
    for command in ("demo", "doctor", "explain", "run"):
        assert f"  {command} " in done.out
    assert done.out == cli("-h").out


def test_help_imports_no_more_than_it_needs(layer: Write) -> None:
    code = (
        "import sys, atexit\n"
        "from adk_fluent.cli import main\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "main(['--help'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = done.stderr.split()
    assert {"google", "pydantic", "rich", "asyncio"}.isdisjoint(modules)
    assert "toy_layer" in modules
    assert "toy_heavy" not in modules
    assert re.search(r"play +Play with a toy pipeline\.", done.stdout)


@pytest.mark.parametrize("command", ["demo", "doctor", "explain", "run"])
def test_every_command_explains_itself_without_adk(command: str) -> None:
    code = (
        "import sys, atexit\n"
        "from adk_fluent.cli import main\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        f"main([{command!r}, '--help'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"Usage: adk-fluent {command}")
    assert "--debug" in done.stdout
    assert {"google", "pydantic"}.isdisjoint(done.stderr.split())


def test_the_lists_say_of_each_command_what_it_says_itself() -> None:
    for entry in CORE.entries("commands"):
        command = _main.cli.get_command(click.Context(_main.cli), entry.name)
        assert command is not None
        assert command.help
        words = entry.help.rstrip(".").split()
        assert words[0] == command.help.split()[0], "the two begin with the same verb"


def test_without_a_command_the_help_is_shown_as_a_mistake(cli: Cli) -> None:
    done = cli()
    assert done.code in {0, 2}  # click before 8.2 says 0
    assert "Usage: adk-fluent" in done.out + done.err


def test_the_version_is_shown(cli: Cli) -> None:
    done = cli("--version")
    assert done.code == 0
    assert done.out.startswith("adk-fluent-core ")
    assert f"google-adk {importlib.metadata.version('google-adk')}" in done.out


def test_the_console_script_is_this_program() -> None:
    found = importlib.metadata.entry_points(group="console_scripts", name="adk-fluent")
    assert all(point.load() is main for point in found)


# --- commands of layers --------------------------------------------------------------------------


def test_a_layers_command_runs(layer: Write, cli: Cli) -> None:
    done = cli("play", "2")
    assert (done.code, done.out) == (0, "played played \n")


def test_a_layers_command_fails_like_ours(layer: Write, cli: Cli) -> None:
    assert cli("play", "x").code == 2
    done = cli("play", "4")
    assert done.code == 1
    assert done.err == "error: ValueError: too wild\n  --debug shows the traceback\n"
    assert "Traceback" in cli("play", "4", "--debug").err


def test_a_broken_layer_does_not_stop_the_others(layer: Write, cli: Cli) -> None:
    install(layer, "bad", "bad_layer:LAYER")
    layer("site/bad_layer.py", "1 / 0")
    refresh()
    help = cli("--help")
    assert help.code == 0
    assert re.search(r"play +Play with a toy pipeline\.", help.out)
    assert "Layers with problems: bad; adk-fluent doctor tells why." in help.out
    assert cli("play", "1").code == 0
    unknown = cli("plau", "1")
    assert (unknown.code, "Layers with problems: bad" in unknown.err) == (2, True)


def test_a_command_that_core_has_stays_cores(layer: Write, here: Cli) -> None:
    install(layer, "bad", "bad_layer:LAYER")
    layer(
        "site/bad_layer.py",
        """
        from adk_fluent.protocol import Entry, Layer

        COMMANDS = Entry("sys:exit", "check"), Entry("toy_heavy:play", "p")
        LAYER = Layer("bad", {"commands": COMMANDS})
        """,
    )
    refresh()
    assert "Look for mistakes in pipelines" in here("--help").out
    assert "Layers with problems: bad" in here("--help").out
    assert here("check", "--help").out.startswith("Usage: adk-fluent check")
    assert here("p", "1").code == 0
    told = here("doctor")
    assert told.code == 1
    says = "layer 'bad' has a command 'check', which adk-fluent-core has itself"
    assert f"BAD layer bad {says}" in in_one_space(told.out)
    assert "found: sys:exit of acme-bad 0.3" in told.out
    assert "ok layer toy acme-toy 0.3" in in_one_space(told.out)


def in_one_space(text: str) -> str:
    """Without the width of the columns, which depends on what else is installed."""
    return " ".join(text.split())


def test_doctor_imports_everything_that_a_layer_provides(layer: Write, here: Cli) -> None:
    install(layer, "bad", "bad_layer:LAYER")
    layer(
        "site/bad_layer.py",
        """
        from adk_fluent.protocol import Layer

        LAYER = Layer("bad", {"rules": "gone:RULES", "of_tomorrow": ("sys:exit", "sys:entrance")})
        """,
    )
    refresh()
    told = here("doctor")
    assert told.code == 1
    printed = in_one_space(told.out)
    assert "BAD layer bad cannot load gone:RULES" in printed
    assert "BAD layer bad cannot load sys:entrance" in printed
    assert "ok layer bad" not in printed
    assert "ok layer toy acme-toy 0.3" in printed


def test_a_command_that_two_layers_have_is_told_when_it_is_called(layer: Write, here: Cli) -> None:
    install(layer, "toy_too", "toy_too:LAYER")
    layer("site/toy_too.py", LAYER.replace('"toy"', '"toy_too"'))
    refresh()
    done = here("play", "1")
    assert done.code == 3
    assert "layers 'toy' and 'toy_too' both have a command 'play'" in done.err
    assert "one of acme-toy 0.3 and one of acme-toy_too 0.3" in done.err
    assert "Layers with problems: toy_too" in here("--help").out
    assert here("explain", "--help").code == 0


def test_a_broken_layer_of_ours_is_told_where_its_command_is_called(
    absent: Callable[[str], None], layer: Write, here: Cli
) -> None:
    absent("debug")
    install(layer, "debug", "debug_layer:LAYER")
    layer("site/debug_layer.py", "1 / 0")
    refresh()
    done = here("replay", "x")
    assert done.code == 3
    assert "cannot load debug_layer:LAYER" in done.err
    assert "layer 'debug' of acme-debug 0.3" in done.err


@pytest.mark.adk
def test_a_broken_layer_is_a_finding_of_check(layer: Write, here: Cli) -> None:
    install(layer, "bad", "bad_layer:LAYER")
    layer("site/bad_layer.py", "1 / 0")
    layer("desk.py", 'from adk_fluent import Agent\npipeline = Agent("a").instruct("Hi.")\n')
    refresh()
    done = here("check", "desk.py")
    assert done.code == 0
    assert "warning[FLW901]: the layer `bad` is broken" in done.out
    assert "cannot load bad_layer:LAYER" in done.out


def test_a_layer_that_is_there_twice_is_told(layer: Write, here: Cli) -> None:
    layer("site/other_toy-1.dist-info/METADATA", "Name: other-toy\nVersion: 1\n")
    layer("site/other_toy-1.dist-info/entry_points.txt", f"[{GROUP}]\ntoy = toy_layer:LAYER\n")
    refresh()
    help = here("--help")
    assert help.code == 0
    assert "Layers with problems: toy" in help.out
    told = here("doctor")
    assert told.code == 1
    assert "two layers are called 'toy'" in told.out
    assert "one of acme-toy 0.3 and one of other-toy 1" in told.out


def test_the_command_of_an_absent_layer_names_the_wheel(
    absent: Callable[[str], None], cli: Cli
) -> None:
    absent("debug")
    done = cli("replay", "--any", "thing")
    assert done.code == 3
    assert "the command 'replay' needs the layer" in done.err
    assert "pip install adk-fluent-debug" in done.err


# --- mistakes in the call ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["rnu", "desk.py"], "There is no command 'rnu'. Did you mean 'run'?"),
        (["evla"], "There is no command 'evla'. Did you mean 'eval'?"),
        (
            ["xyzzy"],
            "There is no command 'xyzzy'. There are answer, cancel, check, demo, ",
        ),
        (["--debgu", "run"], "No such option"),
        (["run", "--modle", "x", "desk.py"], "--model"),
        (["run"], "Missing argument 'TARGET'"),
        (["run", "desk.py", "hi", "there"], "unexpected extra argument (there)"),
        (["run", "desk.py", "hi", "--max-llm-calls", "0"], "--max-llm-calls"),
        (["run", "desk.py", "hi", "--timeout", "soon"], "--timeout"),
        (["run", "desk.py", "hi", "--timeout", "0"], "--timeout"),
        (["run", "desk.py", "hi", "--timeout", "nan"], "nan is no number of seconds"),
        (["run", "desk.py", "hi", "--timeout", "inf"], "inf is no number of seconds"),
        (["run", "desk.py", "hi", "--state", "ticket"], "'ticket' is not KEY=VALUE"),
        (["run", "desk.py", "hi", "--state", "=3"], "'=3' is not KEY=VALUE"),
        (["run", "desk.py", "hi", "--state", "a=NaN"], "NaN is no JSON"),
        (["run", "desk.py", "hi", "--state", "a=[-Infinity]"], "-Infinity is no JSON"),
        (["run", "desk.py", "hi", "--session", " x"], "' x' begins or ends with a blank"),
        (["run", "desk.py", "hi", "--session-db", "."], "is a directory"),
        (["run", "desk.py", "hi", "--session", "s1"], "--session needs --session-db"),
        (["run", "desk.py", ""], "The MESSAGE is empty."),
        (["run", "desk.py", "  \n"], "The MESSAGE is empty."),
        (["run", "desk.py"], "The MESSAGE is empty."),
        (["run", "desk.py", "hi", "--user", ""], "--user"),
        (["run", "desk.py", "hi", "--app", " "], "--app"),
        (["run", "desk.py", "hi", "--session", "", "--session-db", "x"], "--session"),
        (["run", "desk.py", "hi", "--file", "no.png"], "There is no file no.png."),
        (["demo", "--tickets", "51"], "--tickets"),
    ],
)
def test_a_mistake_in_the_call_is_explained(args: list[str], said: str, cli: Cli) -> None:
    done = cli(*args)
    assert done.code == 2
    assert done.out == ""
    assert said in done.err
    assert "Usage: adk-fluent" in done.err
    assert "Traceback" not in done.err


def test_a_message_has_to_be_text(cli: Cli) -> None:
    done = cli("run", "desk.py", input=b"caf\xe9")
    assert (done.code, "The MESSAGE is not UTF-8" in done.err) == (2, True)


def test_without_standard_input_a_message_has_to_be_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit) as ended:
        main(["run", "desk.py"])
    assert ended.value.code == 2


# --- errors --------------------------------------------------------------------------------------


class Unavailable(Exception):  # noqa: N818  # as clients of models call them
    def __init__(self, **fields: object) -> None:
        super().__init__("sorry")
        vars(self).update(fields)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ContractError("x", report=None), 1),
        (ExpectationError("x"), 1),
        (OutputMissingError("x"), 1),
        (AgentReportedError("x", error_code="SAFETY"), 1),
        (StepTimeoutError("x", seconds=1), 1),
        (ZeroDivisionError("x"), 1),
        (KeyError("x"), 1),
        (BuildError("x"), 2),
        (TargetError("x", target="y"), 2),
        (CredentialsError("x"), 3),
        (SessionStoreError("x"), 3),
        (RemoteError("x"), 3),
        (MissingLayerError("x", layer="cost"), 3),
        (LayerError("x", layer="cost"), 3),
        (ConnectionResetError("x"), 3),
        (OSError(errno.ENOSPC, "no space left"), 3),
        (Unavailable(code=503), 3),
        (Unavailable(status="INVALID_ARGUMENT", code=400), 3),
        (Unavailable(status_code=401), 3),
        (Unavailable(code=7), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_every_error_has_an_exit_code(error: Exception, code: int) -> None:
    assert exit_code(error) == code


def test_an_error_says_where_it_happened(capsys: pytest.CaptureFixture[str]) -> None:
    error = ValueError("no price")
    error.add_note("in node 'quote' at desk.py:7")
    assert report(error) == 1
    assert capsys.readouterr().err == (
        "error: ValueError: no price\n  in node 'quote' at desk.py:7\n"
        "  --debug shows the traceback\n"
    )


def test_an_error_of_a_plugin_is_shown_as_it_was_raised(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrapped = RuntimeError("Error in plugin 'x' during 'y' callback: no price")
    wrapped.__cause__ = ValueError("no price")
    report(wrapped)
    assert capsys.readouterr().err.startswith("error: ValueError: no price\n")


def test_a_pipelines_own_database_is_not_taken_for_the_sessions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert report(sqlite3.OperationalError("no such table: orders")) == 1
    assert "error: OperationalError: no such table: orders" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said", "code"),
    [
        (KeyboardInterrupt(), "interrupted", 130),
        (EOFError("no more input"), "error: EOFError: no more input", 1),
    ],
)
def test_an_interrupt_is_told_from_an_end_of_input(
    error: BaseException, said: str, code: int, here: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(_main.cli, "callback", fail)
    done = here("doctor")
    assert done.code == code
    assert said in done.err


def test_an_error_whose_text_a_terminal_would_obey(capsys: pytest.CaptureFixture[str]) -> None:
    report(ValueError("\x1b[2Jgone\r\x07"))
    assert "ValueError: [2Jgone\n" in capsys.readouterr().err


def test_text_is_made_safe_for_a_terminal() -> None:
    assert plain("a\x1b[1mb\x9bc\r\n\td\x00é🙂") == "a[1mbc\n\tdé🙂"
    assert short("one\n two  three", 20) == "one two three"
    assert short("one two three", 8) == "one two…"


# --- output --------------------------------------------------------------------------------------


def test_output_is_plain_when_nobody_looks(cli: Cli) -> None:
    for args in (["--help"], ["--version"], ["rnu"], ["explain", "no.py"]):
        done = cli(*args)
        assert "\x1b" not in done.out + done.err


@pytest.mark.parametrize(
    ("environment", "colored"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colors_go_where_they_are_wanted(
    environment: dict[str, str], colored: bool, here: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = here("explain", "no.py")
    assert ("\x1b[31m" in done.err) is colored
    assert ("\x1b[" in here("doctor").out) is colored


def test_logs_of_libraries_are_kept_quiet_unless_asked_for(here: Cli) -> None:
    here("explain", "no.py")
    assert logging.getLogger("google_adk").handlers
    logging.root.handlers.clear()
    here("--debug", "explain", "no.py")
    assert logging.root.handlers


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "Grüße 🙂".encode()),
        ("latin-1", b"Gr\xfc\xdfe \\U0001f642"),
        ("ascii", "Grüße 🙂".encode()),  # click takes ASCII for a locale that is not set up
    ],
)
def test_no_encoding_of_standard_output_is_too_narrow(
    encoding: str, shown: bytes, write: Write
) -> None:
    write("desk.py", 'from adk_fluent import Agent\npipeline = Agent("a").instruct("Grüße 🙂")')
    environment: dict[str, Any] = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-m", "adk_fluent.cli", "explain", "desk.py"],
        capture_output=True,
        check=False,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"instruction: " + shown in done.stdout


# --- options of layers for `run` -----------------------------------------------------------------

OPTION = """
class Count:
    def __init__(self):
        self.seen = 0
        self.middlewares = [self]
    async def wrap_run(self, call, next):
        self.seen += 1
        return await next(call)
    def report(self, *, as_json):
        return f'{{"runs": {self.seen}}}' if as_json else f"runs: {self.seen}"
"""
COUNTS = """
from adk_fluent.protocol import Entry, Layer
LAYER = Layer("toy", {"run_options": (
    Entry("toy_parts:Count", "run_count", "Count the runs."), Entry("toy_parts:Count", "model"),
)})
"""


@pytest.mark.adk
@pytest.mark.parametrize("fails", [False, True])
def test_run_has_the_options_of_layers_and_prints_their_report(
    layer: Write, write: Write, here: Cli, fails: bool
) -> None:
    install(layer, "toy", "toy_layer:LAYER")
    layer("site/toy_layer.py", COUNTS)
    layer("site/toy_parts.py", OPTION)
    refresh()
    told = here("run", "--help").out
    assert "--run-count" in told
    assert "Count the runs." in told
    assert told.count("--model ") == 1  # that of core stays core's
    steps = 'Agent("a").mock("A") >> (lambda s: 1 / 0)' if fails else 'Agent("a").mock("A")'
    write("desk.py", f"from adk_fluent import Agent\npipeline = {steps}")
    done = here("run", "desk.py", "hi", "--run-count")
    assert done.err.rstrip().splitlines().count("runs: 1") == 1
    assert "runs" not in done.out
    lines = here("run", "desk.py", "hi", "--run-count", "--json").out.splitlines()
    assert lines[-1] == '{"runs": 1}'
    assert "runs" not in here("run", "desk.py", "hi").err
