from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_fluent.protocol import AgentEvent, compose_answer, final_text, kept_events

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random


def said(text: str, path: str | None = None, **more: object) -> AgentEvent:
    return AgentEvent("a", text, is_final=True, path=path, **more)  # pyright: ignore[reportArgumentType]


# --- the rule, kind by kind ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "answer"),
    [
        ({}, ""),
        ({"": "root"}, "root"),
        ({"s0": "first", "s1": "second"}, "second"),
        ({"s1": "second", "s0": "first"}, "second"),
        ({"s9": "nine", "s10": "ten"}, "ten"),
        ({"l0": "once", "l1": "twice"}, "twice"),
        ({"r1": "chosen"}, "chosen"),
        ({"f0": "failed", "f1": "worked"}, "worked"),
        ({"w2": "winner"}, "winner"),
        ({"t0": "in time"}, "in time"),
        ({"x0": "handed over"}, "handed over"),
        ({"p1": "right", "p0": "left"}, "left\n\nright"),
        ({"m10": "last", "m2": "first"}, "first\n\nlast"),
        ({"p0.s0": "a", "p0.s1": "b", "p1.l0": "c"}, "b\n\nc"),
        ({"p1.p0": "b", "p1.p1": "c", "p0": "a"}, "a\n\nb\n\nc"),
        ({"s0.p0": "a", "s0.p1": "b", "s1.r0.f1": "c"}, "c"),
        ({"s1": "shallow", "s1.l0": "deep"}, "deep"),
        ({"s0": "has one", "s1.p0": ""}, "has one"),
    ],
)
def test_the_answer_of_each_arrangement(texts: dict[str, str], answer: str) -> None:
    assert final_text([said(text, path) for path, text in texts.items()]) == answer
    assert compose_answer(texts.items()) == answer


def test_of_several_finals_of_one_agent_the_last_counts() -> None:
    assert final_text([said("one", "s0"), said("two", "s0")]) == "two"


def test_only_final_whole_texts_count() -> None:
    noise = [
        said("streamed", "s2", is_partial=True),
        AgentEvent("a", "on the way", path="s3"),
        AgentEvent("a", None, is_final=True, path="s4"),
        said("", "s5"),
    ]
    assert final_text([said("answer", "s1"), *noise]) == "answer"
    assert final_text(noise) == ""


def test_without_positions_the_last_final_text_counts() -> None:
    assert final_text([said("one"), said("two"), AgentEvent("a", "three")]) == "two"
    assert final_text([said("note"), said("answer", "s0"), said("afterwards")]) == "answer"


def test_of_several_runs_the_last_counts() -> None:
    first = [said("old left", "p0", invocation_id="1"), said("old right", "p1", invocation_id="1")]
    assert final_text([*first, said("new", "p0", invocation_id="2")]) == "new"


def test_a_resumed_run_is_one_run() -> None:
    one = said("before the pause", "p0", invocation_id="1", metadata={"run": "r"})
    two = said("after it", "p1", invocation_id="2", metadata={"run": "r"})
    assert final_text([one, two]) == "before the pause\n\nafter it"


@pytest.mark.parametrize("path", ["s", "x.s0", "s0..s1", "0"])
def test_a_path_of_another_form_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        compose_answer([(path, "text")])


def test_paths_may_be_very_deep() -> None:
    deep = ".".join(f"s{n % 7}" for n in range(20_000))
    began = time.process_time()
    assert final_text([said("deep", deep), said("shallow", "s0")]) == "deep"
    assert time.process_time() - began < 1


# --- discarded attempts --------------------------------------------------------------------------


def discard(*scopes: str, **more: object) -> AgentEvent:
    return AgentEvent("root", discarded=scopes, **more)  # pyright: ignore[reportArgumentType]


def test_what_a_discarded_attempt_said_does_not_count() -> None:
    events = [said("failed", "f0", attempt="1"), discard("1"), said("worked", "f1", attempt="2")]
    assert final_text(events) == "worked"
    assert kept_events(events) == events[1:]


def test_discarding_a_scope_discards_those_inside_it_and_no_others() -> None:
    inside, beside = said("in", "s0", attempt="3.7"), said("beside", "s1", attempt="37")
    outside = said("out", "s2", attempt="3")
    assert kept_events([inside, beside, outside, discard("7")])[:2] == [beside, outside]
    assert kept_events([inside, beside, outside, discard("3", "9")])[:1] == [beside]


def test_scopes_belong_to_their_run() -> None:
    event = said("kept", "s0", attempt="1", invocation_id="1")
    assert kept_events([event, discard("1", invocation_id="2")])[0] is event
    resumed = discard("1", invocation_id="2", metadata={"run": "r"})
    event.metadata["run"] = "r"
    assert kept_events([event, resumed]) == [resumed]


def test_nothing_is_lost_where_nothing_is_discarded() -> None:
    events = [said("a", "s0", attempt="1"), said("b")]
    assert kept_events(iter(events)) == events


# --- any program, any order of arrival -----------------------------------------------------------


@dataclass
class Step:
    """A program: a leaf with what it said, or an arrangement of what ran of it."""

    letter: str = ""
    below: dict[int, Step] = field(default_factory=dict[int, "Step"])
    texts: list[str] = field(default_factory=list[str])

    def answer(self) -> str | None:
        if not self.letter:
            return self.texts[-1] if self.texts else None
        answers = [self.below[n].answer() for n in sorted(self.below)]
        given = [each for each in answers if each]
        if not given:
            return None
        return "\n\n".join(given) if self.letter in "pm" else given[-1]

    def finals(self, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
        yield from ((".".join(path), text) for text in self.texts)
        for n, each in self.below.items():
            yield from each.finals((*path, f"{self.letter}{n}"))


def leaves() -> st.SearchStrategy[Step]:
    return st.builds(Step, texts=st.lists(st.text(min_size=1, max_size=4), max_size=3))


def arrangements(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    return st.builds(
        Step,
        letter=st.sampled_from("spwlrfmtx"),
        below=st.dictionaries(st.integers(0, 12), inner, max_size=4),
    )


programs = st.recursive(leaves(), arrangements, max_leaves=12)


@given(programs, st.randoms(use_true_random=False), st.data())
def test_the_answer_does_not_depend_on_the_order_of_arrival(
    program: Step, random: Random, data: st.DataObject
) -> None:
    finals = list(program.finals())
    assert compose_answer(finals) == (program.answer() or "")
    order = [path for path, _ in finals]
    random.shuffle(order)
    waiting = {path: iter([t for p, t in finals if p == path]) for path in order}
    arrived = [said(next(waiting[path]), path) for path in order]
    lost = [said("lost", path, attempt="1.2") for path in order[:2]]
    at = data.draw(st.integers(0, len(arrived)))
    events = [*lost, *arrived[:at], discard("2"), *arrived[at:]]
    assert final_text(events) == (program.answer() or "")
