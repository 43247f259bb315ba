"""From ``module:attr`` or ``path.py:attr`` to a pipeline."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adk_fluent.builders import Builder, BuilderBase, Pipeline
from adk_fluent.errors import AdkFluentError, TargetError, nearest_name
from adk_fluent.ir import Node

if TYPE_CHECKING:
    from types import ModuleType

#: What is looked for when a target names no attribute.
DEFAULTS = ("pipeline", "root_agent", "agent", "app")
_WINDOWS_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True)
class Target:
    """A place where a pipeline is.

    Attributes:
        text: As the user wrote it.
        source: Module name, or path of a file.
        attribute: Dotted name in it, or None for the first of `DEFAULTS`.
    """

    text: str
    source: str
    attribute: str | None

    @property
    def is_file(self) -> bool:
        """Whether the source is a path."""
        return self.source.endswith(".py") or "/" in self.source or "\\" in self.source

    @classmethod
    def parse(cls, text: str) -> Target:
        """Split a target at its last colon; the colon of a Windows drive is part of the path."""
        start = 2 if _WINDOWS_DRIVE.match(text) else 0
        head, colon, attribute = text[start:].rpartition(":")
        source = text[:start] + (head if colon else text[start:])
        if not source or (colon and not attribute):
            raise TargetError(
                f"{text!r} is no target",
                target=text,
                help="write module:attribute or path.py:attribute",
            )
        return cls(text, source, attribute if colon else None)


def load(text: str) -> Builder:
    """The pipeline that a target names, as something that can be run.

    Raises:
        TargetError: There is no such file, module or attribute, importing it failed, or the
            attribute is no pipeline.
    """
    target = Target.parse(text)
    module = _module(target)
    return _pipeline(target, _attribute(target, module))


def _module(target: Target) -> ModuleType:
    try:
        return _from_file(target) if target.is_file else importlib.import_module(target.source)
    except AdkFluentError:
        raise  # says what, where and what to do itself
    except SyntaxError as error:
        raise TargetError(
            f"{target.source} has a syntax error",
            target=target.text,
            location=f"{error.filename}:{error.lineno}",
            found=f"{error.msg}: {(error.text or '').strip()}",
            help="correct the file",
        ) from error
    except ModuleNotFoundError as error:
        if error.name is not None and target.source.split(".")[0] == error.name.split(".")[0]:
            raise TargetError(
                f"there is no module {error.name!r}",
                target=target.text,
                help="check the name, or name the file: path/to/file.py:attribute",
            ) from error
        raise _import_failed(target, error) from error
    except (Exception, SystemExit) as error:  # it is the user's module: anything may happen
        raise _import_failed(target, error) from error


def _from_file(target: Target) -> ModuleType:
    path = Path(target.source)
    if not path.is_file():
        near = nearest_name(path.name, (p.name for p in path.parent.glob("*.py")))
        raise TargetError(
            f"there is no file {target.source}",
            target=target.text,
            help=f"did you mean {path.with_name(near)}?" if near else "check the path",
        )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise TargetError(
            f"{target.source} is no Python file", target=target.text, help="name a .py file"
        )
    sys.path.insert(0, str(path.resolve().parent))  # it may import its neighbours
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _import_failed(target: Target, error: BaseException) -> TargetError:
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
    return TargetError(
        f"importing {target.source} failed",
        target=target.text,
        location=where,
        found=f"{type(error).__name__}: {error}",
        help="make the module importable; --debug shows the traceback",
    )


def _attribute(target: Target, module: ModuleType) -> Any:
    if target.attribute is None:
        for name in DEFAULTS:
            if hasattr(module, name):
                return getattr(module, name)
        raise TargetError(
            f"{target.source} has none of {', '.join(DEFAULTS)}",
            target=target.text,
            help=f"name the attribute: {target.source}:attribute",
        )
    value: Any = module
    for part in target.attribute.split("."):
        if not hasattr(value, part):
            near = nearest_name(part, (n for n in dir(value) if not n.startswith("_")))
            raise TargetError(
                f"{target.source} has no attribute {target.attribute!r}",
                target=target.text,
                help=f"did you mean {near!r}?" if near else "check the name",
            )
        value = getattr(value, part)
    return value


def _pipeline(target: Target, value: Any) -> Builder:
    if isinstance(value, Builder):
        return value
    if isinstance(value, BuilderBase | Node):
        return Pipeline(value)
    agent = sys.modules.get("google.adk.agents")
    if agent is not None and isinstance(value, agent.BaseAgent):
        return Pipeline(value)
    raise TargetError(
        f"{target.text} is no pipeline",
        target=target.text,
        found=f"a {type(value).__name__}",
        help="name a builder such as Agent(...) or a >> b, an IR node or an ADK agent",
    )
