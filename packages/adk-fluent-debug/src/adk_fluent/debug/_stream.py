"""Writing a recording line by line while its runs go on."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Literal

from adk_fluent.debug._content import mapped, payloads, without_content
from adk_fluent.debug._file import FORMAT, VERSION, write, writing
from adk_fluent.debug._redaction import forms_of
from adk_fluent.extend import LOG

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from adk_fluent.debug._redaction import Redaction

Data = dict[str, Any]

_NO_TAPE: Final[Data] = {"tape": []}


class Stream:
    """Appends what is recorded to a file of lines, each of them JSON.

    At any moment the file holds what could be saved then: where something turns out to be a
    credential that stands in earlier lines, they are written anew, or cut off where there is no
    room for that. What the file system refuses while a run goes on is logged, and nothing more is
    written.

    Args:
        file: The file; it is written over.
        metadata: What is known of all runs.
        redaction: What is taken out.
        capture_content: Whether what was said and written is kept.

    Raises:
        RecordingFileError: The file cannot be written.
    """

    def __init__(
        self,
        file: Path,
        metadata: Mapping[str, Any],
        redaction: Redaction,
        *,
        capture_content: bool,
    ) -> None:
        self._file = file
        self._redaction = redaction
        self._captures = capture_content
        self._secrets: set[str] = set()
        self._is_over = False
        head = {"format": FORMAT, "version": VERSION, "lines": True, "metadata": dict(metadata)}
        with writing(file):
            self._put([head], mode="w")

    def add(self, number: int, part: Data) -> None:
        """Append a part of a run.

        Args:
            number: Which run.
            part: What is known of the run, and in ``tape`` what has happened since.
        """
        found = {each for payload in payloads(part) for each in self._redaction.secrets(payload)}
        new = found - self._secrets
        self._secrets |= new
        clean = self._clean(part)
        tape = clean.pop("tape")
        lines: list[Data] = [{"run": number, "entry": each} for each in tape]
        if clean:
            lines.insert(0, {"run": number, "known": clean})
        try:
            if new:
                self._take_out(new)
            if not self._is_over:
                self._put(lines)
        except OSError as error:
            LOG.error("the recording in %s ends here: %s", self._file, error.strerror or error)
            self._is_over = True

    def _clean(self, part: Data) -> Data:
        clean = mapped(part, partial(self._redaction.scrub, secrets=self._secrets))
        return clean if self._captures else without_content(clean)

    def _take_out(self, new: set[str]) -> None:
        """Take what has turned out to be a credential out of the lines that are written."""
        text = self._file.read_text("utf-8")
        # in the file each of its forms stands as JSON writes it
        if not any(form in text for each in forms_of(new) for form in forms_of([each])):
            return
        head, *lines = text.splitlines()
        made = [head, *map(self._cleaned_line, lines)]
        try:
            write(self._file, "\n".join((*made, "")))
        except OSError:  # what must not stay there goes with all that follows it
            pairs = zip(made, (head, *lines), strict=True)
            kept = takewhile(lambda pair: pair[0] == pair[1], pairs)
            os.truncate(self._file, sum(len(f"{line}\n".encode()) for line, _ in kept))
            raise

    def _cleaned_line(self, line: str) -> str:
        data: Data = json.loads(line)
        if "entry" in data:
            data["entry"] = self._clean({"tape": [data["entry"]]})["tape"][0]
        else:
            data["known"] = self._clean({**data["known"], **_NO_TAPE})
            del data["known"]["tape"]
        return _line(data)

    def _put(self, lines: list[Data], mode: Literal["a", "w"] = "a") -> None:
        # opened each time: nobody says when the last run was recorded; half a character stands in
        # JSON as it stands behind a backslash
        whole = 0
        try:
            with self._file.open(
                mode, encoding="utf-8", errors="backslashreplace", newline="\n"
            ) as out:
                whole = out.tell()
                out.write("".join(f"{_line(each)}\n" for each in lines))
        except OSError:
            with suppress(OSError):
                os.truncate(self._file, whole)
            raise


def _line(data: Data) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
