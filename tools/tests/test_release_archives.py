"""Archives of a small core and a layer: built by real tools, checked, harmed and checked again."""

from __future__ import annotations

import io
import json
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from release import build, smoke
from release.check import problems

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Toy

CORE, LAYER = "adk-fluent-core", "adk-fluent-eval"
WHEEL, SDIST = "adk_fluent_core-0.1.0-py3-none-any.whl", "adk_fluent_core-0.1.0.tar.gz"
INFO = "adk_fluent_core-0.1.0.dist-info"


@pytest.mark.full
def test_archives_do_not_depend_on_where_and_when_they_are_built(
    toy: Toy, built: Path, tmp_path: Path
) -> None:
    toy.write("packages/adk-fluent-core/src/adk_fluent/__pycache__/_words.pyc", "ignored")
    said = toy.release("build", "--dist", tmp_path / "again").splitlines()
    assert len(said) == 4
    for path in built.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.full
def test_archives_bear_the_date_of_the_commit(built: Path) -> None:
    with ZipFile(built / WHEEL) as wheel:
        assert {info.date_time for info in wheel.infolist()} == {(2026, 1, 2, 3, 4, 4)}
    with tarfile.open(built / SDIST) as sdist:
        assert {member.mtime for member in sdist.getmembers()} == {1767323045}


@pytest.mark.full
def test_a_build_that_is_not_reproducible_is_refused(toy: Toy, tmp_path: Path) -> None:
    hook = "\n[tool.hatch.build.targets.sdist.hooks.custom]\n"
    manifest = toy.core / "pyproject.toml"
    manifest.write_text(manifest.read_text("utf-8") + hook, "utf-8")
    toy.write(
        "packages/adk-fluent-core/hatch_build.py",
        "import os\n"
        "from pathlib import Path\n"
        "from hatchling.builders.hooks.plugin.interface import BuildHookInterface\n"
        "class Hook(BuildHookInterface):\n"
        "    def initialize(self, version, build_data):\n"
        "        Path(self.root, 'README.md').write_text(os.environ['TZ'])\n",
    )
    said = toy.release("build", CORE, "--dist", tmp_path / "dist", expect=1)
    assert said == f"two builds of {WHEEL} differ in {INFO}/METADATA, {INFO}/RECORD"
    assert not (tmp_path / "dist").exists()


def test_differing_archives_say_in_what(built: Path, tmp_path: Path) -> None:
    other = tmp_path / WHEEL
    with ZipFile(built / WHEEL) as old, ZipFile(other, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    assert build.differences(built / WHEEL, built / WHEEL) == []
    assert build.differences(built / WHEEL, other) == ["dates, modes or order of its members"]
    with ZipFile(other, "a") as new:
        new.writestr("stray", "")
    assert build.differences(built / WHEEL, other) == ["stray"]


def test_a_package_that_does_not_build_says_why(toy: Toy, tmp_path: Path) -> None:
    toy.edit(toy.core / "pyproject.toml", "Typing :: Typed", "Typing :: Tipped")
    assert "Tipped" in toy.release("build", CORE, "--dist", tmp_path / "dist", expect=1)


def test_good_archives_pass(toy: Toy, built: Path) -> None:
    said = toy.release("check", "--dist", built).splitlines()
    good = "0.1.0: archives, metadata, README and changelog are in order"
    assert said == [f"{CORE} {good}", f"{LAYER} {good}"]


def test_absent_archives_are_told(toy: Toy, tmp_path: Path) -> None:
    said = toy.release("check", CORE, "--dist", tmp_path, expect=1)
    assert said == f"{tmp_path / WHEEL} is absent; run: python -m tools.release build"


def rewrite(dist: Path, changes: dict[str, Callable[[str], str | None]]) -> None:
    """Replace members of core's wheel; None drops one."""
    members = build.members(dist / WHEEL)
    for name, change in changes.items():
        text = change(members.pop(name, b"").decode())
        if text is not None:
            members[name] = text.encode()
    with ZipFile(dist / WHEEL, "w") as wheel:
        for name, content in members.items():
            wheel.writestr(name, content)


def in_metadata(old: str, new: str) -> dict[str, Callable[[str], str | None]]:
    def change(text: str) -> str:
        assert old in text, text
        return text.replace(old, new, 1)

    return {f"{INFO}/METADATA": change}


HARM: dict[str, tuple[dict[str, Callable[[str], str | None]], str]] = {
    "a stray file": ({"tests/test_x.py": lambda _: ""}, "tests/test_x.py does not belong there"),
    "byte code": ({"adk_fluent/x.pyc": lambda _: ""}, "adk_fluent/x.pyc does not belong there"),
    "no py.typed": ({"adk_fluent/py.typed": lambda _: None}, "adk_fluent/py.typed is missing"),
    "no licence": ({f"{INFO}/licenses/LICENSE": lambda _: None}, "licenses/LICENSE is absent"),
    "another licence": ({f"{INFO}/licenses/LICENSE": lambda _: "MIT"}, "not the LICENSE"),
    "another source": ({"adk_fluent/_words.py": lambda _: "evil()"}, "_words.py is not what it is"),
    "no entry points": (
        {f"{INFO}/entry_points.txt": lambda _: None},
        "entry_points.txt is missing",
    ),
    "a missing command": (
        {"adk_fluent/command.py": lambda _: None},
        "console_scripts adk-toy: the wheel has no module adk_fluent.command",
    ),
    "no metadata": ({f"{INFO}/METADATA": lambda _: None}, "metadata: "),
    "another version": (in_metadata("Version: 0.1.0", "Version: 0.1.1"), "expected ('adk-fluent"),
    "another name": (in_metadata("Name: adk-fluent-core", "Name: adk-fluent"), "expected ('adk-fl"),
    "an invalid version": (in_metadata("Version: 0.1.0", "Version: one"), "metadata: 'one' is inv"),
    "no licence expression": (in_metadata("License-Expression: Apache-2.0\n", ""), "metadata: is"),
    "a licence that is none": (in_metadata("Apache-2.0", "Apache 2"), "metadata: "),
    "an older Python": (in_metadata(">=3.11", ">=3.8"), "metadata: is"),
    "an unknown classifier": (
        in_metadata("Typing :: Typed", "Typing :: Tipped"),
        "no classifier is called 'Typing :: Tipped'",
    ),
    "a private package": (
        in_metadata("Typing :: Typed", "Private :: Do Not Upload"),
        "'Private :: Do Not Upload' bars it from PyPI",
    ),
    "no Typing": (in_metadata("Classifier: Typing :: Typed\n", ""), "'Typing :: Typed' is absent"),
    "no link": (in_metadata("URL: Issues", "URL: Bugs"), "there is no link Issues"),
    "an unsafe link": (
        in_metadata("Issues, https:", "Issues, http:"),
        "Issues is http://example.org/toys/issues, expected a page below",
    ),
    "another's link": (in_metadata("/tree/main/packages/adk-fluent-core", ""), "Source is not the"),
    "another's changelog": (
        in_metadata("packages/adk-fluent-core/CHANGELOG.md", "CHANGELOG.md"),
        "Changelog is not the package's own",
    ),
    "an address": (
        in_metadata("Requires-Python", "Requires-Dist: x @ https://example.org/x\nRequires-Python"),
        "PyPI refuses the address in 'x @ https://example.org/x'",
    ),
    "no README": (in_metadata("Description-Content-Type: text/markdown\n", ""), "README is absent"),
    "a dead link": (
        in_metadata("(https://example.org)", "(docs/more.md)"),
        "README.md: docs/more.md leads nowhere on PyPI",
    ),
    "a dead picture": (
        in_metadata("[more](https://example.org)", "![more](docs/pictures/x.svg)"),
        "README.md: docs/pictures/x.svg leads nowhere",
    ),
}


@pytest.mark.full
@pytest.mark.parametrize(("changes", "told"), HARM.values(), ids=HARM.keys())
def test_a_harmed_wheel_is_refused(
    toy: Toy, dist: Path, changes: dict[str, Callable[[str], str | None]], told: str
) -> None:
    rewrite(dist, changes)
    found = problems(toy.repository, toy.repository.package(CORE), dist)
    assert [each for each in found if told in each], found


def test_a_link_into_the_page_or_to_a_person_is_fine(toy: Toy, dist: Path) -> None:
    more = "[more](#toys), [who](mailto:toy@example.org)"
    rewrite(dist, in_metadata("[more](https://example.org)", more))
    assert problems(toy.repository, toy.repository.package(CORE), dist) == []


def test_an_sdist_holds_everything_and_nothing_else(toy: Toy, dist: Path) -> None:
    members = build.members(dist / SDIST)
    del members["README.md"]
    members |= {".env": b"KEY=1", "LICENSE": b"MIT"}
    with tarfile.open(dist / SDIST, "w:gz") as sdist:
        for name, content in members.items():
            info = tarfile.TarInfo(f"adk_fluent_core-0.1.0/{name}")
            info.size = len(content)
            sdist.addfile(info, io.BytesIO(content))
    assert problems(toy.repository, toy.repository.package(CORE), dist) == [
        f"{CORE}: sdist: README.md is missing",
        f"{CORE}: sdist: .env does not belong there",
        f"{CORE}: sdist: LICENSE is not what it is in the tree; build again",
    ]


def test_a_layer_that_asks_for_another_core_is_refused(toy: Toy, built: Path) -> None:
    toy.edit(toy.layer / "pyproject.toml", ">=0.1,<0.2", ">=0.1")
    said = toy.release("check", LAYER, "--dist", built, expect=1)
    assert "expected ['adk-fluent-core>=0.1,<0.2']" in said


@pytest.mark.parametrize("tag", [f"{CORE}-v0.1.1", "v0.1.0", f"{LAYER}-v0.1.0", ""])
def test_archives_under_a_tag_that_is_not_theirs_are_refused(
    toy: Toy, built: Path, tag: str
) -> None:
    said = toy.release("check", CORE, "--dist", built, "--tag", tag, expect=1)
    assert f"the tag is {tag}, the manifest's version asks for {CORE}-v0.1.0" in said


def test_a_release_needs_its_section_in_the_changelog(toy: Toy, built: Path, dist: Path) -> None:
    tag, path = f"{CORE}-v0.1.0", toy.core / "CHANGELOG.md"
    said = toy.release("check", CORE, "--dist", built, "--tag", tag, expect=1)
    assert said == f"{CORE}: CHANGELOG.md: has no section for 0.1.0, or an empty one"
    toy.edit(path, "## Unreleased", "## Unreleased\n\n## 0.1.0 (2026-01-01)")
    toy.release("build", CORE, "--dist", dist)
    assert "in order" in toy.release("check", CORE, "--dist", dist, "--tag", tag)
    toy.edit(path, "(2026-01-01)", "(tomorrow)")
    assert "CHANGELOG.md:5: expected" in toy.release("check", CORE, "--dist", dist, expect=1)


def test_a_changelog_that_says_nothing_is_told_between_releases(toy: Toy, dist: Path) -> None:
    (toy.core / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n", "utf-8")
    found = problems(toy.repository, toy.repository.package(CORE), dist)
    assert f"{CORE}: CHANGELOG.md: says nothing about 0.1.0, the version to come" in found


def test_archives_are_used_outside_the_tree(toy: Toy, built: Path) -> None:
    core = toy.release("smoke", CORE, "--dist", built).splitlines()
    assert core == [
        f"installed {WHEEL} for Python {sys.version.split()[0]}",
        "ran adk-toy --version",
        "ran adk-toy one 'two three'",
        "imported 2 public modules, with extras: it has none",
        f"installed {SDIST}, imported the same modules",
    ]
    assert "imported 1 public modules" in toy.release("smoke", LAYER, "--dist", built)


SMOKE = {
    "an undefined public name": (
        "command.py",
        ('__all__ = ["main"]', '__all__ = ["main", "gone"]'),
        "has no attribute 'gone'",
    ),
    "no __all__": ("command.py", ('__all__ = ["main"]', ""), "has no attribute '__all__'"),
    "an import of what is not there": (
        "command.py",
        ("import sys\n", "import sys, pytest\n"),
        "No module named 'pytest'",
    ),
    "another version": (
        "__init__.py",
        ('version("adk-fluent-core")', '"9.9.9"'),
        "adk_fluent.__version__ is 9.9.9, core 0.1.0",
    ),
}


@pytest.mark.parametrize(("file", "edit", "told"), SMOKE.values(), ids=SMOKE.keys())
def test_what_does_not_work_outside_the_tree_is_told(
    toy: Toy, dist: Path, file: str, edit: tuple[str, str], told: str
) -> None:
    rewrite(dist, {f"adk_fluent/{file}": lambda text: text.replace(*edit)})
    assert told in toy.release("smoke", CORE, "--dist", dist, expect=1)


def test_only_public_modules_are_imported(tmp_path: Path, toy: Toy) -> None:
    wheel = tmp_path / "x.whl"
    with ZipFile(wheel, "w") as made:
        for name in ("a/__init__.py", "a/b.py", "a/_c.py", "a/_d/e.py", "a/__main__.py", "a/x.md"):
            made.writestr(name, "")
    package = toy.repository.package(CORE)
    assert smoke.public_modules(package, wheel) == ["a", "a.b"]


def test_smoke_needs_nothing_but_the_standard_library(toy: Toy) -> None:
    tools = Path(build.__file__).resolve().parents[1]
    code = (
        f"import json, sys; sys.path.insert(0, {str(tools)!r}); import release.cli, release.smoke; "
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules} "
        "- sys.stdlib_module_names)))"
    )
    from release.repository import run

    bare = run(sys.executable, "-I", "-S", "-c", code, cwd=toy.root)
    assert set(json.loads(bare)) == {"__main__", "boundaries", "release"}
