"""The command line.

::

    python -m tools.docs build [--out DIR]     build the site; every flaw is a failure
    python -m tools.docs serve [--port PORT]   build it, and show it on this machine
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Final

from docs.problems import DocsError
from docs.site import build

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROOT: Final = Path(__file__).resolve().parents[2]
_OUT: Final = _ROOT / "build" / "site"


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """What shows a site on 127.0.0.1.

    Args:
        folder: The site.
        port: Where; 0 takes one that is free.
    """
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    return ThreadingHTTPServer(("127.0.0.1", port), handler)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Build the site of the documentation.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, help_ in (("build", "build the site"), ("serve", "build it and show it")):
        command = commands.add_parser(name, help=help_)
        command.add_argument("--out", type=Path, default=_OUT, metavar="DIR", help="where it goes")
        command.add_argument("--root", type=Path, default=_ROOT, help="the repository")
        if name == "serve":
            command.add_argument("--port", type=int, default=0, help="default: one that is free")
    options = parser.parse_args(argv)
    try:
        content = build(options.root.resolve(), options.out)
    except DocsError as error:
        print(error, file=sys.stderr)
        count = len(error.problems)
        print(f"{count} problem{'s' * (count > 1)}; nothing was written", file=sys.stderr)
        return 1
    described = sum(map(len, content.names.values()))
    print(
        f"{len(content.pages)} pages and {described} names of {len(content.names)} modules: "
        f"{options.out}"
    )
    if options.command == "serve":
        with server(options.out, options.port) as shown, suppress(KeyboardInterrupt):
            print(f"http://127.0.0.1:{shown.server_port}/  (Ctrl-C ends it)", flush=True)
            shown.serve_forever()
    return 0
