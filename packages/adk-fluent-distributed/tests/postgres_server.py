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


def binaries() -> Path | None:
    """The folder of Postgres's programs; None where there are none."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return debian[-1].parent if debian else None


@contextmanager
def running(folder: Path) -> Generator[str]:
    """The address of a server that runs meanwhile, without the name of a database."""
    import psycopg

    data = tempfile.mkdtemp(prefix="adk-fluent-pg-")
    who: dict[str, Any] = {}
    if os.geteuid() == 0:  # it refuses to run as root
        who = {"user": "postgres", "group": "postgres"}
        shutil.chown(data, "postgres", "postgres")
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
    made = [folder / "initdb", "-D", data, "-A", "trust", "-U", "tests", "--no-sync", "-E", "UTF8"]
    subprocess.run(made, check=True, **quiet, **who)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [
        "listen_addresses=127.0.0.1",
        "fsync=off",
        "max_connections=200",
        "shared_buffers=16MB",
    ]
    flags = [flag for each in options for flag in ("-c", each)]
    command = [folder / "postgres", "-D", data, "-p", str(port), "-k", data, *flags]
    server = subprocess.Popen(command, **quiet, **who)
    address = f"postgresql://tests@127.0.0.1:{port}"
    try:
        limit = time.monotonic() + _SECONDS
        while True:
            try:
                psycopg.connect(f"{address}/postgres").close()
                break
            except psycopg.OperationalError:
                assert server.poll() is None
                assert time.monotonic() < limit
                time.sleep(0.02)
        yield address
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(_SECONDS)
        shutil.rmtree(data, ignore_errors=True)
