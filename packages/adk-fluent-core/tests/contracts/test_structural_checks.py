"""Every structural check: a mistake with the exact words of its finding, and what is no mistake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, contracts
from adk_fluent._middlewares import register_middleware, unregister_middleware
from adk_fluent.contracts import (
    CODES,
    AmbiguousTransferTarget,
    ConflictingReducers,
    Diagnostic,
    DuplicateGate,
    DuplicateMiddleware,
    DuplicateName,
    DuplicateResource,
    DuplicateTool,
    EmptyComposite,
    GateInRace,
    IllegalNode,
    InertPlaceholder,
    InvalidName,
    InvalidValue,
    IrreversibleWrite,
    LayerAbsent,
    LoopWithoutExit,
    MisplacedNode,
    MisspeltKey,
    RouteWithoutDefault,
    Severity,
    ShadowedKey,
    SingleAlternative,
    TransferCycle,
    UncallableFunction,
    UnknownTransferTarget,
    UnreachableBranch,
    UnreadableAnswer,
    UntellableParameter,
    UnusableMiddleware,
    check_all,
)
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    AppNode,
    EdgeSemantics,
    Effects,
    ExecutionBoundary,
    ExecutionConfig,
    ExpectNode,
    FallbackNode,
    FunctionNode,
    GateNode,
    LoopNode,
    MapOverNode,
    Match,
    MiddlewareNode,
    MiddlewareRef,
    ModelSelectorNode,
    Node,
    ParallelNode,
    RaceNode,
    Ref,
    RemoteAgentNode,
    ResourceNode,
    RouteNode,
    SequenceNode,
    StateFieldRef,
    TelemetryConfig,
    TimeoutNode,
    ToolSpec,
    TransferNode,
    TransformNode,
)
from adk_fluent.protocol import MiddlewareDesc

if TYPE_CHECKING:
    from collections.abc import Iterator

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO


def search(query: str) -> str:
    return query


def other_search(query: str) -> str:
    return query


other_search.__name__ = "search"


class Box:
    """A class that pydantic does not know."""


def open_box(box: Box) -> str:
    """Open a box."""
    return str(box)


def look_up(state: Any, db: Any) -> None:
    """Needs a resource."""


def is_done(state: Any) -> bool:
    return bool(state)


class Toolset:
    """Like ADK's toolsets: the names of its tools are known only when it runs."""

    async def get_tools(self) -> list[Any]:
        return []


class Middleware:
    """Any object will do as a middleware here."""


MIDDLEWARE = Middleware()


def polite(word: str = "Please") -> Any:
    """Makes what is called "polite" here."""
    if word == "!":
        raise RuntimeError("no word")
    return Middleware()


@pytest.fixture(autouse=True)
def middleware_by_name() -> Iterator[None]:
    register_middleware(MiddlewareDesc("polite", "Says please.", polite))
    yield
    unregister_middleware("polite")


def agent(name: str, **fields: Any) -> AgentNode:
    return AgentNode(name, **fields)


def seq(*steps: Node, name: str = "flow") -> SequenceNode:
    return SequenceNode(name, steps)


def key(name: str) -> StateFieldRef:
    return StateFieldRef(name)


def merging(name: str, reducer: Any, key: str = "k") -> AgentNode:
    """An agent that writes a key, and says how it is merged."""
    return agent(name, writes_keys=(StateFieldRef(key, reducer=Ref.to(reducer)),))


def route(*tests: Match | Ref, default: Node | None = None) -> RouteNode:
    branches = tuple(agent(f"b{i}") for i in range(len(tests)))
    return RouteNode("route", "x", tests, branches, default)


def tools(*fns: Any) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(Ref.to(fn)) for fn in fns)


def wrap(node: Node, depth: int = 3) -> Node:
    for number in range(depth):
        node = seq(agent(f"before{number}"), TimeoutNode("limit", node))
    return node


@dataclass(frozen=True)
class Mistake:
    """A pipeline with one mistake, and what is to be found about it.

    `at` is the first name in what it says, `help` and `severity` are the usual ones of the issue,
    unless they are given.
    """

    issue: type[Diagnostic]
    pipeline: Node
    says: str
    at: str | None = None
    help: str | None = None
    severity: Severity | None = None


SAME_GATE = GateNode("ok")
LITERAL = "a name is made of letters, digits and `_`, and starts with no digit"
STATIC = "ADK fills in nothing in a static instruction: use .instruct(...)"
CONFIRM_OUTSIDE = "use the tool before the race or after it, or let it run unconfirmed"
#: What a finding tells to do, unless its row says otherwise.
HELP: dict[type[Diagnostic], str] = {
    AmbiguousTransferTarget: "give the target a name of its own",
    DuplicateGate: (
        "name them apart: gate(..., name=...) tells questions, and what is answered to them, "
        "from each other"
    ),
    DuplicateMiddleware: "remove one: every call would pass through it twice",
    DuplicateName: "rename one, or use the very same agent in both places",
    DuplicateResource: "functions get a resource by its name: rename one, or inject one only",
    DuplicateTool: "models refuse two tools of one name: remove or rename one",
    EmptyComposite: "give it at least one branch, or leave it out",
    GateInRace: "ask before the race or after it",
    InertPlaceholder: (
        "ADK fills in `{key}`, `{key?}`, `{user:key}`, `{app:key}`, `{temp:key}` "
        "and `{artifact.name}`"
    ),
    InvalidName: "give it another name",
    IrreversibleWrite: "write a session key, and copy it to the lasting one afterwards",
    LoopWithoutExit: "say when to stop, as in `body * until(done, max=10)`, or how often",
    MisplacedNode: "it belongs to the resources of an application",
    RouteWithoutDefault: "add .otherwise(...) if that case matters",
    SingleAlternative: "add another branch, or use `only` by itself",
    TransferCycle: "to repeat steps use a loop, as in `body * until(done, max=10)`",
    UnusableMiddleware: "adk-fluent middleware show polite",
    UncallableFunction: "add .inject(db=...) to the pipeline, or give `db` a default",
    UnknownTransferTarget: "name a step of this pipeline",
    UnreachableBranch: "put the narrower test first, or remove this branch",
}

MISTAKES = [
    Mistake(
        InvalidName,
        agent("my agent"),
        f"`my agent` cannot be a name: {LITERAL}",
        help="call it `my_agent`",
    ),
    Mistake(InvalidName, agent("2nd"), f"`2nd` cannot be a name: {LITERAL}", help="call it `_2nd`"),
    Mistake(InvalidName, agent("?!"), f"`?!` cannot be a name: {LITERAL}"),
    Mistake(InvalidName, seq(agent("")), "`` cannot be a name: it is empty"),
    Mistake(InvalidName, TimeoutNode("", agent("a")), "`` cannot be a name: it is empty"),
    Mistake(
        InvalidName,
        seq(AdkAgentNode("user", Ref("x"))),
        "`user` cannot be a name: ADK calls the person who talks to the agents `user`",
    ),
    Mistake(
        InvalidName,
        seq(agent("START")),
        "`START` cannot be a name: ADK calls the entry of a graph `START`",
    ),
    Mistake(
        InvalidName,
        AppNode("app", seq(agent("a"), name="__START__")),
        "`__START__` cannot be a name: ADK calls the entry of a graph `__START__`",
    ),
    Mistake(
        InvalidName,
        seq(agent("b"), seq(agent("a"), name="user")),
        "`user` cannot be a name: ADK calls the person who talks to the agents `user`",
    ),
    Mistake(
        InvalidName,
        seq(agent("a"), GateNode("_adk_gate")),
        "`_adk_gate` cannot be a name: names that start with `_adk` are kept for ADK",
        help="call it `adk_gate`",
    ),
    Mistake(
        InvalidName,
        agent("boss", delegates=(seq(agent("a"), name="the team"),)),
        f"`the team` cannot be a name: {LITERAL}",
        help="call it `the_team`",
    ),
    Mistake(
        InvalidName,
        agent("boss", agent_tools=(seq(agent("a"), name="the tool"),)),
        f"`the tool` cannot be a name: {LITERAL}",
        help="call it `the_tool`",
    ),
    Mistake(
        DuplicateName,
        seq(agent("writer", instruction="a"), agent("writer", instruction="b")),
        "two different agents are called `writer`",
    ),
    Mistake(
        DuplicateName,
        seq(agent("x"), AdkAgentNode("x", Ref("built"))),
        "two different agents are called `x`",
    ),
    Mistake(
        DuplicateName,
        agent("boss", agent_tools=(agent("boss"),)),
        "two different agents are called `boss`",
    ),
    Mistake(
        DuplicateName,
        seq(
            agent("a", delegates=(seq(agent("b"), name="team"),)),
            agent("c", delegates=(seq(agent("d"), name="team"),)),
        ),
        "two different agents are called `team`",
    ),
    Mistake(
        DuplicateName,
        agent("boss", delegates=(agent("helper"), agent("helper"))),
        "`boss` lists the delegate `helper` twice",
        help="list it once: a transfer names one agent",
    ),
    Mistake(
        EmptyComposite,
        seq(),
        "sequence `flow` has no steps",
        help="give it at least one step, or leave it out",
    ),
    Mistake(EmptyComposite, seq(agent("a"), ParallelNode("fan")), "parallel `fan` has no branches"),
    Mistake(EmptyComposite, RouteNode("r"), "route `r` has no branches"),
    Mistake(
        EmptyComposite,
        FallbackNode("f"),
        "fallback `f` has no attempts",
        help="give it at least one attempt, or leave it out",
    ),
    Mistake(EmptyComposite, RaceNode("r"), "race `r` has no branches"),
    Mistake(
        SingleAlternative,
        FallbackNode("f", (agent("only"),)),
        "fallback `f` has only one attempt: `only`",
        help="add another attempt, or use `only` by itself",
    ),
    Mistake(
        SingleAlternative, RaceNode("r", (agent("only"),)), "race `r` has only one branch: `only`"
    ),
    Mistake(
        SingleAlternative,
        ParallelNode("p", (agent("only"),), merge="first_complete"),
        "parallel `p` has only one branch: `only`",
    ),
    Mistake(
        SingleAlternative,
        RouteNode("r", default=agent("only")),
        "route `r` has only one branch: `only`",
    ),
    Mistake(
        MisplacedNode,
        seq(agent("a"), AppNode("app", agent("b"))),
        "application `app` stands inside `flow`",
        help="an application is only ever the root: use its pipeline here",
    ),
    Mistake(
        MisplacedNode,
        AppNode("app", agent("a"), resources=(agent("b"),)),
        "AgentNode `b` stands among the resources of `app`",
        help="only a ResourceNode can be injected",
    ),
    Mistake(
        MisplacedNode,
        seq(ResourceNode("db", Ref("db"))),
        "ResourceNode `db` stands where a step is expected",
    ),
    Mistake(
        MisplacedNode,
        AppNode("app", ResourceNode("db", Ref("db"))),
        "ResourceNode `db` stands where a step is expected",
    ),
    Mistake(
        MisplacedNode,
        ResourceNode("db", Ref("db")),
        "ResourceNode `db` stands where a step is expected",
    ),
    Mistake(
        MisplacedNode,
        ModelSelectorNode("pick"),
        "ModelSelectorNode `pick` stands where a step is expected",
        help="it belongs to the model of an agent",
    ),
    Mistake(
        MisplacedNode,
        agent("a", delegates=(ModelSelectorNode("pick"),)),
        "ModelSelectorNode `pick` stands where a step is expected",
        help="it belongs to the model of an agent",
    ),
    Mistake(
        LoopWithoutExit,
        LoopNode("again", wrap(agent("a"))),
        "nothing ends loop `again` early: it always runs 10 times",
    ),
    Mistake(
        ShadowedKey,
        MapOverNode("m", "items", agent("a"), output_key="items"),
        "`m` replaces its list `items` with the results",
        help="write the results to another key: run again, it would map its own results",
    ),
    Mistake(
        ShadowedKey,
        MapOverNode("m", "x_errors", agent("a"), output_key="x", on_error="collect"),
        "`m` replaces its list `x_errors` with the errors",
        help="write the results to another key: run again, it would map its own errors",
    ),
    Mistake(
        ShadowedKey,
        MapOverNode("m", "xs", agent("a"), "x_errors", output_key="x", on_error="collect"),
        "`m` keeps each item under `x_errors`, the key of its errors",
        help="use another item_key: the body would not see the errors",
    ),
    Mistake(
        ShadowedKey,
        MapOverNode("m", "items", agent("a"), item_key="items"),
        "`m` keeps each item under `items`, the key of its list",
        help="use another item_key: the body would not see the list",
    ),
    Mistake(
        ShadowedKey,
        MapOverNode("m", "items", agent("a"), item_key="out", output_key="out"),
        "`m` keeps each item under `out`, the key of its results",
        help="use another item_key: the body would not see the results",
    ),
    Mistake(
        ConflictingReducers,
        seq(merging("one", min), merging("two", max), merging("one", min)),
        "`two` merges `k` by `max`, and `one` by `min`",
        help="declare one of them wherever the key is declared",
    ),
    Mistake(
        MisspeltKey,
        wrap(agent("a", writes_keys=(StateFieldRef("usr:tier"),))),
        "`a` writes `usr:tier`, and `usr:` is no scope",
        help="did you mean `user:tier`?",
    ),
    Mistake(
        UntellableParameter,
        wrap(agent("a", tools=tools(open_box))),
        "no model can be told of `box` of the tool `open_box` of `a`: it is a Box",
        at="a",
        help="take plain data, a dataclass or a pydantic model; a resource comes by "
        ".inject(box=...)",
    ),
    Mistake(
        RouteWithoutDefault,
        route(Match("eq", "x", 1)),
        "route `route` does nothing when no test holds",
    ),
    Mistake(
        UnreachableBranch,
        route(
            Match("eq", "x", "a"), Match("eq", "x", "b"), Match("eq", "x", "a"), default=agent("d")
        ),
        "`b2` never runs: when `x == 'a'` holds, route `route` has taken `b0`",
    ),
    Mistake(
        UnreachableBranch,
        route(Ref.to(is_done), Ref.to(is_done), default=agent("d")),
        "`b1` never runs: when `is_done` holds, route `route` has taken `b0`",
    ),
    Mistake(
        UnreachableBranch,
        route(Match("gt", "x", 3), Match("gt", "x", 5), default=agent("d")),
        "`b1` never runs: when `x > 5` holds, route `route` has taken `b0`",
    ),
    Mistake(
        UnreachableBranch,
        route(Match("lt", "x", 3), Match("lt", "x", 2.5), default=agent("d")),
        "`b1` never runs: when `x < 2.5` holds, route `route` has taken `b0`",
    ),
    Mistake(
        UnreachableBranch,
        route(Match("gt", "x", 5), Match("gt", "x", 3), Match("eq", "x", 4), default=agent("d")),
        "`b2` never runs: when `x == 4` holds, route `route` has taken `b1`",
    ),
    Mistake(
        UnreachableBranch,
        route(Match("lt", "x", 1), Match("eq", "x", 0), default=agent("d")),
        "`b1` never runs: when `x == 0` holds, route `route` has taken `b0`",
    ),
    Mistake(
        UnknownTransferTarget,
        seq(agent("billing"), TransferNode("t", "biling")),
        "nothing in the pipeline is called `biling`",
        at="t",
        help="did you mean `billing`?",
    ),
    Mistake(
        UnknownTransferTarget,
        seq(agent("billing"), TransferNode("t", "zzz")),
        "nothing in the pipeline is called `zzz`",
        at="t",
    ),
    Mistake(
        UnknownTransferTarget,
        seq(agent("billing"), TransferNode("t", "t")),
        "nothing in the pipeline is called `t`",
    ),
    Mistake(
        AmbiguousTransferTarget,
        seq(seq(agent("a"), name="part"), seq(agent("b"), name="part"), TransferNode("t", "part")),
        "several different nodes are called `part`",
        at="t",
    ),
    Mistake(
        TransferCycle,
        seq(agent("a"), TransferNode("t", "flow")),
        "the transfer to `flow` leads back to itself, without end",
        at="t",
    ),
    Mistake(
        TransferCycle,
        AppNode(
            "app",
            seq(ParallelNode("p", (TimeoutNode("limit", TransferNode("t", "flow")), agent("a")))),
        ),
        "the transfer to `flow` leads back to itself, without end",
        at="t",
    ),
    Mistake(
        TransferCycle,
        seq(FallbackNode("f", (TransferNode("t", "flow"), agent("a")))),
        "the transfer to `flow` leads back to itself, without end",
        at="t",
    ),
    Mistake(
        TransferCycle,
        seq(
            seq(agent("x"), TransferNode("to_b", "b"), name="a"),
            seq(agent("y"), TransferNode("to_a", "a"), name="b"),
        ),
        "the transfer to `b` leads back to itself, without end",
        at="to_b",
    ),
    Mistake(
        TransferCycle,
        seq(agent("a"), TransferNode("t", "flow", Match("eq", "again", "yes"))),
        "the transfer to `flow` leads back to itself and may never end",
        at="t",
        severity=WARNING,
    ),
    Mistake(
        TransferCycle,
        seq(GateNode("ask"), TransferNode("t", "flow")),
        "the transfer to `flow` leads back to itself and may never end",
        at="t",
        severity=WARNING,
    ),
    Mistake(
        TransferCycle,
        seq(seq(ExpectNode("e", Match("gt", "n", 0)), name="inner"), TransferNode("t", "flow")),
        "the transfer to `flow` leads back to itself and may never end",
        at="t",
        severity=WARNING,
    ),
    Mistake(
        TransferCycle,
        seq(RaceNode("r", (TransferNode("t", "flow"), agent("a")))),
        "the transfer to `flow` leads back to itself and may never end",
        at="t",
        severity=WARNING,
    ),
    Mistake(
        TransferCycle,
        seq(ParallelNode("r", (TransferNode("t", "flow"), agent("a")), merge="first_complete")),
        "the transfer to `flow` leads back to itself and may never end",
        at="t",
        severity=WARNING,
    ),
    Mistake(
        TransferCycle,
        seq(FallbackNode("f", (agent("a"), TransferNode("t", "flow")))),
        "the transfer to `flow` leads back to itself and may never end",
        at="t",
        severity=WARNING,
    ),
    Mistake(
        GateInRace,
        RaceNode("r", (wrap(GateNode("ok")), agent("a"))),
        "gate `ok` stands inside a race, which cannot wait for a person",
    ),
    Mistake(
        GateInRace,
        ParallelNode("p", (GateNode("ok"), agent("a")), merge="first_complete"),
        "gate `ok` stands inside a race, which cannot wait for a person",
    ),
    Mistake(
        GateInRace,
        seq(GateNode("ok"), RaceNode("r", (TransferNode("t", "ok"), agent("a")))),
        "gate `ok` stands inside a race, which cannot wait for a person",
    ),
    Mistake(
        GateInRace,
        RaceNode("r", (agent("x", tools=(ToolSpec(Ref.to(search), True),)), agent("a"))),
        "`x` runs inside a race, and its tool `search` asks a person",
        help=CONFIRM_OUTSIDE,
        severity=WARNING,
    ),
    Mistake(
        DuplicateGate,
        seq(GateNode("gate"), wrap(GateNode("gate"))),
        "two different gates are called `gate`, and write `gate`",
    ),
    Mistake(
        DuplicateGate,
        ParallelNode("p", (GateNode("ok", key="a"), seq(GateNode("ok", key="b")))),
        "two different gates are called `ok`",
    ),
    Mistake(
        DuplicateGate,
        seq(GateNode("legal", key="ok"), FallbackNode("f", (GateNode("ok"), agent("a")))),
        "the gates `legal` and `ok` write the same key `ok`",
        at="ok",
        help="give one of them another key: the later answer replaces the earlier one",
    ),
    Mistake(
        IrreversibleWrite,
        RaceNode("r", (agent("x", writes_keys=(key("user:tier"), key("y"))), agent("a"))),
        "what `x` writes to `user:tier` stays when its attempt is discarded",
    ),
    Mistake(
        IrreversibleWrite,
        FallbackNode(
            "f", (wrap(agent("x", tool_writes=(key("app:n"), key("user:m")))), agent("a"))
        ),
        "what `x` writes to `app:n`, `user:m` stays when its attempt is discarded",
    ),
    Mistake(
        IrreversibleWrite,
        ParallelNode(
            "p",
            (FunctionNode("f", Ref.to(is_done), Effects((), (key("app:n"),))), agent("a")),
            merge="first_complete",
        ),
        "what `f` writes to `app:n` stays when its attempt is discarded",
    ),
    Mistake(
        IrreversibleWrite,
        RaceNode(
            "r",
            (TransformNode("s", Ref.to(is_done), effects=Effects((), (key("app:n"),))), agent("a")),
        ),
        "what `s` writes to `app:n` stays when its attempt is discarded",
    ),
    Mistake(
        IrreversibleWrite,
        RaceNode("r", (MapOverNode("m", "xs", agent("b"), output_key="user:all"), agent("a"))),
        "what `m` writes to `user:all` stays when its attempt is discarded",
    ),
    Mistake(
        IrreversibleWrite,
        FallbackNode("r", (GateNode("g", key="user:ok"), agent("a"))),
        "what `g` writes to `user:ok` stays when its attempt is discarded",
    ),
    Mistake(
        IrreversibleWrite,
        FallbackNode(
            "r", (RemoteAgentNode("far", "http://x", writes_keys=(key("user:z"),)), agent("a"))
        ),
        "what `far` writes to `user:z` stays when its attempt is discarded",
    ),
    Mistake(
        DuplicateTool, agent("a", tools=tools(search, search)), "`a` has 2 tools called `search`"
    ),
    Mistake(
        DuplicateTool,
        agent("a", tools=tools(search, other_search)),
        "`a` has 2 tools called `search`",
    ),
    Mistake(
        DuplicateTool,
        agent("a", tools=tools(search), agent_tools=(agent("search"),)),
        "`a` has 2 tools called `search`",
    ),
    Mistake(
        DuplicateTool,
        agent("a", agent_tools=(agent("b"), agent("b"), agent("b"))),
        "`a` has 3 tools called `b`",
    ),
    Mistake(
        InertPlaceholder,
        agent("a", instruction="Hi {user.name}, not {key?}"),
        "`{user.name}` in the instruction of `a` reaches the model as it stands",
        at="a",
    ),
    Mistake(
        InertPlaceholder,
        agent("a", instruction="{ a-b? }"),
        "`{ a-b? }` in the instruction of `a` reaches the model as it stands",
        at="a",
    ),
    Mistake(
        InertPlaceholder,
        agent("a", instruction="{user:first-name}"),
        "`{user:first-name}` in the instruction of `a` reaches the model as it stands",
        at="a",
    ),
    Mistake(
        InertPlaceholder,
        agent("a", instruction="{ok}", static_instruction="You serve {ok}."),
        "`{ok}` in the instruction of `a` reaches the model as it stands",
        at="a",
        help=STATIC,
    ),
    Mistake(
        UnreadableAnswer,
        agent("a", writes_keys=(key("tier"), key("user:tier"))),
        "a writes 2 keys called 'tier', which one field of its answer cannot tell apart: "
        "'tier', 'user:tier'",
        at="a",
        help="give one of them another name",
    ),
    Mistake(
        DuplicateResource,
        AppNode("app", agent("a"), (ResourceNode("db", Ref(1)), ResourceNode("db", Ref(2)))),
        "two different resources are called `db`",
    ),
    Mistake(
        UncallableFunction,
        wrap(FunctionNode("look_up", Ref.to(look_up))),
        "`look_up` needs `db`, which no resource fills",
    ),
    Mistake(
        IllegalNode,
        wrap(agent("a", settings=(("b", 1), ("a", 2)))),
        "`a` is not legal: settings are ['b', 'a']; "
        "they have to be sorted by field, each field once",
        help="Settings are sorted by field, each field once.",
    ),
    Mistake(
        IllegalNode,
        AppNode("app", agent("a"), (ResourceNode("db", Ref("x")), ResourceNode("db", Ref("x")))),
        "`app` is not legal: 2 resources are called 'db'; functions get them by name",
        help="Resources of an app differ in name.",
    ),
    Mistake(
        DuplicateMiddleware,
        MiddlewareNode("m", agent("a"), (Ref.to(MIDDLEWARE), Ref.to(MIDDLEWARE))),
        "middleware `Middleware` stands twice in the stack of `m`",
        at="m",
    ),
    Mistake(
        DuplicateMiddleware,
        AppNode("app", agent("a"), middlewares=(Ref.to(MIDDLEWARE), Ref.to(MIDDLEWARE))),
        "middleware `Middleware` stands twice in the stack of `app`",
        at="app",
    ),
    Mistake(
        DuplicateMiddleware,
        AppNode("app", agent("a"), execution=ExecutionConfig(middlewares=(MIDDLEWARE, MIDDLEWARE))),
        "middleware `Middleware` stands twice in the stack of `app`",
        at="app",
    ),
    Mistake(
        UnusableMiddleware,
        AppNode("app", agent("a"), middlewares=(MiddlewareRef("polte"),)),
        "there is no middleware called 'polte'",
        at="app",
        help="did you mean 'polite'?",
    ),
    Mistake(
        UnusableMiddleware,
        MiddlewareNode("m", agent("a"), (MiddlewareRef("polite", {"colour": "x"}),)),
        "middleware 'polite' does not take these settings: "
        "polite() got an unexpected keyword argument 'colour'",
        at="m",
    ),
    Mistake(
        UnusableMiddleware,
        AppNode(
            "app",
            agent("a"),
            execution=ExecutionConfig(middlewares=(MiddlewareRef("polite", {"word": "!"}),)),
        ),
        "middleware `polite` cannot be made: RuntimeError: no word",
        at="app",
    ),
    Mistake(
        LayerAbsent,
        MiddlewareNode("m", agent("a"), (MiddlewareRef("recorder"),)),
        "`m` needs the layer `debug` (middleware 'recorder'), which is not installed",
        help="pip install adk-fluent-debug",
    ),
    Mistake(
        LayerAbsent,
        seq(agent("a"), RemoteAgentNode("far", "http://x")),
        "`far` needs the layer `a2a` (RemoteAgentNode), which is not installed",
        help="pip install adk-fluent-a2a",
    ),
    Mistake(
        LayerAbsent,
        agent("a", selector=ModelSelectorNode("pick")),
        "`pick` needs the layer `cost` (ModelSelectorNode), which is not installed",
        help="pip install adk-fluent-cost",
    ),
    Mistake(
        LayerAbsent,
        AppNode("app", agent("a"), execution=ExecutionConfig(telemetry=TelemetryConfig())),
        "`app` needs the layer `middleware` (telemetry), which is not installed",
        help="pip install adk-fluent-middleware",
    ),
    Mistake(
        LayerAbsent,
        agent("a", boundary=ExecutionBoundary()),
        "`a` needs the layer `distributed` (execution boundary), which is not installed",
        help="pip install adk-fluent-distributed",
        severity=WARNING,
    ),
]

#: What looks like the mistake and is none.
FINE: list[tuple[type[Diagnostic], Node]] = [
    (InvalidName, seq(FunctionNode("<lambda>", Ref.to(is_done)))),
    (InvalidName, seq(FunctionNode("a step", Ref.to(is_done)), seq(agent("a"), name="the team"))),
    (InvalidName, agent("naïve_agent_2")),
    (InvalidName, agent("_private")),
    (DuplicateName, seq(agent("a", instruction="x"), agent("a", instruction="x"))),
    (DuplicateName, seq(*[agent("a")] * 3)),
    (DuplicateName, ParallelNode("a", (seq(name="a"), FunctionNode("a", Ref(1)), agent("a")))),
    (DuplicateName, seq(agent("a"), AdkAgentNode("b", Ref(1)))),
    (
        DuplicateName,
        seq(
            agent("a", agent_tools=(seq(agent("b"), name="team"),)),
            agent("c", agent_tools=(seq(agent("d"), name="team"),)),
        ),
    ),
    (DuplicateName, agent("boss", delegates=(agent("x"), agent("y")))),
    (EmptyComposite, RouteNode("r", default=agent("a"))),
    (EmptyComposite, seq(agent("a"))),
    (SingleAlternative, seq(agent("a"))),
    (SingleAlternative, ParallelNode("p", (agent("a"),))),
    (SingleAlternative, route(Match("eq", "x", 1))),
    (SingleAlternative, FallbackNode("f", (agent("a"), agent("a")))),
    (SingleAlternative, RaceNode("r", (agent("a"), agent("b")))),
    (
        MisplacedNode,
        AppNode(
            "app",
            seq(agent("a", selector=ModelSelectorNode("pick"))),
            (ResourceNode("db", Ref(1)), ResourceNode("mail", Ref(2))),
        ),
    ),
    (LoopWithoutExit, LoopNode("l", agent("a"), until=Match("eq", "x", 1))),
    (LoopWithoutExit, LoopNode("l", agent("a"), max_iterations=3)),
    (LoopWithoutExit, LoopNode("l", wrap(agent("a", tools=tools(search))))),
    (LoopWithoutExit, LoopNode("l", agent("a", callbacks=(("after_agent", (Ref.to(is_done),)),)))),
    (LoopWithoutExit, LoopNode("l", AdkAgentNode("a", Ref(1)))),
    (LoopWithoutExit, LoopNode("l", RemoteAgentNode("a", "http://x"))),
    (LoopWithoutExit, LoopNode("l", MiddlewareNode("m", agent("a")))),
    (LoopWithoutExit, seq(agent("b", tools=tools(search)), LoopNode("l", TransferNode("t", "b")))),
    (LoopWithoutExit, LoopNode("l", agent("a", delegates=(agent("b", tools=tools(search)),)))),
    (
        LoopWithoutExit,
        AppNode("app", LoopNode("l", agent("a")), middlewares=(Ref.to(MIDDLEWARE),)),
    ),
    (
        LoopWithoutExit,
        AppNode(
            "app", LoopNode("l", agent("a")), execution=ExecutionConfig(middlewares=(MIDDLEWARE,))
        ),
    ),
    (ShadowedKey, MapOverNode("m", "xs", agent("a"))),
    (ConflictingReducers, seq(merging("one", max), merging("two", max), merging("x", min, "l"))),
    (MisspeltKey, wrap(agent("a", writes_keys=(StateFieldRef("user:tier"),)))),
    (UntellableParameter, wrap(agent("a", tools=tools(search)))),
    (RouteWithoutDefault, route(Match("eq", "x", 1), default=agent("d"))),
    (RouteWithoutDefault, RouteNode("empty")),
    (UnreachableBranch, route(Match("eq", "x", "a"), Match("eq", "y", "a"))),
    (UnreachableBranch, route(Match("eq", "x", "a"), Match("contains", "x", "a"))),
    (UnreachableBranch, route(Match("gt", "x", 5), Match("gt", "x", 3), Match("eq", "x", 3))),
    (UnreachableBranch, route(Match("lt", "x", 3), Match("lt", "x", 5), Match("eq", "x", 5))),
    (UnreachableBranch, route(Match("gt", "x", 3), Match("lt", "x", 3), Match("eq", "x", 3))),
    (UnreachableBranch, route(Match("gt", "x", 3), Match("gt", "y", 5), Match("eq", "x", "7"))),
    (UnreachableBranch, route(Match("gt", "x", "b"), Match("gt", "x", "c"))),
    (UnreachableBranch, route(Match("gt", "x", False), Match("gt", "x", True))),
    (UnreachableBranch, route(Match("gt", "x", float("nan")), Match("gt", "x", 1))),
    (UnreachableBranch, route(Match("contains", "x", 3), Match("contains", "x", 5))),
    (UnreachableBranch, route(Match("eq", "x", [1]), Match("eq", "x", [1]))),
    (UnreachableBranch, route(Ref.to(is_done), Ref.to(search))),
    (UnknownTransferTarget, seq(agent("a"), TransferNode("t", "a"))),
    (UnknownTransferTarget, seq(agent("a", delegates=(agent("b"),)), TransferNode("t", "b"))),
    (AmbiguousTransferTarget, seq(agent("a"), agent("a"), TransferNode("t", "a"))),
    (AmbiguousTransferTarget, seq(agent("a"), TransferNode("a", "a"))),
    (TransferCycle, seq(agent("a"), TransferNode("t", "a"))),
    (TransferCycle, seq(seq(TransferNode("t", "x"), name="a"), seq(agent("x"), name="b"))),
    (
        TransferCycle,
        seq(
            seq(TransferNode("t", "c"), name="a"),
            seq(TransferNode("u", "c"), name="b"),
            seq(agent("x"), name="c"),
        ),
    ),
    (GateInRace, seq(GateNode("ok"), RaceNode("r", (agent("a"), agent("b"))))),
    (GateInRace, ParallelNode("p", (GateNode("ok"), agent("a")))),
    (GateInRace, FallbackNode("f", (GateNode("ok"), agent("a")))),
    (GateInRace, RaceNode("r", (agent("a", tools=tools(search)), agent("b")))),
    (DuplicateGate, seq(GateNode("a"), GateNode("b"), LoopNode("l", GateNode("c"), 3))),
    (DuplicateGate, seq(SAME_GATE, agent("a"), SAME_GATE)),
    (
        DuplicateGate,
        RouteNode("r", "x", (Match("eq", "x", 1),), (seq(GateNode("ok")),), GateNode("ok")),
    ),
    (DuplicateGate, FallbackNode("f", (seq(GateNode("ok")), GateNode("ok")))),
    (IrreversibleWrite, RaceNode("r", (agent("a", writes_keys=(key("x"), key("temp:y"))),))),
    (IrreversibleWrite, seq(agent("a", writes_keys=(key("user:x"),)))),
    (IrreversibleWrite, RaceNode("r", (agent("a", reads_keys=(key("user:x"),)), agent("b")))),
    (
        IrreversibleWrite,
        ParallelNode("p", (agent("a", writes_keys=(key("user:x"),)), agent("b"))),
    ),
    (DuplicateTool, agent("a", tools=tools(search, is_done), agent_tools=(agent("b"),))),
    (DuplicateTool, agent("a", tools=tools(Toolset(), Toolset()))),
    (DuplicateTool, agent("a", tools=tools(search), delegates=(agent("search"),))),
    (DuplicateTool, seq(agent("a", tools=tools(search)), agent("b", tools=tools(search)))),
    (
        InertPlaceholder,
        agent("a", instruction="{x} {x?} { x } {user:x} {app:x} {temp:x?} {artifact.a.txt} {{x}}"),
    ),
    (InertPlaceholder, agent("a", instruction='{"json": 1} {} {1} {a b} ${a-b} {{a-b}} \\{a-b}')),
    (InertPlaceholder, agent("a", static_instruction="Be kind.", instruction=Ref.to(is_done))),
    (UnreadableAnswer, agent("a", writes_keys=(key("tier"), key("user:name")))),
    (IllegalNode, agent("a", settings=(("a", 2), ("b", 1)))),
    (
        IllegalNode,
        AppNode("app", agent("a"), (ResourceNode("a", Ref(1)), ResourceNode("a", Ref(2)))),
    ),
    (
        DuplicateResource,
        AppNode("app", agent("a"), (ResourceNode("a", Ref("x")), ResourceNode("b", Ref("x")))),
    ),
    (
        DuplicateResource,
        AppNode("app", agent("a"), (ResourceNode("a", Ref("x")), ResourceNode("a", Ref("x")))),
    ),
    (
        DuplicateMiddleware,
        MiddlewareNode("m", agent("a"), (Ref.to(Middleware()), Ref.to(Middleware()))),
    ),
    (
        UncallableFunction,
        AppNode("app", FunctionNode("look_up", Ref.to(look_up)), (ResourceNode("db", Ref(1)),)),
    ),
    (
        DuplicateMiddleware,
        AppNode(
            "app",
            MiddlewareNode("m", agent("a"), (Ref.to(MIDDLEWARE),)),
            middlewares=(Ref.to(MIDDLEWARE),),
            execution=ExecutionConfig(middlewares=(MIDDLEWARE,)),
        ),
    ),
    (
        UnusableMiddleware,
        MiddlewareNode("m", agent("a"), (MiddlewareRef("polite", {"word": "Please"}),)),
    ),
    (UnusableMiddleware, MiddlewareNode("m", agent("a"), (MiddlewareRef("recorder"),))),
    (LayerAbsent, AppNode("app", agent("a"), execution=ExecutionConfig())),
    (LayerAbsent, MiddlewareNode("m", agent("a"), (MiddlewareRef("polite"),))),
    (InvalidValue, AppNode("app", agent("a"), execution=ExecutionConfig(max_llm_calls=0))),
    (InvalidValue, MapOverNode("m", "xs", agent("a"), concurrency=1)),
    (InvalidValue, TimeoutNode("t", agent("a"), 0.001)),
    (InvalidValue, TransformNode("s", semantics="delete_keys", affected_keys=("a",))),
    (
        InvalidValue,
        SequenceNode(
            "s",
            (agent("a"), agent("b")),
            (EdgeSemantics(buffering="chunked", chunk_size=8), EdgeSemantics(buffering="token")),
        ),
    ),
]


def findings(issue: type[Diagnostic], node: Node) -> list[Diagnostic]:
    return [each for each in check_all(node) if type(each) is issue]


@pytest.mark.parametrize("case", MISTAKES, ids=lambda c: f"{c.issue.__name__}: {c.says}"[:70])
def test_a_mistake_is_found_once_with_its_place_and_its_fix(case: Mistake) -> None:
    [found] = findings(case.issue, case.pipeline)
    assert found.message == case.says
    assert found.node == (case.says.split("`")[1] if case.at is None else case.at)
    assert found.help == (case.help or HELP[case.issue])
    assert found.severity == (case.severity or CODES[found.code].severity)


@pytest.mark.parametrize(
    "case", FINE, ids=[f"{issue.__name__} {i}" for i, (issue, _) in enumerate(FINE)]
)
def test_what_only_looks_like_a_mistake_is_not_found(
    case: tuple[type[Diagnostic], Node],
) -> None:
    issue, pipeline = case
    assert findings(issue, pipeline) == []


def test_every_structural_finding_is_tried_both_ways() -> None:
    ours = {c.name for c in CODES.values() if c.code.startswith(("FLW1", "FLW9"))}
    assert {type(vars(contracts)[name]) for name in ours} == {type}
    assert {case.issue.__name__ for case in MISTAKES} | {"InvalidValue"} == ours
    assert {issue.__name__ for issue, _ in FINE} == ours


def test_related_places_are_named() -> None:
    pair = seq(agent("w", instruction="1"), agent("w", instruction="2"))
    [found] = findings(DuplicateName, pair)
    assert [(r.message, r.node) for r in found.related] == [("the other one is here", "w")]
    ring = seq(*(seq(TransferNode(f"t{i}", f"s{(i + 1) % 6}"), name=f"s{i}") for i in range(6)))
    [cycle] = findings(TransferCycle, ring)
    assert [r.message for r in cycle.related] == [
        "`s1` would run again",
        *["by way of this transfer"] * 3,
    ]
    far = seq(*(RemoteAgentNode(f"r{i}", "http://x") for i in range(5)))
    [absent] = findings(LayerAbsent, far)
    assert [r.message for r in absent.related] == [
        "used here too",
        "used here too",
        "and in 2 more places",
    ]
    assert check_all(far).absent == ("a2a",)


def test_one_agent_below_two_models_is_told_apart_by_them() -> None:
    x = Agent("x").instruct("Hi")
    pipeline = (x >> Agent("y")).model("m1") >> x.model("m2")
    [found] = [each for each in pipeline.check() if each.code == "FLW102"]
    assert "the same agent with two models, `m1` here and `m2` there" in str(found.help)
