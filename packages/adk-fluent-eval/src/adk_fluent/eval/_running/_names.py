"""Names of models, and of the files of a run of each."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._words import describe
from adk_fluent.eval._errors import EvalError

if TYPE_CHECKING:
    from os import PathLike

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST: Final = 80  # characters of a name in that of a file


def models_by_name(models: Iterable[Any]) -> dict[str, Any]:
    """Models by their names.

    Raises:
        EvalError: There is none, one twice, or one without a name.
    """
    if isinstance(models, str):
        raise EvalError("models= is one text, not a list of them", help=f"models=[{models!r}]")
    if not isinstance(models, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
        raise EvalError("models= is no list of models", found=describe(models))
    made: dict[str, Any] = {}
    for each in models:
        name = each if isinstance(each, str) else getattr(each, "model", None)
        if not isinstance(name, str) or not name:
            raise EvalError("models= takes names of models, or BaseLlms", found=describe(each))
        if name in made:
            raise EvalError(
                f"model {name!r} is there twice", help="give two BaseLlms different names"
            )
        made[name] = each
    if not made:
        raise EvalError("models= is empty", help='such as models=["gemini-2.5-flash"]')
    return made


def name_of_model(model: Any) -> str:
    """The name of a model; empty for none."""
    return "" if model is None else str(getattr(model, "model", model))


def journal_of(journal: str | PathLike[str], model: str) -> Path:
    """The journal of one model's run: of ``run.jsonl`` it is ``run.gemini-2.5-pro.jsonl``."""
    path = Path(journal)
    name = _UNSAFE.sub("_", model)[:_LONGEST]
    if name != model:  # others may become the same
        name += f"-{hashlib.sha256(model.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return path.with_name(f"{path.stem}.{name}{path.suffix}")
