"""Preparing a release and tagging it, with real git in a workspace of its own."""

from __future__ import annotations

import tomllib
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pytest

from release import changelog
from release.repository import ReleaseError
from release.versions import Version

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Toy

CORE, LAYER = "adk-fluent-core", "adk-fluent-eval"


def version(package: Path) -> str:
    return tomllib.loads((package / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def test_the_first_release_takes_the_version_of_the_manifest(toy: Toy) -> None:
    said = toy.release("prepare", CORE, "0.1.0")
    assert f"+## 0.1.0 ({today()})" in said
    assert "git commit -m 'Release adk-fluent-core 0.1.0' -- packages" in said
    assert version(toy.core) == "0.1.0"
    history = changelog.read(toy.core / "CHANGELOG.md")
    assert history.unreleased.empty
    made = history.release(Version(0, 1, 0))
    assert made is not None
    assert made.body.strip() == "First version.\n\n### Added\n\n- Everything."
    toy.commit("Release adk-fluent-core 0.1.0")
    assert "git push origin adk-fluent-core-v0.1.0" in toy.release("tag", CORE)
    told = toy.git("tag", "--list", "--format=%(objecttype) %(contents)", "adk-fluent-core-v0.1.0")
    assert told.startswith("tag adk-fluent-core 0.1.0\n\nFirst version.\n\n### Added\n")
    assert toy.release("notes", CORE) == made.body.strip()


def test_a_patch_touches_one_package(released: Toy) -> None:
    assert "note:" not in released.release("prepare", CORE, "patch")
    changed = set(released.git("diff", "--name-only").splitlines())
    assert changed == {f"packages/{CORE}/{each}" for each in ("pyproject.toml", "CHANGELOG.md")}
    assert (version(released.core), version(released.layer)) == ("0.1.1", "0.1.0")


def test_a_minor_of_core_moves_the_bounds_of_what_builds_on_it(released: Toy) -> None:
    toy = released.write("tests-integration/toy/pyproject.toml", '["adk-fluent-core>=0.1,<0.2"]\n')
    released.commit()
    said = released.release("prepare", CORE, "minor")
    assert "note: adk-fluent-eval now needs adk-fluent-core 0.2; release it after core" in said
    assert version(released.core) == "0.2.0"
    assert '"adk-fluent-core>=0.2,<0.3"' in (released.layer / "pyproject.toml").read_text("utf-8")
    assert toy.read_text("utf-8") == '["adk-fluent-core>=0.2,<0.3"]\n'
    history = changelog.read(released.layer / "CHANGELOG.md")
    assert history.unreleased.body.count("- Needs adk-fluent-core 0.2.\n") == 1
    released.commit("Release core")
    released.release("tag", CORE)
    assert "0.1.0 to" not in released.release("prepare", LAYER, "patch")


def test_a_dry_run_shows_the_edits_and_makes_none(released: Toy) -> None:
    said = released.release("prepare", CORE, "patch", "--dry-run")
    assert '+version = "0.1.1"' in said
    assert "nothing is written" in said
    assert released.git("status", "--porcelain") == ""
    released.release("prepare", CORE, "patch")
    released.commit()
    before = released.git("tag", "--list")
    assert "would be tagged adk-fluent-core-v0.1.1" in released.release("tag", CORE, "--dry-run")
    assert released.git("tag", "--list") == before


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        ("0.1.0", "tag adk-fluent-core-v0.1.0 exists"),
        ("0.0.9", "0.0.9 is before 0.1.0, the version of adk-fluent-core"),
        ("1.0", "expected major, minor, patch or a version X.Y.Z, found '1.0'"),
        ("01.2.3", "expected major, minor, patch or a version X.Y.Z, found '01.2.3'"),
        ("0.2.0rc1", "expected major, minor, patch or a version X.Y.Z, found '0.2.0rc1'"),
        ("\u0660.\u0662.\u0660", "expected major, minor, patch or a version X.Y.Z"),
        ("; rm -rf .", "expected major, minor, patch or a version X.Y.Z"),
    ],
)
def test_a_version_that_cannot_come_next_is_refused(
    released: Toy, wanted: str, complaint: str
) -> None:
    assert complaint in released.release("prepare", CORE, wanted, expect=1)
    assert released.git("status", "--porcelain") == ""


def test_a_word_needs_a_release_to_count_from(toy: Toy) -> None:
    assert "0.1.0 has no tag" in toy.release("prepare", CORE, "minor", expect=1)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("adk-fluent-cor", "did you mean adk-fluent-core?"),
        ("../secrets", "there are: adk-fluent-core, adk-fluent-eval"),
    ],
)
def test_an_unknown_package_is_refused(toy: Toy, name: str, hint: str) -> None:
    said = toy.release("prepare", name, "0.1.0", expect=2)
    assert said == f"no package is called {name!r}; {hint}"


def test_every_reason_is_told_at_once(released: Toy) -> None:
    path = released.core / "CHANGELOG.md"
    released.edit(path, "\n- A repair.\n", "\n### Changed\n")
    released.commit()
    released.write("stray.txt", "")
    released.git("switch", "--quiet", "--create", "topic")
    said = released.release("prepare", CORE, "0.1.0", expect=1).splitlines()
    assert said == [
        "there are uncommitted changes: ?? stray.txt",
        "releases are made on branch main, this is on branch topic; see --branch",
        "tag adk-fluent-core-v0.1.0 exists",
        "adk-fluent-core/CHANGELOG.md: nothing stands under '## Unreleased'",
        "adk-fluent-core/CHANGELOG.md: already has a section for 0.1.0",
    ]


def test_another_branch_has_to_be_named(released: Toy) -> None:
    released.git("switch", "--quiet", "--create", "0.1.x")
    assert "this is on branch 0.1.x" in released.release("prepare", CORE, "patch", expect=1)
    assert "once it is on 0.1.x" in released.release("prepare", CORE, "patch", "--branch", "0.1.x")


def test_a_detached_head_is_refused(released: Toy) -> None:
    released.git("switch", "--quiet", "--detach")
    for command in (["prepare", CORE, "patch"], ["tag", CORE]):
        assert "at no branch (HEAD is detached)" in released.release(*command, expect=1)


def test_only_what_is_prepared_is_tagged(released: Toy) -> None:
    assert "tag adk-fluent-core-v0.1.0 exists" in released.release("tag", CORE, expect=1)
    released.edit(released.core / "pyproject.toml", 'version = "0.1.0"', 'version = "0.1.1"')
    released.commit()
    said = released.release("tag", CORE, expect=1)
    assert "has no section for 0.1.1; run: python -m tools.release prepare" in said
    assert "no section for 0.1.1" in released.release("notes", CORE, expect=1)
    assert released.release("notes", CORE, "--dry-run") == "- A repair."


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('version = "0.1.0"', 'version = "0.1"'),
        ('version = "0.1.0"', 'version = "0.1.0.dev1"'),
    ],
)
def test_a_manifest_with_another_kind_of_version_is_refused(toy: Toy, old: str, new: str) -> None:
    toy.edit(toy.core / "pyproject.toml", old, new)
    toy.commit()
    assert "is not X.Y.Z" in toy.release("prepare", CORE, "0.2.0", expect=1)


def test_a_manifest_that_cannot_be_edited_by_line_is_refused(toy: Toy) -> None:
    path = toy.core / "pyproject.toml"
    toy.edit(path, 'version = "0.1.0"', "version = '0.1.0'")
    toy.commit()
    assert 'expected one line version = "X.Y.Z"' in toy.release("prepare", CORE, "0.2.0", expect=1)


HEAD = "# Changelog\n\n"
OPEN = "## Unreleased\n\n- New.\n\n"
MALFORMED = {
    "no section": (HEAD, "the first section, and no other, has to be '## Unreleased'"),
    "nothing open": (f"{HEAD}## 0.1.0 (2026-01-01)\n", "the first section"),
    "open below": (f"{HEAD}## 0.1.0 (2026-01-01)\n{OPEN}", "the first section"),
    "open twice": (f"{HEAD}{OPEN}{OPEN}", "the first section"),
    "no date": (f"{HEAD}{OPEN}## 0.1.0\n", "x.md:7: expected '## Unreleased' or"),
    "no such day": (f"{HEAD}{OPEN}## 0.1.0 (2026-02-30)\n", "x.md:7: expected"),
    "two numbers": (f"{HEAD}{OPEN}## 0.1 (2026-01-01)\n", "x.md:7: expected"),
    "another word": (f"{HEAD}## unreleased\n", "x.md:3: expected"),
    "wrong order": (
        f"{HEAD}{OPEN}## 0.1.9 (2026-01-01)\n## 0.1.10 (2026-01-02)\n",
        "x.md: 0.1.10 stands below 0.1.9",
    ),
    "twice": (
        f"{HEAD}{OPEN}## 0.1.0 (2026-01-02)\n## 0.1.0 (2026-01-01)\n",
        "x.md: 0.1.0 stands below 0.1.0",
    ),
}


@pytest.mark.parametrize(("text", "complaint"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_changelog_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ReleaseError) as caught:
        changelog.parse(text, "x.md")
    assert complaint in str(caught.value)


def test_an_absent_changelog_is_refused(toy: Toy) -> None:
    (toy.core / "CHANGELOG.md").unlink()
    toy.commit()
    said = toy.release("prepare", CORE, "0.1.0", expect=1)
    assert said == "adk-fluent-core/CHANGELOG.md: is absent"


LONG = f"""{HEAD}## Unreleased

```md
## 9.9.9 is no heading here
~~~
```

### Changed

- One.

## 0.2.0 (2026-01-02)

- Two.
"""


def test_a_changelog_is_written_as_it_was_read() -> None:
    history = changelog.parse(LONG, "x.md")
    assert history.text == LONG
    assert [each.version for each in history.sections] == [None, Version(0, 2, 0)]
    assert "9.9.9" in history.unreleased.body
    after = history.noted("Needs more.").released(Version(1, 0, 0), date(2026, 3, 4))
    again = changelog.parse(after.text, "x.md")
    assert again.unreleased.empty
    assert "### Changed\n\n- Needs more.\n- One.\n" in again.text
    assert again.text.count("- Two.") == 1


@pytest.mark.parametrize("text", [HEAD + OPEN, f"{HEAD}## Unreleased\n", LONG])
def test_a_note_keeps_a_changelog_in_order(text: str) -> None:
    noted = changelog.parse(text, "x.md").noted("Needs more.")
    assert changelog.parse(noted.text, "x.md") == noted
    assert noted.text.count("### Changed\n\n- Needs more.\n") == 1
    assert "\n\n\n" not in noted.text


@pytest.mark.parametrize(
    ("last", "breaking", "added", "expected"),
    [
        ("0.1.0", True, True, "0.2.0"),
        ("0.1.0", False, True, "0.1.1"),
        ("1.4.2", True, False, "2.0.0"),
        ("1.4.2", False, True, "1.5.0"),
        ("1.4.2", False, False, "1.4.3"),
    ],
)
def test_the_least_next_version(last: str, breaking: bool, added: bool, expected: str) -> None:
    version = Version.parse(last)
    assert version is not None
    assert str(version.next(breaking=breaking, added=added)) == expected
    assert version.bumped("patch") > version
