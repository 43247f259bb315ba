"""Write what follows ADK's fields, from snapshots and policy: facts about them, and the setters."""

from __future__ import annotations

import ast
import json
import sys
import textwrap
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from codegen import policy
from codegen.snapshots import HERE, CodegenError, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from codegen.policy import Setter, Taken

#: Where the modules are written.
CORE: Final[Path] = HERE.parents[1] / "packages/adk-fluent-core/src/adk_fluent"
_WIDTH: Final = 100
_CHECKS: Final = "adk_fluent.builders._settings"

_FACTS: Final = '''\
"""Facts about the fields of ADK's LlmAgent, for builders and backends alike.

Written by ``python -m tools.codegen``; what they say comes from tools/codegen/policy.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

'''

_AT_LEAST: Final = '''

def at_least(version: str, other: str) -> bool:
    """Whether a version of ADK is not older than another one."""
    return _numbers(version) >= _numbers(other)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\\d+", version)[:3]))
'''

_HEAD: Final = '''\
"""The setters of `Agent` that are called like the field of ADK's LlmAgent they set.

Written by ``python -m tools.codegen``; what they say comes from tools/codegen/policy.py.
"""

from __future__ import annotations
'''

_CLASS: Final = '''\
class AdkSetters:
    """The part of `Agent` that is ADK's business, and only passed on here."""

    __slots__ = ()
    _settings: dict[str, Any]

    if TYPE_CHECKING:

        def _changed(self) -> Self: ...

    def _set(self, field: str, value: object) -> Self:
        self._settings[field] = CHECKS[field](value, f".{field}(...)")
        return self._changed()
'''


@dataclass(frozen=True, slots=True)
class Known:
    """A field of LlmAgent.

    Attributes:
        name: Its name.
        type: Its type, in the newest version that has it.
        since: The oldest version looked at that has it.
        last: The newest one that has it; None if that is the newest of all.
    """

    name: str
    type: str
    since: str
    last: str | None


def known(snapshots: list[Snapshot]) -> dict[str, Known]:
    """The fields of LlmAgent in any version, by name."""
    found: dict[str, Known] = {}
    for snapshot in snapshots:
        for name, field in snapshot.classes["LlmAgent"].items():
            since = found[name].since if name in found else snapshot.version
            last = None if snapshot is snapshots[-1] else snapshot.version
            found[name] = Known(name, field.type, since, last)
    return dict(sorted(found.items()))


def check(fields: Mapping[str, Known]) -> None:
    """See that the policy covers every field once, and nothing else.

    Raises:
        CodegenError: It does not.
    """
    faults: list[str] = []
    tables = {"OWN": policy.OWN, "NONE": policy.NONE, "SETTERS": policy.SETTERS}
    for name, field in fields.items():
        within = [title for title, table in tables.items() if name in table]
        if not within:
            faults.append(
                f"LlmAgent.{name}: {field.type} (google-adk {field.since}): say in NONE why it has "
                "no setter, or in SETTERS what its setter does"
            )
        elif len(within) > 1:
            faults.append(f"LlmAgent.{name} stands in {' and in '.join(within)}")
        if name in policy.SETTERS and field.type not in policy.TYPES:
            faults.append(f"LlmAgent.{name}: {field.type}: say in TYPES how a setter takes that")
    for title, table in tables.items():
        faults += [f"{title}: LlmAgent has no field {name!r}" for name in table.keys() - fields]
    if faults:
        raise CodegenError("\n".join(["tools/codegen/policy.py:", *faults]))


def modules(snapshots: list[Snapshot]) -> dict[Path, str]:
    """The modules, each with its text.

    Raises:
        CodegenError: The policy says nothing about a field.
    """
    fields = known(snapshots)
    check(fields)
    return {
        CORE / "_adk_fields.py": _facts(fields, [snapshot.version for snapshot in snapshots]),
        CORE / "builders/_adk_setters.py": _setters(fields, snapshots[0].version),
    }


def _facts(fields: Mapping[str, Known], versions: list[str]) -> str:
    only = {name: text for name, s in policy.SETTERS.items() if (text := s.instead) is not None}
    since = {name: field.since for name, field in fields.items()}
    parts = [
        _FACTS,
        _comment("The newest google-adk whose fields are known here."),
        f'NEWEST: Final = "{versions[-1]}"\n',
        _comment(
            "Every field of LlmAgent, and the first google-adk that has it, of those looked at: "
            + ", ".join(versions)
            + "."
        ),
        _table("SINCE", since),
        _comment("Fields that have a setter of another name, or of the same one, written by hand."),
        _table("OWN_SETTERS", policy.OWN),
        _comment("Fields of ADK's own engine that have none, and what to do instead."),
        _table("NO_SETTER", policy.NONE),
        _comment("Fields that only agent tools can have, and what to write for other agents."),
        _table("TOOLS_ONLY", only),
    ]
    return "\n".join(parts) + _AT_LEAST


def _setters(fields: Mapping[str, Known], floor: str) -> str:
    setters = {name: policy.TYPES[fields[name].type] for name in sorted(policy.SETTERS)}
    parts = [
        _HEAD,
        *_imports(setters.values()),
        "",
        _comment("What each setter below takes."),
        _checks(setters),
        "",
        _CLASS,
    ]
    parts.extend(_method(fields[name], taken, floor) for name, taken in setters.items())
    return "\n".join(parts)


def _imports(taken: Iterable[Taken]) -> Iterator[str]:
    """The import statements, in ruff's order."""
    typed: defaultdict[str, set[str]] = defaultdict(set)
    used: set[str] = set()
    for each in taken:
        nodes = ast.walk(ast.parse(each.check))
        used.update(node.id for node in nodes if isinstance(node, ast.Name))
        for module, name in each.imports:
            typed[module].add(name)
    yield _import("typing", {"TYPE_CHECKING", "Any", "Final", *typed.pop("typing", ())})
    yield ""
    yield _import(_CHECKS, used)
    yield "\nif TYPE_CHECKING:"
    typed["collections.abc"].add("Mapping")
    typed["typing"].add("Self")
    typed[_CHECKS].add("Check")
    groups: defaultdict[int, list[str]] = defaultdict(list)
    for module in sorted(typed):
        groups[_section(module)].append(_import(module, typed[module], "    "))
    yield "\n\n".join("\n".join(groups[section]) for section in sorted(groups)) + "\n"


def _import(module: str, names: set[str], indent: str = "") -> str:
    ordered = sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    line = f"{indent}from {module} import {', '.join(ordered)}"
    if len(line) <= _WIDTH:
        return line
    rows = (f"{indent}    {name},\n" for name in ordered)
    return f"{indent}from {module} import (\n{''.join(rows)}{indent})"


def _section(module: str) -> int:
    """The standard library, others, ours."""
    top = module.partition(".")[0]
    return 0 if top in sys.stdlib_module_names else 2 if top == "adk_fluent" else 1


def _comment(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="#: ", subsequent_indent="#: ")


def _table(name: str, rows: Mapping[str, str]) -> str:
    """A mapping of texts, one line each."""
    lines = [f"    {_quoted(key)}: {_quoted(value)}," for key, value in sorted(rows.items())]
    return _assigned(f"{name}: Final[Mapping[str, str]]", lines)


def _checks(setters: Mapping[str, Taken]) -> str:
    lines = [f"    {_quoted(name)}: {taken.check}," for name, taken in setters.items()]
    return _assigned("CHECKS: Final[Mapping[str, Check]]", lines)


def _assigned(target: str, lines: list[str]) -> str:
    long = [line for line in lines if len(line) > _WIDTH]
    if long:
        raise CodegenError("\n".join(["tools/codegen/policy.py: too long for a line:", *long]))
    return "\n".join([f"{target} = {{", *lines, "}", ""])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _method(field: Known, taken: Taken, floor: str) -> str:
    setter = policy.SETTERS[field.name]
    default = " = True" if taken.annotation == "bool" else ""
    signature = f"self, {setter.argument}: {taken.annotation}{default}"
    doc = "\n\n".join(_doc(field, setter, floor))
    return (
        f"    def {field.name}({signature}) -> Self:\n"
        f"{doc}\n"
        f'        """\n'
        f'        return self._set("{field.name}", {setter.argument})\n'
    )


def _doc(field: Known, setter: Setter, floor: str) -> Iterator[str]:
    """The paragraphs of a docstring."""
    yield _filled(f'"""{setter.summary}', 8)
    source = f"ADK's ``{field.name}``{_when(field, floor)}"
    if setter.instead is not None:
        source += f"; only agent tools (`agent_tool`) can have it: {setter.instead}"
    yield _filled(f"{source}.", 8)
    yield "        Args:\n" + _filled(f"{setter.argument}: {setter.about}", 12, 16)


def _when(field: Known, floor: str) -> str:
    """The versions that have a field, where it is not all of them."""
    if field.last is not None:
        return f", google-adk {field.since} to {field.last}"
    return "" if field.since == floor else f", since google-adk {field.since}"


def _filled(text: str, indent: int, hanging: int | None = None) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent if hanging is None else hanging),
        break_long_words=False,
        break_on_hyphens=False,
    )
