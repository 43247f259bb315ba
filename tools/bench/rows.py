"""The rows: every figure to reach, and every budget of the spec's section 16.

A row without cases is about something that does not exist yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.crew import Case
from bench.judges import (
    above,
    at_most,
    beside,
    each,
    finding_each,
    flat_each,
    growing,
    level,
    linear,
    runs,
    shown,
    sorting,
    suite,
    under,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.judges import Judge

#: A fast model's latency; a step's share of it is what the spec calls dispatch overhead.
LATENCY = 0.2


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the report.

    Attributes:
        id: For ``--rows``.
        what: What is measured.
        goal: What is to be reached, in words.
        budget: The spec's budget (section 16), in words.
        cases: What is measured, by label: the side's name, and a word if it has several.
        judge: What the samples say.
        rounds: Rounds in each process, where the default is not meant; 0: one in all.
    """

    id: str
    what: str
    goal: str = ""
    budget: str = ""
    cases: Mapping[str, Case] = field(default_factory=dict[str, Case])
    judge: Judge = shown
    rounds: int | None = None


def _sides(task: str, size: int, repeat: int, *sides: str) -> dict[str, Case]:
    return {side: Case(side, task, size, size, repeat) for side in sides}


def _chain_and_function(size: int) -> dict[str, Case]:
    found = {side: Case(side, "run-functions", size, size + 1, 3) for side in ("ours", "adk")}
    return {**found, "mono": Case("mono", "run-functions", size)}


_RUN = {
    "adk loop": Case("adk", "run", 10, 10, 5),
    "adk sequential": Case("adk", "run-sequential", 10, 10, 5),
    "mono": Case("mono", "run", 10, 10, 5),
}

#: Hooks, and how often each is asked in a run of ten agents: the pipeline is a step, too.
_ASKED = {"before_model": 10, "wrap_model_call": 10, "wrap_agent": 11, "on_event": 10}


def _around(hook: str, count: int) -> Case:
    return Case("ours", f"{hook}-{count}", 10, [10, count * _ASKED[hook]], 5)


_FIRST = tuple(
    Row(
        f"middleware-first-{hook}",
        f"run of a 10-step pipeline, the first {hook}",
        "at most 150 us a step above",
        cases={
            "ours": _around(hook, 1),
            "ours none": _around(hook, 0),
            "mono log": Case("mono", "run-logged", 10, 10, 5),
            "mono none": Case("mono", "run", 10, 10, 5),
        },
        judge=above(150e-6, 10, "ours none"),
    )
    for hook in _ASKED
)
_FURTHER = tuple(
    Row(
        f"middleware-further-{hook}",
        f"run of a 10-step pipeline, eight further {hook}",
        "at most 5 us a call above",
        cases={"ours": _around(hook, 9), "ours one": _around(hook, 1)},
        judge=above(5e-6, 8 * asked, "ours one"),
    )
    for hook, asked in _ASKED.items()
)

#: A run of ten agents has 22 spans on the ADK that is measured; all of them are described.
_SPANS = {
    "ours": Case("traced", "run-enriched", 10, [22, 22], 5),
    "ours hooks": Case("traced", "run-hooked", 10, [22, 0], 5),
    "ours none": Case("traced", "run", 10, [22, 0], 5),
}

_SHAPES = ("chain", "wide", "nested", "routed")
#: What the monolith can check, and sizes at which it does.
_MONO_SHAPES, _MONO_SIZES = ("chain", "wide", "routed"), (100, 1000)
_REPEATS = {100: 20, 1000: 2, 10_000: 1}
_CHECKED: dict[int, tuple[str, str, Judge]] = {
    100: ("< 2 ms", "contract checking < 100 ms", under(0.002)),
    1000: ("", "", beside("mono")),
    10_000: ("< 150 ms", "", under(0.150)),
}


def _count(size: int) -> str:
    return f"{size:,}".replace(",", " ")


def _check(shape: str, size: int) -> Row:
    goal, budget, judge = _CHECKED[size]
    cases = {"ours": Case("ours", f"check-{shape}", size, 0, _REPEATS[size])}
    if shape in _MONO_SHAPES and size in _MONO_SIZES:
        cases["mono"] = Case("mono", f"check-{shape}", size, None, _REPEATS[size])
    what = f"check_all, {shape}, {_count(size)} nodes, nothing to find"
    few = None if size < 10_000 else 5
    return Row(f"check-{shape}-{size}", what, goal, budget, cases, judge, few)


def _check_lost(shape: str, size: int) -> Row:
    return Row(
        f"check-{shape}-findings-{size}",
        f"check_all, {shape}, {_count(size)} nodes, no agent has its input, beside all",
        "at most 20 us a finding",
        cases={
            "ours": Case("ours", f"check-{shape}-lost", size, None, _REPEATS[size]),
            "ours none": Case("ours", f"check-{shape}-given", size, 0, _REPEATS[size]),
        },
        judge=finding_each(20e-6, "ours none"),
        rounds=None if size < 10_000 else 3,
    )


def _order(what: str, task: str) -> Row:
    return Row(
        f"{task}-order",
        f"check_all, {what}, 10 000 nodes beside 1 000",
        "n log n (at most 1.25 x)",
        cases={
            "ours": Case("ours", task, 10_000, 0),
            "ours small": Case("ours", task, 1000, 0, 4),
        },
        judge=growing(sorting, 1000, 10_000, 1.25),
        rounds=3,
    )


_CHECKS = tuple(
    row
    for shape in _SHAPES
    for row in (
        *(_check(shape, size) for size in _CHECKED),
        _order(shape, f"check-{shape}"),
        *(_check_lost(shape, size) for size in _CHECKED),
    )
)
_DEEP = tuple(
    _order(f"{kind}s in each other", f"check-deep-{kind}") for kind in ("fallback", "loop", "route")
)
_EFFECTS = tuple(
    Row(
        f"effects-{known}",
        f"what a function does to state, {words}",
        cases={"ours": Case("ours", f"effects-{known}", 100, 100)},
        judge=each(100, shown),
    )
    for known, words in (
        ("first", "the first look at each of a module's 100"),
        ("known", "looked at before"),
    )
)

#: Accesses in one sample of a row about state.
_ACCESSES = 1000
_FIELDS = {
    "intent": "a text",
    "due": "a datetime",
    "level": "an Enum",
    "home": "a model",
    "tags": "a list of 10 texts",
}


def _accesses(side: str, task: str) -> Case:
    return Case(side, task, _ACCESSES, _ACCESSES, 5)


def _access(verb: str, by_hand: str, field: str) -> Row:
    goal, judge = "", beside("adk raw")
    if (verb, field) == ("write", "intent"):
        goal, judge = "< 0.6 us", under(0.6e-6, "adk raw")
    cases = {
        "ours": _accesses("typed", f"state-{verb}-{field}"),
        "adk raw": _accesses("adk", f"state-{verb}-{field}"),
    }
    if field != "intent":
        cases["adk by hand"] = _accesses("adk", f"state-{by_hand}-{field}")
    what = f"state: {verb} {_FIELDS[field]}, bound before"
    return Row(f"state-{verb}-{field}", what, goal, cases=cases, judge=each(_ACCESSES, judge))


def _append(count: int, goal: float) -> Row:
    events = 50
    return Row(
        f"state-append-{count}",
        f"SchemaSessionService, an event of {count} key{'s' * (count > 1)}, beside ADK's in memory",
        f"at most {goal * 1e6:.0f} us an event above",
        cases={
            "ours": Case("typed", f"append-{count}", events, count),
            "adk": Case("adk", f"append-{count}", events, count),
        },
        judge=each(events, above(goal, 1, "adk")),
    )


_STATE = (
    Row(
        "bind",
        "state: bind a context and read a text",
        "< 1 us",
        "bind() per access < 0.1 ms",
        {
            "ours": _accesses("typed", "state-bind-read"),
            "adk": _accesses("adk", "state-bind-read"),
        },
        each(_ACCESSES, under(1e-6)),
    ),
    *(_access("read", "decode", field) for field in _FIELDS),
    *(_access("write", "encode", field) for field in _FIELDS),
    _append(1, 10e-6),
    _append(20, 25e-6),
)

ROWS: tuple[Row, ...] = (
    Row(
        "import",
        "import of adk_fluent, cold process",
        "< 30 ms, no google.*",
        cases={side: Case(side, "import") for side in ("ours", "adk", "mono")},
        judge=under(0.030, "mono", unless="google"),
        rounds=3,
    ),
    Row(
        "import-names",
        "import of Agent, cold process",
        cases={side: Case(side, "import-names") for side in ("ours", "adk", "mono")},
        rounds=3,
    ),
    Row(
        "build-100",
        "build IR by operators, 100 nodes",
        "<= monolith",
        "IR compilation < 50 ms",
        _sides("build", 100, 20, "ours", "mono"),
        at_most(1.0, "mono"),
    ),
    Row(
        "build-1000",
        "build IR by operators, 1 000 nodes",
        "<= monolith",
        cases=_sides("build", 1000, 2, "ours", "mono"),
        judge=at_most(1.0, "mono"),
    ),
    Row(
        "build-linear",
        "build IR by operators, 10 000 nodes beside 1 000",
        "linear (at most 1.25 x)",
        cases={
            "ours": Case("ours", "build", 10_000, 10_000),
            "ours small": Case("ours", "build", 1000, 1000, 4),
        },
        judge=growing(linear, 1000, 10_000, 1.25),
        rounds=3,
    ),
    *_CHECKS,
    Row(
        "check-names",
        "check_all, 10 000 nodes, each name twice, beside once",
        "at most 20 us a finding",
        cases={
            "ours": Case("ours", "check-names-2", 10_000, 5000),
            "ours none": Case("ours", "check-names-1", 10_000, 0),
        },
        judge=finding_each(20e-6, "ours none"),
        rounds=3,
    ),
    *_DEEP,
    *_EFFECTS,
    Row(
        "compile",
        "compile 100 nodes to an App, unchecked, beside making the agents by hand",
        "at most 10 us a node above",
        cases={
            "ours": Case("ours", "compile", 100, 100, 3),
            "adk": Case("adk", "construct", 100, 100, 3),
            "mono": Case("mono", "compile", 100, 100, 3),
        },
        judge=above(10e-6, 100, "adk"),
    ),
    Row(
        "compile-checked",
        "compile 100 nodes that use state to an App, with check",
        "< 5 ms",
        "backend compile < 200 ms",
        {
            "ours": Case("ours", "compile-checked", 100, 100, 3),
            "ours off": Case("ours", "compile-unchecked", 100, 100, 3),
            "ours again": Case("ours", "compile-known", 100, 100, 3),
            "adk": Case("adk", "construct", 100, 100, 3),
        },
        under(0.005),
    ),
    Row(
        "run-app",
        "run of a 10-step pipeline, to_app under ADK's Runner",
        "95 % bound <= 1.10 x by hand",
        cases={"ours": Case("ours", "run-app", 10, 10, 5), **_RUN},
        judge=at_most(1.10, "adk loop", "adk sequential"),
    ),
    Row(
        "run-own",
        "run of a 10-step pipeline, our own run()",
        "95 % bound <= 1.10 x by hand",
        cases={"ours": Case("ours", "run", 10, 10, 5), **_RUN},
        judge=at_most(1.10, "adk loop", "adk sequential"),
    ),
    Row(
        "dispatch",
        "run(): overhead an event, beside by hand",
        f"< 1 % of a model call of {LATENCY * 1000:.0f} ms",
        "dispatch an event < 1 % of LLM latency",
        {
            "ours": Case("ours", "run", 10, 10, 5),
            "adk loop": Case("adk", "run", 10, 10, 5),
        },
        above(LATENCY / 100, 10, "adk loop"),
    ),
    Row(
        "run-functions",
        "run of 100 function steps after one agent",
        cases=_chain_and_function(100),
    ),
    Row(
        "run-deep",
        "run of an agent below 500 pipelines",
        "runs",
        cases={
            "ours": Case("ours", "run-deep", 500, 1),
            "adk sequential": Case("adk", "run-deep", 500, 1),
        },
        judge=runs,
        rounds=2,
    ),
    Row(
        "run-wide",
        "run of 10 000 function steps after one agent",
        "runs",
        cases={
            "ours": Case("ours", "run-functions", 10_000, 10_001),
            "adk": Case("adk", "run-functions", 10_000, 10_001),
        },
        judge=runs,
        rounds=0,
    ),
    Row(
        "pausable",
        "run of 100 function steps that could pause, beside one that cannot",
        "at most 15 us a step above",
        cases={
            "ours": Case("ours", "run-pausable", 100, 101, 3),
            "ours plain": Case("ours", "run-functions", 100, 101, 3),
        },
        judge=above(15e-6, 100, "ours plain"),
    ),
    Row(
        "resume",
        "pause and resume before 10 steps, beside two runs in one session",
        "load + remaining steps + 2 ms",
        cases={
            "ours": Case("ours", "resume", 10, 11, 3),
            "ours plain": Case("ours", "run-twice", 10, 10, 3),
        },
        judge=above(2e-3, 1, "ours plain"),
    ),
    Row(
        "suite",
        "core's ADK-free tests",
        "< 10 s",
        "1 000 tests, mock, < 10 s",
        {"ours": Case("ours", "suite")},
        suite(10.0),
        rounds=0,
    ),
    Row("mutation", "mutation score of ir, flow and contracts", ">= 80 %"),
    *_FIRST,
    *_FURTHER,
    Row(
        "stream-20",
        "a stream of 20 chunks through the first wrap_model_call",
        "at most 100 us a stream above",
        cases={
            "ours": Case("ours", "stream-1", 20, [21, 1], 10),
            "ours none": Case("ours", "stream-0", 20, [21, 0], 10),
        },
        judge=above(100e-6, 1, "ours none"),
    ),
    Row(
        "soak",
        "200 000 model calls through production(), at their sites",
        "memory stays level",
        cases={"ours": Case("ours", "soak-calls", 200_000, quick=20_000)},
        judge=level(0.01, 0.01),
        rounds=0,
    ),
    Row(
        "soak-runs",
        "20 000 model calls inside production(), in runs of ten agents",
        "memory stays level",
        cases={"ours": Case("ours", "soak-runs", 20_000, quick=2_000)},
        judge=level(0.01, 0.01),
        rounds=0,
    ),
    *_STATE,
    Row(
        "remote",
        "a remote agent as a step, beside ADK's RemoteA2aAgent as one",
        "<= RemoteA2aAgent + 1 ms",
        cases={
            "ours": Case("remote", "fluent", 1, 1, 20),
            "adk": Case("remote", "adk", 1, 1, 20),
        },
        judge=above(1e-3, 1, "adk"),
    ),
    Row(
        "served",
        "10 echoes for each of 16 clients, beside ADK's to_a2a: CPU of the server",
        "<= to_a2a",
        cases={
            "ours": Case("served", "fluent", 10, 10),
            "adk": Case("to_a2a", "adk", 10, 10),
        },
        judge=at_most(1.0, "adk"),
    ),
    Row(
        "streams",
        "1 000 open streams of a server: memory of each",
        "<= 1.1 x that of each of 250",
        cases={"ours": Case("served", "streams", 1000, quick=200)},
        judge=flat_each(1.1),
        rounds=0,
    ),
    Row(
        "segments",
        "three agents as durable segments in one process, beside DBOS and ADK by hand",
        "<= 1.2 x",
        cases={
            "ours": Case("segments", "run-durable", 3, 3, 3),
            "by hand": Case("durable", "run-durable", 3, 3, 3),
        },
        judge=at_most(1.2),
        rounds=5,
    ),
    Row(
        "segments-queued",
        "ten runs of three segments through queues, beside DBOS and ADK by hand",
        "<= 1.2 x",
        cases={
            "ours": Case("hops", "run-queued", 10, 30),
            "by hand": Case("queued", "run-queued", 10, 30),
        },
        judge=at_most(1.2),
        rounds=5,
    ),
    Row(
        "segments-inline",
        "three segments in memory",
        cases={"ours": Case("segments", "run-inline", 3, 3, 5)},
        rounds=3,
    ),
    Row(
        "eval-import",
        "import of adk_fluent.eval, cold process",
        "< 60 ms, no google.*",
        cases={"ours": Case("evaluated", "import")},
        judge=under(0.060, unless="google"),
        rounds=3,
    ),
    Row(
        "eval-import-names",
        "import of the main names of adk_fluent.eval, cold process",
        cases={"ours": Case("evaluated", "import-names")},
        rounds=3,
    ),
    Row(
        "eval",
        "eval, a case of 3 model calls and 2 of tools, of 100",
        "<= bare runner + 1 ms",
        "100 cases, mock, < 60 s",
        {
            "ours": Case("evaluated", "run-suite", 100, [300, 100]),
            "adk runner": Case("adk", "run-cases", 100, 300),
            "adk local": Case("local", "run-local", 100, [300, 100]),
        },
        above(1e-3, 100, "adk runner"),
        rounds=5,
    ),
    Row(
        "eval-case",
        "eval, 100 cases beside ADK's own EvalCase by hand",
        "<= 1.3 x",
        "FluentCase to EvalCase < 1 ms",
        {
            "ours": Case("evaluated", "fluent-cases", 100, 100, 5),
            "adk": Case("adk", "eval-cases", 100, 100, 5),
        },
        at_most(1.3),
    ),
    Row(
        "eval-linear",
        "eval, 1 000 cases beside 100",
        "<= 10.5 x",
        cases={
            "ours": Case("evaluated", "run-suite", 1000, [3000, 1000]),
            "ours small": Case("evaluated", "run-suite", 100, [300, 100]),
        },
        judge=growing(linear, 100, 1000, 1.05),
        rounds=2,
    ),
    Row(
        "enrichment",
        "otel_enrichment beside hooks that do nothing, a span",
        "at most 20 us a span above",
        cases=_SPANS,
        judge=above(20e-6, 22, "ours hooks"),
    ),
    Row(
        "enrichment-all",
        "otel_enrichment beside nothing, a span",
        budget="OTel enrichment < 0.5 ms",
        cases=_SPANS,
        judge=above(0.5e-3, 22, "ours none"),
    ),
    Row(
        "estimate",
        "estimate_cost, 100 nodes",
        "< 1 ms",
        "cost estimation < 10 ms",
        {"ours": Case("priced", "estimate", 100, 100, 20)},
        under(1e-3),
    ),
    Row(
        "estimate-linear",
        "estimate_cost, 10 000 nodes beside 100",
        "linear",
        cases={
            "ours": Case("priced", "estimate", 10_000, 10_000),
            "ours small": Case("priced", "estimate", 100, 100, 20),
        },
        judge=growing(linear, 100, 10_000, 1.3),
    ),
    Row(
        "cost-attribution",
        "cost_attribution beside hooks that do nothing, a model call by itself",
        "at most 50 us a call above",
        cases={
            "ours": Case("priced", "calls-attributed", 1000, [1000, 1000]),
            "ours hooks": Case("priced", "calls-hooked", 1000, [1000, 0]),
        },
        judge=above(50e-6, 1000, "ours hooks"),
    ),
    # In a run a call of it takes several times what it takes by itself: it is made once a step, and
    # what the step does in between has pushed its code and data out of the processor's caches. A
    # difference of two runs of 20 ms does not tell 50 us of a call, so the whole run is judged.
    Row(
        "cost-attribution-run",
        "run of a 10-step pipeline, cost_attribution beside hooks that do nothing",
        "<= 1.05 x, 95 % bound",
        cases={
            "ours": Case("priced", "run-attributed", 10, [10, 10], 5),
            "ours hooks": Case("priced", "run-hooked", 10, [10, 0], 5),
        },
        judge=at_most(1.05, "ours hooks"),
    ),
    Row(
        "cost-reserve",
        "reserve and settle in memory",
        "< 30 us",
        cases={"ours": Case("priced", "reserve-memory", 1000, 1000)},
        judge=each(1000, under(30e-6)),
    ),
    Row(
        "cost-reserve-sqlite",
        "reserve and settle in SQLite",
        "< 1 ms",
        cases={"ours": Case("priced", "reserve-sqlite", 200, 200)},
        judge=each(200, under(1e-3)),
    ),
    Row(
        "cost-import",
        "import of adk_fluent.cost, cold process",
        "< 60 ms, no google.*",
        cases={"ours": Case("priced", "import")},
        judge=under(0.060, unless="google"),
        rounds=3,
    ),
    Row(
        "cost-import-names",
        "import of the main names of adk_fluent.cost, cold process",
        cases={"ours": Case("priced", "import-names")},
        rounds=3,
    ),
    Row(
        "recording",
        "recording beside none, a run of ten steps",
        "at most 5 % more",
        cases={
            "ours": Case("recorded", "run-recorded", 10, [10, 1], 5),
            "ours none": Case("recorded", "run-bare", 10, [10, 0], 5),
        },
        judge=at_most(1.05, "ours none"),
    ),
    Row(
        "replay",
        "replay of ten steps whose models took 50 ms each",
        "< 100 ms, a fifth of the live run",
        cases={"ours": Case("recorded", "run-replayed", 10, [10, 0], 2)},
        judge=under(0.100),
    ),
    Row(
        "debug-import",
        "import of adk_fluent.debug, cold process",
        "< 60 ms, no google.*",
        cases={"ours": Case("recorded", "import")},
        judge=under(0.060, unless="google"),
        rounds=3,
    ),
    Row(
        "debug-import-names",
        "import of the main names of adk_fluent.debug, cold process",
        cases={"ours": Case("recorded", "import-names")},
        rounds=3,
    ),
)
