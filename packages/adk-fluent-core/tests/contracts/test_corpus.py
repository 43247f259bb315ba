"""Correct pipelines, checked: no false alarm; and what the corpus is made of."""

from __future__ import annotations

import re

import pytest
from corpus import CASES, Case

from adk_fluent.ir import AgentNode, AppNode, walk


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_is_held_against_a_correct_pipeline(case: Case) -> None:
    report = case.pipeline().check()
    assert not report.errors + report.warnings, report.render()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_what_it_says(case: Case) -> None:
    root = case.pipeline().to_ir()
    node = root.root if isinstance(root, AppNode) else root
    assert node.contract is not None
    assert node.contract.inputs is not None
    assert node.contract.outputs is not None
    assert {ref.key for ref in node.contract.inputs} == set(case.inputs)
    assert set(case.inputs) <= set(case.state)
    assert set(case.replies) <= {each.name for each in walk(root) if isinstance(each, AgentNode)}
    assert case.text is not None or case.after


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 70
    assert len({case.name for case in CASES}) == len(CASES)
    assert sum(case.mixes for case in CASES) >= 30


def test_each_names_a_public_sample() -> None:
    sources = {case.source for case in CASES}
    repositories = {source.partition(": ")[0] for source in sources}
    assert len(sources) >= 60
    assert repositories == {
        "google/adk-docs",
        "google/adk-python",
        "google/adk-recipes",
        "google/adk-samples",
    }
    assert all(re.fullmatch(r"google/[\w-]+: [\w./-]+\.(py|md)", source) for source in sources)
