"""Parts with a boundary of their own, and steps whose state is a matter of what is around them."""

from __future__ import annotations

from typing import Final

from ._mistake import Mistake

_KIND: Final = "ReadBeforeWrite"
_MAYBE: Final = "MaybeUndefined"

_BOUNDARIES: Final = (
    Mistake(
        title="a part that declares an input which is not there",
        of="blog writer",
        right='Route("wants_social").eq("yes", social)',
        wrong='Route("wants_social").eq("yes", social.contract(inputs=["post", "tags"]))',
        finding=_KIND,
        at=(("social", "tags"),),
        help='inputs=["tags"]',
        silent=True,
    ),
    Mistake(
        title="a part that declares an input which is there on some ways only",
        of="economic research",
        right="(scope >> kind >> polish)",
        wrong='(scope >> kind >> polish.contract(inputs=["analysis", "profiles"]))',
        finding=_MAYBE,
        at=(("loop", "profiles"),),
        help='StateFieldRef("profiles", default=None)',
    ),
    Mistake(
        title="a part that declares an input without its scope",
        of="preferences",
        right="(keeper >> confirm)",
        wrong='(keeper >> Pipeline("confirm", confirm).contract(inputs=["preferences"]))',
        finding="ScopeMismatch",
        at=(("confirm", "preferences"),),
        help="`user:preferences`",
        silent=True,
    ),
    Mistake(
        title="a part that promises an output which it does not write",
        of="blog writer",
        right='Route("wants_social").eq("yes", social)',
        wrong='Route("wants_social").eq("yes", social.contract(outputs=["short_post", "thread"]))',
        finding=_KIND,
        at=(("social", "thread"),),
        help="out of the outputs",
        silent=True,
    ),
    Mistake(
        title="a part that promises an output which it writes on some ways only",
        of="speculative fix",
        right='Route("failures").gt(0, broken), max=2)',
        wrong='Route("failures").gt(0, broken).contract(outputs=["failed"]), max=2)',
        finding=_MAYBE,
        at=(("route", "failed"),),
        help='StateFieldRef("failed", default=None)',
    ),
    Mistake(
        title="another finding is allowed than the one there is",
        of="podcast",
        right='outputs=["talk", "title"]\n    )',
        wrong='outputs=["talk", "titles"]\n    ).allow("FLW008")',
        finding=_KIND,
        at=(("pipeline", "titles"),),
        help="`title`",
        silent=True,
    ),
    Mistake(
        title="a finding is allowed at another step than the one it is about",
        of="pre-trip",
        right='{storms} {warnings}")',
        wrong='{storms}").allow("FLW008")',
        finding="DeadState",
        severity="warning",
        at=(("warnings_agent", "warnings"),),
        help="outputs",
    ),
)

_CALLED: Final = (
    Mistake(
        title="the target of a transfer needs a key that nobody writes",
        of="callback desk",
        right="Arrange a call about {question}.",
        wrong="Arrange a call about {question}, by {phone}.",
        finding=_KIND,
        at=(("callback", "phone"),),
        help='inputs=["phone"]',
    ),
    Mistake(
        title="the target of a transfer needs what only the one before it writes",
        of="callback desk",
        right="Arrange a call about {question}.",
        wrong="Arrange a call about {question}, after {outcome}.",
        finding=_MAYBE,
        at=(("callback", "outcome"),),
        help="{outcome?}",
    ),
    Mistake(
        title="an agent that is a tool and needs the answer of who calls it",
        of="academic research",
        right="Propose research that the given papers call for.",
        wrong="Propose research that {advice} leaves out.",
        finding=_KIND,
        at=(("new_directions", "advice"),),
        help="{advice?}",
    ),
    Mistake(
        title="an agent that is a tool and needs a key of earlier sessions",
        of="inspiration",
        right="Propose three places.",
        wrong="Propose three places for {user:taste}.",
        finding="ExternalState",
        at=(("place_agent", "user:taste"),),
        help="{user:taste?}",
    ),
    Mistake(
        title="a delegate that needs a name that nobody has asked for",
        of="weather team",
        right="Greet, nothing else.",
        wrong="Greet {name}, nothing else.",
        finding=_KIND,
        at=(("greeter", "name"),),
        help='inputs=["name"]',
        silent=True,
    ),
    Mistake(
        title="a delegate that needs what it writes itself",
        of="model training",
        right="Train a model for {goal}.",
        wrong="Train a model for {goal}, better than {model_name}.",
        finding=_MAYBE,
        at=(("trainer", "model_name"),),
        help="{model_name?}",
    ),
    Mistake(
        title="a gate that is no longer told its key",
        of="cyber guardian",
        right='gate(message="Isolate the host?", key="order")',
        wrong='gate(message="Isolate the host?")',
        finding=_KIND,
        at=(("responder", "order"),),
        help="{order?}",
    ),
    Mistake(
        title="the answer to a gate under the name of its message",
        of="code review",
        uses=("summed",),
        right="Decided: {merge_decision}",
        wrong="Decided: {merge_it}",
        finding=_KIND,
        at=(("merger", "merge_it"),),
        help="{merge_it?}",
    ),
)

_AROUND: Final = (
    Mistake(
        title="a pick that forgets a key",
        of="tidy",
        right='S.drop("text")',
        wrong='S.pick("line")',
        finding=_KIND,
        at=(("speaker", "length"), ("pipeline", "language")),
        help="let `pick` keep it",
        silent=True,
    ),
    Mistake(
        title="a pick between a key and the route that decides by it",
        of="bug assistant",
        right="(search >> likely >> Route",
        wrong='(search >> likely >> S.pick("bug", "diagnosis") >> Route',
        finding=_KIND,
        severity="warning",
        at=(("route", "severity"),),
        help="let `pick` keep it",
        silent=True,
    ),
    Mistake(
        title="an expectation before what it is about",
        of="data science",
        right="""\
        query
        >> expect(lambda s: s["valid"], "the query is valid")
""",
        wrong="""\
        expect(lambda s: s["valid"], "the query is valid")
        >> query
""",
        finding=_KIND,
        at=(("expect", "valid"),),
        help='state.get("valid")',
    ),
    Mistake(
        title="an expectation of what one branch writes",
        of="returns desk",
        right='"Refuse kindly: {policy_status}") >> S.set(outcome="refused")',
        wrong='"Refuse kindly: {policy_status}")',
        finding=_MAYBE,
        at=(("print_outcome", "outcome"), ("expect", "outcome"), ("pipeline", "outcome")),
        help="outcome",
    ),
    Mistake(
        title="a misspelt key within a limit of time",
        of="catalog lookup",
        right='"Stock of {product}?"',
        wrong='"Stock of {products}?"',
        finding=_KIND,
        at=(("stock_system", "products"),),
        help="`product`",
        silent=True,
    ),
    Mistake(
        title="what the other one in a race writes, within a limit of time",
        of="answer desk",
        right="Answer from manuals: {asked}",
        wrong="Answer from manuals what {answer} leaves open: {asked}",
        finding=_KIND,
        at=(("manuals", "answer"),),
        help="{answer?}",
        silent=True,
    ),
    Mistake(
        title="a loop in a loop that needs what the outer one writes later",
        of="story flow",
        right="(critic >> reviser) * 2 >> checks >>",
        wrong=(
            '((critic >> reviser >> Agent("editor").instruct("Lighten {story}: {tone}")) * 2'
            " >> checks) * 2 >>"
        ),
        finding=_KIND,
        at=(("editor", "tone"),),
        help="{tone?}",
    ),
    Mistake(
        title="a key of a loop in a loop that a route may leave out",
        of="code review",
        uses=("summed",),
        right='Route("open").gt(0, mend), max=3)',
        wrong=(
            'Route("open").gt(0, Loop("mending", mend, Agent("noter").instruct("Note {code}")'
            '.writes("note"), max=2)), Agent("teller").instruct("Tell {note}"), max=3)'
        ),
        finding=_MAYBE,
        at=(("teller", "note"),),
        help="{note?}",
    ),
)

MISTAKES: Final = (*_BOUNDARIES, *_CALLED, *_AROUND)
