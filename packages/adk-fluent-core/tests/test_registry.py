from __future__ import annotations

import subprocess
import sys
from textwrap import dedent
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import adk_fluent
from adk_fluent import Agent, _registry
from adk_fluent._hints import PROVIDERS, WHEELS
from adk_fluent._middlewares import find_middleware
from adk_fluent._registry import (
    INSTALLED,
    found,
    layer_errors,
    layers,
    missing_layer,
    offer_of,
    offers,
    provided,
    refresh,
    require_layer,
    resolve_name,
    usable,
)
from adk_fluent.backends import Kind, PassList, RuleTable, ValueTable
from adk_fluent.contracts import Severity, check_all
from adk_fluent.errors import (
    LayerError,
    MissingLayerError,
    UnknownNameError,
    UnsupportedNodeError,
    UsageError,
)
from adk_fluent.ir import (
    AgentNode,
    ExecutionConfig,
    Location,
    Node,
    RemoteAgentNode,
    TelemetryConfig,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Site:
    """A directory on the import path into which wheels are put."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def wheel(self, distribution: str, points: dict[str, str], **modules: str) -> None:
        info = self.root / f"{distribution.replace('-', '_')}-0.3.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {distribution}\nVersion: 0.3\n")
        lines = "".join(f"{name} = {target}\n" for name, target in points.items())
        (info / "entry_points.txt").write_text(f"[{_registry.GROUP}]\n{lines}")
        for name, source in modules.items():
            (self.root / f"{name}.py").write_text(dedent(source))
        refresh()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield Site(tmp_path)
    monkeypatch.undo()
    refresh()


TOY = """
    from adk_fluent.protocol import Entry, Layer

    LAYER = Layer(
        "toy",
        {
            "rules": ("toy_parts:first", "toy_parts:Box.second"),
            "commands": Entry("toy_heavy:command", "play", "Play with it"),
            "names": Entry("toy_parts:first", "first_toy"),
            "of_tomorrow": "toy_parts:first",
        },
    )
"""
PARTS = """
    first = 1

    class Box:
        second = 2
"""


@pytest.fixture
def toy(site: Site) -> Site:
    site.wheel("acme-toy", {"toy": "toy_layer:LAYER"}, toy_layer=TOY, toy_parts=PARTS)
    return site


def test_an_installed_layer_is_found_without_importing_it(toy: Site) -> None:
    here = found()["toy"]
    assert (here.name, here.distribution, here.version) == ("toy", "acme-toy", "0.3")
    assert "toy_layer" not in sys.modules


def test_listing_imports_the_layers_own_module_only(toy: Site) -> None:
    assert layers()["toy"].name == "toy"
    (command,) = [offer for offer in offers("commands") if offer.layer == "toy"]
    assert (command.name, command.entry.help) == ("play", "Play with it")
    assert "toy_layer" in sys.modules
    assert {"toy_parts", "toy_heavy"}.isdisjoint(sys.modules)


def test_a_slot_gives_what_stands_in_it_in_order(toy: Site) -> None:
    rules = [each for each in provided("rules") if each.layer == "toy"]
    assert [each.object for each in rules] == [1, 2]
    assert [each.name for each in provided("names") if each.layer == "toy"] == ["first_toy"]
    assert [each.object for each in provided("of_tomorrow")] == [1]
    assert list(provided("no_such_slot")) == []
    assert {thing for _, thing in INSTALLED.provided("rules")} >= {1, 2}
    assert "toy_heavy" not in sys.modules


def test_each_thing_is_imported_when_it_is_reached(toy: Site) -> None:
    everything = provided("rules")
    assert "toy_parts" not in sys.modules
    assert any(each.layer == "toy" for each in everything)
    assert "toy_parts" in sys.modules


def test_layers_come_in_the_order_of_their_names(site: Site) -> None:
    for name in ("beta", "alpha"):
        source = f"from adk_fluent.protocol import Layer\nL = Layer({name!r}, {{}})"
        site.wheel(f"acme-{name}", {name: f"{name}_layer:L"}, **{f"{name}_layer": source})
    assert [name for name in layers() if name in {"alpha", "beta"}] == ["alpha", "beta"]
    assert list(layers()) == sorted(layers())


def test_what_is_installed_is_read_once_until_refreshed(toy: Site) -> None:
    assert found() is found()
    assert layers() is layers()
    before = found()
    refresh()
    assert found() is not before


# --- broken layers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "what", "cause"),
    [
        ("import no_such_module", "cannot load broken_layer:LAYER", "ModuleNotFoundError"),
        ("LAYER: int = 1 +", "cannot load broken_layer:LAYER", "SyntaxError"),
        ("x = 1", "cannot load broken_layer:LAYER", "AttributeError"),
        ("raise SystemError('no')", "cannot load broken_layer:LAYER", "SystemError: no"),
        ("LAYER = 3", "broken_layer:LAYER is no Layer", "3"),
        (
            "from adk_fluent.protocol import Layer\nLAYER = Layer('other', {})",
            "entry point 'broken' holds a layer called 'other'",
            "",
        ),
        (
            "from adk_fluent.protocol import Layer\nLAYER = Layer('broken', {'rules': 'x'})",
            "cannot load broken_layer:LAYER",
            "BuildError: a layer's entry has the target 'x'",
        ),
    ],
)
def test_a_broken_layer_names_its_distribution(
    site: Site, source: str, what: str, cause: str
) -> None:
    site.wheel("acme-broken", {"broken": "broken_layer:LAYER"}, broken_layer=source)
    assert "broken" in found()
    with pytest.raises(LayerError) as caught:
        _ = layers()["broken"]
    error = caught.value
    assert error.what == what
    assert (error.layer, error.distribution, error.version) == ("broken", "acme-broken", "0.3")
    assert (error.found or "").startswith(cause)
    assert "where: layer 'broken' of acme-broken 0.3\n" in str(error)


@pytest.mark.parametrize(
    ("target", "cause"),
    [
        ("no_such_module:x", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("sys:no_such_thing", "AttributeError: module 'sys' has no attribute 'no_such_thing'"),
    ],
)
def test_an_entry_that_leads_nowhere_names_its_layer(site: Site, target: str, cause: str) -> None:
    source = f"from adk_fluent.protocol import Layer\nL = Layer('broken', {{'rules': {target!r}}})"
    site.wheel("acme-broken", {"broken": "broken_layer:L"}, broken_layer=source)
    with pytest.raises(LayerError, match=f"cannot load {target}") as caught:
        list(provided("rules"))
    assert (caught.value.distribution, caught.value.found) == ("acme-broken", cause)
    assert type(caught.value.__cause__).__name__ == cause.partition(":")[0]


def test_two_layers_of_one_name_are_refused(toy: Site) -> None:
    toy.wheel("other-toy", {"toy": "toy_layer:LAYER"})
    with pytest.raises(LayerError, match="two layers are called 'toy'") as caught:
        _ = layers()["toy"]
    assert "acme-toy 0.3" in (caught.value.found or "")
    assert "other-toy 0.3" in (caught.value.found or "")
    assert list(offers("names")) == [each for each in offers("names") if each.layer != "toy"]


@pytest.mark.parametrize("order", [1, -1])
def test_which_of_two_wheels_is_named_first_is_not_up_to_the_path(
    order: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    wheels = ("acme-ink", "other-ink")
    for name in wheels:
        (tmp_path / name).mkdir()
        Site(tmp_path / name).wheel(name, {"ink": "ink_layer:L"})
    monkeypatch.setattr(
        sys, "path", [*(str(tmp_path / each) for each in wheels[::order]), *sys.path]
    )
    refresh()
    [error] = layer_errors()
    assert error.found == "one of acme-ink 0.3 and one of other-ink 0.3"
    assert error.distribution == "other-ink"


LAYER = "from adk_fluent.protocol import Entry, Layer\nL = Layer({name!r}, {{{slots}}})"


def bad(name: str = "bad", **slots: str) -> str:
    """The source of a layer with something in some slots."""
    return LAYER.format(name=name, slots=", ".join(f"{k!r}: {v}" for k, v in slots.items()))


#: What is wrong with a layer called "bad", and a part of the error.
BROKEN = {
    "it cannot be imported": ("1 / 0", "ZeroDivisionError: division by zero"),
    "it ends the program": ("raise SystemExit(3)", "SystemExit: 3"),
    "it needs another layer": (
        "from adk_fluent import diff_events",
        "MissingLayerError: 'diff_events' needs the layer 'debug'",
    ),
    **{
        f"a name stands twice in {slot}": (
            bad(**{slot: "(Entry('a:b', 'one'), Entry('c:d', 'one'))"}),
            f"BuildError: layer 'bad' has 'one' twice in its slot '{slot}'",
        )
        for slot in ("backends", "checkers", "commands", "middleware", "names", "transports")
    },
    **{
        f"a name is missing in {slot}": (bad(**{slot: "'a:b'"}), f"a:b in slot '{slot}'")
        for slot in ("backends", "commands", "middleware", "names", "transports")
    },
}


def test_an_error_of_ours_while_loading_is_one_line_with_its_own_help(site: Site) -> None:
    site.wheel(
        "acme-bad",
        {"bad": "bad_layer:L"},
        bad_layer=bad(commands="(Entry('a:b', 'one'), Entry('c:d', 'one'))"),
    )
    [error] = layer_errors()
    assert (
        error.found == "BuildError: layer 'bad' has 'one' twice in its slot 'commands': a:b and c:d"
    )
    assert error.help == "give one of them another name"


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_layer_takes_nothing_else_down(
    kind: str, toy: Site, absent: Callable[[str], None]
) -> None:
    absent("debug")
    source, found_there = BROKEN[kind]
    toy.wheel("acme-bad", {"bad": "bad_layer:L"}, bad_layer=source)
    assert layers()["toy"].name == "toy"
    assert {"bad", "toy"} <= {*layers()}
    assert [each.name for each in offers("commands") if each.layer == "toy"] == ["play"]
    assert [each.object for each in provided("of_tomorrow")] == [1]
    assert resolve_name("first_toy") == 1
    [error] = layer_errors()
    assert (error.layer, error.distribution, error.version) == ("bad", "acme-bad", "0.3")
    assert found_there in (error.found or "")
    with pytest.raises(LayerError) as caught:
        require_layer("bad", "x")
    assert str(caught.value) == str(error)
    with pytest.raises(UnknownNameError, match=r"'bad' of acme-bad 0\.3; adk-fluent doctor"):
        resolve_name("nobodys")


@pytest.mark.parametrize(
    ("slot", "what"),
    [
        ("backends", "backend"),
        ("commands", "command"),
        ("middleware", "middleware"),
        ("names", "public name"),
        ("transports", "transport"),
    ],
)
def test_a_name_that_two_layers_have_names_both(slot: str, what: str, toy: Site) -> None:
    for name in ("ink", "pen"):
        source = bad(name, **{slot: f"(Entry('a:b', 'blot'), Entry('{name}:own', '{name}'))"})
        toy.wheel(f"acme-{name}", {name: f"{name}_layer:L"}, **{f"{name}_layer": source})
    [error] = layer_errors()
    assert str(error) == (
        f"layers 'ink' and 'pen' both have a {what} 'blot'\n"
        "  where: layer 'pen' of acme-pen 0.3\n"
        "  found: one of acme-ink 0.3 and one of acme-pen 0.3\n"
        "  help: uninstall acme-pen or acme-ink"
    )
    with pytest.raises(LayerError) as caught:
        offer_of(slot, "blot")
    assert str(caught.value) == str(error)
    assert [offer_of(slot, each) is None for each in ("ink", "pen")] == [False, False]
    assert resolve_name("first_toy") == 1


@pytest.mark.parametrize(
    ("slot", "name", "what"),
    [("commands", "check", "command"), ("names", "Agent", "public name")],
)
def test_a_name_that_core_has_stays_cores(slot: str, name: str, what: str, toy: Site) -> None:
    toy.wheel(
        "acme-bad",
        {"bad": "bad_layer:L"},
        bad_layer=bad(**{slot: f"(Entry('a:b', {name!r}), Entry('math:pi', 'pie'))"}),
    )
    [error] = layer_errors()
    assert error.what == f"layer 'bad' has a {what} {name!r}, which adk-fluent-core has itself"
    assert error.found == "a:b of acme-bad 0.3"
    assert error.what not in [each.what for each in layer_errors("transports")]
    pie = offer_of(slot, "pie")
    assert pie is not None
    assert pie.load() == pytest.approx(3.14, abs=0.01)
    assert adk_fluent.Agent is Agent


def test_tables_take_what_sound_layers_have_and_log_what_is_broken(
    toy: Site, caplog: pytest.LogCaptureFixture
) -> None:
    class Blot(Node):
        layer = "bad"

    toy.wheel("acme-bad", {"bad": "bad_layer:L"}, bad_layer="1 / 0")
    table: RuleTable[Any, None] = RuleTable("t", "no_such_slot", INSTALLED)
    with pytest.raises(LayerError, match="cannot load bad_layer:L"):
        table.rule_for(Blot("b"))
    assert "what a broken layer has of no_such_slot is not used: cannot load bad_layer:L" in (
        caplog.text
    )
    assert [(each.layer, thing) for each, thing in INSTALLED.provided("of_tomorrow")] == [
        ("toy", 1)
    ]


def test_rules_that_cannot_be_imported_leave_those_of_others(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    class Blot(Node):
        layer = "bad"

    site.wheel("acme-bad", {"bad": "bad_layer:L"}, bad_layer=bad(rules="'gone:RULES'"))
    table: RuleTable[Any, None] = RuleTable("t", "rules", INSTALLED)
    with pytest.raises(LayerError, match="cannot load gone:RULES"):
        table.rule_for(Blot("b"))
    with pytest.raises(UnsupportedNodeError):
        table.rule_for(AgentNode("a"))
    assert "what a broken layer has of rules is not used: cannot load gone:RULES" in caplog.text
    assert Agent("a").mock("Hi.").ask("Hi?") == "Hi."


def test_values_and_passes_that_cannot_be_imported_are_left_out_with_a_warning(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    source = bad(values="'gone:VALUES'", passes="'gone:PASSES'")
    site.wheel("acme-bad", {"bad": "bad_layer:L"}, bad_layer=source)
    values: ValueTable[None] = ValueTable("values", INSTALLED)
    with pytest.raises(UsageError, match="cannot use int as a model"):
        values(Kind[str]("model", "a name"), 1, None)
    passes: PassList[Any] = PassList("passes", INSTALLED)
    context = SimpleNamespace(config=ExecutionConfig())  # passes of installed layers look at it
    assert passes(AgentNode("a"), context) == AgentNode("a")
    for slot in ("values", "passes"):
        text = f"what a broken layer has of {slot} is not used: cannot load gone:{slot.upper()}"
        assert text in caplog.text


def test_a_broken_layer_that_a_pipeline_needs_is_an_error_of_check(
    toy: Site, absent: Callable[[str], None]
) -> None:
    absent("a2a")
    toy.wheel("acme-bad", {"a2a": "bad_layer:L"}, bad_layer="1 / 0")
    found = check_all(RemoteAgentNode("far", "https://far"))
    [broken] = [each for each in found if each.code == "FLW901"]
    assert (broken.severity, broken.node) == (Severity.ERROR, "far")
    assert "the layer `a2a` is broken" in broken.message
    assert [each.message for each in broken.related] == [
        "layer 'a2a' of acme-bad 0.3",
        "ZeroDivisionError: division by zero",
    ]


def test_what_a_broken_layer_of_ours_would_bring_raises_its_error(
    site: Site, absent: Callable[[str], None]
) -> None:
    absent("debug")
    site.wheel("acme-debug", {"debug": "bad_layer:L"}, bad_layer="1 / 0")
    needed: tuple[Callable[[], object], ...] = (
        lambda: resolve_name("Recorder"),
        lambda: find_middleware("recorder"),
        lambda: require_layer("debug", "replay="),
    )
    for need in needed:
        with pytest.raises(LayerError, match="cannot load bad_layer:L"):
            need()


def test_checks_that_cannot_be_imported_are_told_and_the_others_run(toy: Site) -> None:
    toy.wheel(
        "acme-bad",
        {"bad": "bad_layer:L"},
        bad_layer=bad(checkers="(Entry('gone:x', 'gone'), Entry('bad_checks:fine', 'fine'))"),
        bad_checks="def fine(graph): return []",
    )
    report = check_all(AgentNode("a", instruction="Hi."))
    assert "bad.fine" in report.checked
    [broken] = [each for each in report if each.code == "FLW901"]
    assert broken.severity == Severity.WARNING
    assert "the layer `bad` is broken, and not all of its checks were made: cannot load gone:x" in (
        broken.message
    )


def test_no_layer_can_be_called_as_core_is(site: Site) -> None:
    site.wheel("acme-bad", {"core": "bad_layer:L"}, bad_layer=bad("core"))
    [error] = layer_errors()
    assert "which is what adk-fluent-core calls its own" in error.what


def test_what_cannot_be_imported_of_a_slot_is_told_where_that_is_asked(toy: Site) -> None:
    toy.wheel(
        "acme-bad",
        {"bad": "bad_layer:L"},
        bad_layer=bad(commands="(Entry('gone:x', 'gone'), Entry('sys:exit', 'leave'))"),
        toy_heavy="command = 1",
    )
    assert layer_errors() == []
    [error] = layer_errors("commands")
    assert (error.what, error.layer) == ("cannot load gone:x", "bad")
    assert [each.name for each in usable("commands")[0] if each.layer == "bad"] == ["leave"]


TABLES = """
    from adk_fluent.backends import Kind, Pass, PassList, RuleTable, ValueTable

    RULES, VALUES, PASSES = RuleTable("agents"), ValueTable(), PassList()
    RULES.rule({node})(lambda node, children, cx: None)
    VALUES.rule(Kind("model", "a model"), {value})(lambda value, cx: None)
    PASSES.add(Pass({step!r}, lambda root, cx: root))
"""


@pytest.mark.adk
def test_rules_and_passes_that_core_or_another_layer_has_are_told(site: Site) -> None:
    """With their layers; and each slot tells of its own when it is asked for."""
    kinds = "from adk_fluent.ir import AgentNode as Agent, Node\nclass Blot(Node): pass"
    made = {
        "ink": ("Blot", "float", "z"),
        "nib": ("Agent", "str", "y"),
        "pen": ("Blot", "float", "z"),
    }
    for name, (node, value, step) in made.items():
        things = {slot: f"'{name}_parts:{slot.upper()}'" for slot in ("rules", "values", "passes")}
        site.wheel(
            f"acme-{name}",
            {name: f"{name}_layer:L"},
            **{
                f"{name}_layer": bad(name, **things),
                f"{name}_parts": "from kinds import *\n"
                + dedent(TABLES).format(node=node, value=value, step=step),
            },
        )
    (site.root / "kinds.py").write_text(kinds)
    assert layer_errors() == []
    assert [each.what for each in layer_errors("rules")] == [
        "layer 'nib' has a rule for 'AgentNode', which adk-fluent-core has itself",
        "layers 'ink' and 'pen' both have a rule for 'Blot'",
    ]
    assert [str(each).splitlines()[2] for each in layer_errors("values", "passes")] == [
        "  found: nib_parts:VALUES of acme-nib 0.3",
        "  found: one of acme-ink 0.3 and one of acme-pen 0.3",
        "  found: one of acme-ink 0.3 and one of acme-pen 0.3",
    ]


@pytest.mark.adk
def test_telemetry_that_two_layers_set_up_names_both_where_it_is_asked_for(site: Site) -> None:
    for name in ("aaa", "aab"):
        source = bad(name, telemetry=f"'{name}_parts:apply'")
        parts = "def apply(config): raise RuntimeError('is not called')"
        modules = {f"{name}_layer": source, f"{name}_parts": parts}
        site.wheel(f"acme-{name}", {name: f"{name}_layer:L"}, **modules)
    from adk_fluent.backends.adk._config import check_config

    assert Agent("a").mock("Hi.").ask("Hi?") == "Hi."
    with pytest.raises(LayerError) as caught:
        check_config(ExecutionConfig(telemetry=TelemetryConfig()))
    assert str(caught.value) == (
        "layers 'aaa' and 'aab' both have a function for telemetry=\n"
        "  where: layer 'aab' of acme-aab 0.3\n"
        "  found: one of acme-aaa 0.3 and one of acme-aab 0.3\n"
        "  help: uninstall acme-aab or acme-aaa"
    )
    assert str(caught.value) in [str(each) for each in layer_errors()]
    assert str(caught.value) in [str(each) for each in layer_errors("telemetry")]
    assert layer_errors("rules") == []


# --- absent layers -------------------------------------------------------------------------------

NODE = AgentNode("writer", location=Location("app.py", 3))


def test_an_absent_layer_says_what_to_install() -> None:
    with pytest.raises(MissingLayerError) as caught:
        require_layer("absent", "RemoteAgentNode", NODE)
    assert str(caught.value) == (
        "RemoteAgentNode needs the layer 'absent', which is not installed\n"
        "  where: node 'writer' at app.py:3\n"
        "  help: pip install adk-fluent-absent"
    )


def test_a_part_of_a_wheel_leads_to_the_wheel() -> None:
    assert missing_layer("telemetry", "x").distribution == "adk-fluent-middleware"


def test_a_present_layer_is_given(toy: Site) -> None:
    assert require_layer("toy", "x") is layers()["toy"]


# --- names of other wheels -----------------------------------------------------------------------


def test_a_name_that_a_layer_offers_is_resolved(toy: Site) -> None:
    assert resolve_name("first_toy") == 1


def test_a_known_name_of_an_absent_layer_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_registry, "found", dict)
    monkeypatch.setattr(_registry, "layers", dict)
    with pytest.raises(MissingLayerError, match="pip install adk-fluent-cost") as caught:
        resolve_name("cost_attribution")
    assert caught.value.what == "'cost_attribution' needs the layer 'cost', which is not installed"


def test_a_known_name_of_a_present_layer_says_where_it_is(
    site: Site, absent: Callable[[str], None]
) -> None:
    absent("debug")
    source = "from adk_fluent.protocol import Layer\nL = Layer('debug', {})"
    site.wheel("acme-debug", {"debug": "debug_layer:L"}, debug_layer=source)
    with pytest.raises(UnknownNameError, match=r"write: from adk_fluent\.debug import"):
        resolve_name("Recorder")


def test_an_unknown_name_comes_with_the_nearest(toy: Site) -> None:
    with pytest.raises(UnknownNameError) as caught:
        resolve_name("frist_toy", "adk_fluent.middleware")
    assert caught.value.what == "module 'adk_fluent.middleware' has no attribute 'frist_toy'"
    assert caught.value.nearest == "first_toy"


def test_an_import_of_an_unknown_name_says_the_nearest_and_the_line() -> None:
    source = "\n\nfrom adk_fluent import Piepline"
    with pytest.raises(ImportError) as caught:
        exec(compile(source, "desk.py", "exec"), {"__name__": "desk"})
    assert str(caught.value) == (
        "cannot import name 'Piepline' from 'adk_fluent'\n"
        "  where: desk.py:3\n"
        "  help: did you mean 'Pipeline'?"
    )


def test_an_import_of_an_absent_layers_name_says_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_registry, "found", dict)
    monkeypatch.setattr(_registry, "layers", dict)
    with pytest.raises(MissingLayerError) as caught:
        exec(compile("from adk_fluent import diff_events", "desk.py", "exec"), {"__name__": "desk"})
    assert caught.value.location == "desk.py:1"


def test_an_import_of_a_module_is_no_unknown_name() -> None:
    program = "from adk_fluent import _middlewares, gate; print(_middlewares.__name__)"
    code = [sys.executable, "-c", program]  # a name like RetryMiddleware
    made = subprocess.run(code, capture_output=True, text=True, check=False)
    assert (made.stdout, made.stderr) == ("adk_fluent._middlewares\n", "")


def test_private_names_look_nowhere(site: Site) -> None:
    site.wheel("acme-broken", {"broken": "no_such_module:L"})
    with pytest.raises(AttributeError, match="__path__"):
        resolve_name("__path__")


def test_every_name_core_knows_belongs_to_a_known_layer() -> None:
    names = (name for names in PROVIDERS.values() for name in names.values())
    assert set(names) <= set(WHEELS)


@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("ExecutionConfig", "write: from adk_fluent.config import ExecutionConfig"),
        ("mock_backend", "write: from adk_fluent.testing import mock_backend"),
        ("UsageError", "write: from adk_fluent.errors import UsageError"),
        ("Nonsense", None),
        ("_Pipeline", None),
    ],
)
def test_a_name_of_another_module_says_which(name: str, help: str | None) -> None:
    with pytest.raises(UnknownNameError) as caught:
        resolve_name(name)
    assert caught.value.help == help
