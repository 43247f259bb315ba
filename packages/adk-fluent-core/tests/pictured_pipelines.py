"""Ten pipelines, and their pictures in ``docs/pictures``.

Running this file draws them anew. Tests check that they are current, and that in none of them one
text lies on another.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adk_fluent import (
    Agent,
    Fallback,
    FanOut,
    Loop,
    Pipeline,
    Route,
    expect,
    map_over,
    race,
    tap,
    timeout,
    until,
)
from adk_fluent.backends.viz import VizBackend
from adk_fluent.demo import Database, support_desk
from adk_fluent.ir import (
    AdkAgentNode,
    AppNode,
    Effects,
    ExecutionBoundary,
    FunctionNode,
    GateNode,
    MiddlewareNode,
    Node,
    Ref,
    RemoteAgentNode,
    ResourceNode,
    ScalingConfig,
    SequenceNode,
    StateFieldRef,
    TransferNode,
    TransportConfig,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import State

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"


@dataclass(frozen=True)
class Picture:
    """A pipeline, and how it is drawn.

    Attributes:
        name: Of its file.
        node: The pipeline.
        backend: What draws it.
    """

    name: str
    node: Node
    backend: VizBackend = VizBackend("svg")  # noqa: RUF009  # holds nothing that changes

    @property
    def svg(self) -> str:
        """The picture."""
        return self.backend.compile(self.node)


class WireAgent:
    """Stands for an ADK agent that somebody built by hand."""


# --- functions of the pipelines ------------------------------------------------------------------


def search(query: str) -> str:
    """Search the web.

    Args:
        query: What for.
    """
    return query


def fetch(url: str) -> str:
    """Fetch a page.

    Args:
        url: Its address.
    """
    return url


def good_enough(state: State) -> bool:
    """Whether the critic is content."""
    return state["verdict"] == "good"


def is_large(state: State) -> bool:
    """Whether somebody has to look at the refund."""
    return state["amount"] > 100


def tests_pass(state: State) -> bool:
    """Whether there is nothing left to mend."""
    return not state["failures"]


def log(state: State) -> None:
    """Note what was decided."""
    print(state["label"])


def split(state: State) -> dict[str, list[str]]:
    """The chapters of a text."""
    return {"chapters": str(state["text"]).split("\n\n")}


def run_tests(state: State) -> dict[str, str]:
    """Run what was written."""
    return {"failures": ""}


def knows(reads: str, writes: str) -> Effects:
    """The effects of a function, keys divided by blanks."""
    read, written = (tuple(map(StateFieldRef, keys.split())) for keys in (reads, writes))
    return Effects(read, written, opaque=False)


def function(fn: Callable[[Any], Any], reads: str, writes: str) -> FunctionNode:
    """A function as a step that tells what it does to state."""
    return FunctionNode(fn.__name__, Ref.to(fn), knows(reads, writes))


# --- the pipelines -------------------------------------------------------------------------------


def desk() -> Node:
    """The support desk of ``adk-fluent demo``."""
    nowhere = Database.__new__(Database)  # its tools are drawn, and never called
    return support_desk(nowhere, "gemini-2.5-flash", "gemini-2.5-pro").to_ir()


def research() -> Node:
    """Plan, look up several questions at the same time, write and mend."""
    plan = Agent("plan").instruct("List questions about {topic}.").writes("questions")
    find = Agent("find").instruct("Answer {_item}").tool(search).tool(fetch).writes("finding")
    recall = Agent("recall").instruct("Answer {_item} from memory.").writes("finding")
    write = Agent("write").instruct("Report on {results}. {verdict?}").writes("report")
    judge = Agent("judge", "gemini-2.5-pro").instruct("Is {report} good?").writes("verdict")
    found = map_over("questions", timeout(find, 30) // recall, result_key="finding", concurrency=4)
    pipeline = plan >> found >> (write >> judge) * until(good_enough, max=4)
    return pipeline.named("research").model("gemini-2.5-flash").to_ir()


def moderation() -> Node:
    """Two models race; what they say decides."""
    quick = Agent("quick", "gemini-2.5-flash-lite").instruct("Rate {post}").writes("label")
    careful = Agent("careful", "gemini-2.5-pro").instruct("Rate {post} with care").writes("label")
    publish = Agent("publish").instruct("Publish {post}").writes("url")
    explain = Agent("explain").instruct("Tell the author why {label}").writes("message")
    decide = Route("label").eq("fine", publish).contains("spam", explain).otherwise(explain)
    pipeline = (
        timeout(race(quick, careful, name="first_opinion"), 8)
        >> tap(log)
        >> expect(lambda state: state["label"], "a label is needed")
        >> decide
    )
    stack = (Ref(object(), "retry"), Ref(object(), "pii_filter"))
    database = ResourceNode("posts_db", Ref(object(), "posts_db"))
    return AppNode("moderation", pipeline.to_ir(), (database,), stack)


def refunds() -> Node:
    """A person decides about large refunds."""
    read = (
        Agent("read").instruct("What does the customer want?").writes("order", "amount", via="tool")
    )
    read = read.tool(fetch)
    pay = Agent("pay").instruct("Pay {amount} for {order}").tool(search).writes("receipt")
    refuse = Agent("refuse").instruct("Refuse politely: {decision}").writes("letter")
    ask = GateNode(
        "approval",
        Ref.to(is_large),
        "Shall this refund be paid? It is a large one.",
        key="decision",
    )
    decide = Route("decision").eq("no", refuse).otherwise(pay)
    back = TransferNode("back", "read", Ref.to(is_large))
    return Pipeline("refunds", read, ask, decide, back).model("gemini-2.5-flash").to_ir()


def trip() -> Node:
    """Four look-ups at the same time, joined into a plan."""
    each = [
        Agent(name).instruct(f"Find {name} in {{city}} on {{date}}").tool(search).writes(name)
        for name in ("flights", "hotels", "weather", "events")
    ]
    ask = (
        Agent("ask").instruct("Where to, and when?").writes("city", "date", via="tool").tool(fetch)
    )
    plan = Agent("plan").instruct("{flights} {hotels} {weather} {events}").writes("plan")
    return (ask >> FanOut("look_up", *each) >> plan).named("trip").to_ir()


def translation() -> Node:
    """A loop in a map in a fallback."""
    draft = Agent("draft").instruct("Translate {_item}. {verdict?}").writes("draft")
    compare = Agent("compare").instruct("Compare {draft} with {_item}").writes("verdict")
    chapter = Loop("chapter", draft >> compare, until=good_enough, max=3)
    careful = map_over("chapters", chapter, output_key="translated", result_key="draft")
    at_once = Agent("at_once").instruct("Translate {text}").writes("translated")
    edit = Agent("edit").instruct("Smooth {translated}").writes("text")
    cut = function(split, "text", "chapters")
    by_chapter = SequenceNode("by_chapter", (cut, careful.to_ir()))
    return (Fallback("translate", by_chapter, at_once) >> edit).named("translation").to_ir()


def federation() -> Node:
    """Agents on other machines, one with a stand-in, beside a local one."""
    stand_in = Agent("rules").instruct("Guess the risk of {claim}").writes("risk").to_ir()
    risk = RemoteAgentNode(
        "risk_office",
        "https://desk:secret@risk.example.com/a2a?token=secret",
        fallback=stand_in,
        timeout_seconds=20,
        reads_keys=(StateFieldRef("claim"),),
        writes_keys=(StateFieldRef("risk"),),
    )
    history = RemoteAgentNode(
        "archive",
        "https://archive.example.com/a2a",
        reads_keys=(StateFieldRef("claim"),),
        writes_keys=(StateFieldRef("history"),),
    )
    take = Agent("take").instruct("Take the claim.").writes("claim")
    settle = Agent("settle").instruct("Settle {claim}: {risk}, {history}").writes("offer")
    return (take >> FanOut("enquire", risk, history) >> settle).named("claims").to_ir()


def coder() -> Node:
    """Written code runs behind an execution boundary."""
    plan = Agent("plan").instruct("Plan {task}").writes("steps")
    write = Agent("write").instruct("Do {steps}; mend {failures?}").tool(fetch).writes("code")
    sandbox = function(run_tests, "code", "failures").replace(
        boundary=ExecutionBoundary(
            transport=TransportConfig("queue", "redis://runner:secret@queue:6379/0"),
            isolation="container",
            scaling=ScalingConfig(0, 8, 2),
        )
    )
    review = Agent("review", "gemini-2.5-pro").instruct("Review {code}").history("none")
    mend = Loop("mend", SequenceNode("pipeline", (write.to_ir(), sandbox)), until=tests_pass, max=6)
    retry = Ref(object(), "retry")
    reviewed = MiddlewareNode("reviewed", review.writes("verdict").to_ir(), (retry,))
    outer = Loop("improve", mend >> reviewed, until=good_enough, max=2)
    return (plan >> outer).named("coder").model("gemini-2.5-flash").to_ir()


def newsroom() -> Node:
    """An editor who calls some agents and hands over to others."""
    facts = Agent("fact_checker").instruct("Check facts.").tool(search)
    style = Agent("stylist").instruct("Mend style.")
    sport = Agent("sport").description("Writes about sport.").writes("story")
    culture = Agent("culture").description("Writes about culture.").writes("story")
    editor = Agent("editor").instruct("Commission {subject}").writes("story")
    editor = editor.agent_tool(facts, style).delegates(sport, culture)
    wire = AdkAgentNode("wire", Ref(WireAgent(), "wire"))
    layout = Agent("layout").instruct("Lay out {story}").writes("page")
    chief = Agent("chief").instruct("Choose.").writes("subject")
    return (chief >> editor >> wire >> layout).named("newsroom").to_ir()


def catalogue() -> Node:
    """A large pipeline, of which the picture shows what has room."""
    steps = [
        FanOut(f"group_{g}", *(Agent(f"g{g}_agent_{i}").writes(f"g{g}_{i}") for i in range(30)))
        for g in range(3)
    ]
    shelves = [Pipeline(f"shelf_{n}", *(Agent(f"s{n}_{i}") for i in range(12))) for n in range(4)]
    route = Route("shelf").eq("a", shelves[0]).eq("b", shelves[1]).eq("c", shelves[2])
    last = Agent("sum_up").instruct("Sum up {g0_0} and {g2_29}").writes("summary")
    return Pipeline("catalogue", *steps, route, shelves[3], last).to_ir()


def pictures() -> tuple[Picture, ...]:
    """The ten, in the order of the page."""
    return (
        Picture("support_desk", desk()),
        Picture("research", research()),
        Picture("moderation", moderation()),
        Picture("refunds", refunds()),
        Picture("trip", trip()),
        Picture("translation", translation()),
        Picture("claims", federation()),
        Picture("coder", coder()),
        Picture("newsroom", newsroom()),
        Picture("catalogue", catalogue(), VizBackend("svg", max_nodes=25)),
    )


if __name__ == "__main__":
    for picture in pictures():
        (FOLDER / f"{picture.name}.svg").write_text(picture.svg, "utf-8", newline="\n")
