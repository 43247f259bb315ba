"""Answers of models, kept on disk by what was asked: recorded once, replayed in CI."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from adk_fluent.eval._arguments import require, require_type
from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._files._source import read_json, write_whole

CacheMode = Literal["auto", "record", "replay"]
_HEAD: Final = {"kind": "model-answer", "schema": 1}


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
                raise EvalFileError(
                    "no answer is kept for a model call, and mode='replay' calls no model",
                    path=str(file),
                    found="the prompt, the tools, the model, or the case's id changed",
                    help="record again where a model can be called: mode='auto'",
                )
            return None
        source, value = read_json(file)
        held = source.mapping((), value)
        head = source.mapping(("adk_fluent",), held.get("adk_fluent", {}))
        responses: Any = held.get("responses")
        if head != _HEAD or not isinstance(responses, list):
            raise source.error((), "not an answer that this version kept", help="delete the file")
        return cast("list[Any]", responses)

    def write(self, name: str, model: str, responses: list[Any]) -> None:
        """Keep responses."""
        value = {"adk_fluent": _HEAD, "model": model, "responses": responses}
        text = json.dumps(value, ensure_ascii=True, indent=1, sort_keys=True)
        write_whole(self._file(name), [text, "\n"])

    def _file(self, name: str) -> Path:
        return Path(self.path) / f"{name}.json"
