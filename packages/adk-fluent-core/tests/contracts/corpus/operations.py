"""Operations: incidents, checks, schedules, and steps that need no model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent import Agent, FanOut, Loop, Pipeline, Route, S, gate, map_over, race, until
from adk_fluent.ir import StateFieldRef
from adk_fluent.testing import Call, reply

from ._case import Case, data, told

if TYPE_CHECKING:
    from adk_fluent.builders import Builder, State

CERTAIN = StateFieldRef("certain", bool)
SEVERITY = StateFieldRef("severity", str)
HEALTHY = StateFieldRef("healthy", bool)


def cyber_guardian() -> Builder:
    """An alert sorted, evidence gathered at once until it is certain, contained after approval."""
    triage = Agent("triage").instruct("How severe is {alert}?").writes(SEVERITY, "suspect")
    gather = FanOut(
        "gather",
        Agent("threat_intel").instruct("What is known of {suspect}?").writes("intel"),
        Agent("log_searcher").instruct("Logs of {suspect}. Lead: {lead?}").writes("logs"),
    )
    investigate = (
        Agent("investigator")
        .instruct("Is it an attack: {intel}, {logs}? If unsure, name a lead.")
        .writes(CERTAIN, "lead")
    )
    evidence = (gather >> investigate) * until(lambda s: s["certain"], max=3)
    contain = gate(message="Isolate the host?", key="order") >> Agent("responder").instruct(
        "Isolate {suspect}. Order: {order}"
    )
    watch = Agent("watcher").instruct("Keep an eye on {suspect}.")
    return (triage >> evidence >> Route("severity").eq("high", contain).otherwise(watch)).contract(
        inputs=["alert"], outputs=["intel", "logs"]
    )


def rolled(state: State) -> dict[str, Any]:
    """A number, without a model."""
    return {"number": state["seed"] * 7 % 6 + 1}


def roll_and_check() -> Builder:
    """A step without a model, then an agent that judges its number."""
    judge = Agent("prime_judge").instruct("Is {number} prime?").writes("is_prime")
    return Pipeline("dice", rolled, judge).contract(inputs=["seed"], outputs=["number", "is_prime"])


def tidy() -> Builder:
    """Steps that only change state, each with a stated meaning."""
    return (
        S.rename(raw="text")
        >> S.transform("text", str.strip)
        >> S.default(language="en")
        >> S.compute(length=lambda s: len(s["text"])).reads("text")
        >> S.merge("text", "language", into="line", fn=lambda text, lang: f"{lang}: {text}")
        >> S.drop("text")
        >> Agent("speaker").instruct("Say {line}, which has {length} letters.")
    ).contract(inputs=["raw"], outputs=["language", "line"])


def worst(state: State) -> dict[str, Any]:
    """Which services are ill."""
    ill = [text for text in state["reports"] if text != "healthy"]
    return {"ill": ill, "healthy": not ill}


def rollout() -> Builder:
    """All services checked at once after each step of a rollout, which is taken back if need be."""
    step = Agent("deployer").instruct("Deploy {version} to a few more hosts.").writes("share")
    probe = Agent("prober").instruct("Is {service} healthy at {share}?")
    probes = map_over("services", probe, item_key="service", output_key="reports") >> worst
    steps = Loop("steps", step, probes, max=3)
    steps.until(lambda s: not s["healthy"] or s["share"] == "all")
    back = Agent("roller_back").instruct("Take {version} back: {ill}")
    done = Agent("announcer").instruct("Announce that {version} is on {share} hosts.")
    return (steps >> Route("healthy").eq(True, done).otherwise(back)).contract(
        inputs=["version", "services"], outputs=["healthy", "share"]
    )


def file_ticket(title: str, tool_context: Any) -> str:
    """File a ticket, and keep its number."""
    tool_context.state["ticket"] = "J-1"
    tool_context.state["user:last_ticket"] = "J-1"
    return "J-1"


def ticket_agent() -> Builder:
    """A tool that writes for the session and for the user, and a step that reads both."""
    agent = (
        Agent("ticket_agent")
        .instruct("File what the user asks for. The last one was {user:last_ticket?}.")
        .tool(file_ticket)
        .writes("ticket", "user:last_ticket", via="tool")
    )
    return (agent >> Agent("echo").instruct("Repeat {ticket}; {user:last_ticket}.")).contract(
        inputs=[], outputs=["ticket", "user:last_ticket"]
    )


def incident_bridge() -> Builder:
    """Who answers first leads; work goes on until the service is well; then a report."""
    page = race(
        Agent("first_on_call").instruct("Take over {incident}?").writes("lead"),
        Agent("second_on_call").instruct("Take over {incident}?").writes("lead"),
        name="page",
    )
    act = Agent("operator").instruct("{lead} leads {incident}. Next step? {result?}").writes("step")
    look = Agent("observer").instruct("What came of {step}?").writes(HEALTHY, "result")
    work = Loop("work", act, look, Route("healthy").eq(False, S.set(paged="again")), max=4)
    work.until(lambda s: s["healthy"])
    return (
        S.set(paged="once")
        >> page
        >> work
        >> Agent("reporter").instruct("Report on {incident}: {lead}, {step}, paged {paged}.")
    ).contract(inputs=["incident"], outputs=["healthy"])


def night_watch() -> Builder:
    """Jobs of the night: each is tried twice, and what failed is told in the morning."""
    job = Agent("job_runner").instruct("Run {job}. Last error: {temp:error?}").writes("outcome")
    note = Route("outcome").eq("failed", S.temp.set(error="exit 1"))
    tried = Loop("tried", job, note, max=2).until(lambda s: s["outcome"] != "failed")
    return (
        map_over("jobs", tried, item_key="job", output_key="outcomes", result_key="outcome")
        >> Agent("morning_reporter").instruct("Report: {outcomes}")
    ).contract(inputs=["jobs"], outputs=["outcomes"])


CASES: Final = (
    Case(
        name="cyber guardian",
        source="google/adk-samples: python/agents/cyber-guardian-agent/cyber_guardian/agent.py",
        pipeline=cyber_guardian,
        state={"alert": "odd login"},
        inputs=("alert",),
        replies={
            "triage": [data(severity="high", suspect="host-9")],
            "threat_intel": ["known", "known"],
            "log_searcher": ["l1", told("Lead: ssh", says="l2")],
            "investigator": [data(certain=False, lead="ssh"), data(certain=True, lead="")],
            "responder": [told("host-9", says="Isolated.")],
        },
        answers=(True,),
        text="Isolated.",
        after={"logs": "l2"},
    ),
    Case(
        name="roll and check",
        source="google/adk-python: contributing/samples/simple_sequential_agent/agent.py",
        pipeline=roll_and_check,
        state={"seed": 3},
        inputs=("seed",),
        replies={"prime_judge": [told("Is 4 prime", says="no")]},
        after={"number": 4, "is_prime": "no"},
    ),
    Case(
        name="tidy",
        source="google/adk-python: contributing/samples/non_llm_sequential/agent.py",
        pipeline=tidy,
        state={"raw": "  hello "},
        inputs=("raw",),
        replies={"speaker": [told("en: hello", "has 5 letters", says="Hello.")]},
        text="Hello.",
        after={"language": "en", "line": "en: hello", "text": None},
    ),
    Case(
        name="rollout",
        source="google/adk-recipes: core/python/ambient-quality-agent/README.md",
        pipeline=rollout,
        state={"version": "v2", "services": ["web", "api"]},
        inputs=("version", "services"),
        replies={
            "deployer": ["half", "all"],
            "prober": {
                "web healthy at half": ["healthy"],
                "api healthy at half": ["healthy"],
                "web healthy at all": ["healthy"],
                "api healthy at all": ["slow"],
            },
            "roller_back": [told("slow", says="Taken back.")],
        },
        text="Taken back.",
        after={"healthy": False, "share": "all"},
    ),
    Case(
        name="ticket agent",
        source="google/adk-python: contributing/samples/jira_agent/agent.py",
        pipeline=ticket_agent,
        message="My screen is dark.",
        replies={
            "ticket_agent": [Call("file_ticket", {"title": "dark"}), "Filed."],
            "echo": [told("Repeat J-1; J-1", says="J-1.")],
        },
        text="J-1.",
        after={"user:last_ticket": "J-1"},
    ),
    Case(
        name="incident bridge",
        source="google/adk-python: contributing/samples/adk_team/"
        "adk_issue_monitoring_agent/agent.py",
        pipeline=incident_bridge,
        state={"incident": "outage"},
        inputs=("incident",),
        replies={
            "first_on_call": [reply("late", latency=5)],
            "second_on_call": ["Bo"],
            "operator": ["restart", told("Next step? no", says="failover")],
            "observer": [data(healthy=False, result="no"), data(healthy=True, result="yes")],
            "reporter": [told("Bo, failover, paged again", says="Solved.")],
        },
        text="Solved.",
        after={"lead": "Bo", "healthy": True},
    ),
    Case(
        name="night watch",
        source="google/adk-docs: docs/runtime/ambient-agents.md",
        pipeline=night_watch,
        state={"jobs": ["backup", "index"]},
        inputs=("jobs",),
        replies={
            "job_runner": {"Run backup": ["failed", "done"], "Run index": ["done"]},
            "morning_reporter": ["All done."],
        },
        text="All done.",
        after={"outcomes": ["done", "done"]},
    ),
)
