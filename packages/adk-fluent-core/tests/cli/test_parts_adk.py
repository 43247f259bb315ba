"""Files beside a message: what they become, and which are refused before anything runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from google.genai import types

from adk_fluent.cli import _parts
from adk_fluent.cli._parts import Attachment, FileError, attached, message_of

if TYPE_CHECKING:
    from .conftest import Cli, Write

pytestmark = pytest.mark.adk

BINARY = b"\x89PNG\r\n\x1a\n\x00\xff"
ECHO = """
from adk_fluent import Agent
from adk_fluent.testing import ScriptedModel

def heard(asked):
    open("called", "w").close()
    return asked.prompt

pipeline = Agent("a", ScriptedModel(default=heard))
"""


@pytest.mark.parametrize(
    ("spec", "data", "type", "held"),
    [
        ("pic.png", BINARY, "image/png", BINARY),
        ("PIC.JPG", BINARY, "image/jpeg", BINARY),
        ("a.mp3", BINARY, "audio/mp3", BINARY),
        ("a.mov", BINARY, "video/mov", BINARY),
        ("a.pdf", BINARY, "application/pdf", BINARY),
        ("ascii.pdf", b"%PDF-1.4 all ASCII", "application/pdf", b"%PDF-1.4 all ASCII"),
        ("notes.md", "Grüße".encode(), "text/plain", "Grüße".encode()),
        ("data.json", b"{}", "text/plain", b"{}"),
        ("Makefile", b"all:", "text/plain", b"all:"),
        ("script.ts", b"let x = 1", "text/plain", b"let x = 1"),
        ("bom.txt", b"\xef\xbb\xbfhi", "text/plain", b"hi"),
        ("windows.txt", "é".encode("utf-16"), "text/plain", "é".encode()),
        ("image/png:recording", BINARY, "image/png", BINARY),
        ("application/zip:a.zip", b"PK\x03\xff", "application/zip", b"PK\x03\xff"),
        ("text/csv:a.png", b"a,b", "text/csv", b"a,b"),
        ("Audio/WAV:a.raw", BINARY, "audio/wav", BINARY),
    ],
)
def test_what_a_file_is(spec: str, data: bytes, type: str, held: bytes) -> None:
    name = spec.rpartition(":")[2]
    Path(name).write_bytes(data)
    assert attached(spec) == Attachment(name, type, held)


@pytest.mark.parametrize(
    ("spec", "data", "said"),
    [
        ("no.png", None, "There is no file no.png."),
        ("image/png:no.png", None, "There is no file no.png."),
        ("https://example.com/a.png", None, "https://example.com/a.png"),
        (".", None, ". is a directory; name a file in it."),
        ("empty.txt", b"", "empty.txt is empty."),
        ("page.png", b"<html>", "page.png holds text, and is no image/png. As text it is text/"),
        ("a.zip", b"PK\x03\xff", "a.zip is no text, and of no type that Gemini is known to take"),
        (
            "a.zip",
            b"PK\x03\xff",
            "say what it is: TYPE/SUBTYPE:PATH, such as application/zip:a.zip",
        ),
        ("unknown", b"\xff\xfe\xfd", "such as application/octet-stream:unknown"),
        ("latin.txt", b"caf\xe9", "latin.txt is no text/plain: convert it to UTF-8."),
        ("text/plain:a.bin", b"\0\0", "a.bin is no text/plain: convert it to UTF-8."),
        ("nul\0.png", None, "embedded null"),
        ("x" * 5000, None, "xxx"),
    ],
)
def test_what_cannot_be_sent(spec: str, data: bytes | None, said: str) -> None:
    if data is not None:
        Path(spec.rpartition(":")[2]).write_bytes(data)
    with pytest.raises(FileError) as refused:
        attached(spec)
    assert said in str(refused.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such files")
def test_a_pipe_is_not_waited_for() -> None:
    os.mkfifo("pipe.txt")
    with pytest.raises(FileError, match=r"pipe.txt is no file that can be sent\."):
        attached("pipe.txt")


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="here nobody can be kept from reading"
)
def test_a_file_that_may_not_be_read() -> None:
    Path("mine.txt").write_text("x")
    Path("mine.txt").chmod(0)
    with pytest.raises(FileError, match=r"mine.txt cannot be read: Permission denied\."):
        attached("mine.txt")


def test_files_that_are_too_large_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_parts, "_MOST", 20)
    monkeypatch.setattr(_parts, "_MOST_PDF", 10)
    Path("a.txt").write_bytes(b"x" * 21)
    with pytest.raises(FileError, match=r"a.txt is too large with 0.0 MB: Gemini takes 0 MB for"):
        attached("a.txt")
    Path("a.pdf").write_bytes(b"%PDF-\xff" + b"x" * 8)
    with pytest.raises(FileError, match=r"for a PDF\."):
        attached("a.pdf")
    Path("b.txt").write_bytes(b"x" * 12)
    first = attached("b.txt")
    with pytest.raises(FileError, match=r"for all files of a message\."):
        attached("b.txt", [first])


def test_files_come_before_the_message_and_text_as_text() -> None:
    picture = Attachment("pic.png", "image/png", BINARY)
    notes = Attachment("notes.md", "text/plain", b"Hi.")
    part = types.Part.from_bytes(data=BINARY, mime_type="image/png")
    assert message_of("What?", []) == "What?"
    assert message_of("What?", [picture, notes]) == [part, "File notes.md:\n\nHi.", "What?"]
    assert message_of("", [picture]) == [part]


def test_what_is_shown_of_a_file() -> None:
    assert str(Attachment("a.png", "image/png", b"x" * 10)) == "a.png, image/png, 10 bytes"
    assert str(Attachment("a", "image/png", b"x" * 1_500_000)) == "a, image/png, 1.5 MB"


def test_files_go_beside_the_message(write: Write, cli: Cli, place: Path) -> None:
    write("desk.py", ECHO)
    write("notes.txt", "Hi.")
    (place / "pic.png").write_bytes(BINARY)
    files = ("--file", "pic.png", "--file", "notes.txt")
    done = cli("run", "desk.py", "What?", *files)
    assert (done.code, done.err) == (0, "")
    assert done.out == "a: [image/png 10 bytes]\nFile notes.txt:\n\nHi.\nWhat?\n"
    assert cli("run", "desk.py", *files, input="Piped.").out.endswith("Hi.\nPiped.\n")


@pytest.mark.parametrize("message", [(), ("",)])
def test_files_are_message_enough(message: tuple[str, ...], write: Write, here: Cli) -> None:
    write("desk.py", ECHO)
    Path("pic.png").write_bytes(BINARY)
    done = here("run", "desk.py", *message, "--file", "pic.png")
    assert (done.code, done.out) == (0, "a: [image/png 10 bytes]\n")


def test_nothing_runs_when_a_file_cannot_be_sent(write: Write, here: Cli, place: Path) -> None:
    write("desk.py", ECHO)
    write("notes.txt", "Hi.")
    done = here("run", "desk.py", "What?", "--file", "notes.txt", "--file", "pic.png")
    assert (done.code, done.out) == (2, "")
    assert "Invalid value for '--file': There is no file pic.png." in done.err
    assert not (place / "called").exists()
