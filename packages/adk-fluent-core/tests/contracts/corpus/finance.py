"""Money: advice, loans, expenses, payroll, and whatever a person must approve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent import (
    Agent,
    FanOut,
    Loop,
    Pipeline,
    Route,
    S,
    expect,
    gate,
    map_over,
)
from adk_fluent.ir import StateFieldRef
from adk_fluent.testing import Call

from ._case import Case, data, told

if TYPE_CHECKING:
    from adk_fluent.builders import Builder, State

MISSING = StateFieldRef("missing", list[str])
SCORE = StateFieldRef("credit_score", int)
AMOUNT = StateFieldRef("amount", float)
DAYS = StateFieldRef("days", int)
PEOPLE = StateFieldRef("people", list[str])
BALANCED = StateFieldRef("balanced", bool)
COVERED = StateFieldRef("covered", bool)


def financial_advisor() -> Builder:
    """Market, strategies, execution and risk, each on what came before."""
    market = Agent("market_analyst").instruct("The market of {ticker}.").writes("market")
    trading = (
        Agent("trading_analyst")
        .instruct("Strategies for {market}, attitude {user:risk_attitude}.")
        .writes("strategies")
    )
    execution = (
        Agent("execution_analyst").instruct("How to carry out {strategies}.").writes("execution")
    )
    risk = Agent("risk_analyst").instruct("Risks of {strategies} by {execution}, in {market}.")
    return Pipeline("advisor", market, trading, execution, risk.writes("risks")).contract(
        inputs=["ticker", "user:risk_attitude"], outputs=["risks"]
    )


def loan() -> Builder:
    """An application completed, checked from three sides at once, and decided."""
    extract = (
        Agent("document_reader")
        .instruct("Read {application}. What is missing?")
        .writes(MISSING, "applicant")
    )
    ask = Agent("document_asker").instruct("Ask {applicant} for {missing}.").writes("application")
    complete = Loop("complete", extract, Route().when(lambda s: len(s["missing"]) > 0, ask), max=3)
    complete.until(lambda s: not s["missing"])
    checks = FanOut(
        "checks",
        Agent("credit_checker").instruct("The credit score of {applicant}.").writes(SCORE),
        Agent("bank_checker").instruct("Accounts of {applicant}.").writes("accounts"),
        Agent("fraud_checker").instruct("Is {applicant} who they say?").writes("identity"),
    )
    price = Agent("pricer").instruct("A rate for {credit_score}: {accounts}").writes("offer")
    refuse = Agent("refuser").instruct("Refuse: {identity}, {accounts}").writes("offer")
    decide = Route("credit_score").gt(600, price).otherwise(refuse)
    return (complete >> checks >> decide).contract(
        inputs=["application"], outputs=["offer", "identity"]
    )


def parsed(state: State) -> dict[str, Any]:
    """An expense report as keys of state."""
    event = state["event"]
    return {"amount": float(event["amount"]), "purpose": event.get("purpose", "none")}


def expense() -> Builder:
    """Small expenses are approved at once, others reviewed and put before a person."""
    review = Agent("expense_reviewer").instruct("Risks of {amount} for {purpose}?").writes("risks")
    ask = gate(
        message="Pay this expense?",
        payload=lambda s: {"amount": s["amount"], "risks": s["risks"]},
        key="decision",
    )
    large = review >> ask >> S.set(status="approved by a person")
    small = S.set(status="approved")
    return (
        parsed
        >> Route("amount").lt(100, small).otherwise(large)
        >> Agent("clerk").instruct("Enter {amount} for {purpose}: {status}")
    ).contract(inputs=["event"], outputs=["status"])


def granted(state: State) -> dict[str, Any]:
    """The days that the manager grants, else those that were asked for."""
    decision = state["manager"]
    return {"granted": decision.get("days") or state["days"]}


def time_off() -> Builder:
    """A day is granted at once; more are put before the manager, who may change their number."""
    read = Agent("request_reader").instruct("How many days, and why?").writes(DAYS, "why")
    ask = gate(
        message="Grant this leave?",
        payload=lambda s: {"days": s["days"], "why": s["why"]},
        response_schema={
            "type": "object",
            "properties": {"days": {"type": "integer"}},
            "required": ["days"],
        },
        key="manager",
    )
    long = ask >> granted
    short = S.set(granted=1)
    return (
        read
        >> Route("days").gt(1, long).otherwise(short)
        >> Agent("notifier").instruct("Tell the user: {granted} of {days} days.")
    ).contract(inputs=[], outputs=["granted"])


def slips(state: State) -> dict[str, Any]:
    """What the slips add up to."""
    total = sum(float(slip) for slip in state["slips"])
    return {"total": total, "difference": total - state["funds"]}


def payroll() -> Builder:
    """Slips for all people at once, mended until they balance; then paid, if a person says so."""
    people = Agent("roster_reader").instruct("Who is paid in {month}?").writes(PEOPLE)
    slip = Agent("slip_maker").instruct("The pay of {person} in {month}; adjust: {adjustment?}")
    slip_all = map_over("people", slip, item_key="person", output_key="slips", concurrency=4)
    adjust = Agent("adjuster").instruct("How to save {difference}?").writes("adjustment")
    rounds = Loop("rounds", slip_all, slips, Route("difference").gt(0, adjust), max=2)
    rounds.until(lambda s: s["difference"] <= 0)
    pay = gate(message="Pay out?", key="release") >> Agent("payer").instruct(
        "Pay {total}. Release: {release}"
    )
    wait = Agent("waiter").instruct("Say that {difference} is lacking.")
    return (people >> rounds >> Route("difference").gt(0, wait).otherwise(pay)).contract(
        inputs=["month", "funds"], outputs=["total"]
    )


def pre_authorization() -> Builder:
    """Record and policy are read at once; doubts are looked up until it is clear who pays."""
    read = FanOut(
        "read",
        Agent("record_reader")
        .instruct("What treatment does {record} ask for?")
        .writes("treatment"),
        Agent("policy_reader").instruct("What does {policy} cover?").writes("cover"),
    )
    judge = (
        Agent("coverage_judge")
        .instruct("Is {treatment} in {cover}? Also: {precedent?}")
        .writes(COVERED, "doubt")
    )
    look = Agent("precedent_finder").instruct("A precedent for {doubt}").writes("precedent")
    clear = Loop("clear", judge, Route().when(lambda s: s["doubt"] != "", look), max=3)
    clear.until(lambda s: s["doubt"] == "")
    approve = Agent("approver").instruct("Approve {treatment}.").writes("letter")
    deny = Agent("denier").instruct("Deny {treatment}: {cover}").writes("letter")
    return (read >> clear >> Route("covered").eq(True, approve).otherwise(deny)).contract(
        inputs=["record", "policy"], outputs=["letter"]
    )


def approve_reimbursement(amount: float, tool_context: Any) -> str:
    """Note what is to be paid back."""
    tool_context.state["to_pay"] = amount
    return "Noted."


def reimbursement() -> Builder:
    """A tool notes the amount, a person approves, an expectation stands before the payment."""
    read = (
        Agent("receipt_reader")
        .instruct("Read the receipt and note the amount.")
        .tool(approve_reimbursement)
        .writes("to_pay", via="tool")
    )
    ask = gate(lambda s: s["to_pay"] > 100, message="Pay it back?", key="boss")
    return (
        read
        >> ask
        >> expect(lambda s: s["to_pay"] > 0, "something is to be paid")
        >> Agent("bank_clerk").instruct("Pay {to_pay}. The boss says: {boss?}")
    ).contract(inputs=[], outputs=["to_pay"])


CASES: Final = (
    Case(
        name="financial advisor",
        source="google/adk-samples: python/agents/financial-advisor/financial_advisor/agent.py",
        pipeline=financial_advisor,
        state={"ticker": "ACME", "user:risk_attitude": "calm"},
        inputs=("ticker", "user:risk_attitude"),
        replies={
            "market_analyst": ["up"],
            "trading_analyst": [told("for up", "calm", says="hold")],
            "execution_analyst": [told("hold", says="slowly")],
            "risk_analyst": [told("hold by slowly, in up", says="few")],
        },
        after={"risks": "few"},
    ),
    Case(
        name="loan",
        source="google/adk-recipes: contrib/python/small-business-loan-agent/"
        "small_business_loan_agent/agent.py",
        pipeline=loan,
        state={"application": "form"},
        inputs=("application",),
        replies={
            "document_reader": [
                data(missing=["tax return"], applicant="Baker"),
                told("form, tax return", says=data(missing=[], applicant="Baker")),
            ],
            "document_asker": [told("tax return", says="form, tax return")],
            "credit_checker": [data(credit_score=700)],
            "bank_checker": ["fine"],
            "fraud_checker": ["genuine"],
            "pricer": [told("700: fine", says="4 percent")],
        },
        after={"offer": "4 percent", "identity": "genuine"},
    ),
    Case(
        name="expense",
        source="google/adk-samples: python/agents/ambient-expense-agent/expense_agent/agent.py",
        pipeline=expense,
        state={"event": {"amount": "250", "purpose": "dinner"}},
        inputs=("event",),
        replies={
            "expense_reviewer": [told("250.0 for dinner", says="none")],
            "clerk": [told("approved by a person", says="Entered.")],
        },
        answers=(True,),
        text="Entered.",
    ),
    Case(
        name="time off",
        source="google/adk-python: contributing/samples/workflows/request_input_advanced/agent.py",
        pipeline=time_off,
        message="Five days, I marry.",
        replies={
            "request_reader": [data(days=5, why="wedding")],
            "notifier": [told("4 of 5", says="Four days.")],
        },
        answers=({"days": 4},),
        text="Four days.",
        after={"granted": 4},
    ),
    Case(
        name="payroll",
        source="google/adk-samples: python/agents/crypto-payroll-agent/crypto_payroll_agent/"
        "__init__.py",
        pipeline=payroll,
        state={"month": "May", "funds": 100},
        inputs=("month", "funds"),
        replies={
            "roster_reader": [data(people=["Ann", "Bob"])],
            "slip_maker": {"of Ann": ["60", "50"], "of Bob": ["60", "50"]},
            "adjuster": [told("20.0", says="less for all")],
            "payer": [told("Pay 100.0", says="Paid.")],
        },
        answers=(True,),
        text="Paid.",
        after={"slips": ["50", "50"], "total": 100},
    ),
    Case(
        name="pre-authorization",
        source="google/adk-samples: python/agents/medical-pre-authorization/"
        "medical_pre_authorization/__init__.py",
        pipeline=pre_authorization,
        state={"record": "r.pdf", "policy": "p.pdf"},
        inputs=("record", "policy"),
        replies={
            "record_reader": ["knee"],
            "policy_reader": ["joints"],
            "coverage_judge": [
                data(covered=False, doubt="knees"),
                told("Also: yes, 2019", says=data(covered=True, doubt="")),
            ],
            "precedent_finder": ["yes, 2019"],
            "approver": ["Approved: knee."],
        },
        after={"letter": "Approved: knee."},
    ),
    Case(
        name="reimbursement",
        source="google/adk-python: contributing/samples/human_in_loop/agent.py",
        pipeline=reimbursement,
        message="A receipt.",
        replies={
            "receipt_reader": [Call("approve_reimbursement", {"amount": 150}), "150."],
            "bank_clerk": [told("Pay 150", says="Paid.")],
        },
        answers=(True,),
        text="Paid.",
        after={"to_pay": 150},
    ),
)
