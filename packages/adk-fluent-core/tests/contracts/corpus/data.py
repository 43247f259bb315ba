"""Data: questions turned into queries, documents retrieved, tables made and charted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent import (
    Agent,
    Fallback,
    FanOut,
    Loop,
    Pipeline,
    Route,
    S,
    expect,
    map_over,
    race,
    timeout,
    until,
)
from adk_fluent.ir import StateFieldRef
from adk_fluent.testing import Call, reply

from ._case import Case, data, told

if TYPE_CHECKING:
    from adk_fluent.builders import Builder, State

VALID = StateFieldRef("valid", bool)
RELEVANT = StateFieldRef("relevant", bool)
TABLES = StateFieldRef("tables", list[str])
COLUMNS = StateFieldRef("temp:columns", list[str])


def run_query(sql: str, tool_context: Any) -> str:
    """Run a query, and keep its rows."""
    tool_context.state["rows"] = [[1, 2], [3, 4]]
    return "2 rows"


def data_science() -> Builder:
    """SQL until it is valid, then the rows, then analysis and chart at once if one is wanted."""
    write = Agent("sql_writer").instruct("SQL for {question}. Error: {error?}").writes("sql")
    check = Agent("sql_checker").instruct("Is this valid: {sql}").writes(VALID, "error")
    query = (write >> check) * until(lambda s: s["valid"], max=3)
    fetch = Agent("row_fetcher").instruct("Run {sql}.").tool(run_query).writes("rows", via="tool")
    both = FanOut(
        "both",
        Agent("statistician").instruct("Analyse {rows} for {question}.").writes("analysis"),
        Agent("plotter").instruct("Describe a chart of {rows}.").writes("chart"),
    ) >> Agent("presenter").instruct("Present {analysis} with {chart}.")
    plain = Agent("reporter").instruct("Answer {question} from {rows}.")
    return (
        query
        >> expect(lambda s: s["valid"], "the query is valid")
        >> fetch
        >> Route("wants_chart").eq("yes", both).otherwise(plain)
    ).contract(inputs=["question", "wants_chart"], outputs=["rows"])


def model_training() -> Builder:
    """A root that hands over to who trains models, and asks who knows the tables as a tool."""
    tables = Agent("table_expert").instruct("Say which tables hold what you are asked for.")
    trainer = (
        Agent("trainer")
        .description("Trains models.")
        .instruct("Train a model for {goal}.")
        .agent_tool(tables)
        .writes("model_name")
    )
    root = Agent("science_root").instruct("Hand over to the trainer for {goal}.")
    # the root may answer by itself
    model = StateFieldRef("model_name", default=None)
    return Pipeline("training", root.delegates(trainer)).contract(inputs=["goal"], outputs=[model])


def retrieve(query: str, tool_context: Any) -> str:
    """Retrieve passages, and keep where they are from."""
    tool_context.state["citations"] = ["handbook, p. 3"]
    return "Leave is 30 days."


def rag() -> Builder:
    """The handbook is asked, and what was retrieved is cited."""
    ask = (
        Agent("retriever")
        .instruct("Answer from the handbook only.")
        .tool(retrieve)
        .writes("citations", via="tool")
        .writes("answer")
    )
    return (ask >> Agent("citer").instruct("Give {answer} with {citations}.")).contract(
        inputs=[], outputs=[]
    )


def corrective_rag() -> Builder:
    """Two indexes race, what they find is graded, the query is mended; else the web is asked."""
    search = race(
        Agent("vector_index").instruct("Passages near to {query}.").writes("passages"),
        Agent("word_index").instruct("Passages with the words of {query}.").writes("passages"),
        name="indexes",
    )
    grade = Agent("passage_grader").instruct("Do {passages} help with {query}?").writes(RELEVANT)
    mend = Agent("query_mender").instruct("Put better: {query}").writes("query")
    tries = Loop("tries", search, grade, Route("relevant").eq(False, mend), max=2)
    tries.until(lambda s: s["relevant"] is True)
    web = Fallback(
        "web",
        timeout(Agent("web_searcher").instruct("Search for {query}.").writes("passages"), 20),
        S.set(passages="nothing"),
    )
    return (
        tries
        >> Route("relevant").eq(False, web)
        >> Agent("rag_writer").instruct("Answer {query} from {passages}.")
    ).contract(inputs=["query"], outputs=["passages"])


def decoded(state: State) -> dict[str, Any]:
    """What an event from outside says."""
    event = state["event"]
    return {"kind": event["kind"], "body": event.get("body", "")}


def event_processing() -> Builder:
    """Events from outside, each of its kind."""
    return (
        decoded
        >> Route("kind")
        .eq("order", Agent("order_handler").instruct("Handle the order: {body}"))
        .eq("alert", Agent("alert_handler").instruct("Handle the alert: {body}"))
        .otherwise(S.log("kind"))
    ).contract(inputs=["event"], outputs=[])


def read_columns(state: State) -> dict[str, Any]:
    """The columns of a table, for this run only."""
    return {"temp:columns": state["header"].split(",")}


def warehouse_docs() -> Builder:
    """Each table described in parallel, the text proof-read, then published where it is good."""
    lister = Agent("table_lister").instruct("The tables of {warehouse}.").writes(TABLES)
    describe = Agent("table_describer").instruct("Describe the table {table}.")
    editor = Agent("editor").instruct("Edit: {descriptions}. Heed: {advice?}").writes("manual")
    critic = Agent("critic").instruct("ok, or advice: {manual}").writes("advice")
    edit = (editor >> critic) * until(lambda s: s["advice"] == "ok", max=3)
    publish = Agent("publisher").instruct("Publish {manual}.")
    park = Agent("parker").instruct("Keep {manual} for later: {advice}")
    return (
        lister
        >> map_over("tables", describe, item_key="table", output_key="descriptions")
        >> edit
        >> Route("advice").eq("ok", publish).otherwise(park)
    ).contract(inputs=["warehouse"], outputs=["manual"])


def column_report() -> Builder:
    """Values that live as long as the run, and an agent that reads them."""
    report = Agent("column_reporter").instruct("Explain the columns {temp:columns}.")
    return (read_columns >> report.writes("report")).contract(inputs=["header"], outputs=["report"])


def channel_analyst() -> Builder:
    """Numbers and comments of a channel at once, as a chart or a table, until all is clear."""
    numbers = FanOut(
        "numbers",
        Agent("stats_reader").instruct("Numbers of {channel}.").writes("stats"),
        Agent("comment_reader").instruct("What viewers of {channel} say.").writes("comments"),
    )
    chart = Agent("chart_maker").instruct("A chart of {stats}.").writes("figure")
    table = Agent("table_maker").instruct("A table of {stats}.").writes("figure")
    write = (
        Agent("insight_writer")
        .instruct("Insights from {figure}, {comments}. Question: {question?}")
        .writes("insights")
    )
    ask = Agent("client").instruct("clear, or a question: {insights}").writes("question")
    return (
        numbers
        >> Route("format").eq("chart", chart).otherwise(table)
        >> (write >> ask) * until(lambda s: s["question"] == "clear", max=3)
    ).contract(inputs=["channel", "format"], outputs=["insights"])


CASES: Final = (
    Case(
        name="data science",
        source="google/adk-samples: python/agents/data-science/data_science/agent.py",
        pipeline=data_science,
        state={"question": "how many", "wants_chart": "yes"},
        inputs=("question", "wants_chart"),
        replies={
            "sql_writer": ["SELEC", told("Error: syntax", says="SELECT")],
            "sql_checker": [data(valid=False, error="syntax"), data(valid=True, error="")],
            "row_fetcher": [Call("run_query", {"sql": "SELECT"}), "Two."],
            "statistician": ["mean 2"],
            "plotter": ["bars"],
            "presenter": [told("mean 2 with bars", says="Bars, mean 2.")],
        },
        text="Bars, mean 2.",
        after={"rows": [[1, 2], [3, 4]]},
    ),
    Case(
        name="model training",
        source="google/adk-samples: python/agents/data-science/data_science/"
        "sub_agents/bqml/agent.py",
        pipeline=model_training,
        state={"goal": "churn"},
        inputs=("goal",),
        replies={
            "science_root": [Call("transfer_to_agent", {"agent_name": "trainer"})],
            "trainer": [Call("table_expert", {"request": "churn"}), "churn_v1"],
            "table_expert": ["customers"],
        },
        after={"model_name": "churn_v1"},
    ),
    Case(
        name="rag",
        source="google/adk-python: contributing/samples/rag_agent/agent.py",
        pipeline=rag,
        message="How much leave?",
        replies={
            "retriever": [Call("retrieve", {"query": "leave"}), "30 days."],
            "citer": [told("30 days.", "handbook, p. 3", says="30 days (p. 3).")],
        },
        text="30 days (p. 3).",
    ),
    Case(
        name="corrective rag",
        source="google/adk-recipes: core/python/rag-vector-search/README.md",
        pipeline=corrective_rag,
        state={"query": "leaf"},
        inputs=("query",),
        replies={
            "vector_index": ["trees", reply("late", latency=5)],
            "word_index": [reply("late", latency=5), told("words of leave", says="tea")],
            "passage_grader": [data(relevant=False), data(relevant=False)],
            "query_mender": ["leave", "days of leave"],
            "web_searcher": [reply(status=503)],
            "rag_writer": [told("from nothing", says="I do not know.")],
        },
        text="I do not know.",
        after={"query": "days of leave", "passages": "nothing"},
    ),
    Case(
        name="event processing",
        source="google/adk-docs: examples/python/snippets/runtime/triggers/"
        "event_processing_agent/agent.py",
        pipeline=event_processing,
        state={"event": {"kind": "alert", "body": "disk full"}},
        inputs=("event",),
        replies={"alert_handler": [told("disk full", says="Cleaned.")]},
        text="Cleaned.",
    ),
    Case(
        name="warehouse docs",
        source="google/adk-samples: python/agents/data-science/data_science/"
        "sub_agents/bigquery/agent.py",
        pipeline=warehouse_docs,
        state={"warehouse": "sales"},
        inputs=("warehouse",),
        replies={
            "table_lister": [data(tables=["a", "b"])],
            "table_describer": {"table a": ["A."], "table b": ["B."]},
            "editor": ["m1", told("Heed: order", says="m2")],
            "critic": ["order", "ok"],
            "publisher": [told("m2", says="Published.")],
        },
        text="Published.",
        after={"descriptions": ["A.", "B."]},
    ),
    Case(
        name="column report",
        source="google/adk-python: contributing/samples/session_state_agent/agent.py",
        pipeline=column_report,
        state={"header": "id,name"},
        inputs=("header",),
        replies={"column_reporter": [told("'id', 'name'", says="Id and name.")]},
        after={"report": "Id and name."},
    ),
    Case(
        name="channel analyst",
        source="google/adk-samples: python/agents/youtube-analyst/README.md",
        pipeline=channel_analyst,
        state={"channel": "knots", "format": "table"},
        inputs=("channel", "format"),
        replies={
            "stats_reader": ["9 views"],
            "comment_reader": ["kind"],
            "table_maker": [told("9 views", says="| 9 |")],
            "insight_writer": ["i1", told("Question: why?", says="i2")],
            "client": ["why?", "clear"],
        },
        after={"insights": "i2", "figure": "| 9 |"},
    ),
)
