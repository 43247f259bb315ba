"""Writing: drafts that are criticised until they are good, and what is made of them then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent import Agent, FanOut, Loop, Pipeline, Route, S, expect, map_over, until
from adk_fluent.ir import StateFieldRef
from adk_fluent.testing import Call

from ._case import Case, data, told

if TYPE_CHECKING:
    from adk_fluent.builders import Builder, State

VERDICT = StateFieldRef("verdict", str)
OUTLINE_OK = StateFieldRef("outline_ok", bool)
ROUND = StateFieldRef("round", int)
CLAIMS = StateFieldRef("claims", list[str])
SECTIONS = StateFieldRef("sections", list[str])
GRADE = StateFieldRef("grade", int)


def counted(state: State) -> dict[str, Any]:
    """One more round."""
    return {"round": state["round"] + 1}


def blog_writer() -> Builder:
    """An outline that holds, a post, and the texts for social media if they are wanted."""
    outliner = (
        Agent("outliner")
        .instruct("Outline a post on {topic}. Heed: {outline_notes?}")
        .writes("outline")
    )
    checker = (
        Agent("outline_checker")
        .instruct("Does this outline hold? {outline}")
        .writes(OUTLINE_OK, "outline_notes")
    )
    outlined = (outliner >> checker) * until(lambda s: s["outline_ok"], max=3)
    writer = Agent("post_writer").instruct("Write the post: {outline}").writes("post")
    social = FanOut(
        "social",
        Agent("short_poster").instruct("One line about {post}").writes("short_post"),
        Agent("long_poster").instruct("Three lines about {post}").writes("long_post"),
    )
    announce = Route("wants_social").eq("yes", social).otherwise(S.set(short_post="", long_post=""))
    return Pipeline("blog", outlined, writer, announce).contract(
        inputs=["topic", "wants_social"], outputs=["post", "short_post", "long_post"]
    )


def story_flow() -> Builder:
    """A story, two rounds of criticism, checks at once, and a new story if the tone is dark."""
    storyteller = Agent("storyteller").instruct("Tell a story about {topic}.").writes("story")
    critic = Agent("critic").instruct("Criticise: {story}").writes("criticism")
    reviser = (
        Agent("reviser").instruct("Revise {story} by this criticism: {criticism}").writes("story")
    )
    checks = FanOut(
        "checks",
        Agent("grammarian").instruct("Correct the grammar of {story}").writes("corrections"),
        Agent("tone_checker").instruct("One word for the tone of {story}").writes("tone"),
    )
    again = Agent("second_storyteller").instruct("Tell of {topic}, but gladly.").writes("story")
    return (
        storyteller >> (critic >> reviser) * 2 >> checks >> Route("tone").eq("negative", again)
    ).contract(inputs=["topic"], outputs=["story", "corrections"])


def leave(tool_context: Any) -> str:
    """Say that nothing is left to improve."""
    tool_context.actions.escalate = True
    tool_context.actions.skip_summarization = True
    return "Done."


def document_refinement() -> Builder:
    """A critic and a refiner take turns, until the refiner finds nothing to do and leaves."""
    writer = Agent("first_writer").instruct("Write a document on {topic}.").writes("document")
    critic = Agent("document_critic").instruct("Criticise: {document}").writes("criticism")
    refiner = (
        Agent("refiner")
        .instruct("Refine {document} by {criticism}; if there is nothing to do, leave.")
        .tool(leave)
        .writes("document")
    )
    closing = Agent("summarizer").instruct("Say in a line what this document says: {document}")
    return (writer >> Loop("refinement", critic, refiner, max=5) >> closing).contract(
        inputs=["topic"], outputs=["document"]
    )


def joined_sections(state: State) -> dict[str, Any]:
    """The sections as one text."""
    return {"body": "\n".join(state["section_texts"])}


def document_generation() -> Builder:
    """Facts are drawn from a file, every section written, three documents made and released."""
    extractor = (
        Agent("extractor")
        .instruct("List the sections that {upload} should become.")
        .writes(SECTIONS)
    )
    section = Agent("section_writer").instruct("Write the section {section} from {upload}.")
    documents = FanOut(
        "documents",
        Agent("summary_writer").instruct("Sum up: {body}").writes("summary"),
        Agent("feature_writer").instruct("List the features in: {body}").writes("features"),
        Agent("security_writer").instruct("What of security is in: {body}").writes("security"),
    )
    review = (
        Agent("release_reviewer")
        .instruct("Approve or reject: {summary} {features} {security}")
        .writes("decision")
    )
    passes = Loop("passes", documents, review).until(lambda s: s["decision"] == "approve").max(2)
    release = Agent("releaser").instruct("Announce the release of: {summary}")
    hold = Agent("holder").instruct("Say why {summary} is held back: {decision}")
    return (
        extractor
        >> map_over("sections", section, item_key="section", output_key="section_texts")
        >> joined_sections
        >> passes
        >> Route("decision").eq("approve", release).otherwise(hold)
    ).contract(inputs=["upload"], outputs=["features", "security", "decision"])


def llm_auditor() -> Builder:
    """A critic that checks an answer, and a reviser that mends it."""
    critic = Agent("critic").instruct("Check the claims of the user's answer.").writes("findings")
    reviser = Agent("reviser").instruct("Mend what {findings} object to, and nothing else.")
    return Pipeline("llm_auditor", critic, reviser.writes("revised")).contract(
        inputs=[], outputs=["revised"]
    )


def verdict_of(state: State) -> dict[str, Any]:
    """The worst of the verdicts on single claims."""
    wrong = [text for text in state["verdicts"] if text.startswith("wrong")]
    return {"verdict": "wrong" if wrong else "right", "wrong": wrong}


def claim_auditor() -> Builder:
    """Every claim verified on its own; what is wrong is mended until nothing is."""
    splitter = Agent("claim_splitter").instruct("List the claims of {answer}").writes(CLAIMS)
    verify = Agent("verifier").instruct("Is this right or wrong, and why: {claim}")
    verified = map_over("claims", verify, item_key="claim", output_key="verdicts") >> verdict_of
    mend = Agent("mender").instruct("Rewrite {answer}; these are wrong: {wrong}").writes("answer")
    audit = Loop("audit", splitter, verified, Route("verdict").eq("wrong", mend))
    audit.until(lambda s: s["verdict"] == "right").max(3)
    return (audit >> expect(lambda s: bool(s["answer"]), "an answer is left")).contract(
        inputs=["answer"], outputs=["answer", "verdict"]
    )


def check_domain(domain: str, tool_context: Any) -> str:
    """Tell whether a domain is free, and remember it."""
    free = domain.endswith(".garden")
    tool_context.state["domain"] = domain
    tool_context.state["domain_free"] = "yes" if free else "no"
    return "free" if free else "taken"


def marketing_agency() -> Builder:
    """A domain that is free; then site, plan and logo at once; a logo again if it is refused."""
    namer = (
        Agent("domain_finder")
        .instruct("Propose one domain for {brand}, and check it.")
        .tool(check_domain)
        .writes("domain", "domain_free", via="tool")
    )
    named = namer * until(lambda s: s["domain_free"] == "yes", max=4)
    made = FanOut(
        "made",
        Agent("site_builder").instruct("Make a site for {brand} on {domain}.").writes("site"),
        Agent("strategist").instruct("Plan the launch of {brand}.").writes("plan"),
        Agent("logo_maker").instruct("Describe a logo for {brand}.").writes("logo"),
    )
    taste = Agent("art_director").instruct("keep or redo: {logo}").writes("taste")
    redo = Agent("logo_remaker").instruct("Another logo than {logo}.").writes("logo")
    return (named >> made >> taste >> Route("taste").eq("redo", redo)).contract(
        inputs=["brand"], outputs=["site", "plan", "logo"]
    )


def youtube_shorts() -> Builder:
    """A manager that has a scriptwriter, a visualizer and a formatter as tools."""
    script = Agent("scriptwriter").instruct("Write a script of one minute.")
    shots = Agent("visualizer").instruct("Describe a shot for each line you are given.")
    layout = Agent("formatter").instruct("Put script and shots into one table.")
    manager = (
        Agent("shorts_manager")
        .instruct("Make a short video on what the user says: script, shots, table.")
        .agent_tool(script, shots, layout)
        .writes("storyboard")
    )
    return Pipeline("shorts", manager).contract(inputs=[], outputs=["storyboard"])


def generator_critic() -> Builder:
    """A number of rounds that is kept in state, and a verdict that is cleaned before it is read."""
    generate = (
        Agent("generator")
        .instruct("Draft {brief}. This is draft {round}. Feedback: {feedback?}")
        .writes("draft")
    )
    review = Agent("critic").instruct("PASS, or FAIL and why: {draft}").writes("feedback")
    cleaned = S.compute(verdict=lambda s: s["feedback"][:4].upper()).reads("feedback")
    rounds = Loop("rounds", counted, generate, review, cleaned, max=3)
    rounds.until(lambda s: s["verdict"] == "PASS")
    return (S.set(round=0) >> rounds).contract(inputs=["brief"], outputs=["draft", "round"])


def translated_story() -> Builder:
    """A story goes into several languages, each proof-read until its grade is good enough."""
    teller = Agent("teller").instruct("A fable about {topic}.").writes("fable")
    translate = (
        Agent("translator")
        .instruct("Translate into {language}: {fable}. Mind: {remarks?}")
        .writes("translation")
    )
    proofread = (
        Agent("proofreader")
        .instruct("Grade 1 to 5, with remarks: {translation}")
        .writes(GRADE, "remarks")
    )
    good = (translate >> proofread) * until(lambda s: s["grade"] >= 4, max=2)
    shown = Route("layout").eq(
        "book", Agent("bookbinder").instruct("Set as a book: {fable} {translations}")
    )
    shown.otherwise(Agent("pager").instruct("Set as a page: {translations}"))
    return (
        teller
        >> map_over(
            "languages",
            good,
            item_key="language",
            output_key="translations",
            result_key="translation",
        )
        >> shown
    ).contract(inputs=["topic", "languages", "layout"], outputs=[])


CASES: Final = (
    Case(
        name="blog writer",
        source="google/adk-samples: python/agents/blog-writer/blogger_agent/agent.py",
        pipeline=blog_writer,
        state={"topic": "bees", "wants_social": "yes"},
        inputs=("topic", "wants_social"),
        replies={
            "outliner": ["o1", told("Heed: shorter", says="o2")],
            "outline_checker": [
                data(outline_ok=False, outline_notes="shorter"),
                data(outline_ok=True, outline_notes=""),
            ],
            "post_writer": [told("o2", says="A post.")],
            "short_poster": ["Bees!"],
            "long_poster": ["Bees, bees, bees."],
        },
        after={"post": "A post.", "short_post": "Bees!", "long_post": "Bees, bees, bees."},
    ),
    Case(
        name="story flow",
        source="google/adk-docs: examples/python/snippets/agents/custom-agent/storyflow_agent.py",
        pipeline=story_flow,
        state={"topic": "a kitten"},
        inputs=("topic",),
        replies={
            "storyteller": ["s0"],
            "critic": ["c1", told("s1", says="c2")],
            "reviser": [told("s0", "c1", says="s1"), told("c2", says="s2")],
            "grammarian": ["none"],
            "tone_checker": ["negative"],
            "second_storyteller": ["A glad story."],
        },
        after={"story": "A glad story.", "corrections": "none"},
    ),
    Case(
        name="document refinement",
        source="google/adk-docs: examples/python/snippets/agents/workflow-agents/"
        "loop_agent_doc_improv_agent.py",
        pipeline=document_refinement,
        state={"topic": "tides"},
        inputs=("topic",),
        replies={
            "first_writer": ["d0"],
            "document_critic": ["longer", "nothing"],
            "refiner": ["d1", Call("leave")],
            "summarizer": [told("d1", says="Tides.")],
        },
        text="Tides.",
        after={"document": "d1"},
    ),
    Case(
        name="document generation",
        source="google/adk-samples: python/agents/intelligent-document-generation-agent/README.md",
        pipeline=document_generation,
        state={"upload": "spec.pdf"},
        inputs=("upload",),
        replies={
            "extractor": [data(sections=["Use", "Limits"])],
            "section_writer": {"section Use": ["Use it."], "section Limits": ["It ends."]},
            "summary_writer": [told("Use it.\nIt ends.", says="s1"), "s2"],
            "feature_writer": ["f1", "f2"],
            "security_writer": ["x1", "x2"],
            "release_reviewer": ["reject", "approve"],
            "releaser": [told("s2", says="Out now.")],
        },
        text="Out now.",
    ),
    Case(
        name="llm auditor",
        source="google/adk-samples: python/agents/llm-auditor/llm_auditor/agent.py",
        pipeline=llm_auditor,
        message="Q: Is the earth flat? A: Yes.",
        replies={"critic": ["It is not."], "reviser": [told("It is not.", says="No.")]},
        after={"revised": "No."},
    ),
    Case(
        name="claim auditor",
        source="google/adk-samples: python/agents/llm-auditor/llm_auditor/"
        "sub_agents/critic/agent.py",
        pipeline=claim_auditor,
        state={"answer": "Mars is blue and cold."},
        inputs=("answer",),
        replies={
            "claim_splitter": [data(claims=["blue", "cold"]), data(claims=["red"])],
            "verifier": {
                "why: blue": ["wrong: red"],
                "why: cold": ["right"],
                "why: red": ["right"],
            },
            "mender": [told("wrong: red", says="Mars is red.")],
        },
        after={"answer": "Mars is red.", "verdict": "right"},
    ),
    Case(
        name="marketing agency",
        source="google/adk-samples: python/agents/marketing-agency/marketing_agency/agent.py",
        pipeline=marketing_agency,
        state={"brand": "Fern"},
        inputs=("brand",),
        replies={
            "domain_finder": [
                Call("check_domain", {"domain": "fern.com"}),
                "Taken.",
                Call("check_domain", {"domain": "fern.garden"}),
                "Free.",
            ],
            "site_builder": [told("fern.garden", says="A site.")],
            "strategist": ["A plan."],
            "logo_maker": ["A leaf."],
            "art_director": ["redo"],
            "logo_remaker": ["A fern."],
        },
        after={"site": "A site.", "plan": "A plan.", "logo": "A fern."},
    ),
    Case(
        name="youtube shorts",
        source="google/adk-docs: examples/python/agent-samples/youtube_shorts_assistant/agent.py",
        pipeline=youtube_shorts,
        message="Knots.",
        replies={
            "shorts_manager": [
                Call("scriptwriter", {"request": "knots"}),
                Call("visualizer", {"request": "script"}),
                Call("formatter", {"request": "both"}),
                "A storyboard.",
            ],
            "scriptwriter": ["script"],
            "visualizer": ["shots"],
            "formatter": ["table"],
        },
        after={"storyboard": "A storyboard."},
    ),
    Case(
        name="generator and critic",
        source="google/adk-docs: docs/workflows/patterns.md",
        pipeline=generator_critic,
        state={"brief": "a toast"},
        inputs=("brief",),
        replies={
            "generator": ["t1", told("draft 2", "fail: dull", says="t2")],
            "critic": ["fail: dull", "pass"],
        },
        after={"draft": "t2", "round": 2},
    ),
    Case(
        name="translated story",
        source="google/adk-docs: docs/agents/workflow-agents/loop-agents.md",
        pipeline=translated_story,
        state={"topic": "a fox", "languages": ["French", "Dutch"], "layout": "book"},
        inputs=("topic", "languages", "layout"),
        replies={
            "teller": ["The fox."],
            "translator": {"into French": ["Le renard"], "into Dutch": ["Een vos", "De vos"]},
            "proofreader": {
                "Le renard": [data(grade=5, remarks="")],
                "Een vos": [data(grade=2, remarks="article")],
                "De vos": [data(grade=4, remarks="")],
            },
            "bookbinder": ["A book."],
        },
        text="A book.",
        after={"translations": ["Le renard", "De vos"]},
    ),
)
