"""The pure parts of tools/lock.py; the rest is run as `tools/lock.py --check` by .ci/run."""

from __future__ import annotations

import tomllib

import pytest

import lock
from lock import LockError, Pin

EXPORT = """\
# a comment
click==8.5.1 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
numpy==1.0 ; python_full_version < '3.12' \\
    --hash=sha256:cc
numpy==2.0 ; python_full_version >= '3.12'
"""

MANIFEST = """\
[tool.uv]
constraint-dependencies = [
  "click==8.0",
  "clicker==1.0",
]
build-constraint-dependencies = [
]
other = ["x"]
"""


def test_parse_reads_versions_markers_and_digests() -> None:
    assert lock.parse(EXPORT) == [
        Pin("click", "8.5.1", "", frozenset({"sha256:aa", "sha256:bb"})),
        Pin("numpy", "1.0", "python_full_version < '3.12'", frozenset({"sha256:cc"})),
        Pin("numpy", "2.0", "python_full_version >= '3.12'"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "click>=8",
        "click",
        "-e ./packages/core",
        "click @ https://example.org/click.whl",
        "--index-url https://example.org/simple",
        "click==8 --hash=sha256:aa --find-links=https://example.org",
    ],
)
def test_parse_refuses_what_is_no_exact_pin_or_has_an_address(line: str) -> None:
    with pytest.raises(LockError, match="expected name==version without an address"):
        lock.parse(line)


def test_a_constraint_has_a_marker_only_where_a_name_has_several_versions() -> None:
    assert lock.constraints([*lock.parse(EXPORT), Pin("tzdata", "1", "os_name == 'nt'")]) == [
        "click==8.5.1",
        "numpy==1.0 ; python_full_version < '3.12'",
        "numpy==2.0 ; python_full_version >= '3.12'",
        "tzdata==1",
    ]


def test_with_list_replaces_one_list_and_keeps_the_rest() -> None:
    values = ["numpy==1.0 ; python_full_version < '3.12'", "rich==15"]
    table = tomllib.loads(lock.with_list(MANIFEST, "constraint-dependencies", values))["tool"]["uv"]
    assert table == {
        "constraint-dependencies": values,
        "build-constraint-dependencies": [],
        "other": ["x"],
    }


@pytest.mark.parametrize("manifest", ["", MANIFEST + MANIFEST])
def test_with_list_wants_exactly_one_list(manifest: str) -> None:
    with pytest.raises(LockError, match="expected one multi-line list"):
        lock.with_list(manifest, "constraint-dependencies", [])


def test_without_pins_drops_one_name_or_all() -> None:
    assert "click==" not in lock.without_pins(MANIFEST, ["click"])
    assert '"clicker==1.0"' in lock.without_pins(MANIFEST, ["click"])
    assert "==" not in lock.without_pins(MANIFEST, None)


def test_differences_are_lines_that_changed_and_files_that_are_gone() -> None:
    recorded = [Pin("a", "1", hashes=frozenset({"x"})), Pin("b", "1"), Pin("c", "1")]
    resolved = [Pin("a", "1", hashes=frozenset({"y"})), Pin("b", "2"), Pin("c", "1")]
    assert lock.differences("here", recorded, resolved) == [
        "here: b==2 is not recorded",
        "here: b==1 is recorded but not needed",
        "here: a==1 has lost a recorded file",
    ]


def test_a_file_added_to_a_release_is_no_difference() -> None:
    recorded = [Pin("a", "1", hashes=frozenset({"x"}))]
    resolved = [Pin("a", "1", hashes=frozenset({"x", "y"}))]
    assert lock.differences("here", recorded, resolved) == []


def test_what_is_committed_is_in_the_format_that_is_read() -> None:
    pins = lock.parse(lock.HASHES.read_text("utf-8"))
    assert all(pin.hashes for pin in pins)
    uv = tomllib.loads(lock.MANIFEST.read_text("utf-8"))["tool"]["uv"]
    assert uv["constraint-dependencies"] == lock.constraints(pins)
    assert set(uv["build-constraint-dependencies"]) <= set(uv["constraint-dependencies"])
    for name in lock.COLUMNS:
        column = lock.parse((lock.CONSTRAINTS / f"{name}.txt").read_text("utf-8"))
        assert "google-adk" in {pin.name for pin in column}
