"""The pages of errors have every error and every finding, each with an example that is one.

That the examples run, and print what stands below them, is tested in `test_docs.py`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import TYPE_CHECKING

import pytest

import adk_fluent
from adk_fluent import contracts, errors
from adk_fluent.contracts import CODES
from adk_fluent.contracts._checkers import all_checkers
from adk_fluent.errors import AdkFluentError

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = Path(__file__).resolve().parent.parent / "packages"
#: Each package's page, the prefix of its findings, and the modules of its errors.
PAGES = {
    "adk-fluent-core": ("FLW", "adk_fluent."),
    "adk-fluent-a2a": ("RMT", "adk_fluent.a2a"),
    "adk-fluent-distributed": ("DST", "adk_fluent.distributed"),
    "adk-fluent-cost": ("CST", "adk_fluent.cost"),
    "adk-fluent-debug": ("DBG", "adk_fluent.debug"),
    "adk-fluent-eval": ("EVA", "adk_fluent.eval"),
    "adk-fluent-middleware": ("MDW", "adk_fluent.middleware"),
    "adk-fluent-state": ("STA", "adk_fluent.state"),
}
#: Errors that an installation mends, and no other program.
INSTALLED = {"ADKF200", "ADKF201", "ADKF202"}
all_checkers()  # imports them, and with them the codes of their findings


@dataclass(frozen=True)
class Section:
    """What the page says about one code."""

    package: str
    code: str
    name: str
    text: str

    @property
    def anchor(self) -> str:
        return f"#{self.code}-{self.name}".lower()

    @property
    def examples(self) -> list[str]:
        return re.findall(r"^```(?:text|console)\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)


def page(package: str) -> str:
    return (PACKAGES / package / "docs" / "errors.md").read_text("utf-8")


def sections(package: str) -> Iterator[Section]:
    parts = re.split(r"^##+ (.+)$", page(package), flags=re.MULTILINE)[1:]
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        if found := re.fullmatch(r"([A-Z]+\d+) (\w+)", heading):
            yield Section(package, found[1], found[2], text)


def public_errors() -> Iterator[type[AdkFluentError]]:
    """Every error that a public module offers."""
    for module in walk_packages(adk_fluent.__path__, "adk_fluent."):
        if not re.search(r"\._|pytest_plugin", module.name):
            there = import_module(module.name)
            for name in getattr(there, "__all__", ()):
                value = getattr(there, name)
                if isinstance(value, type) and issubclass(value, AdkFluentError):
                    yield value


SECTIONS = [each for package in PAGES for each in sections(package)]
ERRORS = {kind.code: kind for kind in public_errors()}
FINDINGS = {
    code.code: code
    for code in CODES.values()
    if any(code.code.startswith(prefix) for prefix, _ in PAGES.values())
}


def package_of(kind: type[AdkFluentError]) -> str:
    """The last that fits: core's module is the beginning of all others'."""
    return [name for name, (_, module) in PAGES.items() if kind.__module__.startswith(module)][-1]


@pytest.mark.parametrize("package", PAGES)
def test_every_error_and_every_finding_has_one_section_and_nothing_else_does(package: str) -> None:
    wanted = {code: kind.__name__ for code, kind in ERRORS.items() if package_of(kind) == package}
    prefix, _ = PAGES[package]
    wanted |= {code: known.name for code, known in FINDINGS.items() if code.startswith(prefix)}
    found = [(each.code, each.name) for each in SECTIONS if each.package == package]
    assert found == sorted(wanted.items())


def test_the_pages_have_all_errors() -> None:
    assert {kind.__name__ for kind in ERRORS.values()} >= {
        name for name in errors.__all__ if name.endswith("Error")
    }


@pytest.mark.parametrize("section", SECTIONS, ids=lambda each: each.code)
def test_a_section_has_a_cause_an_example_and_a_fix(section: Section) -> None:
    (cause,) = re.findall(r"^Cause: ", section.text, re.MULTILINE)
    (fix,) = re.findall(r"^Fix: ", section.text, re.MULTILINE)
    first, last = section.text.index(cause), section.text.index(fix)
    assert first < section.text.index("```") < last
    shown = "\n".join(section.examples)
    if section.code in FINDINGS:
        assert re.findall(r"^(?:error|warning|info)\[(.+?)\]: ", shown, re.MULTILINE) == [
            section.code
        ]
        return
    kind = ERRORS[section.code]
    raised = re.findall(r"^(adk_fluent\.\S+): ", shown, re.MULTILINE)
    if kind is not AdkFluentError:  # nothing raises it: it is there to be caught
        assert raised == [f"{kind.__module__}.{kind.__qualname__}"]
        assert "." not in kind.__module__.removeprefix("adk_fluent.")
        has_comment = "<!-- raises -->" in section.text
        assert has_comment or "<!-- process -->" in section.text or "```console" in section.text


@pytest.mark.parametrize("section", SECTIONS, ids=lambda each: each.code)
def test_a_section_ends_with_an_example_that_is_mended(section: Section) -> None:
    _, fix = re.split(r"^Fix: ", section.text, flags=re.MULTILINE)
    mended = re.findall(r"^```(python|console|sh)$", fix, re.MULTILINE)
    assert mended
    if section.code in INSTALLED:
        assert mended == ["sh"]
        return
    printed = Section(section.package, section.code, section.name, fix).examples
    assert printed
    assert "<!-- raises -->" not in fix
    assert not re.search(r"^(?:adk_fluent\.\S+: |\w+\[)", "\n".join(printed), re.MULTILINE)
    if section.code in FINDINGS:
        assert all(each.startswith("Found nothing wrong.\n") for each in printed)


def test_the_tables_lead_to_every_section() -> None:
    for section in SECTIONS:
        assert f"]({section.anchor})" in page(section.package), section.anchor
    for code in FINDINGS.values():
        anchor = f"#{code.code}-{code.name}".lower()
        row = (
            f"| [`{code.code}`]({anchor}) | `{code.name}` | {code.severity} | {code.explanation} |"
        )
        assert any(row in page(package) for package in PAGES), row


def test_reports_for_code_hosts_lead_to_the_page() -> None:
    found = [
        kind(message="x") for kind in subclasses(contracts.Diagnostic) if kind.code in FINDINGS
    ]
    (run,) = json.loads(contracts.ContractReport.of(found).to_sarif())["runs"]
    leads = {
        rule["id"]: rule["helpUri"].partition("/packages/")[2]
        for rule in run["tool"]["driver"]["rules"]
    }
    assert leads == {
        each.code: f"{each.package}/docs/errors.md{each.anchor}"
        for each in SECTIONS
        if each.code in FINDINGS
    }


def subclasses(kind: type[contracts.Diagnostic]) -> Iterator[type[contracts.Diagnostic]]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)
