"""The packages keep to tools/boundaries.py, and tools/boundaries.py notices when one does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import boundaries
from adk_fluent import extend
from adk_fluent._hints import WHEELS

ROOT = Path(__file__).resolve().parent.parent
WITHOUT_ADK = ("ir", "flow", "contracts", "extend")
PUBLIC_WITHOUT_ADK = ["adk_fluent", *(f"adk_fluent.{part}" for part in WITHOUT_ADK)]


def test_the_workspace_keeps_to_its_boundaries() -> None:
    assert boundaries.violations(ROOT) == []


def test_the_toy_uses_public_names_only() -> None:
    """It is what others copy."""
    [core] = [each for each in boundaries.packages(ROOT) if each.name == boundaries.CORE]
    toy = boundaries.Package(ROOT / "tests-integration" / "toy")
    assert len(toy.modules) > 5
    assert list(boundaries.private_imports(toy, core)) == []


def test_every_part_is_announced_under_the_wheel_that_brings_it() -> None:
    layers = [package for package in boundaries.packages(ROOT) if package.name != boundaries.CORE]
    for package in layers:
        assert {WHEELS.get(part) for part in package.parts} == {package.name}


def test_no_package_is_called_like_the_old_monolith() -> None:
    assert "adk-fluent" not in {package.name for package in boundaries.packages(ROOT)}


def test_tests_of_layers_import_what_extend_has_from_there() -> None:
    places: dict[str, str] = vars(extend)["_PLACES"]
    private = {f"adk_fluent.{module}.{name}": name for name, module in places.items()}
    layers = [package for package in boundaries.packages(ROOT) if package.name != boundaries.CORE]
    assert [
        f"{path.relative_to(ROOT)}:{found.line}: import {private[found.name]} of adk_fluent.extend"
        for package in layers
        for path in sorted((package.path / "tests").rglob("*.py"))
        for found in boundaries.imports(path, path.stem)
        if found.name in private
    ] == []


def test_every_package_ships_the_licence() -> None:
    licence = (ROOT / "LICENSE").read_text("utf-8")
    for package in boundaries.packages(ROOT):
        assert (package.path / "LICENSE").read_text("utf-8") == licence


@pytest.mark.parametrize("module", PUBLIC_WITHOUT_ADK)
def test_importing_it_loads_neither_adk_nor_pydantic(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{m.partition('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"google", "pydantic", "rich", "click"}.isdisjoint(done.stdout.split())


class Tree:
    """A throwaway workspace of core and two layers that keep to the rules, until edited."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("adk-fluent-core/src/adk_fluent/__init__.py", "")
        self.write("adk-fluent-core/src/adk_fluent/ir/__init__.py", "X = 1\n")
        self.manifest("adk-fluent-core", "[]")
        for part in ("ink", "pen"):
            source = f"adk-fluent-{part}/src/adk_fluent"
            self.manifest(f"adk-fluent-{part}", '["adk-fluent-core>=0.3,<0.4", "rich"]')
            self.write(f"{source}/__init__.pyi", boundaries.MARKER)
            self.write(f"{source}/{part}/__init__.py", "from adk_fluent.ir import X\n")
            self.write(f"{source}/{part}/py.typed", "")

    def write(self, path: str, text: str) -> None:
        target = self.root / "packages" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")

    def manifest(self, package: str, dependencies: str, **changes: str) -> None:
        fields = {"requires-python": ">=3.11", "license": "Apache-2.0", "name": package, **changes}
        rows = "".join(f'{key} = "{value}"\n' for key, value in fields.items())
        text = f'[project]\nversion = "0.3.7"\n{rows}dependencies = {dependencies}\n'
        self.write(f"{package}/pyproject.toml", text)

    @property
    def violations(self) -> list[str]:
        return boundaries.violations(self.root)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_tree_that_keeps_to_the_rules_passes(tree: Tree) -> None:
    assert tree.violations == []


@pytest.mark.parametrize(
    "statement",
    [
        "from adk_fluent.ink import Ink",
        "from adk_fluent import ink",
        "import adk_fluent.ink.deep as d",
        "from ..ink import Ink",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from adk_fluent.ink import Ink",
        "def late():\n    from adk_fluent import ink",
        "import importlib\nimportlib.import_module('adk_fluent.ink')",
    ],
)
def test_a_layer_that_imports_a_sibling_is_refused(tree: Tree, statement: str) -> None:
    tree.write("adk-fluent-pen/src/adk_fluent/pen/_nib.py", statement + "\n")
    [violation] = tree.violations
    assert violation.startswith("adk-fluent-pen/src/adk_fluent/pen/_nib.py:")
    assert "imports adk_fluent.ink" in violation
    assert "of adk-fluent-ink; layers meet in adk_fluent.ir" in violation


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("from adk_fluent._words import describe", "adk_fluent._words.describe"),
        ("from adk_fluent import _words", "adk_fluent._words"),
        ("import adk_fluent._words", "adk_fluent._words"),
        ("from .._words import describe", "adk_fluent._words.describe"),
        ("from adk_fluent.ir._kinds import NODES", "adk_fluent.ir._kinds.NODES"),
        ("from adk_fluent.ir import _kinds", "adk_fluent.ir._kinds"),
        ("from adk_fluent.ir import _hidden as shown", "adk_fluent.ir._hidden"),
        (
            "if TYPE_CHECKING:\n    from adk_fluent._words import describe",
            "adk_fluent._words.describe",
        ),
        (
            "def late():\n    from adk_fluent._words import describe",
            "adk_fluent._words.describe",
        ),
        ("importlib.import_module('adk_fluent._words')", "adk_fluent._words"),
    ],
)
def test_a_layer_that_imports_what_is_private_to_core_is_refused(
    tree: Tree, statement: str, name: str
) -> None:
    tree.write("adk-fluent-core/src/adk_fluent/_words.py", "")
    tree.write("adk-fluent-core/src/adk_fluent/ir/_kinds.py", "")
    tree.write("adk-fluent-pen/src/adk_fluent/pen/_nib.py", statement + "\n")
    where = f"adk-fluent-pen/src/adk_fluent/pen/_nib.py:{len(statement.splitlines())}"
    advice = "use a public name, or publish it in adk_fluent.extend"
    [violation] = tree.violations
    assert violation == f"{where}: imports {name}, which is private to adk-fluent-core; {advice}"


def test_a_name_that_its_module_does_not_list_is_private(tree: Tree) -> None:
    tree.write(
        "adk-fluent-core/src/adk_fluent/ir/__init__.py",
        "from typing import Any\n\n__all__ = ['X']\nX = 1\n",
    )
    nib = "adk-fluent-pen/src/adk_fluent/pen/_nib.py"
    tree.write(nib, "from adk_fluent.ir import X\nfrom adk_fluent.ir import *\n")
    assert tree.violations == []
    tree.write(nib, "from adk_fluent.ir import Any\n")
    [violation] = tree.violations
    assert "imports adk_fluent.ir.Any, which adk_fluent.ir does not list in __all__" in violation


def test_a_package_may_import_what_is_private_to_itself(tree: Tree) -> None:
    nib = "adk-fluent-pen/src/adk_fluent/pen/_nib.py"
    tree.write(nib, "from adk_fluent.pen._cap import _cap\nfrom adk_fluent import __version__\n")
    tree.write("adk-fluent-pen/src/adk_fluent/pen/_cap.py", "")
    tree.write("adk-fluent-core/src/adk_fluent/ir/_node.py", "from adk_fluent.ir._ref import _r\n")
    assert tree.violations == []


def test_core_that_imports_a_layer_is_refused(tree: Tree) -> None:
    tree.write("adk-fluent-core/src/adk_fluent/__init__.py", "from adk_fluent.ink import Ink\n")
    assert any("core/src/adk_fluent/__init__.py:1: imports" in each for each in tree.violations)


@pytest.mark.parametrize(
    "dependencies",
    [
        "[]",
        '["adk-fluent-core"]',
        '["adk-fluent-core>=0.2,<0.3"]',
        '["adk-fluent-core>=0.3,<0.4", "adk-fluent-ink>=0.3,<0.4"]',
        '["adk-fluent-core>=0.3,<0.4"]\noptional-dependencies = { more = ["adk-fluent-ink"] }',
    ],
)
def test_a_layer_depends_on_core_alone_within_its_minor(tree: Tree, dependencies: str) -> None:
    tree.manifest("adk-fluent-pen", dependencies)
    [violation] = tree.violations
    assert violation.startswith("adk-fluent-pen/pyproject.toml: depends on [")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": "adk-fluent"}, "is called adk-fluent, its directory adk-fluent-pen"),
        ({"requires-python": ">=3.12"}, "requires-python differs from core's"),
        ({"license": "MIT"}, "license differs from core's"),
    ],
)
def test_a_manifest_that_differs_is_refused(
    tree: Tree, change: dict[str, str], complaint: str
) -> None:
    tree.manifest("adk-fluent-pen", '["adk-fluent-core>=0.3,<0.4"]', **change)
    assert tree.violations == [f"adk-fluent-pen/pyproject.toml: {complaint}"]


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("__init__.py", "", "__init__.py: only core has one"),
        ("__init__.pyi", "from adk_fluent._public import Agent\n", "__init__.pyi: is not the"),
        ("nib/__init__.py", "", "nib/py.typed: is absent"),
    ],
)
def test_a_layer_has_core_s_layout(tree: Tree, path: str, text: str, complaint: str) -> None:
    tree.write(f"adk-fluent-pen/src/adk_fluent/{path}", text)
    assert [each for each in tree.violations if complaint in each]


def test_adk_is_imported_only_where_it_belongs(tree: Tree) -> None:
    adk = "from google.adk.agents import BaseAgent\n"
    tree.write("adk-fluent-core/src/adk_fluent/backends/adk/_running/_leaf.py", adk)
    tree.write("adk-fluent-pen/src/adk_fluent/pen/_adk.py", adk)
    tree.write("adk-fluent-pen/src/adk_fluent/pen/_lazy.py", f"def late():\n    {adk}")
    tree.write("adk-fluent-pen/src/adk_fluent/pen/_typed.py", f"if TYPE_CHECKING:\n    {adk}")
    assert tree.violations == []
    tree.write("adk-fluent-pen/src/adk_fluent/pen/_eager.py", adk)
    [violation] = tree.violations
    assert violation.startswith("adk-fluent-pen/src/adk_fluent/pen/_eager.py:1: imports google.adk")


_CYCLE = "import cycle: "


@pytest.mark.parametrize(
    "back",
    [
        "from adk_fluent.pen import _nib",
        "from ._nib import nib",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ._nib import nib",
        "def late():\n    from adk_fluent.pen import _nib",
        "import importlib\ndef late():\n    importlib.import_module('adk_fluent.pen._nib')",
    ],
)
def test_modules_that_import_each_other_are_refused(tree: Tree, back: str) -> None:
    pen = "adk-fluent-pen/src/adk_fluent/pen"
    tree.write(f"{pen}/_nib.py", "from adk_fluent.pen._cap import cap\n")
    tree.write(f"{pen}/_cap.py", "cap = 1\n")
    assert tree.violations == []
    tree.write(f"{pen}/_cap.py", back + "\n")
    assert tree.violations == [_CYCLE + "adk_fluent.pen._cap, adk_fluent.pen._nib"]


def test_a_name_of_the_package_itself_is_an_import_of_it(tree: Tree) -> None:
    core = "adk-fluent-core/src/adk_fluent"
    tree.write(f"{core}/__init__.py", "from adk_fluent._agent import Agent\n")
    tree.write(f"{core}/_agent.py", "import adk_fluent\nclass Agent: ...\n")
    assert tree.violations == []
    tree.write(f"{core}/_agent.py", "def late():\n    from adk_fluent import Agent\n")
    assert tree.violations == [_CYCLE + "adk_fluent, adk_fluent._agent"]


def test_every_cycle_is_named_once_and_nothing_else(tree: Tree) -> None:
    pen, ink = "adk-fluent-pen/src/adk_fluent/pen", "adk-fluent-ink/src/adk_fluent/ink"
    for name, imported in (("_a", "_b"), ("_b", "_c"), ("_c", "_a"), ("_d", "_a")):
        tree.write(f"{pen}/{name}.py", f"from adk_fluent.pen.{imported} import x\n")
    tree.write(f"{ink}/__init__.py", "from adk_fluent.ink._well import well\n")
    tree.write(f"{ink}/_well.py", "def late():\n    from adk_fluent.ink import well\n")
    assert tree.violations == [
        _CYCLE + "adk_fluent.ink, adk_fluent.ink._well",
        _CYCLE + "adk_fluent.pen._a, adk_fluent.pen._b, adk_fluent.pen._c",
    ]
