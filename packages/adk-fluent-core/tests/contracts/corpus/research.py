"""Research: sources read side by side, coverage judged, gaps closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent import Agent, FanOut, Loop, Pipeline, Route, S, gate, map_over, race, until
from adk_fluent.ir import StateFieldRef
from adk_fluent.testing import Call, reply

from ._case import Case, data, told

if TYPE_CHECKING:
    from adk_fluent.builders import Builder, State

GRADE = StateFieldRef("grade", str)
FOLLOW_UP = StateFieldRef("follow_up", str)
TOPICS = StateFieldRef("topics", list[str])
COVERED = StateFieldRef("covered", bool)
FOUND = StateFieldRef("found", bool)
FINDING = StateFieldRef("finding", str)
SCORE = StateFieldRef("score", float)
REGIONS = StateFieldRef("regions", list[str])


def web_research() -> Builder:
    """Three researchers at once, then one that brings it together."""
    topics = {"energy": "renewable power", "vehicles": "electric cars", "carbon": "carbon capture"}
    look = FanOut("look_up")
    for key, topic in topics.items():
        look.branch(
            Agent(f"{key}_researcher")
            .instruct(f"Find out what is new in {topic}. One paragraph.")
            .history("own")
            .writes(f"{key}_findings")
        )
    report = Agent("editor").instruct(
        "Write a report of these notes, and of nothing else.\n"
        "Energy: {energy_findings}\nVehicles: {vehicles_findings}\nCarbon: {carbon_findings}"
    )
    return Pipeline("web_research", look, report).contract(inputs=[], outputs=[])


def deep_search() -> Builder:
    """A plan that a person approves, searches until the evaluation is content, a report."""
    planner = Agent("planner").instruct("Make a research plan for the question.").writes("plan")
    search = FanOut(
        "search",
        Agent("web_searcher")
        .instruct("Search the web by this plan: {plan}. Look for this, too: {follow_up?}")
        .writes("web_notes"),
        Agent("paper_searcher")
        .instruct("Search for papers by this plan: {plan}. Look for this, too: {follow_up?}")
        .writes("paper_notes"),
    )
    evaluator = (
        Agent("evaluator")
        .instruct(
            "Grade the notes, pass or fail, and say what is missing: {web_notes} {paper_notes}"
        )
        .writes(GRADE, FOLLOW_UP)
    )
    composer = Agent("composer").instruct(
        "Compose the report by the plan {plan} from {web_notes} and {paper_notes}. "
        "Say what stayed open: {follow_up}"
    )
    short = Agent("short_composer").instruct(
        "The notes did not pass: say so, and sum up {web_notes} and {paper_notes} in a paragraph."
    )
    refine = (search >> evaluator) * until(lambda s: s["grade"] == "pass", max=3)
    compose = Route("grade").eq("pass", composer).otherwise(short)
    approve = gate(message="Is this the right plan?", key="plan_decision")
    return (planner >> approve >> refine >> compose).contract(
        inputs=[], outputs=["plan_decision", "grade"]
    )


def academic_research() -> Builder:
    """An analyst that asks two researchers as tools."""
    recent = Agent("recent_citations").instruct("List papers that cite the paper you are given.")
    ideas = Agent("new_directions").instruct("Propose research that the given papers call for.")
    analyst = (
        Agent("paper_analyst").instruct("Sum up the paper: title, method, result.").writes("paper")
    )
    adviser = (
        Agent("adviser")
        .instruct("Advise the reader of {paper}. Ask the two researchers first.")
        .agent_tool(recent, ideas)
        .writes("advice")
    )
    return Pipeline("academic", analyst, adviser).contract(inputs=[], outputs=["advice"])


def merged_notes(state: State) -> dict[str, Any]:
    """The notes so far, with those of this round."""
    return {"notes": [*state["notes"], *state["round_notes"]]}


def literature_survey() -> Builder:
    """Every topic read on its own, until the survey covers its subject."""
    splitter = Agent("splitter").instruct("Split {subject} into topics.").writes(TOPICS)
    reader = Agent("reader").instruct("Read what there is on {topic}; three sentences.")
    judge = (
        Agent("coverage_judge")
        .instruct("Does this cover {subject}? If not, name topics to add. Notes: {notes}")
        .writes(COVERED, TOPICS)
    )
    rounds = Loop(
        "rounds",
        map_over("topics", reader, item_key="topic", output_key="round_notes", concurrency=2),
        merged_notes,
        judge,
    ).until(lambda s: bool(s["covered"]))
    write = Agent("survey_writer").instruct("Write the survey of {subject} from {notes}.")
    hedge = Agent("gap_writer").instruct("Write what {notes} show, and that {topics} are open.")
    whole = splitter >> S.set(notes=[]) >> rounds.max(2)
    return (whole >> Route("covered").eq(True, write).otherwise(hedge)).contract(
        inputs=["subject"], outputs=["covered"]
    )


def first_answer() -> Builder:
    """Sources race for the first answer; the question is put in other words until there is one."""
    readers = race(
        *(
            Agent(f"read_{source}")
            .instruct(f"Look in the {source} for: {{query}}")
            .writes("excerpt")
            for source in ("wiki", "drive", "mailbox")
        ),
        name="first_source",
    )
    judge = (
        Agent("judge")
        .instruct("Does {excerpt} answer {question}? If not, give a better query.")
        .writes(FOUND, "query")
    )
    tries = Loop("tries", readers, judge, until=lambda s: s["found"] is True, max=3)
    answer = Agent("answerer").instruct("Answer {question} from {excerpt}.")
    sorry = Agent("apologist").instruct("Say that no source answers {question}.")
    return (
        S.compute(query=lambda s: s["question"]).reads("question")
        >> tries
        >> Route("found").eq(True, answer).otherwise(sorry)
    ).contract(inputs=["question"], outputs=[])


def keep_meeting(date: str, tool_context: Any) -> str:
    """Remember which meeting is meant."""
    tool_context.state["meeting_date"] = date
    return f"The meeting of {date}."


def fomc_research() -> Builder:
    """The meeting is settled by a tool, its papers are read at once, and then analysed."""
    clerk = (
        Agent("meeting_clerk")
        .instruct("Find out which meeting is meant and remember its date.")
        .tool(keep_meeting)
        .writes("meeting_date", via="tool")
    )
    papers = FanOut("papers")
    for paper in ("statement", "transcript", "futures"):
        papers.branch(
            Agent(f"{paper}_reader")
            .instruct(f"Sum up the {paper} of the meeting of {{meeting_date}}.")
            .writes(paper)
        )
    analyst = Agent("analyst").instruct(
        "Analyse the meeting of {meeting_date}: {statement}, {transcript}, {futures}."
    )
    return Pipeline("fomc", clerk, papers, analyst.writes("analysis")).contract(
        inputs=[], outputs=["analysis"]
    )


def economic_research() -> Builder:
    """Regions compared in parallel where there are several; the paper is reviewed until good."""
    scope = Agent("scope").instruct("Which regions does the client mean?").writes(REGIONS)
    region = Agent("region_analyst").instruct("Labour, housing and energy in {region}, in brief.")
    compare = map_over("regions", region, item_key="region", output_key="profiles") >> Agent(
        "comparer"
    ).instruct("Compare {regions}: {profiles}").writes("analysis")
    single = Agent("deep_analyst").instruct("Analyse {regions} in depth.").writes("analysis")
    writer = (
        Agent("paper_writer")
        .instruct("Write a white paper on {analysis}. Heed the review: {review?}")
        .writes("paper")
    )
    reviewer = (
        Agent("reviewer")
        .instruct("Score {paper} from 0 to 10 and review it.")
        .writes(SCORE, "review")
    )
    polish = (writer >> reviewer) * until(lambda s: s["score"] >= 8, max=4)
    kind = Route().when(lambda s: len(s["regions"]) > 1, compare).otherwise(single)
    return (scope >> kind >> polish).contract(inputs=[], outputs=["paper", "score"])


CASES: Final = (
    Case(
        name="web research",
        source="google/adk-docs: examples/python/snippets/agents/workflow-agents/"
        "parallel_agent_web_research.py",
        pipeline=web_research,
        replies={
            "energy_researcher": ["sun"],
            "vehicles_researcher": ["cars"],
            "carbon_researcher": ["air"],
            "editor": [told("Energy: sun\nVehicles: cars\nCarbon: air", says="All is new.")],
        },
        text="All is new.",
    ),
    Case(
        name="deep search",
        source="google/adk-samples: python/agents/deep-search/README.md",
        pipeline=deep_search,
        message="Why do batteries age?",
        replies={
            "planner": ["1. chemistry"],
            "web_searcher": ["w1", told("too: heat", says="w2")],
            "paper_searcher": ["p1", "p2"],
            "evaluator": [
                data(grade="fail", follow_up="heat"),
                data(grade="pass", follow_up="cold"),
            ],
            "composer": [told("w2 and p2", "open: cold", says="They age by chemistry and heat.")],
        },
        answers=(True,),
        text="They age by chemistry and heat.",
        after={"web_notes": "w2", "grade": "pass"},
    ),
    Case(
        name="academic research",
        source="google/adk-samples: python/agents/academic-research/academic_research/agent.py",
        pipeline=academic_research,
        message="Attention is all you need",
        replies={
            "paper_analyst": ["Transformers."],
            "adviser": [
                reply(
                    Call("recent_citations", {"request": "Transformers."}),
                    Call("new_directions", {"request": "Transformers."}),
                ),
                "Read BERT, then study sparsity.",
            ],
            "recent_citations": ["BERT"],
            "new_directions": ["sparsity"],
        },
        after={"paper": "Transformers.", "advice": "Read BERT, then study sparsity."},
    ),
    Case(
        name="literature survey",
        source="google/adk-samples: python/agents/academic-research/academic_research/sub_agents/"
        "academic_newresearch/agent.py",
        pipeline=literature_survey,
        state={"subject": "corals"},
        inputs=("subject",),
        replies={
            "splitter": [data(topics=["heat", "acid"])],
            "reader": {"on heat": ["n-heat"], "on acid": ["n-acid"], "on algae": ["n-algae"]},
            "coverage_judge": [
                data(covered=False, topics=["algae"]),
                data(covered=True, topics=[]),
            ],
            "survey_writer": ["A survey."],
        },
        text="A survey.",
        after={"notes": ["n-heat", "n-acid", "n-algae"]},
    ),
    Case(
        name="first answer",
        source="google/adk-python: contributing/samples/workflows/"
        "search_fanout_first_answer/agent.py",
        pipeline=first_answer,
        state={"question": "When is the fair?"},
        inputs=("question",),
        replies={
            "read_wiki": ["About fairs.", reply("late", latency=5)],
            "read_drive": [reply("late", latency=5), "The fair is in May."],
            "read_mailbox": [reply("late", latency=5), reply("late", latency=5)],
            "judge": [data(found=False, query="fair date"), data(found=True, query="fair date")],
            "answerer": ["In May."],
        },
        text="In May.",
        after={"excerpt": "The fair is in May.", "query": "fair date"},
    ),
    Case(
        name="fomc research",
        source="google/adk-samples: python/agents/fomc-research/fomc_research/agent.py",
        pipeline=fomc_research,
        message="The one in March.",
        replies={
            "meeting_clerk": [
                Call("keep_meeting", {"date": "2025-03-19"}),
                "The meeting of March 19.",
            ],
            "statement_reader": ["held"],
            "transcript_reader": ["calm"],
            "futures_reader": ["flat"],
            "analyst": ["No change."],
        },
        after={"meeting_date": "2025-03-19", "futures": "flat", "analysis": "No change."},
    ),
    Case(
        name="economic research",
        source="google/adk-samples: python/agents/economic-research-agent/"
        "economic_research/agent.py",
        pipeline=economic_research,
        message="Austin against Raleigh.",
        replies={
            "scope": [data(regions=["Austin", "Raleigh"])],
            "region_analyst": {"in Austin": ["hot"], "in Raleigh": ["mild"]},
            "comparer": ["Austin is dearer."],
            "paper_writer": ["draft", "final"],
            "reviewer": [data(score=6, review="thin"), data(score=9, review="good")],
        },
        after={"profiles": ["hot", "mild"], "paper": "final", "score": 9},
    ),
)
