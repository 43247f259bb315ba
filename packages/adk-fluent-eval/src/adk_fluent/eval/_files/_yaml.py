"""Suites in YAML, as the specification writes them (section 6.11)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from adk_fluent.eval._files._content import SuiteData
from adk_fluent.eval._files._place import read_text
from adk_fluent.eval._files._plain import case_data
from adk_fluent.eval._files._read import Reader, distinct
from adk_fluent.eval._files._suite_data import SUITE_FIELDS, suite_data, suite_fields
from adk_fluent.eval._files._yaml_nodes import read_yaml

if TYPE_CHECKING:
    from adk_fluent.eval._files._marked import Registry

_KEYS: Final = (*SUITE_FIELDS, "cases")
_ASIDE: Final = "x-"  # keys that only hold what aliases stand for
_WIDTH: Final = 100
_ENDS: Final = frozenset("\r\x85\u2028\u2029")


def load_yaml(path: str | os.PathLike[str], registry: Registry | None = None) -> SuiteData:
    """The suite of a YAML file; keys at its top that begin with ``x-`` are for aliases.

    Args:
        path: The file.
        registry: Functions by the names that the file calls them by, as ``{call: name}``.

    Raises:
        EvalFileError: The file cannot be read, or says something that has no meaning; the error
            names the line and the field.
    """
    name = os.fspath(path)
    value, source = read_yaml(read_text(path), name)
    reader = Reader(source, registry)
    suite = reader.mapping((), value)
    for key in suite:
        if key not in _KEYS and not key.startswith(_ASIDE):
            raise source.unknown((key,), "a suite", _KEYS)
    if suite.get("cases") is None:
        raise source.error((), "the file has no cases", help="write cases: and a list of them")
    cases = reader.items(("cases",), suite["cases"])
    made = distinct(
        (source, ("cases", n), reader.case(("cases", n), each)) for n, each in enumerate(cases)
    )
    fields = suite_fields(reader, (), suite)
    fields.setdefault("name", Path(name).stem)
    return SuiteData(**fields, cases=made)


def dump_yaml(data: SuiteData) -> str:
    """A suite as YAML, which `load_yaml` reads.

    Raises:
        EvalError: A case holds something that cannot be written; the error names case and field.
    """
    made = {**suite_data(data), "cases": [case_data(case) for case in data.cases]}
    return yaml.dump(made, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)


class _Dumper(yaml.SafeDumper):
    """Writes what is there twice twice, and texts of several lines in several lines."""

    def ignore_aliases(self, data: Any) -> bool:
        """No aliases: they are for people to write."""
        return True


def _text(dumper: Any, text: str) -> yaml.Node:
    # what YAML takes for ends of lines is escaped in quotes alone
    style = '"' if _ENDS & set(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
