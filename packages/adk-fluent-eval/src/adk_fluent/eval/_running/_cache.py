"""Answers of models, kept on disk by what was asked: record once, replay in CI."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from adk_fluent._words import describe
from adk_fluent.eval._errors import EvalError, EvalFileError
from adk_fluent.eval._write import write_whole

if TYPE_CHECKING:
    from os import PathLike

Mode = Literal["auto", "record", "replay"]
_SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class Kept:
    """What a model answered once.

    Attributes:
        agent: Who asked.
        model: The model's name.
        responses: ADK's LlmResponses, as JSON.
    """

    agent: str
    model: str
    responses: list[dict[str, Any]]


class ResponseCache:
    """A folder with answers of models, a file for each, to be kept with the cases.

    Answers are found by what was asked: a changed instruction, tool or message asks anew. Each run
    of each case has answers of its own, so that a case with another id asks anew, too. What a model
    was asked is not stored, only what it said.

    Args:
        path: The folder; it is made when the first answer is written.
        mode: ``auto`` replays what is there and asks for the rest; ``record`` asks for everything
            anew; ``replay`` never asks: what is not there is an error of its case.

    Raises:
        EvalError: There is no such mode.
        EvalFileError: The path is a file.
    """

    def __init__(self, path: str | PathLike[str], mode: Mode = "auto") -> None:
        if mode not in get_args(Mode):
            raise EvalError(
                f"there is no mode {mode!r} of a cache", help=f"one of {', '.join(get_args(Mode))}"
            )
        if not isinstance(path, str | Path) and not hasattr(path, "__fspath__"):
            raise EvalError("a cache is a folder", found=describe(path))
        self.path: Path = Path(path)
        self.mode: Mode = mode
        if self.path.exists() and not self.path.is_dir():
            raise EvalFileError(
                "a cache of answers is a folder, and this is a file", path=str(path)
            )
        if mode == "replay" and not self.path.is_dir():
            raise EvalFileError(
                "there are no answers to replay",
                path=str(path),
                help="record them first, with mode='auto'",
            )

    def read(self, name: str, *, fresh: bool = False) -> Kept | None:
        """An answer; None if there is none, or none is wanted.

        Args:
            name: What identifies it.
            fresh: Whether it was written in this run of the suite, and so is wanted in any case.

        Raises:
            EvalFileError: Its file is broken, or of a newer version.
        """
        if self.mode == "record" and not fresh:
            return None
        path = self._file(name)
        try:
            data: Any = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise EvalFileError(
                "a kept answer cannot be read",
                path=str(path),
                found=f"{type(error).__name__}: {error}",
                help="delete the file; it is asked for again",
            ) from error
        return _kept(data, path)

    def check_may_ask(self, name: str, agent: str, model: str) -> None:
        """Refuse to ask a model when answers are only replayed.

        Raises:
            EvalFileError: That answer is not there.
        """
        if self.mode == "replay":
            raise EvalFileError(
                "no answer is kept for what a model is asked",
                path=str(self._file(name)),
                node=agent or None,
                found=f"{model!r} is asked something else than when answers were recorded",
                help="record again with mode='auto', and commit the new files",
            )

    def write(self, name: str, kept: Kept) -> None:
        """Keep an answer.

        Raises:
            EvalFileError: It cannot be written; another one of that name is still there.
        """
        data = {
            "adk_fluent": {"kind": "model-response", "schema": _SCHEMA},
            "agent": kept.agent,
            "model": kept.model,
            "responses": kept.responses,
        }
        write_whole(self._file(name), [json.dumps(data, indent=1, ensure_ascii=True), "\n"])

    def broken(self, name: str, field: str, found: str) -> EvalFileError:
        """The error for an answer that ADK does not take for one."""
        return EvalFileError(
            "this is no kept answer of a model, or of another google-adk",
            path=str(self._file(name)),
            field=field,
            found=found,
            help="delete the file; it is asked for again",
        )

    def _file(self, name: str) -> Path:
        return self.path / name[:2] / f"{name}.json"


def _kept(data: Any, path: Path) -> Kept:
    match data:
        case {"adk_fluent": {"kind": "model-response", "schema": int(schema)}} if schema > _SCHEMA:
            found, hint = f"schema {schema}", "install a newer adk-fluent-eval"
        case {
            "adk_fluent": {"kind": "model-response"},
            "agent": str(agent),
            "model": str(model),
            "responses": list(responses),  # pyright: ignore[reportUnknownVariableType]  # of JSON
        }:
            return Kept(agent, model, cast("list[Any]", responses))
        case _:
            found, hint = "something else", "delete the file; it is asked for again"
    raise EvalFileError("this is no kept answer of a model", path=str(path), found=found, help=hint)
