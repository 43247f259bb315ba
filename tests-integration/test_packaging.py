"""A layer is a wheel beside core: built, installed, type-checked, run and removed for real.

The layer is tests-integration/toy. The tests work on a copy of the workspace that has it as a
member, so that they see what a developer and a user of a layer would see.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

import boundaries
from release.build import build, members
from release.repository import Package, Repository

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parent.parent
TOY = ROOT / "tests-integration" / "toy"
UV = shutil.which("uv")
PACKAGES = Repository(ROOT).packages()
NOTHING: Mapping[str, str] = MappingProxyType({})


def run(
    *command: str | Path,
    cwd: Path | None = None,
    expect: int = 0,
    first: Path | None = None,
    more: Mapping[str, str] = NOTHING,
) -> str:
    """Run a program outside any environment of ours and return what it printed.

    Args:
        command: The program and its arguments.
        cwd: Where it runs.
        expect: Its exit code.
        first: Where it looks for other programs first.
        more: Variables beside ours.
    """
    ours = {"PYTHONPATH", "VIRTUAL_ENV", "UV_COMPILE_BYTECODE", "UV_PROJECT_ENVIRONMENT"}
    environment = {key: value for key, value in os.environ.items() if key not in ours}
    search = os.pathsep.join([str(first), os.environ["PATH"]] if first else [os.environ["PATH"]])
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**environment, "UV_PYTHON": sys.executable, "PATH": search, **more},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == expect, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def uv(*arguments: str | Path, cwd: Path | None = None) -> str:
    assert UV, "these tests need uv: pip install uv"
    return run(UV, *arguments, cwd=cwd)


def add_toy(manifest: str) -> str:
    """Give the root manifest as CONTRIBUTING says to change it for a new layer."""
    for old, new in (
        (
            '"adk-fluent-middleware", "adk-fluent-state"]',
            '"adk-fluent-middleware", "adk-fluent-state", "adk-fluent-toy"]',
        ),
        ("[tool.uv.sources]\n", "[tool.uv.sources]\nadk-fluent-toy = { workspace = true }\n"),
    ):
        assert manifest.count(old) == 1
        manifest = manifest.replace(old, new)
    return manifest


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the workspace with the toy as one more package, nothing installed yet."""
    copy = tmp_path_factory.mktemp("workspace")
    unwanted = shutil.ignore_patterns("__pycache__", "tests", ".*")
    shutil.copytree(ROOT / "packages", copy / "packages", ignore=unwanted)
    shutil.copytree(TOY, copy / "packages" / "adk-fluent-toy", ignore=unwanted)
    manifest = (ROOT / "pyproject.toml").read_text("utf-8")
    (copy / "pyproject.toml").write_text(add_toy(manifest), "utf-8")
    return copy


@pytest.fixture(scope="module")
def wheels(workspace: Path) -> dict[str, Path]:
    """The built wheels by distribution name."""
    uv("build", "--quiet", "--all-packages", "--wheel", cwd=workspace)
    return {
        path.name.split("-")[0].replace("_", "-"): path
        for path in (workspace / "dist").glob("*.whl")
    }


class Venv:
    """An environment with nothing of the workspace in it but what is installed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bin = path / ("Scripts" if os.name == "nt" else "bin")
        uv("venv", "--quiet", "--no-project", path)

    def install(self, *arguments: str | Path) -> None:
        uv("pip", "install", "--quiet", "--no-config", "--python", self.path, *arguments)

    def uninstall(self, name: str) -> None:
        uv("pip", "uninstall", "--quiet", "--no-config", "--python", self.path, name)

    def run(self, program: str, *arguments: str | Path) -> str:
        return run(self.bin / program, *arguments, cwd=self.path)

    def python(self, code: str, *, expect: int = 0) -> str:
        python = self.bin / "python"
        return run(python, "-I", "-c", code, cwd=self.path, expect=expect).strip()


FOUND = """
from importlib.metadata import entry_points
import adk_fluent.toy
[point] = entry_points(group="adk_fluent.layers")
print(point.name, point.load().name, adk_fluent.toy.EchoNode("here", text="hello").layer)
"""

FINDINGS = """
from adk_fluent.contracts import check_all
from adk_fluent.toy import EchoNode
report = check_all(EchoNode("here", text=" "))
print(*(each.code for each in report), *(c for c in report.checked if "toy" in c))
"""

VERIFIED = """
from adk_fluent.backends.adk import CompileContext
from adk_fluent.backends.adk._lowering._compile import passes
from adk_fluent.ir import ExecutionConfig, assert_legal
from adk_fluent.toy import EchoNode

def verify(name, root):
    assert_legal(root)
    print(name)

made = passes(EchoNode("here", text=" hi "), CompileContext(ExecutionConfig()), verify)
print(made.text)
"""


@pytest.mark.full
def test_each_wheel_holds_its_portion_and_nothing_else(wheels: dict[str, Path]) -> None:
    names = {wheel: set(ZipFile(path).namelist()) for wheel, path in wheels.items()}
    core, toy = names["adk-fluent-core"], names["adk-fluent-toy"]
    assert {"adk_fluent/__init__.py", "adk_fluent/py.typed"} <= core
    assert "adk_fluent/toy/py.typed" in toy
    assert all(name.startswith(("adk_fluent/toy/", "adk_fluent_toy-0.1.0.")) for name in toy)
    assert not [name for name in core | toy if name.endswith(".pyi")]


@pytest.mark.full
@pytest.mark.parametrize("order", [("core", "toy"), ("toy", "core")], ids="-then-".join)
def test_wheels_install_in_either_order_and_the_layer_leaves_without_a_trace(
    order: tuple[str, str], wheels: dict[str, Path], tmp_path: Path
) -> None:
    venv = Venv(tmp_path / "venv")
    for name in order:
        venv.install("--no-deps", wheels[f"adk-fluent-{name}"])
    assert venv.python(FOUND) == "toy toy toy"
    venv.uninstall("adk-fluent-toy")
    assert venv.python("import adk_fluent, adk_fluent.ir; print('core works')") == "core works"
    assert venv.python("import adk_fluent._registry as r; print(dict(r.found()))") == "{}"
    venv.python("import adk_fluent.toy", expect=1)
    assert not list(venv.path.rglob("adk_fluent/toy"))


@pytest.fixture(scope="module")
def merged(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Venv:
    """Both wheels and what they need, in one site-packages, as a user has them."""
    venv = Venv(tmp_path_factory.mktemp("merged") / "venv")
    pins = ROOT / "tools" / "constraints" / "hashes.txt"
    venv.install("--constraints", pins, wheels["adk-fluent-core"], wheels["adk-fluent-toy"])
    return venv


def test_what_the_layer_provides_takes_effect(merged: Venv) -> None:
    # the rule makes the second line, the pass trims it, the value rule raises the first one's voice
    ran = merged.run("python", "-I", TOY / "examples" / "shout.py").splitlines()
    assert ran[-2:] == ["crier: GOOD MORNING", "echo: morning"]
    assert merged.python(FINDINGS) == "TOY001 toy.echoes"
    assert merged.python(VERIFIED).split() == ["toy-trim", "hi"]
    assert merged.run("adk-fluent", "shout", "hello").strip() == "HELLO"
    assert "shout" in merged.run("adk-fluent", "--help")


#: Code of a user's; each line that has a comment is an error, of the kind that it names.
USER_CODE = """\
from typing_extensions import assert_type
import adk_fluent.absent  # reportMissingImports, reportUnusedImport
from adk_fluent import Agent, Pipeline
from adk_fluent.contracts import check_all
from adk_fluent.ir import Ref
from adk_fluent.toy import EchoNode, EmptyEcho, LoudModel
from adk_fluent.toy import Shout  # reportAttributeAccessIssue, reportUnknownVariableType

Shout("no")
echo = EchoNode("echo", text="hello")
assert_type(echo.text, str)
assert_type(Agent("a") >> echo, Pipeline)
assert_type(echo >> Agent("a"), Pipeline)
loud = Ref(LoudModel("gemini-2.5-flash"), "loud")
found = [each for each in check_all(Agent("a").model(loud) >> echo) if isinstance(each, EmptyEcho)]
assert_type(found, list[EmptyEcho])
echo.text = "bye"  # reportAttributeAccessIssue
EchoNode("echo", text=42)  # reportArgumentType
EchoNode("echo", txt="hello")  # reportCallIssue
LoudModel(3)  # reportArgumentType
Agent("a").tool(LoudModel("gemini-2.5-flash"))  # reportArgumentType
"""


@pytest.mark.full
def test_strict_pyright_sees_the_layer_beside_core(merged: Venv, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "packages" / "adk-fluent-core" / "typing_tests", tmp_path / "typing")
    shutil.copy(TOY / "examples" / "shout.py", tmp_path)
    (tmp_path / "user.py").write_text(USER_CODE, "utf-8")
    config = {
        "typeCheckingMode": "strict",
        "enableTypeIgnoreComments": False,
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config), "utf-8")
    python = ("--pythonpath", merged.bin / "python", "--project", tmp_path)
    pyright = (sys.executable, "-m", "pyright", "--outputjson", *python)
    report = json.loads(run(*pyright, cwd=tmp_path, expect=1))
    assert report["summary"]["filesAnalyzed"] == len(list(tmp_path.rglob("*.py")))
    found = sorted(
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["rule"])
        for each in report["generalDiagnostics"]
    )
    lines = enumerate(USER_CODE.splitlines(), start=1)
    assert found == sorted(
        ("user.py", number, rule)
        for number, line in lines
        for rule in line.partition("# ")[2].split(", ")
        if rule
    )


@pytest.mark.full
@pytest.mark.parametrize("package", ["adk_fluent", "adk_fluent.toy"])
def test_public_types_are_complete_where_a_layer_is_installed(
    package: str, merged: Venv, tmp_path: Path
) -> None:
    pyright = (sys.executable, "-m", "pyright", "--outputjson", "--ignoreexternal", "--verifytypes")
    found = json.loads(run(*pyright, package, cwd=tmp_path, first=merged.bin))["typeCompleteness"]
    assert Path(found["packageRootDirectory"]).is_relative_to(merged.path)
    assert "adk_fluent.toy" in {module["name"] for module in found["modules"]}
    assert found["exportedSymbolCounts"]["withKnownType"] > 0
    assert found["completenessScore"] == 1


def test_an_overwritten_core_says_how_to_repair_it(wheels: dict[str, Path], tmp_path: Path) -> None:
    venv = Venv(tmp_path / "venv")
    venv.install("--no-deps", wheels["adk-fluent-core"])
    [init] = venv.path.rglob("adk_fluent/__init__.py")
    init.unlink()  # uv links it to the one of the other environments
    init.write_text("class Agent: ...\n", "utf-8")  # as the old adk-fluent leaves it
    told = venv.python(
        "try:\n import adk_fluent.ir\nexcept ImportError as error:\n print(repr(error), error)"
    )
    assert "LegacyPackageError" in told
    assert "pip uninstall adk-fluent && pip install --force-reinstall" in told


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_release_dry_run_finds_readme_and_modules_in_order(package: Package) -> None:
    """What its checks of archives, which take longer, would refuse in the sources already."""
    readme = (package.path / "README.md").read_text("utf-8")
    targets = re.findall(r"\]\(([^)\s]+)\)", readme)
    assert [each for each in targets if not each.startswith(("https://", "#", "mailto:"))] == []
    source = package.path / "src"
    for path in source.rglob("*.py"):
        names = path.relative_to(source).with_suffix("").parts
        if not any(name.startswith("_") and name != "__init__" for name in names):
            assert "__all__" in path.read_text("utf-8"), f"{path} does not say what is public"


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels and sdists of all packages, as tools/release builds them."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("a release is built in a clone, by what git knows of it")
    dist = tmp_path_factory.mktemp("archives")
    for package in PACKAGES:
        build(Repository(ROOT), package, dist)
    return dist


@pytest.mark.full
@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_archives_are_fit_to_be_released(package: Package, archives: Path) -> None:
    """Metadata, classifiers, links, licence, README on PyPI, contents, bounds and changelog."""
    from release.check import problems  # needs more than the columns of ADK versions have

    assert problems(Repository(ROOT), package, archives) == []


@pytest.mark.full
def test_the_wheel_of_core_says_what_it_is(archives: Path) -> None:
    from packaging.metadata import Metadata

    core = Repository(ROOT).package("adk-fluent-core")
    wheel = members(archives / f"{core.stem}-py3-none-any.whl")
    told = Metadata.from_email(wheel[f"{core.stem}.dist-info/METADATA"])
    assert str(told.requires_python) == ">=3.11"
    needs = {each.name: each for each in told.requires_dist or ()}
    assert {each.name for each in needs.values() if not each.marker} == {
        "click",
        "google-adk",
        "jsonschema",
        "pyyaml",
        "rich",
    }
    assert str(needs["google-adk"].specifier) == "<3,>=1.25"
    assert told.provides_extra == ["testing"]
    assert str(needs["pytest"].marker) == 'extra == "testing"'
    points = wheel[f"{core.stem}.dist-info/entry_points.txt"].decode()
    assert "[console_scripts]\nadk-fluent = adk_fluent.cli:main" in points
    assert "[pytest11]\nadk_fluent = adk_fluent.testing.pytest_plugin" in points


@pytest.mark.full
def test_tests_run_from_the_sdist(archives: Path, tmp_path: Path) -> None:
    """A few that need no ADK; that all of them are there is checked above."""
    core = Repository(ROOT).package("adk-fluent-core")
    with tarfile.open(archives / f"{core.stem}.tar.gz") as sdist:
        sdist.extractall(tmp_path, filter="data")
    folder = tmp_path / core.stem
    plain = ("-p", "no:cacheprovider", "--import-mode=importlib", "--rootdir", folder)
    pytest_there = (sys.executable, "-m", "pytest", "-q", "-c", os.devnull, *plain)
    code = "import pytest, adk_fluent; print(adk_fluent.__path__[0])"
    sources = {"PYTHONPATH": str(folder / "src")}
    assert run(sys.executable, "-c", code, more=sources).strip().startswith(str(folder))
    said = run(*pytest_there, "tests/test_import.py", cwd=folder, more=sources)
    assert re.search(r"^\d\d passed", said, re.MULTILINE)


@pytest.mark.full
def test_the_layer_keeps_to_the_boundaries_until_it_imports_a_sibling(workspace: Path) -> None:
    assert boundaries.violations(workspace) == []
    sibling = workspace / "packages" / "adk-fluent-other"
    stray = workspace / "packages" / "adk-fluent-toy" / "src" / "adk_fluent" / "toy" / "_stray.py"
    shutil.copytree(TOY, sibling)
    (sibling / "src" / "adk_fluent" / "toy").rename(sibling / "src" / "adk_fluent" / "other")
    (sibling / "pyproject.toml").write_text(
        (TOY / "pyproject.toml").read_text("utf-8").replace("adk-fluent-toy", "adk-fluent-other"),
        "utf-8",
    )
    stray.write_text("from adk_fluent.other import EchoNode\n", "utf-8")
    try:
        found = boundaries.violations(workspace)
    finally:
        stray.unlink()
        shutil.rmtree(sibling)
    assert any("_stray.py:1: imports adk_fluent.other" in violation for violation in found)


@pytest.fixture(scope="module")
def editable(workspace: Path) -> Path:
    """The copy of the workspace with everything installed in it, as a developer has it."""
    uv("sync", "--quiet", "--no-dev", cwd=workspace)
    return workspace


@pytest.mark.full
def test_strict_pyright_sees_the_layer_in_the_editable_workspace(editable: Path) -> None:
    layer = editable / "packages" / "adk-fluent-toy"
    config = editable / "pyproject.toml"
    whole = 'include = ["conftest.py", "packages", "tests-integration", "tools"]'
    text = config.read_text("utf-8")
    assert whole in text
    config.write_text(text.replace(whole, 'include = ["packages/adk-fluent-toy"]'), "utf-8")
    wrong = layer / "wrong.py"
    wrong.write_text("from adk_fluent.toy import EchoNode\n\nEchoNode('a', text=42)\n", "utf-8")
    pyright = (sys.executable, "-m", "pyright", "--outputjson", "--project", config)
    report = json.loads(run(*pyright, cwd=editable, expect=1))
    found = [
        (Path(each["file"]).name, each["range"]["start"]["line"], each["rule"])
        for each in report["generalDiagnostics"]
    ]
    # exactly the wrong line: the layer resolves, and to its types rather than to Unknown
    assert found == [("wrong.py", 2, "reportArgumentType")]
