"""`adk-fluent run` on ADK: what is shown, what is kept, and every way in which it may end."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from adk_fluent.backends import Pass, PassList
from adk_fluent.backends.adk._lowering import _compile
from adk_fluent.cli import _sessions
from adk_fluent.protocol import AgentEvent

if TYPE_CHECKING:
    from pathlib import Path

    from adk_fluent.backends.adk import CompileContext

    from .conftest import Cli, Write

pytestmark = pytest.mark.adk

HEAD = """
from adk_fluent import Agent, FanOut, until
from adk_fluent.testing import Call, ScriptedModel, reply, rule

def look_up(order: str) -> dict:
    \"\"\"Look an order up.\"\"\"
    return {"order": order, "status": "shipped"}
"""
DESK = f"""{HEAD}
first = Agent("first", ScriptedModel(Call("look_up", {{"order": "17"}}), "It is shipped."))
answer = ScriptedModel(default=reply(chunks=["Dear ", "customer: ", "it is shipped."]))
pipeline = first.tool(look_up).writes("fact") >> Agent("second", answer)
"""


@pytest.fixture
def desk(write: Write) -> str:
    write("desk.py", DESK)
    return "desk.py"


def one(write: Write, replies: str, rest: str = "", name: str = "desk.py") -> str:
    """A pipeline of one agent that answers from a script."""
    write(name, f"{HEAD}\npipeline = Agent('a', ScriptedModel({replies})){rest}\n")
    return name


# --- what is shown -------------------------------------------------------------------------------


def test_what_agents_say_is_shown_and_what_they_do_beside_it(desk: str, cli: Cli) -> None:
    done = cli("run", desk, "Where is order 17?")
    assert done.code == 0
    assert done.out == "first: It is shipped.\nsecond: Dear customer: it is shipped.\n"
    assert done.err == '[first calls look_up(order="17")]\n'


def test_a_message_may_be_piped_in(write: Write, cli: Cli) -> None:
    target = one(write, "default=lambda asked: f'heard {asked.prompt}'")
    assert cli("run", target, input="  Grüße 🙂 \n").out == "a: heard Grüße 🙂\n"


def test_streamed_text_is_shown_once(desk: str, here: Cli) -> None:
    assert here("run", desk, "hi", "--stream").out == here("run", desk, "hi", "--no-stream").out


def test_streamed_text_of_agents_at_the_same_time_is_shown_once(write: Write, here: Cli) -> None:
    write(
        "desk.py",
        f"""{HEAD}
def model(*chunks):
    return ScriptedModel(default=reply(chunks=chunks, pause=0.05))

pipeline = FanOut(Agent("a", model("one ", "two ", "three")), Agent("b", model("1 ", "2 ", "3")))
""",
    )
    lines = here("run", "desk.py", "hi", "--stream").out.splitlines()
    assert sorted(lines) == ["a: one two three", "b: 1 2 3"]


NOTICE = """
class Notice:
    async def after_model(self, ctx, response):
        if not response.partial:
            metadata = {**(response.custom_metadata or {}), "adk_fluent_notice": "Nearly full."}
            return response.model_copy(update={"custom_metadata": metadata})
"""


def test_what_a_middleware_says_to_the_user_is_shown(write: Write, here: Cli) -> None:
    write(
        "desk.py",
        f"{HEAD}{NOTICE}\npipeline = Agent('a', ScriptedModel('Hello.')).middleware(Notice())\n",
    )
    done = here("run", "desk.py", "hi")
    assert (done.code, done.out, done.err) == (0, "a: Hello.\n", "[a: Nearly full.]\n")


def test_each_event_is_a_line_of_json(desk: str, cli: Cli) -> None:
    done = cli("run", desk, "hi", "--json")
    assert done.code == 0
    events = [AgentEvent.from_dict(json.loads(line)) for line in done.out.splitlines()]
    assert [event.author for event in events] == ["first", "first", "first", "second"]
    assert events[0].tool_calls[0].tool_name == "look_up"
    assert events[2].state_delta == {"fact": "It is shipped."}
    assert events[3].content == "Dear customer: it is shipped."


def test_json_lines_stay_json_whatever_tools_print(write: Write, here: Cli) -> None:
    tool = "def chat(word: str) -> str:\n    '''Chat.'''\n    print('chatting')\n    return word\n"
    write(
        "desk.py",
        f"{HEAD}\n{tool}\nmodel = ScriptedModel(Call('chat', {{'word': 'é🙂\\x1b'}}), 'é🙂\\x1b')\n"
        "pipeline = Agent('a', model).tool(chat)\n",
    )
    done = here("run", "desk.py", "hi", "--json")
    assert json.loads(done.out.splitlines()[-1])["content"] == "é🙂\x1b"
    assert done.err == "chatting\n"


@pytest.mark.parametrize(
    "encoding",
    [
        "ascii",
        pytest.param("latin-1", marks=pytest.mark.full),
        pytest.param("utf-8", marks=pytest.mark.full),
    ],
)
def test_json_lines_parse_in_every_encoding(encoding: str, write: Write) -> None:
    target = one(write, "default='Grüße 🙂'")
    done = program("run", target, "hi", "--json", encoding=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout.decode(encoding))["content"] == "Grüße 🙂"


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("latin-1", marks=pytest.mark.full)])
def test_text_is_shown_in_every_encoding(encoding: str, write: Write) -> None:
    target = one(write, "default='Grüße 🙂'")
    done = program("run", target, "Grüße 🙂", encoding=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Gr" in done.stdout


def test_text_that_a_terminal_would_obey_is_only_shown(write: Write, here: Cli) -> None:
    target = one(
        write, r"Call('look_up', {'order': '\x1b]0;x\x07'}), 'a\x1b[2Jb\rc'", ".tool(look_up)"
    )
    done = here("run", target, "hi")
    assert done.out == "a: a[2Jbc\n"
    assert "\x1b" not in done.err
    assert "\x07" not in done.err


def test_a_model_for_agents_that_name_none(write: Write, here: Cli) -> None:
    write("desk.py", f"{HEAD}\npipeline = Agent('a').mock('mocked')")
    assert here("run", "desk.py", "hi").out == "a: mocked\n"
    write("desk.py", f"{HEAD}\npipeline = Agent('a')")
    done = here("run", "desk.py", "hi", "--model", "gtp-5")
    assert done.code == 2
    assert "ADK knows no model 'gtp-5'" in done.err


def test_an_adk_agent_is_a_pipeline_too(write: Write, here: Cli) -> None:
    write(
        "desk.py",
        f"{HEAD}\nfrom google.adk.agents import LlmAgent\n"
        "root_agent = LlmAgent(name='native', model=ScriptedModel(default='hello'))\n",
    )
    assert here("run", "desk.py", "hi").out == "native: hello\n"


def test_of_an_adk_app_the_root_agent_is_run(write: Write, here: Cli) -> None:
    write(
        "desk.py",
        f"{HEAD}\nfrom google.adk.apps.app import App\n"
        "from google.adk.agents import LlmAgent\n"
        "from google.adk.plugins.base_plugin import BasePlugin\n"
        "agent = LlmAgent(name='native', model=ScriptedModel(default='hello'))\n"
        "app = App(name='shop', root_agent=agent, plugins=[BasePlugin(name='audit')])\n",
    )
    done = here("run", "desk.py:app", "hi")
    assert done.out == "native: hello\n"
    assert "desk.py:app: its root agent is taken, without the App's plugins: audit" in done.err


# --- state and sessions --------------------------------------------------------------------------


def test_state_is_json_or_text(write: Write, here: Cli) -> None:
    target = one(write, "default=lambda asked: asked.system", ".instruct('{n} {tier} {user:x}')")
    state = ("--state", "n=[1, 2]", "--state", "tier=gold", "--state", "user:x=a=b")
    assert "[1, 2] gold a=b" in here("run", target, "hi", *state).out


def test_a_session_goes_on(write: Write, cli: Cli, place: Path) -> None:
    target = one(write, "default=lambda asked: f'{len(asked.turns)} turns, {asked.prompt}'")
    call = ("run", target, "--session-db", "kept.sqlite")
    begun = cli(*call, "hi")
    assert (begun.code, begun.out) == (0, "a: 1 turns, hi\n")
    assert begun.err.startswith("[session ")
    session = begun.err.split()[1].rstrip("]\n")
    again = cli(*call, "again", "--session", session)
    assert (again.code, again.out, again.err) == (0, "a: 3 turns, again\n", "")
    other = cli(*call, "hi", "--session", "other", "--user", "someone")
    assert (other.out, other.err) == ("a: 1 turns, hi\n", "[session other is new]\n")


def test_a_session_of_somebody_else_is_not_begun_anew(write: Write, here: Cli) -> None:
    target = one(write, "default=lambda asked: f'{len(asked.turns)} turns, {asked.prompt}'")
    call = ("run", target, "again", "--session-db", "kept.sqlite", "--session", "s")
    assert here(*call, "--app", "shop", "--user", "ann").code == 0
    done = here(*call)
    assert (done.code, done.out) == (2, "")
    assert "Session 's' of kept.sqlite belongs to user 'ann' in app 'shop'" in done.err
    assert "Go on with it by --app shop --user ann, or choose another id" in done.err
    done = here(*call, "--app", "shop")
    assert (done.code, "Go on with it by --user ann," in done.err) == (2, True)
    assert here(*call, "--app", "shop", "--user", "ann").out == "a: 3 turns, again\n"


def test_an_app_has_to_have_a_name_that_adk_takes(desk: str, here: Cli) -> None:
    done = here("run", desk, "hi", "--app", "my shop")
    assert (done.code, "ADK refuses the app 'my shop'" in done.err) == (2, True)


def test_state_for_a_session_that_has_begun_is_refused(write: Write, here: Cli) -> None:
    target = one(write, "default=lambda asked: asked.system", ".instruct('tier {tier}')")
    call = ("run", target, "hi", "--session-db", "kept.sqlite", "--session", "s", "--state")
    assert here(*call, "tier=gold").code == 0
    again = here(*call, "tier=silver")
    assert again.code == 2
    assert "Session 's' has begun: --state is for new sessions." in again.err


def damaged(path: Path) -> bytes:
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 4096)
    return path.read_bytes()


def text(path: Path) -> bytes:
    path.write_text("This is a letter.\n" * 100)
    return path.read_bytes()


def foreign(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE orders (id INTEGER)")
    return path.read_bytes()


def foreign_with_sessions(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE sessions (id TEXT, cookie BLOB)")
    return path.read_bytes()


def foreign_of_adks_other_service(path: Path) -> bytes:
    keys = "app_name VARCHAR, user_id VARCHAR, id VARCHAR, state TEXT"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"CREATE TABLE sessions ({keys}, create_time DATETIME, update_time DATETIME)")
        db.execute("CREATE TABLE events (id VARCHAR, event_data TEXT)")
    return path.read_bytes()


def foreign_with_a_view(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE VIEW answer AS SELECT 42")
    return path.read_bytes()


def foreign_left_in_the_middle(path: Path) -> bytes:
    """The database of a program that was killed: what it wrote last is still beside it."""
    other = path.with_name("other.sqlite")
    with closing(sqlite3.connect(other)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE orders (id INTEGER)")
        db.commit()
        shutil.copy(other, path)
        shutil.copy(f"{other}-wal", f"{path}-wal")
    return path.read_bytes()


def damaged_inside(path: Path) -> bytes:
    """A session database of ADK whose tables can still be listed, and no longer be read."""

    async def fill() -> None:
        service = SqliteSessionService(str(path))
        for _ in range(3):
            await service.create_session(app_name="a", user_id="u", state={"k": "v" * 5000})

    asyncio.run(fill())
    data = path.read_bytes()
    size = int.from_bytes(data[16:18], "big")
    path.write_bytes(data[:size] + b"\xff" * (len(data) - size))
    return path.read_bytes()


@pytest.mark.parametrize(
    "make",
    [
        damaged,
        text,
        foreign,
        foreign_with_sessions,
        foreign_of_adks_other_service,
        foreign_with_a_view,
        foreign_left_in_the_middle,
        damaged_inside,
    ],
)
def test_a_file_that_is_no_session_database_stays_as_it_is(
    make: Any, desk: str, cli: Cli, place: Path
) -> None:
    path = place / "kept.sqlite"
    before = make(path)
    done = cli("run", desk, "hi", "--session-db", str(path))
    assert (done.code, done.out) == (3, ""), done.err
    assert "error[ADKF309]: " in done.err
    assert "session" in done.err
    assert "help: " in done.err
    assert "Traceback" not in done.err
    assert path.read_bytes() == before
    if make.__name__.startswith("foreign"):
        assert "found: a database of something else, with " in done.err
        assert done.err.count("sessions cannot be kept in") == 1


def test_a_session_database_of_adks_older_service(desk: str, here: Cli, place: Path) -> None:
    with closing(sqlite3.connect(place / "old.sqlite")) as db, db:
        for table in ("sessions", "events"):
            db.execute(f"CREATE TABLE {table} (id TEXT, actions TEXT)")
    done = here("run", desk, "hi", "--session-db", "old.sqlite")
    assert (done.code, done.out) == (3, "")
    assert "migrate" in done.err


def test_a_session_database_that_somebody_else_writes(
    desk: str, here: Cli, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sessions, "_SECONDS", 0.1)
    with closing(sqlite3.connect(place / "kept.sqlite", isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        done = here("run", desk, "hi", "--session-db", "kept.sqlite")
    assert (done.code, "found: database is locked" in done.err) == (3, True)


def test_a_session_database_that_fails_during_the_run(desk: str, here: Cli, place: Path) -> None:
    call = ("run", desk, "hi", "--session-db", "kept.sqlite", "--session", "s")
    assert here(*call).code == 0
    with closing(sqlite3.connect(place / "kept.sqlite")) as db, db:
        db.execute(
            "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
    done = here(*call)
    assert (done.code, done.out) == (3, "")
    assert "the sessions cannot be read or written" in done.err
    assert "found: IntegrityError: full" in done.err


@pytest.mark.parametrize(
    "path",
    [
        "no/such/folder/kept.sqlite",
        pytest.param(
            "/proc/kept.sqlite",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="nobody may write there"),
        ),
    ],
)
def test_a_place_where_no_database_can_be_made(path: str, desk: str, cli: Cli) -> None:
    done = cli("run", desk, "hi", "--session-db", path)
    assert (done.code, done.out) == (3, "")
    assert "error[ADKF309]: " in done.err
    assert "Traceback" not in done.err


def test_a_folder_that_is_not_there_is_to_be_made(desk: str, cli: Cli) -> None:
    done = cli("run", desk, "hi", "--session-db", "no/such/kept.sqlite")
    assert (done.code, done.out) == (3, "")
    assert "found: there is no directory no/such" in done.err.replace("\\", "/")
    assert "help: create the directory first" in done.err


# --- how it ends ---------------------------------------------------------------------------------


def test_without_a_key_no_model_is_called(write: Write, cli: Cli, place: Path) -> None:
    write(
        "desk.py",
        f"""{HEAD}
def called(asked):
    open("called", "w").close()
    return "x"

pipeline = Agent("first", ScriptedModel(default=called)) >> Agent("second", "gemini-2.5-flash")
""",
    )
    done = cli("run", "desk.py", "hi")
    assert (done.code, done.out) == (3, "")
    assert "agent 'second' uses gemini-2.5-flash, and there is no key" in done.err
    assert "desk.py:13" in done.err
    assert "set GOOGLE_API_KEY" in done.err
    assert not (place / "called").exists()


@pytest.mark.parametrize("delegate", [".delegates({})", ".agent_tool({})"])
def test_agents_below_an_agent_need_a_key_too(delegate: str, write: Write, here: Cli) -> None:
    below = delegate.format("Agent('below', 'gemini-2.5-pro')")
    done = here("run", one(write, "'x'", below), "hi")
    assert (done.code, "agent 'below' uses gemini-2.5-pro" in done.err) == (3, True)


def test_an_agent_that_may_get_by_without_a_model_may_try(write: Write, here: Cli) -> None:
    write(
        "desk.py",
        f"""{HEAD}
from google.adk.models.llm_response import LlmResponse
from google.genai import types

def cached(callback_context, llm_request):
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="cached")]))

pipeline = Agent("a", "gemini-2.5-flash").before_model(cached)
""",
    )
    assert here("run", "desk.py", "hi").out == "a: cached\n"


def test_an_adk_agent_without_a_key_is_told(write: Write, here: Cli) -> None:
    write(
        "desk.py",
        "from google.adk.agents import LlmAgent\n"
        "root_agent = LlmAgent(name='native', model='gemini-2.5-flash')\n",
    )
    done = here("run", "desk.py", "hi")
    assert done.code == 3
    assert "the Gemini client has no credentials" in done.err
    assert "set GOOGLE_API_KEY" in done.err


@pytest.mark.parametrize(
    ("node", "wheel"),
    [("node(type('FarNode', (Node,), {'layer': 'nowhere'}))('far')", "adk-fluent-nowhere")],
)
def test_a_pipeline_that_needs_an_absent_layer_names_the_wheel(
    node: str, wheel: str, write: Write, cli: Cli
) -> None:
    write("desk.py", f"from adk_fluent.ir import *\npipeline = {node}")
    done = cli("run", "desk.py", "hi")
    assert (done.code, done.out) == (3, "")
    assert f"pip install {wheel}" in done.err
    assert "Traceback" not in done.err
    assert cli("explain", "desk.py").code == 0


def test_a_model_that_stays_unavailable(write: Write, cli: Cli) -> None:
    done = cli("run", one(write, "default=reply(status=503)"), "hi")
    assert (done.code, done.out) == (3, "")
    assert "503" in done.err
    assert "in node 'a' at " in done.err
    assert "desk.py:9" in done.err
    assert "Traceback" not in done.err
    assert "Traceback" in cli("run", "desk.py", "hi", "--debug").err


def test_a_fallback_that_helps_is_told_and_is_no_failure(write: Write, here: Cli) -> None:
    write(
        "desk.py",
        f"{HEAD}\nbad = Agent('bad', ScriptedModel('half ', default=reply(status=503)))\n"
        "pipeline = (bad.writes('x') >> bad.clone('worse')) // Agent('good').mock('whole')\n",
    )
    done = here("run", "desk.py", "hi")
    assert (done.code, done.out) == (0, "bad: half \ngood: whole\n")
    undone, why = done.err.splitlines()
    assert undone == "[fallback: an attempt failed and was undone]"
    assert why.startswith("[fallback went on without ")
    assert "in node 'worse' at " in why
    assert "503" in why
    told = here("run", "desk.py", "hi", "--json")
    assert (told.code, told.err) == (0, "")


def test_what_a_map_leaves_out_is_told(write: Write, here: Cli) -> None:
    write(
        "desk.py",
        f"{HEAD}\nfrom adk_fluent import map_over\n"
        "def number(state):\n    return {'n': float(state['_item'])}\n"
        "pipeline = map_over('xs', number, result_key='n', on_error='skip')\n",
    )
    done = here("run", "desk.py", "hi", "--state", 'xs=["1", "free"]')
    assert done.code == 0
    assert "[map_over went on without number" in done.err
    assert "ValueError: could not convert string to float: 'free'" in done.err


def test_an_answer_that_is_given_again_is_told(write: Write, here: Cli) -> None:
    write(
        "desk.py",
        f"{HEAD}\npipeline = Agent('a').mock(['many', '3']).output_retries(1) @ int\n",
    )
    done = here("run", "desk.py", "hi")
    assert (done.code, done.out) == (0, "a: many\na: 3\n")
    assert done.err.startswith("[a is asked again: the answer of a does not fit its schema")


def test_a_run_that_takes_too_long(write: Write, cli: Cli) -> None:
    done = cli("run", one(write, "default='x', latency=60"), "hi", "--timeout", "0.2")
    assert (done.code, done.out) == (1, "")
    assert "0.2" in done.err
    assert "Traceback" not in done.err


def test_a_run_that_calls_models_too_often(write: Write, cli: Cli) -> None:
    target = one(write, "default=Call('look_up', {'order': '1'})", ".tool(look_up)")
    done = cli("run", target, "hi", "--max-llm-calls", "3")
    assert done.code == 1
    assert done.err.count("[a calls look_up") == 3
    assert "Max number of llm calls limit of `3` exceeded" in done.err
    assert "Traceback" not in done.err


def test_a_function_that_fails(write: Write, cli: Cli) -> None:
    target = one(write, "'x'", " >> (lambda state: {'n': 1 / 0})")
    done = cli("run", target, "hi")
    assert (done.code, done.out) == (1, "a: x\n")
    assert "ZeroDivisionError: division by zero" in done.err
    assert "desk.py:9" in done.err


def test_an_error_that_an_agent_reports(write: Write, here: Cli) -> None:
    target = one(write, "reply(error_code='SAFETY', error_message='blocked')")
    done = here("run", target, "hi")
    assert (done.code, done.out) == (1, "")
    assert done.err == "[a reports SAFETY: blocked]\n"


def test_a_step_that_exits(write: Write, cli: Cli) -> None:
    done = cli("run", one(write, "'x'", " >> (lambda state: exit(0))"), "hi")
    assert done.code == 1
    assert "a step of the pipeline called exit(0)" in done.err


def program(*args: str, encoding: str) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "adk_fluent.cli", *args]
    return subprocess.run(command, capture_output=True, check=False, env=environment)


ENDLESS = "default=reply(chunks=['and ', 'on '] * 10_000, pause=0.02)"


@pytest.mark.skipif(os.name == "nt", reason="there is no Ctrl-C for one process on Windows")
def test_ctrl_c_loses_nothing(write: Write, process: Cli, place: Path) -> None:
    write(
        "desk.py",
        f"{HEAD}\nsecond = Agent('second', ScriptedModel({ENDLESS}))\n"
        "pipeline = Agent('first', ScriptedModel(default='done')).writes('fact') >> second\n"
        "rest = Agent('rest', ScriptedModel(default=lambda a: a.system)).instruct('{fact}')\n",
    )
    call = ["--session-db", "kept.sqlite", "--session", "s"]
    command = [sys.executable, "-m", "adk_fluent.cli", "run", "desk.py", "hi", "--stream", *call]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        shown = b""
        while b"and on and" not in shown:  # it comes while the model still talks
            some = os.read(running.stdout.fileno(), 4096)
            assert some, running.communicate()
            shown += some
        running.send_signal(signal.SIGINT)
        rest, errors = running.communicate(timeout=20)
    assert running.returncode == 130
    assert shown.startswith(b"first: done\nsecond: and on and")
    assert (shown + rest).endswith(b"\n")
    said = errors.decode().splitlines()
    assert said[-2:] == [
        "[what was committed is kept; go on with --session s]",
        "interrupted",
    ] or said[-3:] == [said[-3], "", "interrupted"], said
    assert "Traceback" not in errors.decode()

    with closing(sqlite3.connect(place / "kept.sqlite")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        events = [json.loads(row) for (row,) in db.execute("SELECT event_data FROM events")]
    said = [event["author"] for event in events if event.get("content")]
    assert said == ["user", "first"]
    again = process("run", "desk.py:rest", "go on", *call)
    assert again.code == 0, again.err
    assert "rest: " in again.out
    assert "done" in again.out


@pytest.mark.skipif(os.name == "nt", reason="there is no Ctrl-C for one process on Windows")
def test_ctrl_c_while_a_target_is_imported(write: Write) -> None:
    write("desk.py", "import time\nprint('loading', flush=True)\ntime.sleep(60)")
    command = [sys.executable, "-m", "adk_fluent.cli", "run", "desk.py", "hi"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == b"loading\n"
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=20)
    assert running.returncode == 130
    assert errors.decode().split() == ["interrupted"]


def test_a_pass_that_makes_illegal_ir_fails_the_tests_here_too(
    desk: str, here: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine: PassList[CompileContext] = PassList()
    mine.add(Pass("empties", lambda root, cx: root.replace(steps=())))
    monkeypatch.setattr(_compile, "passes", mine)
    done = here("run", desk, "hi")
    assert done.code == 2
    assert "this IR breaks 1 rule" in done.err
    assert "it has no steps" in done.err


@pytest.mark.parametrize("kind", ["--stream", pytest.param("--json", marks=pytest.mark.full)])
def test_a_reader_that_goes_away_ends_it_quietly(kind: str, write: Write) -> None:
    target = one(write, ENDLESS)
    command = [sys.executable, "-m", "adk_fluent.cli", "run", target, "hi", "--stream", kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(8)
        running.stdout.close()
        errors = running.stderr.read()
        assert running.wait(timeout=20) == 1
    assert errors == b""


def test_a_key_that_an_error_quotes_is_not_shown(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "secret-key-0123")
    write(
        "desk.py",
        """
        import os
        from adk_fluent import Agent

        root_agent = Agent("desk").mock(RuntimeError("rejected " + os.environ["GOOGLE_API_KEY"]))
        """,
    )
    for args in ((), ("--debug",)):
        done = cli("run", "desk.py", "hi", *args)
        assert done.code == 1
        assert "secret-key" not in done.err + done.out
        assert "rejected [GOOGLE_API_KEY]" in done.err
    assert "--debug shows" not in done.err
