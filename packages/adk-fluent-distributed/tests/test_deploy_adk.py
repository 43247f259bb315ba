"""What `adk-fluent deploy` writes, and who may run calls of a segment with a container."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from adk_fluent import Agent
from adk_fluent.cli import installed_version, main
from adk_fluent.distributed import BoundaryError, DbosEngine, ScalingConfig

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x
]
PIPELINE = """\
from adk_fluent import Agent
from adk_fluent.distributed import ScalingConfig

scaling = ScalingConfig(max_instances=2, concurrency=8)
heavy = Agent("Heavy_Work").mock("H").execution_boundary(isolation="container", scaling=scaling)
close = Agent("c").mock("C").execution_boundary()
refund = (Agent("a").mock("A") >> heavy >> close).named("refund")
"""


@pytest.fixture
def target(tmp_path: Path) -> str:
    (tmp_path / "refunds.py").write_text(PIPELINE, "utf-8")
    return f"{tmp_path / 'refunds.py'}:refund"


def deployed(target: str, folder: Path) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["deploy", target, "--output", str(folder), "--image", "registry/refunds:1"])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_what_is_written(target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "deploy"
    assert deployed(target, folder) == 0
    names = ["Dockerfile", "kubernetes.yaml"]
    assert capsys.readouterr().out.splitlines() == [str(folder / name) for name in names]
    docker = (folder / "Dockerfile").read_text("utf-8")
    assert f"FROM python:{sys.version_info.major}.{sys.version_info.minor}-slim\n" in docker
    assert docker.endswith('ENTRYPOINT ["adk-fluent", "worker", "refunds.py:refund"]\n')
    for name in ("adk-fluent-core", "adk-fluent-distributed", "google-adk"):
        assert f" {name}=={installed_version(name)}" in docker
    both: list[Any] = [*yaml.safe_load_all((folder / "kubernetes.yaml").read_text("utf-8"))]
    assert [each["metadata"]["name"] for each in both] == ["refund", "refund-heavy-work"]
    pods = [each["spec"]["template"]["spec"] for each in both]
    assert [pod["containers"][0]["image"] for pod in pods] == ["registry/refunds:1"] * 2
    assert [pod["containers"][0]["args"] for pod in pods] == [
        ["--segment", "refund", "--segment", "c", "--concurrency", "4", "--drain", "30"],
        ["--segment", "Heavy_Work", "--concurrency", "8", "--drain", "30"],
    ]
    assert [pod["terminationGracePeriodSeconds"] for pod in pods] == [45, 45]
    environments = [[each["name"] for each in pod["containers"][0]["env"]] for pod in pods]
    assert environments == [
        ["ADK_FLUENT_DATABASE"],
        ["ADK_FLUENT_DATABASE", "ADK_FLUENT_CONTAINER"],
    ]
    assert pods[1]["containers"][0]["env"][1]["value"] == "Heavy_Work"
    assert [each["spec"].get("strategy") is None for each in both] == [True, False]


def test_what_is_there_is_not_written_over(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert deployed(target, tmp_path / "deploy") == 0
    assert deployed(target, tmp_path / "deploy") == 0  # the same
    (tmp_path / "deploy" / "Dockerfile").write_text("FROM mine", "utf-8")
    assert deployed(target, tmp_path / "deploy") == 2
    assert "FileExistsError" in capsys.readouterr().err
    assert (tmp_path / "deploy" / "Dockerfile").read_text("utf-8") == "FROM mine"


async def test_its_container_alone_runs_a_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heavy = (
        Agent("heavy")
        .mock("H")
        .execution_boundary(isolation="container", scaling=ScalingConfig(max_instances=2))
    )
    pipeline = Agent("a").mock("A") >> heavy
    async with DbosEngine(f"sqlite:///{tmp_path / 'runs.sqlite'}") as engine:
        assert (await engine.submit(pipeline, "Go.", run_id="r")).status == "running"
        with pytest.raises(BoundaryError, match="cannot host segment 'heavy'"):
            await engine.run(pipeline, "Go.")
        with pytest.raises(BoundaryError, match="cannot host segment 'heavy'"):
            await engine.serve(["heavy"])
        monkeypatch.setenv("ADK_FLUENT_CONTAINER", "heavy")
        with pytest.raises(BoundaryError, match="cannot host segment 'heavy'"):
            await engine.serve()
        ready = asyncio.Event()
        serving = asyncio.create_task(engine.serve(["heavy"], ready=ready.set))
        await asyncio.wait_for(ready.wait(), 120)
        serving.cancel()
        await asyncio.wait([serving])
