"""What a run has done so far, line by line, so that an interrupted one goes on where it was."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.eval._checks._same import plain
from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._journal._digest import Digester
from adk_fluent.eval._journal._identity import digest_of
from adk_fluent.eval._journal._lock import lock
from adk_fluent.eval._outcome import CaseOutcome, Status
from adk_fluent.eval._report._json import line_of
from adk_fluent.eval._report._words import plural
from adk_fluent.eval._write import unwritable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from io import FileIO
    from os import PathLike
    from typing import Self

    from adk_fluent.eval._cases._case import FluentCase

_SCHEMA: Final = 1
_KIND: Final = "eval-journal"
_WORDS: Final = {
    "suite": "the journal is of another suite",
    "pipeline": "the pipeline has changed since",
    "settings": "the journal is of another run",
}
_HELP: Final = "give another journal, or delete it"


class Journal:
    """A file with a line for each run of a case that is done.

    Runs that ended in an error are done again; so is everything whose case has changed, or of which
    nobody can tell whether it has.

    Args:
        path: The file; a new one if it is not there.
        suite: The suite's name.
        settings: What else a run depends on; another one is refused.
        cases: The cases.
        pipeline: A digest of what is run; another one is refused.
        unsure: What of the settings may have changed unseen; nothing is taken over then.

    Attributes:
        done: What is done, by case and run.

    Raises:
        EvalFileError: It is no journal, one of another suite, used by another process, or cannot be
            read or written.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        suite: str,
        settings: dict[str, Any],
        cases: Iterable[FluentCase],
        pipeline: str = "",
        *,
        unsure: Sequence[str] = (),
    ) -> None:
        self._path = Path(path)
        self._head = json.dumps(
            {
                "adk_fluent": {"kind": _KIND, "schema": _SCHEMA},
                "suite": suite,
                "pipeline": pipeline,
                "settings": plain(settings),
            }
        )
        digester = Digester()
        self._digests = {case.name: digest_of(case, digester) for case in cases}
        self._unsure = unsure
        self._passed_over: dict[str, None] = {}
        self._file: FileIO | None = None
        self.done: dict[tuple[str, int], CaseOutcome] = {}

    def __enter__(self) -> Self:
        if self._file is not None:  # somebody has opened it before
            return self
        try:
            self._check_kind()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("ab", buffering=0)
            self._check_lock(self._file)
            whole, ended = self._read()
            self._file.truncate(whole)  # without the line that was cut off
            if not ended:
                self._write("" if whole else self._head)
        except EvalFileError:
            self._close()
            raise
        except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
            self._close()
            raise unwritable(self._path, error) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def check(self) -> None:
        """Look whether it can be gone on with; the file stays as it is.

        Raises:
            EvalFileError: It cannot.
        """
        try:
            self._check_kind()
            if self._path.exists():
                with self._path.open("ab", buffering=0) as file:
                    self._check_lock(file)
                    self._read()
        except EvalFileError:  # which is an OSError, too
            raise
        except OSError as error:
            raise unwritable(self._path, error) from error

    @property
    def notes(self) -> list[str]:
        """What is not taken over although it is done, and why."""
        if not self._passed_over:
            return []
        first, *more = self._passed_over
        of, cases = self._unsure, f"case {first!r}"
        if of:
            cases = "every case"
        else:
            of = self._digests[first].unsure
            cases += f" and {plural(len(more), 'other')}" if more else ""
        why = f"nobody can tell whether {', '.join(of)} is what it was"
        return [f"of the journal {self.name}, {cases} is run again: {why}"]

    def add(self, outcome: CaseOutcome) -> None:
        """Note what is done.

        Raises:
            EvalFileError: It cannot be written; what was noted before is still there.
        """
        try:
            self._write(
                f'{{"case":"{self._digests[outcome.id].text}","outcome":{line_of(outcome)}}}'
            )
        except OSError as error:
            self._close()
            raise unwritable(self._path, error) from error

    @property
    def name(self) -> str:
        """The file's path, as it was given."""
        return str(self._path)

    def _write(self, line: str) -> None:
        assert self._file is not None  # noqa: S101  # it is open between enter and exit
        rest = f"{line}\n".encode()
        while rest:  # at once, as a rule: where nothing can be locked, others may write, too
            rest = rest[self._file.write(rest) :]
        os.fsync(self._file.fileno())

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # of what could not be written, which was told already
                file.close()

    def _check_kind(self) -> None:
        if self._path.exists() and not self._path.is_file():
            what = "a folder" if self._path.is_dir() else "a device"
            raise EvalFileError(f"a journal is a file, and this is {what}", path=self.name)

    def _check_lock(self, file: FileIO) -> None:
        if not lock(file):
            raise EvalFileError(
                "another run is using the journal",
                path=self.name,
                help="wait until it is done, or give another file",
            )

    def _read(self) -> tuple[int, bool]:
        """Take over what is done.

        Returns:
            The length of the whole lines, and whether the last of them has its end.
        """
        whole, ended = 0, False
        self.done.clear()
        self._passed_over.clear()
        with self._path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if not raw.endswith(b"\n") and not _is_whole(raw):
                    # the process died while it wrote this one
                    if number == 1 and not self._head.encode().startswith(raw):
                        raise self._no_journal()
                    break
                if number == 1 or raw.strip():
                    self._take(raw, number)
                whole, ended = whole + len(raw), raw.endswith(b"\n")
        return whole, ended

    def _take(self, raw: bytes, number: int) -> None:
        """Take over a line."""
        try:
            line: Any = json.loads(raw)
        except (ValueError, RecursionError) as error:
            if number == 1:
                raise self._no_journal() from error
            raise self._broken(number, str(error)) from error
        if number == 1:
            self._check_head(line)
            return
        match line:
            case {"case": str(digest), "outcome": {"id": str(id)} as data}:
                pass
            case _:
                raise self._broken(number, "something else")
        known = self._digests.get(id)
        if known is None or digest != known.text:
            return  # another case by now, or one that is not run
        from adk_fluent.eval._report._read import outcome_of  # noqa: PLC0415  # imports pydantic

        outcome = outcome_of(data, self.name, number)
        if outcome.status is Status.ERROR or outcome.error is not None:
            self.done.pop(outcome.key, None)
        elif self._unsure or known.unsure:
            self._passed_over[id] = None
        else:
            self.done[outcome.key] = outcome

    def _no_journal(self) -> EvalFileError:
        return EvalFileError(
            "this is no journal",
            path=self.name,
            line=1,
            help="give another file; this one is as it was",
        )

    def _broken(self, line: int, found: str) -> EvalFileError:
        return EvalFileError(
            "the journal is broken",
            path=self.name,
            line=line,
            found=found,
            help="delete the line, which is then run again, or give another file",
        )

    def _check_head(self, head: Any) -> None:
        match head:
            case {"adk_fluent": {"kind": "eval-journal", "schema": int(schema)}}:
                if schema > _SCHEMA:
                    raise EvalFileError(
                        "the journal is of a newer version",
                        path=self.name,
                        found=f"schema {schema}",
                        help="install a newer adk-fluent-eval",
                    )
            case _:
                raise self._no_journal()
        expected: dict[str, Any] = json.loads(self._head)
        for field, changed in _WORDS.items():
            then, now = head.get(field), expected[field]
            if then == now:
                continue
            if isinstance(then, dict) and isinstance(now, dict):
                then, now = _differences(cast("Any", then), cast("Any", now))
            told = field != "pipeline"  # a digest tells nobody anything
            raise EvalFileError(
                changed,
                path=self.name,
                line=1,
                field=field,
                found=json.dumps(then) if told else None,
                help=f"{f'now it is {json.dumps(now)}; ' if told else ''}{_HELP}",
            )


def _is_whole(line: bytes) -> bool:
    """Whether nothing was cut off of a line but its end."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _differences(then: dict[str, Any], now: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Of two mappings, what is not the same in both."""
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    return tuple({name: each.get(name) for name in names} for each in (then, now))
