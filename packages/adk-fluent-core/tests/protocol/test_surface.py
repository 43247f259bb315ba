from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import fields, is_dataclass

import pytest

from adk_fluent import config, ir, protocol

CLASSES = [c for c in (getattr(protocol, n) for n in protocol.__all__) if isinstance(c, type)]


def test_all_is_whole() -> None:
    assert len(protocol.__all__) == len(set(protocol.__all__))
    assert set(protocol.__all__) == set(vars(protocol)["_PLACES"])


def test_a_name_that_there_is_not_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'AgentEvnt'"):
        getattr(protocol, "AgentEvnt")  # noqa: B009  # type checkers see that there is none


def test_a_name_is_imported_when_it_is_used() -> None:
    loaded = "sorted(n for n in sys.modules if n.startswith('adk_fluent.protocol.'))"
    code = f"import sys; from adk_fluent.protocol import Redactor; print({loaded})"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "['adk_fluent.protocol._redact']\n"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_each_class_says_what_it_is(cls: type) -> None:
    assert cls.__doc__
    assert not cls.__doc__.startswith(f"{cls.__name__}(")  # what dataclass makes up


@pytest.mark.parametrize("cls", [c for c in CLASSES if is_dataclass(c)], ids=lambda c: c.__name__)
def test_each_field_is_documented(cls: type) -> None:
    text = inspect.cleandoc(cls.__doc__ or "")  # Python 3.13 takes the indent away itself
    for each in fields(cls):
        assert f"\n    {each.name}: " in text, each.name


def test_the_config_door_leads_to_the_irs_classes() -> None:
    assert {name: getattr(config, name) for name in config.__all__} == {
        "CompactionConfig": ir.CompactionConfig,
        "ExecutionConfig": ir.ExecutionConfig,
        "TelemetryConfig": ir.TelemetryConfig,
    }


MODULES = "adk_fluent.protocol, adk_fluent.config, adk_fluent._registry"
LOADED = """
import sys, {modules}
protocol = sys.modules.get("adk_fluent.protocol")
for name in getattr(protocol, "__all__", ()):
    getattr(protocol, name)
loaded = {{name for name, module in sys.modules.items() if module}}
print(sorted(loaded & {{"asyncio", "importlib.metadata"}}))
tops = {{name.partition(".")[0] for name in loaded}}
print(sorted(tops - sys.stdlib_module_names - {{"__main__", "adk_fluent"}}))
"""


def loaded_with(modules: str) -> str:
    command = [sys.executable, "-c", LOADED.format(modules=modules)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_importing_it_needs_the_standard_library_only() -> None:
    found = loaded_with(MODULES)
    assert found == loaded_with("os")  # what site loads is not ours
    assert found.startswith("[]\n")
