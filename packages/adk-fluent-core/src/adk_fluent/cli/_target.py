"""From ``module:attr`` or ``path.py:attr`` to a pipeline."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._layers import WHEELS
from adk_fluent._registry import missing_layer
from adk_fluent.builders import Builder, BuilderBase, Pipeline
from adk_fluent.errors import AdkFluentError, TargetError, nearest_name
from adk_fluent.ir import Node

if TYPE_CHECKING:
    from types import ModuleType

#: What is looked for when a target names no attribute.
DEFAULTS: Final = ("pipeline", "root_agent", "agent")
_WINDOWS_DRIVE: Final = re.compile(r"^[A-Za-z]:[\\/]")


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

    @property
    def folder(self) -> Path:
        """Where its own modules are."""
        return Path(self.source).resolve().parent if self.is_file else Path.cwd()

    @classmethod
    def parse(cls, text: str) -> Target:
        """Split a target at its last colon; the colon of a Windows drive is part of the path.

        Raises:
            TargetError: A part of it is empty.
        """
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

    def error(
        self,
        what: str,
        help: str,
        *,
        found: str | None = None,
        location: str | None = None,
    ) -> TargetError:
        """A `TargetError` about this target."""
        return TargetError(what, target=self.text, help=help, found=found, location=location)


def load(text: str) -> Builder:
    """The pipeline that a target names, as something that can be run.

    What its module prints while it is imported goes to standard error: standard output is for
    answers.

    Raises:
        TargetError: There is no such file, module or attribute, importing it failed, or the
            attribute is no pipeline.
        MissingLayerError: Its module imports a layer that is not installed.
    """
    target = Target.parse(text)
    with redirect_stdout(sys.stderr):
        module = _module(target)
        return _pipeline(target, _attribute(target, module))


# --- the module ----------------------------------------------------------------------------------


def _module(target: Target) -> ModuleType:
    try:
        return _from_file(target) if target.is_file else _from_name(target)
    except AdkFluentError:
        raise  # says what, where and what to do itself
    except SyntaxError as error:
        if not error.filename or error.filename.startswith("<"):  # of something it evaluates
            raise _import_failed(target, error) from error
        line = f":{error.lineno}" if error.lineno else ""
        text = f": {error.text.strip()}" if error.text else ""
        raise target.error(
            f"{Path(error.filename).name} has a syntax error",
            "correct the file",
            found=f"{error.msg}{text}",
            location=f"{error.filename}{line}",
        ) from error
    except ModuleNotFoundError as error:
        raise _not_found(target, error) from error
    except (Exception, SystemExit) as error:  # it is the user's module: anything may happen
        raise _import_failed(target, error) from error


def _from_name(target: Target) -> ModuleType:
    here = str(target.folder)
    if here not in sys.path:
        sys.path.insert(0, here)
    return importlib.import_module(target.source)


def _from_file(target: Target) -> ModuleType:
    path = Path(target.source)
    if path.is_dir():
        raise target.error(f"{target.source} is a directory", "name a file in it: folder/agent.py")
    if not path.is_file():
        near = nearest_name(path.name, (p.name for p in path.parent.glob("*.py")))
        hint = f"did you mean {path.with_name(near)}?" if near else "check the path"
        raise target.error(f"there is no file {target.source}", hint)
    root, name = _package_of(path.resolve())
    sys.path.insert(0, str(root))  # it may import its neighbours
    if "." in name:  # as part of its package, so that it may import relatively
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise target.error(f"{target.source} is no Python file", "name a .py file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _package_of(path: Path) -> tuple[Path, str]:
    """The directory a file is imported from, and its module name seen from there."""
    folder, name = path.parent, path.stem
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        folder, name = folder.parent, f"{folder.name}.{name}"
    return folder, name


def _not_found(target: Target, error: ModuleNotFoundError) -> AdkFluentError:
    name = error.name or ""
    part = name.removeprefix("adk_fluent.")
    if part in WHEELS and part != name:
        missing = missing_layer(part, name)
        missing.location = _place(target, error)
        return missing
    if not target.is_file and f"{target.source}.".startswith(f"{name}."):
        return target.error(
            f"there is no module {name!r}",
            "check the name, or name the file: path/to/file.py:attribute",
        )
    return _import_failed(target, error)


def _import_failed(target: Target, error: BaseException) -> TargetError:
    if isinstance(error, SystemExit):
        found = f"it called exit({'' if error.code is None else repr(error.code)})"
        hint = 'let it exit only under: if __name__ == "__main__":'
    else:
        found, hint = f"{type(error).__name__}: {error}", "--debug shows the traceback"
    return target.error(
        f"importing {target.source} failed", hint, found=found, location=_place(target, error)
    )


def _place(target: Target, error: BaseException) -> str | None:
    """The last line of the user's own on the way to the error; else the last line."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    own = [frame for frame in frames if _is_below(Path(frame[0]), target.folder)]
    file, line = (own or frames or [("", None)])[-1]
    return f"{file}:{line}" if file else None


def _is_below(file: Path, folder: Path) -> bool:
    return file.is_relative_to(folder) and "site-packages" not in file.parts


# --- the attribute -------------------------------------------------------------------------------


def _attribute(target: Target, module: ModuleType) -> Any:
    if target.attribute is None:
        for name in DEFAULTS:
            if hasattr(module, name):
                return getattr(module, name)
        there = _pipelines(module)
        raise target.error(
            f"{target.source} has no {' or '.join(DEFAULTS)}",
            f"name the attribute, such as {target.source}:{there[0] if there else 'desk'}",
            found=", ".join(there) or "no pipeline at all",
        )
    value: Any = module
    parts = target.attribute.split(".")
    for at, part in enumerate(parts):
        if not hasattr(value, part):
            near = nearest_name(part, (name for name in dir(value) if not name.startswith("_")))
            there = _pipelines(module)
            raise target.error(
                f"{':'.join([target.source, *filter(None, ['.'.join(parts[:at])])])} "
                f"has no attribute {part!r}",
                f"did you mean {near!r}?" if near else "check the name",
                found=f"pipelines {', '.join(there)}" if there and not near else None,
            )
        value = getattr(value, part)
    return value


def _pipelines(module: ModuleType) -> list[str]:
    named = vars(module).items()
    return [name for name, value in named if not name.startswith("_") and _is_pipeline(value)]


def _is_pipeline(value: object) -> bool:
    return isinstance(value, BuilderBase | Node) or _is_adk(value, "agents", "BaseAgent")


def _is_adk(value: object, module: str, name: str) -> bool:
    """Whether it is an instance of an ADK class; if it is, ADK has been imported already."""
    loaded = sys.modules.get(f"google.adk.{module}")
    return loaded is not None and isinstance(value, getattr(loaded, name))


def _pipeline(target: Target, value: Any) -> Builder:
    if isinstance(value, Builder):
        return value
    if _is_pipeline(value):
        return Pipeline(value)
    hint = "name a builder such as Agent(...) or a >> b, an IR node or an ADK agent"
    if _is_adk(value, "apps", "App"):
        hint = "name the pipeline or the root agent that the App was made from"
    elif callable(value) and not isinstance(value, type):
        hint = f"call it in its module and name what it returns: pipeline = {value.__name__}()"
    raise target.error(f"{target.text} is no pipeline", hint, found=_kind(value))


def _kind(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
