"""What runs keep on disk: answers of models, and outcomes by which they are resumed.

The first line of a journal names the suite. Each further line is a finished run of a case, with a
digest of all that its result depends on: the case, the pipeline, the metrics and the options.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from adk_fluent.eval._arguments import require, require_type
from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._files._source import Source
from adk_fluent.eval._outcome import CaseOutcome, Status
from adk_fluent.eval._report._json import json_line
from adk_fluent.eval._text import shown
from adk_fluent.extend import held_file

if TYPE_CHECKING:
    from collections.abc import Generator

CacheMode = Literal["auto", "record", "replay"]
_ANSWER: Final = {"kind": "model-answer", "schema": 1}


@dataclass(frozen=True, slots=True)
class ResponseCache:
    """A folder with answers of models, one file each, to be kept with the cases.

    Answers are found by what was asked (messages, instruction, tools, settings, model) and by the
    case and run that asked, so a changed prompt asks anew. What was asked is not stored. Answers
    that report an error are not kept.

    Attributes:
        path: The folder, made when the first answer is written.
        mode: ``auto`` replays what is kept, and asks and keeps the rest; ``record`` asks everything
            anew; ``replay`` never calls a model: what is not kept is an error of the case.
    """

    path: str | os.PathLike[str]
    mode: CacheMode = "auto"

    def __post_init__(self) -> None:
        require_type(self.path, str | os.PathLike, "a cache is a folder")
        require(os.fspath(self.path), "a cache is a folder", self.path)
        known = self.mode in get_args(CacheMode)
        help = f"one of {get_args(CacheMode)}"
        require(known, f"unknown mode {self.mode!r} of a cache", help=help)

    def read(self, name: str) -> list[Any] | None:
        """Return the responses kept under a name; None if there are none.

        Raises:
            EvalFileError: The file is broken, or nothing is kept and `mode` is ``replay``.
        """
        file = self._file(name)
        if self.mode == "record" or not file.is_file():
            if self.mode == "replay":
                what = "no answer is kept for a model call, and mode='replay' calls no model"
                found = "there is no such folder"
                if Path(self.path).is_dir():
                    found = "the prompt, the tools, the model, or the case's id changed"
                help = "record again where a model can be called: mode='auto'"
                raise EvalFileError(what, path=str(file), found=found, help=help)
            return None
        source, value = Source.read_json(file)
        held = source.mapping((), value)
        head = source.mapping(("adk_fluent",), held.get("adk_fluent", {}))
        responses: Any = held.get("responses")
        if head != _ANSWER or not isinstance(responses, list):
            raise source.error((), "not an answer that this version kept", help="delete the file")
        return cast("list[Any]", responses)

    def write(self, name: str, model: str, responses: list[Any]) -> None:
        """Keep responses."""
        value = {"adk_fluent": _ANSWER, "model": model, "responses": responses}
        text = json.dumps(value, ensure_ascii=True, indent=1, sort_keys=True)
        Source.write(self._file(name), [text, "\n"])

    def _file(self, name: str) -> Path:
        return Path(self.path) / f"{name}.json"


_HEAD: Final = {"kind": "eval-journal", "schema": 1}


class Journal:
    """A file to which each outcome is appended when it is there.

    Args:
        path: The file; made if it does not exist.
        suite: The suite's name.

    Attributes:
        problem: Why outcomes could not be written; empty if they were.
    """

    def __init__(self, path: str | os.PathLike[str], suite: str) -> None:
        self._path = os.fspath(path)
        self._source = Source(self._path)
        self._kept: dict[tuple[str, int, str], tuple[CaseOutcome, Any]] = {}
        self._head = {"adk_fluent": _HEAD, "suite": suite}
        self._fresh = True
        self.problem = ""

    @contextmanager
    def held(self) -> Generator[None]:
        """Read it, and keep other runs from it until the block ends, or the process.

        Raises:
            EvalFileError: Another run has it, or it is no journal, of another suite, or broken.
        """
        path = Path(self._path)
        with held_file(path) as is_held:
            if not is_held:
                what = "another run is at work with this journal"
                help = "wait for its end, or give each run a journal of its own"
                raise EvalFileError(what, path=self._path, help=help)
            if path.exists() and path.stat().st_size:
                self._read()
            yield

    def _read(self) -> None:
        # what was cut off when the process was killed may end within a character
        *lines, last = Source.read_text(self._path, errors="surrogateescape").split("\n")
        tail = last.encode("utf-8", "surrogateescape")
        self._fresh = not lines and json_line(self._head).encode().startswith(tail)
        head: Any = self._head if self._fresh else self._source.parse_json((*lines, last)[0])
        if head != self._head:
            what = "not a journal of this suite"
            help = "give each suite a journal of its own"
            raise self._source.error((), what, found=shown(head), help=help)
        if last:
            try:  # in place: another file would be without the lock
                os.truncate(self._path, Path(self._path).stat().st_size - len(tail))
            except OSError as error:
                what = f"the file cannot be written: {error.strerror or error}"
                raise EvalFileError(what, path=self._path) from error
        for number, line in enumerate(lines[1:], 2):
            if line == lines[0]:  # where the file system has no locks, two may have begun
                continue
            source = Source(self._path, {(): number})
            value = source.mapping((), source.parse_json(line, number))
            held = value.get("outcome")
            outcome: CaseOutcome = source.validated(CaseOutcome, held, ("outcome",), strict=True)
            digest = str(value.get("digest"))
            self._kept[outcome.id, outcome.run, digest] = (outcome, value.get("result"))

    def of(self, id: str, run: int, digest: str) -> tuple[CaseOutcome, Any] | None:
        """Return a finished run and ADK's result of it; None if it is to be run (again)."""
        found = self._kept.get((id, run, digest))
        return None if found is None or found[0].status is Status.ERROR else found

    def add(self, outcome: CaseOutcome, digest: str, result: str | None) -> None:
        """Append a finished run; what cannot be written is noted, and the run goes on."""
        head = f"{json_line(self._head)}\n" if self._fresh else ""
        text = f'{{"digest":{json_line(digest)},"outcome":{json_line(outcome)},'
        data = f'{head}{text}"result":{result or "null"}}}\n'.encode()
        path = Path(self._path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab", buffering=0) as file:
                start = file.seek(0, os.SEEK_END)
                try:
                    while data:
                        data = data[file.write(data) :]
                except OSError:
                    file.truncate(start)  # half a line would spoil the next one
                    raise
        except OSError as error:
            self.problem = f"the journal cannot be written: {error.strerror or error}"
        else:
            self._fresh = False
