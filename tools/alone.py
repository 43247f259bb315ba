"""Import what one installed wheel brings: each public module of it, and every name that it lists.

``python tools/alone.py DISTRIBUTION``
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import files


def main(distribution: str) -> None:
    """Import each module without a leading underscore, and get the names in its `__all__`."""
    found = [file for file in files(distribution) or () if file.suffix == ".py"]
    parts = [file.with_suffix("").parts for file in found]
    modules = {".".join(each[:-1] if each[-1] == "__init__" else each) for each in parts}
    public = sorted(name for name in modules if "._" not in name and "__main__" not in name)
    names = 0
    for name in public:
        module = import_module(name)
        for each in getattr(module, "__all__", ()):
            getattr(module, each)
            names += 1
    if not names:
        sys.exit(f"{distribution} has no public name")
    print(f"{distribution}: {len(public)} public modules, {names} names")


main(sys.argv[1])
