"""Code: written, tested, reviewed, mended; issues and pull requests sorted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent import Agent, FanOut, Loop, Pipeline, Route, S, gate, map_over, race, tap, until
from adk_fluent.ir import StateFieldRef
from adk_fluent.testing import Call, reply

from ._case import Case, data, told

if TYPE_CHECKING:
    from adk_fluent.builders import Builder, State

FAILURES = StateFieldRef("failures", int)
FILES = StateFieldRef("files", list[str])
LABEL = StateFieldRef("label", str)
ANSWERED = StateFieldRef("answered", bool)
COMPLETE = StateFieldRef("complete", bool)


def code_pipeline() -> Builder:
    """Written, reviewed, refactored."""
    return (
        Agent("code_writer").instruct("Write the code that the user asks for.").writes("code")
        >> Agent("code_reviewer").instruct("Review: {code}").writes("review")
        >> Agent("refactorer").instruct("Refactor {code} by {review}").writes("code")
    ).contract(inputs=[], outputs=["code"])


def summed(state: State) -> dict[str, Any]:
    """All that the checks complain of."""
    found = [state["test_report"], state["lint_report"], state["audit_report"]]
    complaints = [text for text in found if text != "clean"]
    return {"complaints": complaints, "open": len(complaints)}


def code_review() -> Builder:
    """Tests, lint and audit at once; the code is mended until all are clean; then merged or not."""
    write = Agent("programmer").instruct("Implement {ticket}.").writes("code")
    checks = FanOut(
        "checks",
        Agent("tester").instruct("Test {code}").writes("test_report"),
        Agent("linter").instruct("Lint {code}").writes("lint_report"),
        Agent("auditor").instruct("Audit {code}").writes("audit_report"),
    )
    mend = Agent("mender").instruct("Mend {code}: {complaints}").writes("code")
    rounds = Loop("rounds", checks, summed, Route("open").gt(0, mend), max=3)
    rounds.until(lambda s: s["open"] == 0)
    merge = gate(message="Merge it?", key="merge_decision") >> Agent("merger").instruct(
        "Merge {code}. Decided: {merge_decision}"
    )
    reject = Agent("rejecter").instruct("Say what is left: {complaints}")
    return (write >> rounds >> Route("open").eq(0, merge).otherwise(reject)).contract(
        inputs=["ticket"], outputs=["code", "open"]
    )


def add_label(label: str, tool_context: Any) -> str:
    """Give the issue at hand a label."""
    tool_context.state["label"] = label
    return f"Labelled {label}."


def issue_triage() -> Builder:
    """One issue is labelled by a tool, and goes to whoever owns that label."""
    labeller = (
        Agent("labeller")
        .instruct("Label the issue {issue}.")
        .tool(add_label)
        .writes(LABEL, via="tool")
    )
    return (
        labeller
        >> Route("label")
        .eq("docs", Agent("docs_owner").instruct("Answer {issue}, with a link to the docs."))
        .eq("core", Agent("core_owner").instruct("Reproduce {issue}."))
        .otherwise(Agent("anyone").instruct("Ask for more about {issue}."))
    ).contract(inputs=["issue"], outputs=["label"])


def release_analyzer() -> Builder:
    """Every changed file is read until its note is complete; then the docs are changed by it."""
    lister = Agent("change_lister").instruct("List what changed in {release}.").writes(FILES)
    read = Agent("change_reader").instruct("What must docs say of {path}? {hint?}").writes("note")
    judge = Agent("note_judge").instruct("Is {note} complete?").writes(COMPLETE, "hint")
    each = (read >> judge) * until(lambda s: s["complete"], max=2)
    write = Agent("docs_writer").instruct("Change the docs by {notes}.")
    nothing = Agent("closer").instruct("Say that {release} needs no docs.")
    return (
        lister
        >> map_over("files", each, item_key="path", output_key="notes", result_key="note")
        >> Route().when(lambda s: len(s["notes"]) > 0, write).otherwise(nothing)
    ).contract(inputs=["release"], outputs=["notes"])


def pull_request(state: State) -> dict[str, Any]:
    """What is known of a pull request before any model sees it."""
    request = state["request"]
    if not request.get("description"):
        return {"title": request["title"], "description": "none"}
    return {"title": request["title"], "description": request["description"]}


def pr_triage() -> Builder:
    """Reviewers and labels are found at once; a comment is sent once it is polite."""
    facts = FanOut(
        "facts",
        Agent("reviewer_finder").instruct("Who should review {title}?").writes("reviewer"),
        Agent("label_finder").instruct("A label for {title}: {description}").writes(LABEL),
    )
    comment = (
        Agent("commenter")
        .instruct("Comment on {title} for {reviewer}. Tone: {tone_advice?}")
        .writes("comment")
    )
    tone = Agent("tone_judge").instruct("ok, or advice: {comment}").writes("tone_advice")
    polite = Loop("polite", comment, tone).until(lambda s: s["tone_advice"] == "ok").max(3)
    send = Agent("sender").instruct("Post {comment}, label {label}.")
    hold = Agent("holder").instruct("Keep {comment} back: {tone_advice}")
    return (
        pull_request
        >> facts
        >> polite
        >> Route("tone_advice").eq("ok", send).otherwise(hold)
        >> tap(lambda s: print(s["label"]))
    ).contract(inputs=["request"], outputs=["comment"])


def stale_issues() -> Builder:
    """Each issue of a list goes its own way; who does not answer is asked twice."""
    ask = Agent("reminder").instruct("Remind the author of {issue}. So far: {said?}").writes("said")
    check = Agent("answer_reader").instruct("Did the author answer: {said}").writes(ANSWERED)
    remind = (ask >> check) * until(lambda s: s["answered"], max=2)
    close = Agent("issue_closer").instruct("Close {issue}.").writes("outcome")
    keep = Agent("issue_keeper").instruct("Keep {issue} open.").writes("outcome")
    each = remind >> Route("answered").eq(True, keep).otherwise(close)
    return (
        map_over("issues", each, item_key="issue", output_key="outcomes", result_key="outcome")
        >> Agent("reporter").instruct("Report: {outcomes}")
    ).contract(inputs=["issues"], outputs=["outcomes"])


def roll(sides: int, tool_context: Any) -> int:
    """Roll a die, and keep what fell."""
    tool_context.state["rolls"] = [*(tool_context.state.get("rolls") or []), sides]
    return sides


def dice_team() -> Builder:
    """One agent rolls, one checks what fell; the root knows who does what."""
    roller = (
        Agent("roller")
        .description("Rolls dice.")
        .instruct("Roll, and nothing else.")
        .tool(roll)
        .writes("rolls", via="tool")
    )
    prime = Agent("prime_checker").description("Knows primes.").instruct("Prime? {rolls?}")
    root = Agent("dice_root").instruct("Let roller roll, prime_checker check.")
    return Pipeline("dice", root.delegates(roller, prime)).contract(inputs=[], outputs=[])


def speculative_fix() -> Builder:
    """Two fixes race, the winner is tested, and where it fails the race is run again."""
    fixes = race(
        Agent("quick_fixer").instruct("A small fix for {ticket}. Not: {failed?}").writes("patch"),
        Agent("deep_fixer").instruct("A deep fix for {ticket}. Not: {failed?}").writes("patch"),
        name="fixes",
    )
    test = Agent("patch_tester").instruct("How many tests fail with {patch}?").writes(FAILURES)
    broken = S.merge("patch", into="failed")
    rounds = Loop("rounds", fixes, test, Route("failures").gt(0, broken), max=2)
    rounds.until(lambda s: s["failures"] == 0)
    return (
        rounds
        >> Route("failures")
        .eq(0, Agent("proposer").instruct("Propose {patch}."))
        .otherwise(Agent("asker").instruct("Ask for help with {ticket}: {failed?}"))
    ).contract(inputs=["ticket"], outputs=["patch"])


CASES: Final = (
    Case(
        name="code pipeline",
        source="google/adk-docs: examples/python/snippets/agents/workflow-agents/"
        "sequential_agent_code_development_agent.py",
        pipeline=code_pipeline,
        message="Sort a list.",
        replies={
            "code_writer": ["v1"],
            "code_reviewer": [told("v1", says="slow")],
            "refactorer": [told("v1", "slow", says="v2")],
        },
        after={"code": "v2"},
    ),
    Case(
        name="code review",
        source="google/adk-python: contributing/samples/workflow_agent_seq/agent.py",
        pipeline=code_review,
        state={"ticket": "T-7"},
        inputs=("ticket",),
        replies={
            "programmer": ["v1"],
            "tester": ["red", "clean"],
            "linter": ["clean", "clean"],
            "auditor": ["clean", "clean"],
            "mender": [told("red", says="v2")],
            "merger": [told("v2", says="Merged.")],
        },
        answers=(True,),
        text="Merged.",
        after={"code": "v2", "open": 0},
    ),
    Case(
        name="issue triage",
        source="google/adk-python: contributing/samples/adk_triaging_agent/agent.py",
        pipeline=issue_triage,
        state={"issue": "Typo"},
        inputs=("issue",),
        replies={
            "labeller": [Call("add_label", {"label": "docs"}), "Docs."],
            "docs_owner": ["See the docs."],
        },
        text="See the docs.",
        after={"label": "docs"},
    ),
    Case(
        name="release analyzer",
        source="google/adk-python: contributing/samples/adk_documentation/adk_release_analyzer/"
        "agent.py",
        pipeline=release_analyzer,
        state={"release": "2.0"},
        inputs=("release",),
        replies={
            "change_lister": [data(files=["a.py", "b.py"])],
            "change_reader": {"of a.py": ["a1", "a2"], "of b.py": ["b1"]},
            "note_judge": {
                "Is a1": [data(complete=False, hint="more")],
                "Is a2": [data(complete=True, hint="")],
                "Is b1": [data(complete=True, hint="")],
            },
            "docs_writer": ["Changed."],
        },
        text="Changed.",
        after={"notes": ["a2", "b1"]},
    ),
    Case(
        name="pull request triage",
        source="google/adk-python: contributing/samples/adk_pr_triaging_agent/agent.py",
        pipeline=pr_triage,
        state={"request": {"title": "Faster", "description": ""}},
        inputs=("request",),
        replies={
            "reviewer_finder": ["Ada"],
            "label_finder": [data(label="perf")],
            "commenter": ["Bad.", told("Tone: kindly", says="Thanks.")],
            "tone_judge": ["kindly", "ok"],
            "sender": [told("Thanks.", "perf", says="Posted.")],
        },
        text="Posted.",
        after={"comment": "Thanks."},
    ),
    Case(
        name="stale issues",
        source="google/adk-python: contributing/samples/adk_stale_agent/agent.py",
        pipeline=stale_issues,
        state={"issues": ["#1", "#2"]},
        inputs=("issues",),
        replies={
            "reminder": {"of #1": ["hello 1"], "of #2": ["hello 2", "again 2"]},
            "answer_reader": {
                "hello 1": [data(answered=True)],
                "hello 2": [data(answered=False)],
                "again 2": [data(answered=False)],
            },
            "issue_keeper": ["kept"],
            "issue_closer": ["closed"],
            "reporter": ["One kept, one closed."],
        },
        text="One kept, one closed.",
        after={"outcomes": ["kept", "closed"]},
    ),
    Case(
        name="dice team",
        source="google/adk-python: contributing/samples/hello_world_ma/agent.py",
        pipeline=dice_team,
        message="Roll a 7.",
        replies={
            "dice_root": [Call("transfer_to_agent", {"agent_name": "roller"})],
            "roller": [Call("roll", {"sides": 7}), "7."],
        },
        text="7.",
        after={"rolls": [7]},
    ),
    Case(
        name="speculative fix",
        source="google/adk-python: contributing/samples/workflows/speculative_tool/agent.py",
        pipeline=speculative_fix,
        state={"ticket": "T-8"},
        inputs=("ticket",),
        replies={
            "quick_fixer": ["q", reply("late", latency=5)],
            "deep_fixer": [reply("late", latency=5), told("Not: q", says="d")],
            "patch_tester": [data(failures=3), data(failures=0)],
            "proposer": [told("d", says="Here it is.")],
        },
        text="Here it is.",
        after={"patch": "d", "failed": "q"},
    ),
)
