"""Runs whose state holds what codecs carry, between segments and engines."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, gate
from adk_fluent.builders import Pipeline, State
from adk_fluent.distributed import BoundaryError, DbosEngine, InlineEngine, _codecs
from adk_fluent.distributed._codecs import codec_named
from adk_fluent.errors import AdkFluentError, UsageError

codec_values: Any = pytest.importorskip("codec_values")  # where the extras are installed

if TYPE_CHECKING:
    from pathlib import Path

    from adk_fluent.ir import Serialization

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x
]

TABLE, NOON = codec_values.TABLE, codec_values.NOON
ORDER: Any = codec_values.Order(id="A1", cents=250, notes=["fragile"])


def load(state: State) -> dict[str, object]:
    return {"rows": [TABLE], "order": ORDER, "photo": {"data": b"\x89PNG" * 20_000, "at": NOON}}


def total(state: State) -> dict[str, object]:
    photo, order = state["photo"], state["order"]
    assert photo == {"data": b"\x89PNG" * 20_000, "at": NOON}
    table = state["rows"][0].append_column("cents", [[order.cents, order.cents]])
    order.notes.append("checked")  # of its own: what is stored stays as it is
    return {"sum": table, "late": {"orders": [order]}, "user:seen": b"x"}


def close(state: State) -> dict[str, object]:
    return {"columns": state["sum"].column_names, "same": state["order"] == ORDER}


def far(name: str, *codecs: Serialization, wait: bool = False) -> Pipeline:
    """A pipeline with one boundary for each codec."""
    first, *others = codecs
    steps = Pipeline("far", total).execution_boundary(serialization=first)
    pipeline = Pipeline(name, load, steps)
    for each in others:
        empty = Agent(f"with_{each}").mock("-")
        pipeline = Pipeline(name, pipeline, empty.execution_boundary(serialization=each))
    if wait:
        pipeline = Pipeline(name, pipeline, gate(message="Go on?", name="ok"))
    return Pipeline(name, pipeline, close)


async def test_state_of_all_codecs_crosses_and_survives(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    pipeline = far("job", "arrow", "msgpack", "protobuf", wait=True)
    state = {"given": {"order": ORDER, "$codec": "none"}}
    async with DbosEngine(url) as engine:
        asked = await engine.run(pipeline, "Go.", run_id="r", state=state)
        assert asked.state["sum"].column("cents").to_pylist() == [250, 250]
        stands = await engine.status("r")
        assert stands.state["sum"] == {"$codec": "arrow", "kind": "table"}
        assert stands.state["order"] == {"$codec": "protobuf", "kind": "adk_fluent_tests.Order"}
        json.dumps(stands.to_dict())
    async with DbosEngine(url) as other:  # nothing is remembered of the first
        await other.answer("r", asked.pending[0].answer(True))
        result = await other.run(pipeline, "Go.", run_id="r", state=state)
    assert (result.state["columns"], result.state["same"]) == (
        ["n", "text", "number", "cents"],
        True,
    )
    assert result.state["rows"][0].equals(TABLE, check_metadata=True)
    assert list(result.state["late"]["orders"][0].notes) == ["fragile", "checked"]
    assert (result.state["given"], result.state["user:seen"]) == (state["given"], b"x")
    with closing(sqlite3.connect(tmp_path / "runs.sessions.sqlite")) as db:
        (text,) = db.execute("select state from adk_fluent_sessions").fetchone()
        kept = db.execute("select name, length(data) from adk_fluent_artifacts").fetchall()
    assert json.loads(text)["order"]["$codec"] == "protobuf"  # its name stands with the payload
    assert [size > 80_000 for _, size in kept] == [True]
    assert len(text) < 20_000


async def test_in_memory_it_is_the_same() -> None:
    pipeline = far("job", "arrow", "msgpack", "protobuf")
    result = await InlineEngine().run(pipeline, "Go.", run_id="r", state={"given": ORDER})
    assert (result.state["same"], result.state["given"]) == (True, ORDER)


async def test_what_no_codec_of_the_pipeline_carries_is_refused_where_it_is_written(
    tmp_path: Path,
) -> None:
    async with DbosEngine(f"sqlite:///{tmp_path / 'runs.sqlite'}") as engine:
        pipeline = far("job", "arrow", "msgpack")
        with pytest.raises(AdkFluentError) as caught:
            await engine.run(pipeline, "Go.", run_id="r")
        stands = await engine.status("r")
        with pytest.raises(UsageError, match=r"state\['late'\]\[0\] is an Order"):
            await engine.run(pipeline, "Go.", state={"late": [ORDER]})
    assert stands.error is not None
    assert "state['order'] is an Order" in str(caught.value)
    assert (stands.status, stands.error["type"], stands.error["node"]) == (
        "failed",
        "UnstorableValueError",
        "load",
    )
    assert "serialization='protobuf'" in stands.error["help"]


async def test_a_worker_without_the_extra_says_so_and_the_run_keeps_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    pipeline = far("job", "arrow", "msgpack", "protobuf")

    def without(name: str) -> Any:
        if name == "arrow":
            raise BoundaryError("serialization='arrow' needs pyarrow", help="pip install it")
        return codec_named(name)

    async with DbosEngine(url, poll_seconds=0.02) as engine:
        await engine.submit(pipeline, "Go.", run_id="r", state={"rows": [TABLE]})
        with monkeypatch.context() as patch:
            patch.setattr(_codecs, "codec_named", without)
            async with DbosEngine(url) as light:
                with pytest.raises(BoundaryError, match="needs pyarrow"):
                    light.register(pipeline)
        assert (await engine.status("r")).status == "running"
        serving = asyncio.ensure_future(engine.serve())
        async with asyncio.timeout(60):
            while not (stands := await engine.status("r")).is_over:  # noqa: ASYNC110  # queued
                await asyncio.sleep(0.02)
        serving.cancel()
    assert (stands.status, stands.state["same"]) == ("completed", True)


async def test_a_run_whose_state_cannot_be_read_fails_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "runs.sessions.sqlite"
    pipeline = far("job", "arrow", "msgpack", "protobuf", wait=True)

    def rename(old: str, new: str) -> None:
        with closing(sqlite3.connect(path)) as db, db:
            for table, column in (("sessions", "state"), ("events", "data")):
                db.execute(
                    f"update adk_fluent_{table} set {column} = replace({column}, ?, ?)", (old, new)
                )

    async with DbosEngine(f"sqlite:///{tmp_path / 'runs.sqlite'}") as engine:
        asked = await engine.run(pipeline, "Go.", run_id="r")
    rename('"arrow"', '"parquet"')  # as a newer version might write it
    async with DbosEngine(f"sqlite:///{tmp_path / 'runs.sqlite'}") as engine:
        await engine.answer("r", asked.pending[0].answer(True))
        with pytest.raises(AdkFluentError, match="no codec 'parquet'"):
            await engine.run(pipeline, "Go.", run_id="r")
        assert (await engine.status("r")).status == "failed"
        rename('"parquet"', '"arrow"')
        await engine.answer("r")
        again = await engine.run(pipeline, "Go.", run_id="r")
        assert [each.name for each in again.pending] == ["ok"]
