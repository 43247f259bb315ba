"""What core says of wheels that are absent: the names they would bring, and what to install.

The hints are made from the wheels' manifests and the layers these announce, and checked in as
``adk_fluent/_hints.py``, since a wheel that is absent cannot be asked.

::

    python tools/hints.py            write the file
    python tools/hints.py --check    write nothing; fail when it is out of date
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boundaries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boundaries import Package

ROOT: Final = Path(__file__).resolve().parent.parent
FILE: Final = ROOT / "packages/adk-fluent-core/src/adk_fluent/_hints.py"
GROUP: Final = "adk_fluent.layers"
#: The slots whose names people write down: in a program, in a file, on the command line.
SLOTS: Final = ("commands", "middleware", "names")

_HEAD: Final = '''\
"""What wheels bring that may be absent. Written by tools/hints.py; do not edit."""

from __future__ import annotations

from typing import Final

'''


def text(root: Path = ROOT) -> str:
    """Give what the file has to hold."""
    wheels: dict[str, str] = {}
    providers: dict[str, dict[str, str]] = {slot: {} for slot in SLOTS}
    members = [each for each in boundaries.packages(root) if each.name != boundaries.CORE]
    for member in members:
        wheels |= dict.fromkeys(member.parts, member.name)
        for layer in _layers(member):
            wheels[layer.name] = member.name
            for slot in SLOTS:
                names = (entry.name for entry in layer.entries(slot))
                providers[slot] |= dict.fromkeys(names, layer.name)
    rows = [f"    {slot!r}: {{\n{_rows(names, 8)}    }},\n" for slot, names in providers.items()]
    return (
        f"{_HEAD}#: Part of adk_fluent, or layer -> the wheel that brings it.\n"
        f"WHEELS: Final[dict[str, str]] = {{\n{_rows(wheels, 4)}}}\n\n"
        "#: Slot -> name in it -> the layer that provides it.\n"
        f"PROVIDERS: Final[dict[str, dict[str, str]]] = {{\n{''.join(rows)}}}\n"
    ).replace("'", '"')


def _layers(member: Package) -> Iterable[Any]:
    """The layers that a wheel announces; importing them imports nothing heavy."""
    points = member.manifest["project"].get("entry-points", {}).get(GROUP, {})
    for target in points.values():
        module, _, attribute = target.partition(":")
        yield getattr(import_module(module), attribute)


def _rows(names: Mapping[str, str], indent: int) -> str:
    return "".join(f"{' ' * indent}{name!r}: {names[name]!r},\n" for name in sorted(names))


def main() -> int:
    """Write the file, or say whether it is as it should be."""
    wanted = text()
    if FILE.exists() and FILE.read_text("utf-8") == wanted:
        print("the hints agree with the wheels")
        return 0
    if "--check" in sys.argv[1:]:
        print(f"out of date: {FILE.relative_to(ROOT)}; run: python tools/hints.py")
        return 1
    FILE.write_text(wanted, "utf-8", newline="\n")
    print(f"written: {FILE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
