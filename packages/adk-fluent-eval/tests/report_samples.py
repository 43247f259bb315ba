"""Reports to show: a lively one with its baseline, a hostile one, and one with very many cases.

Imports no ADK. The same arguments give the same report each time.
"""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any, Final

from adk_fluent.eval._outcome import (
    CaseOutcome,
    Finding,
    MetricScore,
    MetricStatus,
    Status,
    Step,
    Tokens,
    ToolUse,
    TurnOutcome,
)
from adk_fluent.eval._report._report import FluentEvalReport

BEGAN: Final = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)

#: What a model or a tool may say to whoever shows it without care.
HOSTILE: Final = (
    "</script><script>window.owned = 1</script>",
    "<img src=x onerror='window.owned = 2'>",
    '"><svg onload=window.owned=3>',
    "javascript:window.owned=4",
    "{{7*7}} {% raw %} ${7*7} <%= 7*7 %>",
    "<!--<script>window.owned = 5",
    "</title></style></noscript><script>window.owned = 6</script>",
    "&lt;b&gt; &amp; \u2028 \u2029 \x00 \x1b[31m \u202ekcab",
    "half a character: \ud83d, and the other: \ude00",
    "__proto__",
)

_SUBJECTS: Final = (
    ("billing", "I was charged twice for invoice {n}.", "look_up_invoice"),
    ("refund", "Please refund order {n}, it never came.", "start_refund"),
    ("technical", "Error {n} when I sign in with my phone.", "search_articles"),
    ("account", "Change the address of account {n} to Main Street 5.", "update_account"),
    ("smalltalk", "Good morning! Can you help me with {n} things?", ""),
)


def score(
    name: str,
    value: float | None,
    threshold: float | None = 0.8,
    *,
    reason: str = "",
    findings: list[Finding] | None = None,
    unit: str = "",
) -> MetricScore:
    if threshold is None:
        status = MetricStatus.INFORMATIONAL
    elif value is None:
        status = MetricStatus.NOT_EVALUATED
    else:
        status = MetricStatus.PASSED if value >= threshold else MetricStatus.FAILED
    return MetricScore(
        name, status, value, threshold, reason=reason, findings=findings or [], unit=unit
    )


def outcome(id: str, status: Status = Status.PASSED, **fields: Any) -> CaseOutcome:
    """A run that has only what it is given."""
    return CaseOutcome(id, status=status, **fields)


def report(*outcomes: CaseOutcome, **fields: Any) -> FluentEvalReport:
    known: dict[str, Any] = {"suite": "support desk", "engine": "light", "started_at": BEGAN}
    return FluentEvalReport(outcomes, **{**known, **fields})


def lively(cases: int = 24, runs: int = 2, seed: int = 7, skill: float = 0.75) -> FluentEvalReport:
    """A report in which everything happens.

    Args:
        cases: How many cases it has.
        runs: How many runs of each.
        seed: Other figures for another one.
        skill: How likely a run passes.
    """
    random = Random(seed)
    made = [
        _run(number, run, random, skill)
        for number in range(cases)
        for run in range(1, runs + 1)
        if run == 1 or number % 11 != 10  # what is skipped is skipped once
    ]
    return report(
        *made,
        adk_version="2.13.0",
        model="gemini-2.5-flash",
        duration_s=sum(each.duration_s for each in made) / 8,
        notes=["Prices of gemini-2.5-flash are those of 2026-02-20."],
    )


def pair(cases: int = 24, runs: int = 2) -> tuple[FluentEvalReport, FluentEvalReport]:
    """A report and the baseline that it is to be held against, which lacks a case."""
    before = lively(cases, runs, seed=3, skill=0.85)
    return lively(cases, runs), report(*before.outcomes[runs:], duration_s=31.0)


def many(cases: int = 5_000) -> FluentEvalReport:
    return lively(cases, runs=1)


def hostile() -> FluentEvalReport:
    """A report in which every text is hostile."""
    return report(*(_hostile(text, at) for at, text in enumerate(HOSTILE)), suite=HOSTILE[0])


def _run(number: int, run: int, random: Random, skill: float) -> CaseOutcome:
    subject, said, tool = _SUBJECTS[number % len(_SUBJECTS)]
    made = CaseOutcome(
        f"{subject}-{number:03}",
        run,
        input=said.format(n=1000 + number),
        tags=[subject, "smoke" if number % 3 else "hard"],
        metadata={"owner": "desk", "ticket": number},
        session_id=f"s-{number}-{run}",
        user_id="u-1",
    )
    if number % 11 == 10:
        made.status, made.note = Status.SKIPPED, "needs the sandbox of the bank"
        return made
    passed = random.random() < skill
    made.status = Status.PASSED if passed else Status.FAILED
    if number % 13 == 12:
        made.status, made.note = Status.XFAILED, "the model cannot count yet"
        passed = False
    _converse(made, subject, tool, random, passed)
    if not passed and number % 7 == 3:
        made.status, made.error = Status.ERROR, "ServerError: 503 UNAVAILABLE. The model is busy."
        made.reasons = ["turn 2: ServerError: 503 UNAVAILABLE. The model is busy."]
    return made


def _converse(made: CaseOutcome, subject: str, tool: str, random: Random, passed: bool) -> None:
    right = {"reason": "duplicate", "amount": 12.5, "currency": "EUR"}
    args = right if passed else {**right, "amount": 125, "note": "asked twice"}
    use = ToolUse(
        tool,
        {"id": made.metadata["ticket"], **args},
        {"status": "ok", "lines": [{"item": "plan", "total": 12.5}] * 2},
        agent="clerk",
        mocked=made.run == 1,
        call_id="c-1",
    )
    if not passed and random.random() < 0.4:
        use.response, use.error = None, "TimeoutError: the ledger did not answer in 5 s"
    answer = (
        f"I have looked into it: your {subject} request is settled. You get 12.50 EUR back."
        if passed
        else "I am sorry, I could not find that.\nShall I hand you over to a colleague?"
    )
    first = TurnOutcome(
        made.input,
        answer,
        [
            Step("triage", "The user writes about " + subject + ". I hand over.", thought=True),
            Step("triage", state={"intent": subject, "confidence": round(random.random(), 3)}),
            *([Step("clerk", tool=use)] if tool else []),
            Step("clerk", answer),
        ],
        duration_s=random.lognormvariate(0.4, 0.5),
        tokens=Tokens(
            random.randint(900, 2400), 512, random.randint(60, 400), random.randint(0, 300)
        ),
        model_calls=3,
    )
    second = TurnOutcome(
        "Thanks. And how long will it take?",
        "Three working days.",
        [Step("clerk", "Three working days.", state={"resolved": passed})],
        duration_s=random.lognormvariate(-0.2, 0.4),
        tokens=Tokens(1200, 900, 24),
        model_calls=1,
    )
    made.turns = [first, second] if made.metadata["ticket"] % 2 else [first]
    made.tokens = sum((turn.tokens for turn in made.turns), Tokens())
    made.duration_s = sum(turn.duration_s for turn in made.turns)
    made.cost_usd = made.tokens.total * 6e-7
    made.state = {"intent": subject, "resolved": passed, "items": [1, 2, 3], "customer": None}
    made.scores = _scores(use, right, answer, random, passed)
    if not passed:
        made.reasons = [
            f"adk_fluent_trajectory: turn 1 called {tool or 'nothing'} with other arguments",
            "adk_fluent_state: intent is 'other'",
        ]


def _scores(
    use: ToolUse, right: dict[str, Any], answer: str, random: Random, passed: bool
) -> list[MetricScore]:
    share = random.betavariate(9, 2) if passed else random.betavariate(3, 4)
    calls = Finding(
        "tools of turn 1",
        passed,
        [{"name": use.name, "args": right}],
        [{"name": use.name, "args": use.args}],
        "" if passed else "argument amount is 125, not 12.5",
        1,
    )
    intent = Finding(
        "state intent",
        passed,
        "billing",
        "billing" if passed else "other",
        "" if passed else "the value is another",
    )
    says = Finding("the answer contains '12.50'", passed, "12.50", answer, "", 1)
    judge = (
        "The answer names the amount and the time, in a friendly tone."
        if share >= 0.7
        else "The answer apologises and does not say what happens next; rubric 2 is not met."
    )
    quality = "rubric_based_final_response_quality_v1"
    return [
        score("adk_fluent_trajectory", float(passed), 1.0, findings=[calls]),
        score("adk_fluent_state", float(passed), 1.0, findings=[intent, says]),
        score("response_match_score", share, 0.6),
        score(quality, share if share > 0.1 else None, 0.7, reason=judge),
        score("token_usage_v1", float(random.randint(1000, 5200)), None, unit="tokens"),
    ]


def _hostile(text: str, at: int) -> CaseOutcome:
    use = ToolUse(text, {text: text}, {text: [text]}, text if at % 2 else "", text, mocked=True)
    step = Step(text, text, use, {text: text}, text)
    finding = Finding(text, False, {text: text}, text, text, 1)
    return CaseOutcome(
        f"{at} {text}",
        status=Status.FAILED,
        reasons=[text],
        error=text,
        input=text,
        tags=[text],
        metadata={text: text},
        scores=[score(text, 0.25, reason=text, findings=[finding])],
        turns=[TurnOutcome(text, text + "!", [step, Step(text, text, thought=True)])],
        state={text: text},
        note=text,
        stop_reason=text,
        model=text,
        session_id=text,
    )
