"""From ``module:attr`` or ``path.py:attr`` to its module, and to the pipeline in it."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Final

from adk_fluent._hints import WHEELS
from adk_fluent._registry import missing_layer
from adk_fluent.cli._attribute import FORMS, Target, attribute_of, default_of, find
from adk_fluent.errors import AdkFluentError, nearest_name

if TYPE_CHECKING:
    from types import ModuleType

    from adk_fluent.builders import Builder
    from adk_fluent.errors import TargetError

_LISTED: Final = 5  # files of a directory that a message names
#: Fields of a syntax tree with what is named: read, assigned, defined, imported, matched, or set.
_NAMING: Final = ("id", "name", "asname", "rest", "attr")
#: A module with one of these may have names that its text does not show.
_OPEN: Final = frozenset(
    {
        *("*", "__getattr__", "__dict__", "modules"),
        *("globals", "locals", "vars", "setattr", "exec", "eval"),
    }
)


def load(text: str) -> Builder:
    """Load the pipeline that a target names, as something that can be run.

    What its module prints while it is imported goes to standard error: standard output is for
    answers.

    Args:
        text: ``module:attribute`` or ``path.py:attribute``.

    Raises:
        TargetError: There is no such file, module or attribute, importing it failed, or the
            attribute is no pipeline.
        MissingLayerError: Its module imports a layer that is not installed.
    """
    target = Target.parse(text)
    with redirect_stdout(sys.stderr):
        return find(target, module_of(target))


def find_target(text: str) -> Target:
    """Parse a target, and check as much of it as needs no import.

    A file is read. Of a module only the name is known, unless it is imported already.

    Args:
        text: ``module:attribute`` or ``path.py:attribute``.

    Raises:
        TargetError: It is no target, there is no such file, or that has no such attribute.
    """
    target = Target.parse(text)
    if target.is_file:
        _check_name(target, _file_of(target))
    elif target.attribute and (module := sys.modules.get(target.source)) is not None:
        attribute_of(target, module)
    return target


def _check_name(target: Target, file: Path) -> None:
    """Check that a file says the name of the attribute somewhere."""
    try:
        nodes = [*ast.walk(ast.parse(file.read_bytes()))]
    except (OSError, SyntaxError, ValueError, RecursionError):
        return  # whoever imports it says why it cannot be
    fields = (getattr(each, field, None) for each in nodes for field in _NAMING)
    names = {each.partition(".")[0] for each in fields if isinstance(each, str)}
    name = (target.attribute or "").partition(".")[0]
    if name and names.isdisjoint({name, *_OPEN}):
        near = nearest_name(name, names)
        what = f"{target.source} has no attribute {name!r}"
        raise target.error(what, f"did you mean {near!r}?" if near else "check the name")


def module_of(target: Target) -> ModuleType:
    """Import the module of a target.

    Raises:
        TargetError: There is no such file or module, or importing it failed.
        MissingLayerError: It imports a layer that is not installed.
    """
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
    if ":" in target.source:
        once = target.text.replace("::", ":")
        hint = FORMS if once == target.text else f"did you mean {once}?"
        found = f"another colon in {target.source!r}"
        raise target.error(f"{target.text!r} is no target", hint, found=found)
    if not all(target.source.split(".")):
        raise target.error(
            f"{target.source!r} is no name of a module",
            "name it as it is imported from here, such as shop.desk:pipeline, or name the file: "
            "path/to/file.py:attribute",
            found="a dot without a name on either side",
        )
    here = target.folder
    if str(here) not in sys.path:
        sys.path.insert(0, str(here))
    module = importlib.import_module(target.source)
    if getattr(module, "__file__", None) is None and (folders := getattr(module, "__path__", ())):
        folder = Path(next(iter(folders)))  # without an __init__.py
        raise _is_directory(target, folder.relative_to(here) if _is_below(folder, here) else folder)
    return module if target.attribute else _agent_of(module)


def _agent_of(module: ModuleType) -> ModuleType:
    """The module `agent` of a package that has no pipeline itself: ADK's tools look there."""
    if default_of(module) is None and hasattr(module, "__path__"):
        name = f"{module.__name__}.agent"
        if importlib.util.find_spec(name) is not None:
            return importlib.import_module(name)
    return module


def _file_of(target: Target) -> Path:
    path = Path(target.source)
    if S_ISDIR(_mode(path)):
        raise _is_directory(target, path)
    if not S_ISREG(_mode(path)):
        near = nearest_name(path.name, _python_files(path.parent))
        hint = f"did you mean {path.with_name(near)}?" if near else "check the path"
        raise target.error(f"there is no file {target.source}", hint)
    return path


def _from_file(target: Target) -> ModuleType:
    path = _file_of(target)
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


def _mode(path: Path) -> int:
    """What kind of file it is; 0 when there is none."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):  # not there, out of reach, or too long for a name
        return 0


def _python_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.py")) if _mode(folder) else []


def _is_directory(target: Target, folder: Path) -> TargetError:
    there = [name for name in _python_files(folder) if name != "__init__.py"]
    one = "agent.py" if "agent.py" in there or not there else there[0]  # ADK's tools ask for it
    attribute = f":{target.attribute}" if target.attribute else ""
    return target.error(
        f"{target.source} is a directory",
        f"name a file in it, such as {(folder / one).as_posix()}{attribute}",
        found=", ".join(there[:_LISTED]) + ("..." if there[_LISTED:] else "")
        or "no Python file in it",
    )


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
        if S_ISREG(_mode(Path(target.source))):
            return target.error(f"{target.source} is no Python file", "name a .py file")
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
