"""``adk-fluent serve``, as a process."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pytest
from serve_kit import rpc, said

from adk_fluent.cli import main

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.adk

DESK = """
from adk_fluent import Agent
from adk_fluent.testing import ScriptedModel

desk = Agent("desk", ScriptedModel("Hello.", ConnectionError("reset"), default="Hello."))
"""


@pytest.mark.skipif(os.name == "nt", reason="its processes take no SIGINT of their own")
def test_it_serves_until_interrupted(tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(DESK)
    tokens = json.dumps({"t0k": "ann"})
    command = [sys.executable, "-m", "adk_fluent.cli", "serve", "desk.py:desk", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--task-store", "sqlite:///tasks.db", "--push"],
        cwd=tmp_path,
        env={**os.environ, "ADK_FLUENT_SERVE_TOKENS": tokens},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"serving at (http://127\.0\.0\.1:\d+);", line)
        assert found is not None, line
        body = rpc("SendMessage", message=said("Hi."))
        headers = {"a2a-version": "1.0", "authorization": "Bearer t0k"}
        response = httpx.post(found[1], json=body, headers=headers, timeout=120)
        assert response.json()["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        for wrong in (rpc("SendMessage", message=3), rpc("SendMessage", message=said("Again."))):
            httpx.post(found[1], json=wrong, headers=headers, timeout=120)
        assert httpx.post(found[1], json=body).status_code == 401
        card = httpx.get(f"{found[1]}/.well-known/agent-card.json").json()
        assert card["capabilities"]["pushNotifications"] is True
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
        *logged, last = process.stderr.read().splitlines()
        assert last == "[stopping]"
        *of_request, failed = logged
        assert all("a2a.server.routes" in line for line in of_request)
        assert re.fullmatch(
            r"ERROR adk_fluent: task \S+ of a served pipeline failed: ConnectionError: reset .*"
            r"\(node 'desk' at .*desk.py:5\); the connection broke .*",
            failed,
        )
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
    assert (tmp_path / "tasks.db").exists()


def test_tokens_that_are_not_json_are_refused_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "desk_of_tokens.py").write_text(DESK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADK_FLUENT_SERVE_TOKENS", "hunter2")
    with pytest.raises(SystemExit) as caught:
        main(["serve", "desk_of_tokens.py:desk"])
    told = capsys.readouterr().err
    assert caught.value.code == 2
    assert "ADK_FLUENT_SERVE_TOKENS holds JSON" in told
    assert "hunter2" not in told


@pytest.mark.parametrize("command", ["serve", "directory"])
def test_an_address_that_is_taken_is_told(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "desk_at_a_port.py").write_text(DESK)
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        target = "desk_at_a_port.py:desk" if command == "serve" else "agents.db"
        with pytest.raises(SystemExit) as caught:
            main([command, target, "--port", port])
    told = capsys.readouterr().err
    assert caught.value.code == 2
    assert "the server cannot listen at its address" in told
    assert f"asked for 127.0.0.1:{port}" in told
    assert "Traceback" not in told


def test_a_card_says_where_grpc_is_beside_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "desk_of_grpc.py").write_text(DESK)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["serve", "desk_of_grpc.py:desk", "--grpc-endpoint", "https://a.example"])
    assert "give --endpoint, too" in capsys.readouterr().err
