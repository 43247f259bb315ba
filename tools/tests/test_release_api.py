"""What changed in public since the last tag, on a small core and a layer with real git."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Toy

CORE, LAYER = "adk-fluent-core", "adk-fluent-eval"
CALLABLE = "    def ask(self, message: str, *, loud: bool = False) -> str:"


def test_without_a_tag_there_is_nothing_to_compare(toy: Toy) -> None:
    said = toy.release("api").splitlines()
    assert len(said) == 2
    assert said[0].startswith(f"{CORE}: no tag {CORE}-v* to compare with; ")
    assert said[1].startswith(f"{LAYER}: no tag {LAYER}-v* to compare with; ")


def test_nothing_changed(released: Toy) -> None:
    assert released.release("api", CORE).splitlines()[-1] == (
        "0 change(s), 0 breaking; the next release is 0.1.1 or later"
    )


#: What somebody does to core's words -> what is told of it, worst first.
CHANGES: dict[str, tuple[str, str, list[str]]] = {
    "a function is removed": (
        'def run(message: str) -> str:\n    """Run it."""\n    return message\n',
        "from os import getcwd as run\n",
        ["BREAKING changed: adk_fluent.run"],
    ),
    "a method is renamed": (
        "def ask(",
        "def query(",
        ["BREAKING removed: adk_fluent.Agent.ask", "added: adk_fluent.Agent.query"],
    ),
    "an inherited method is renamed": (
        "def close(",
        "def aclose(",
        ["BREAKING removed: adk_fluent.Agent.close", "added: adk_fluent.Agent.aclose"],
    ),
    "a parameter is required": (
        "*, loud: bool = False",
        "*, loud: bool",
        ["BREAKING changed: adk_fluent.Agent.ask", "  why: parameter is now required: loud"],
    ),
    "a parameter is added": (
        "*, loud: bool = False",
        "*, loud: bool = False, slow: bool = False",
        ["changed: adk_fluent.Agent.ask"],
    ),
    "a required parameter is added": (
        "*, loud: bool = False",
        "*, loud: bool = False, slow: bool",
        ["BREAKING changed: adk_fluent.Agent.ask", "  why: parameter was added as required: slow"],
    ),
    "a default is another": (
        "loud: bool = False",
        "loud: bool = True",
        ["BREAKING changed: adk_fluent.Agent.ask", "  why: parameter default was changed: loud"],
    ),
    "a type is another": (
        "message: str, *",
        "message: bytes, *",
        ["changed: adk_fluent.Agent.ask"],
    ),
    "it has to be awaited": (
        "    def ask(",
        "    async def ask(",
        ["BREAKING changed: adk_fluent.Agent.ask", "  why: it is another kind of thing"],
    ),
    "a base is gone": (
        "class Agent(Base)",
        "class Agent",
        ["BREAKING changed: adk_fluent.Agent", "BREAKING removed: adk_fluent.Agent.close"],
    ),
    "a code is another": (
        'code = "T1"',
        'code = "T2"',
        ["BREAKING changed: adk_fluent.Agent.code", "  why: its value or default is another"],
    ),
    "a field with a default is added": (
        "    limit: int = 5\n",
        "    limit: int = 5\n    name: str = ''\n",
        ["added: adk_fluent.Agent.name"],
    ),
    "a field is added that has to be given": (
        "    limit: int = 5\n",
        "    limit: int = 5\n    name: str\n",
        ["BREAKING added: adk_fluent.Agent.name"],
    ),
    "a protocol asks for more": (
        '        """Act."""\n',
        '        """Act."""\n\n    def rest(self) -> None:\n        """Rest."""\n',
        ["BREAKING added: adk_fluent.Hook.rest"],
    ),
    "a table grows": ('TABLE = ("one",)', 'TABLE = ("one", "two")', ["changed: adk_fluent.TABLE"]),
    "what is private changes": (
        "class Base:\n",
        "class Base:\n    _x: int\n\n    def _y(self) -> None: ...\n\n",
        [],
    ),
    "an operator is added": (
        CALLABLE,
        f"    def __rshift__(self, other: Base) -> Base: return self\n{CALLABLE}",
        ["added: adk_fluent.Agent.__rshift__"],
    ),
}


@pytest.mark.parametrize(("old", "new", "told"), CHANGES.values(), ids=CHANGES.keys())
def test_a_change_is_told(released: Toy, old: str, new: str, told: list[str]) -> None:
    released.edit(released.words, old, new)
    said = released.release("api", CORE).splitlines()
    heads = [line for line in said[1:-1] if not line.startswith("  ")]
    assert sorted(heads) == sorted(line for line in told if not line.startswith("  "))
    assert {line for line in told if line.startswith("  ")} <= set(said)
    breaking = sum(line.startswith("BREAKING") for line in heads)
    least = "0.2.0" if breaking else "0.1.1"
    assert said[-1] == (
        f"{len(heads)} change(s), {breaking} breaking; the next release is {least} or later"
    )


#: The same for what a manifest promises.
PROMISES = {
    "command": ('adk-toy = "', 'adk-play = "', "BREAKING removed: command adk-toy"),
    "python": ('python = ">=3.11"', 'python = ">=3.12"', "BREAKING changed: oldest Python"),
}


@pytest.mark.parametrize(("old", "new", "told"), PROMISES.values(), ids=PROMISES.keys())
def test_a_broken_promise_of_the_manifest_is_told(
    released: Toy, old: str, new: str, told: str
) -> None:
    released.edit(released.core / "pyproject.toml", old, new)
    assert told in released.release("api", CORE).splitlines()


def test_a_public_name_is_removed(released: Toy) -> None:
    init = released.core / "src" / "adk_fluent" / "__init__.py"
    released.edit(init, '__all__ = ["TABLE", "Agent",', '__all__ = ["TABLE",')
    said = released.release("api", CORE).splitlines()
    assert said[1:-1] == ["BREAKING removed: adk_fluent.Agent", "  was: class Agent(Base)"]


def test_a_thing_with_several_names_is_told_once(released: Toy) -> None:
    released.write(
        "packages/adk-fluent-core/src/adk_fluent/more.py",
        '"""More."""\nfrom adk_fluent._words import Agent, run\n__all__ = ["Agent", "run"]\n',
    )
    released.commit()
    released.release("prepare", CORE, "minor")
    released.commit()
    released.release("tag", CORE)
    released.write("later.txt", "")
    released.commit()
    released.edit(released.words, "def run(message: str)", "def run(message: str, more: int)")
    said = released.release("api", CORE).splitlines()
    assert said[1] == "BREAKING changed: adk_fluent.run (and 1 other names of it)"


def test_a_layer_is_compared_without_the_changes_of_core(released: Toy) -> None:
    released.edit(released.words, "class Hook(Protocol)", "class Hooks(Protocol)")
    source = released.layer / "src" / "adk_fluent" / "eval" / "__init__.py"
    released.edit(source, "def grade(self)", "def grade(self, strict: bool)")
    said = released.release("api", LAYER).splitlines()
    assert [line for line in said if line.startswith("BREAKING")] == [
        "BREAKING changed: adk_fluent.eval.Suite.grade"
    ]


def test_a_version_that_is_too_small_is_refused(released: Toy) -> None:
    released.edit(released.words, "def ask(", "def query(")
    released.commit()
    said = released.release("prepare", CORE, "patch", expect=1)
    assert said == (
        f"{CORE}: 0.1.1 is too small for 1 breaking change(s) to the public API since 0.1.0; the "
        f"least is 0.2.0 (`api {CORE}` lists them; --accept-breaking overrules)"
    )
    overruled = released.release("prepare", CORE, "patch", "--dry-run", "--accept-breaking")
    assert "note: adk-fluent-core: 0.1.1 is too small" in overruled
    released.edit(released.core / "pyproject.toml", 'version = "0.1.0"', 'version = "0.1.1"')
    assert "0.1.1 is too small" in released.release("api", CORE, expect=1)
    released.edit(released.core / "pyproject.toml", 'version = "0.1.1"', 'version = "0.2.0"')
    assert "1 breaking" in released.release("api", CORE)


def test_the_tag_being_released_is_not_compared_with_itself(released: Toy) -> None:
    released.edit(released.words, "def ask(", "def query(")
    released.commit()
    released.release("prepare", CORE, "minor")
    released.commit()
    released.release("tag", CORE)
    assert "since adk-fluent-core-v0.1.0" in released.release("api", CORE)


def test_the_newest_tag_that_this_commit_has_counts(released: Toy) -> None:
    for number in ("0.1.9", "0.1.10"):
        released.git("tag", f"{CORE}-v{number}")
        released.write(number, "")
        released.commit()
    for stray in (f"{CORE}-vX", f"{CORE}-v0.1.99rc1", f"{LAYER}-v3.0.0"):
        released.git("tag", stray, "HEAD~1")
    released.git("switch", "--quiet", "--create", "other")
    released.write("other", "")
    released.commit()
    released.git("tag", f"{CORE}-v5.0.0")
    released.git("switch", "--quiet", "main")
    assert f"since {CORE}-v0.1.10," in released.release("api", CORE)


def test_a_tag_from_before_the_package_says_so(released: Toy) -> None:
    released.git("rm", "-r", "--quiet", "packages/adk-fluent-eval")
    released.commit()
    released.git("tag", f"{LAYER}-v0.9.0")
    released.git("checkout", "--quiet", "HEAD~1", "--", "packages/adk-fluent-eval")
    released.commit()
    assert "packages/adk-fluent-eval" in released.release("api", LAYER, expect=1)
