"""A Postgres of its own on a free port of 127.0.0.1, of whatever the machine has installed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

MISSING = "Postgres is not installed: apt-get install postgresql"
_SECONDS = 60
_TRIALS = 5  # ports
_QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}


def binaries() -> Path | None:
    """The folder of Postgres's programs; None where there are none."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return debian[-1].parent if debian else None


def ends_with_us(signal_name: str) -> list[str]:
    """What to put before a command, so that its process ends when this one is killed."""
    found = shutil.which("setpriv")  # of util-linux
    return [found, "--pdeathsig", signal_name] if found else []


@contextmanager
def running(folder: Path) -> Generator[str]:
    """The address of a server that runs meanwhile, without the name of a database."""
    data = tempfile.mkdtemp(prefix="adk-fluent-pg-")
    who: dict[str, Any] = {}
    try:
        if os.geteuid() == 0:  # it refuses to run as root
            who = {"user": "postgres", "group": "postgres"}
            shutil.chown(data, "postgres", "postgres")
        made = [
            folder / "initdb",
            "-D",
            data,
            "-A",
            "trust",
            "-U",
            "tests",
            "--no-sync",
            "-E",
            "UTF8",
        ]
        subprocess.run(made, check=True, **_QUIET, **who)
        with _server(folder, data, who) as address:
            yield address
    finally:
        shutil.rmtree(data, ignore_errors=True)


@contextmanager
def _server(folder: Path, data: str, who: dict[str, Any]) -> Generator[str]:
    options = [
        "listen_addresses=127.0.0.1",
        "fsync=off",
        "max_connections=200",
        "shared_buffers=16MB",
    ]
    flags = [flag for each in options for flag in ("-c", each)]
    command = [*ends_with_us("INT"), folder / "postgres", "-D", data, "-k", data, *flags]
    for _ in range(_TRIALS):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server: subprocess.Popen[Any] = subprocess.Popen(
            [*command, "-p", str(port)], **_QUIET, **who
        )
        try:
            address = f"postgresql://tests@127.0.0.1:{port}"
            if _is_up(server, address):
                yield address
                return
        finally:
            _end(server)
    raise AssertionError(f"Postgres did not start: {folder}")


def _is_up(server: subprocess.Popen[Any], address: str) -> bool:
    """Wait for a server; False where it ended, such as when somebody else took the port."""
    import psycopg

    limit = time.monotonic() + _SECONDS
    while server.poll() is None:
        try:
            psycopg.connect(f"{address}/postgres").close()
        except psycopg.OperationalError:
            assert time.monotonic() < limit
            time.sleep(0.02)
        else:
            return server.poll() is None
    return False


def _end(server: subprocess.Popen[Any]) -> None:
    if server.poll() is None:
        server.send_signal(signal.SIGINT)
    try:
        server.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
