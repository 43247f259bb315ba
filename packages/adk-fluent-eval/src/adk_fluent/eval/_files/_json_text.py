"""Reading JSON strictly: no key twice, no numbers that JSON does not have."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from adk_fluent.eval._errors import EvalFileError


def parse_json(text: str, path: str, line: int | None = None, field: str = "") -> Any:
    """The value that a JSON text stands for.

    Args:
        text: The text.
        path: The file that it is from.
        line: Its line, if it is one line of the file, or starts there.
        field: What it is the value of.

    Raises:
        EvalFileError: It is no JSON, or has a key twice.
    """
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise EvalFileError(
            f"broken JSON: {error.msg}",
            path=path,
            line=error.lineno + (line or 1) - 1,
            field=field,
            found=f"column {error.colno}" if text.strip() else "nothing",
        ) from error
    except _TwiceError as error:
        raise EvalFileError(
            f"the key {error.key!r} stands there twice", path=path, line=line, field=field
        ) from error
    except RecursionError:
        raise EvalFileError(
            "the JSON is nested too deeply", path=path, line=line, field=field
        ) from None
    except ValueError as error:  # NaN and the like, or a number of thousands of digits
        raise EvalFileError(f"broken JSON: {error}", path=path, line=line, field=field) from error


class _TwiceError(Exception):
    """A key stands in an object twice."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(key)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _TwiceError(key)
            seen.add(key)
    return made


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
