"""Pin what the workspace installs, by version and digest but without any download address.

uv.lock records addresses, so it is not committed: the first uv command writes it, bound by the
pins that this program keeps in three places:

- pyproject.toml, ``[tool.uv]``: constraint-dependencies and build-constraint-dependencies;
- tools/constraints/hashes.txt: the same versions with markers and sha256 digests;
- tools/constraints/adk-*.txt: one tested set for each column of the google-adk matrix, which the
  pins above would otherwise defeat.

Usage::

    python tools/lock.py                  after a change of requirements: keep pins, add and drop
    python tools/lock.py --upgrade        move every pin to the newest allowed version
    python tools/lock.py --upgrade NAME   move the pin of NAME (repeatable)
    python tools/lock.py --check          write nothing; fail when requirements and pins disagree
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = ROOT / "pyproject.toml"
CONSTRAINTS = ROOT / "tools" / "constraints"
HASHES = CONSTRAINTS / "hashes.txt"
HEADER = "# Written by tools/lock.py.\n"
#: uv adds the pins of the manifest to those of a column, and two versions of a package clash.
NO_CONFIG = "# Within this repository use it with --no-config: pyproject.toml has its own pins.\n"

#: Column of the google-adk matrix -> what it takes the newest versions of. The first is also where
#: the emulator of Gemini meets the oldest client that google-adk 1.25 allows.
COLUMNS = {
    "adk-floor": "google-adk>=1.25,<1.26\ngoogle-genai>=1.56,<1.57",
    "adk-last1": "google-adk>=1.25,<2",
    "adk-2x": "google-adk>=2,<3",
}

#: Packages that need google-adk 2.x, and are in no column before.
NEWER = frozenset({"adk-fluent-a2a"})

#: The extras that tests need. The others bring large libraries, which their tests do without.
EXTRAS = ("context", "testing")


class LockError(Exception):
    """The pins could not be computed; the message is for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One exact version, where it applies, and the digests of its files."""

    name: str
    version: str
    marker: str = ""
    hashes: frozenset[str] = frozenset()

    @property
    def line(self) -> str:
        """The pin as a requirement, with its marker."""
        return f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")


def parse(export: str) -> list[Pin]:
    """Read pins from text in requirements.txt format, as `uv export` writes it.

    Raises:
        LockError: a line is no exact pin, or names an address.
    """
    pins: list[Pin] = []
    for line in export.replace("\\\n", " ").splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        requirement, *digests = re.split(r"\s+--hash=", text)
        spec, _, marker = (part.strip() for part in requirement.partition(";"))
        name, equals, version = spec.partition("==")
        if not equals or "://" in text:
            raise LockError(f"expected name==version without an address, found: {text!r}")
        pins.append(Pin(name, version, marker, frozenset(digests)))
    return pins


def constraints(pins: list[Pin]) -> list[str]:
    """Give one constraint per pin; the marker only where one name has several versions."""
    names = [pin.name for pin in pins]
    return [pin.line if names.count(pin.name) > 1 else f"{pin.name}=={pin.version}" for pin in pins]


def with_list(manifest: str, key: str, values: list[str]) -> str:
    """Replace the multi-line list ``key`` of a TOML text.

    Raises:
        LockError: there is not exactly one such list.
    """
    rows = "".join(f'  "{value}",\n' for value in values)  # uv writes markers in single quotes
    text, found = re.subn(
        rf"^{re.escape(key)} = \[\n.*?^\]\n",
        lambda _: f"{key} = [\n{rows}]\n",
        manifest,
        flags=re.MULTILINE | re.DOTALL,
    )
    if found != 1:
        raise LockError(f"pyproject.toml: expected one multi-line list {key}, found {found}")
    return text


def without_pins(manifest: str, names: list[str] | None) -> str:
    """Drop the pins of ``names``, or all of them for None, from both lists of a manifest."""
    if names is None:
        for key in ("constraint-dependencies", "build-constraint-dependencies"):
            manifest = with_list(manifest, key, [])
        return manifest
    for name in names:
        manifest = re.sub(rf'^  "{re.escape(name)}==.*\n', "", manifest, flags=re.MULTILINE)
    return manifest


def differences(where: str, recorded: list[Pin], resolved: list[Pin]) -> list[str]:
    """Say what of ``recorded`` is not what was ``resolved``, one line each.

    Files that were added to a release after it was recorded are no difference; a recorded file
    that is gone is one.
    """
    before = {pin.line: pin for pin in recorded}
    after = {pin.line: pin for pin in resolved}
    return [
        *(f"{where}: {line} is not recorded" for line in after if line not in before),
        *(f"{where}: {line} is recorded but not needed" for line in before if line not in after),
        *(
            f"{where}: {line} has lost a recorded file"
            for line, pin in before.items()
            if line in after and not pin.hashes <= after[line].hashes
        ),
    ]


def uv(*args: str) -> str:
    """Run uv in the workspace and return what it printed; its own words are the error's.

    Raises:
        LockError: uv is absent or failed.
    """
    program = shutil.which("uv")
    if program is None:
        raise LockError("uv is not installed; add it with: pip install uv")
    done = subprocess.run(
        [program, *args], cwd=ROOT, capture_output=True, text=True, check=False, encoding="utf-8"
    )
    if done.returncode:
        raise LockError(f"uv {' '.join(args)} failed:\n{done.stderr.strip()}")
    return done.stdout


def export(*args: str) -> list[Pin]:
    """Resolve the workspace, within the pins of its manifest, and give the chosen versions."""
    plain = ("--no-emit-workspace", "--no-header", "--no-annotate")
    return parse(uv("export", "--quiet", *plain, *args))


def column(requirements: str, previous: Path, *, upgrade: list[str] | None) -> str:
    """Resolve the packages of one column, keeping the versions of ``previous`` where possible."""
    manifests = [
        path
        for path in sorted(ROOT.glob("packages/*/pyproject.toml"))
        if requirements == COLUMNS["adk-2x"] or path.parent.name not in NEWER
    ]
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "wanted.txt")
        wanted.write_text(requirements, "utf-8")
        output = Path(folder, "column.txt")
        if previous.exists():
            shutil.copy(previous, output)
        uv(
            *("pip", "compile", "--quiet", "--no-config", "--universal", "--python-version=3.11"),
            *("--no-header", "--no-annotate", "--no-emit-index-url"),
            *(part for extra in EXTRAS for part in ("--extra", extra)),
            *(f"--no-emit-package={path.parent.name}" for path in manifests),
            *("--group=test", f"--output-file={output}"),
            *_upgrade_options(upgrade),
            str(wanted),
            *(str(path.relative_to(ROOT)) for path in manifests),
        )
        return output.read_text("utf-8")


def _upgrade_options(upgrade: list[str] | None) -> list[str]:
    """Translate our --upgrade: None keeps everything, no names means all."""
    if upgrade is None:
        return []
    return [f"--upgrade-package={name}" for name in upgrade] or ["--upgrade"]


def resolved_manifest(pins: list[Pin]) -> str:
    """Give the root manifest with exactly these pins; the build tools' also as build pins."""
    build = export("--only-group=build")
    manifest = with_list(MANIFEST.read_text("utf-8"), "constraint-dependencies", constraints(pins))
    return with_list(manifest, "build-constraint-dependencies", constraints(build))


def write(upgrade: list[str] | None) -> None:
    """Resolve and write the pins; on an error the manifest is as it was."""
    original = MANIFEST.read_text("utf-8")
    try:
        if upgrade is not None:
            _save(MANIFEST, without_pins(original, upgrade or None))
            uv("lock", "--quiet", *_upgrade_options(upgrade))
        pins = export("--all-packages", "--all-extras", "--all-groups")
        manifest = resolved_manifest(pins)
        columns = {
            name: column(requirements, CONSTRAINTS / f"{name}.txt", upgrade=upgrade)
            for name, requirements in COLUMNS.items()
        }
    except BaseException:
        _save(MANIFEST, original)
        raise
    _save(MANIFEST, manifest)
    _save(HASHES, HEADER + "".join(_hashed(pin) for pin in pins))
    for name, text in columns.items():
        parse(text)  # refuses addresses
        _save(CONSTRAINTS / f"{name}.txt", HEADER + NO_CONFIG + text)


def _hashed(pin: Pin) -> str:
    return (
        " \\\n    ".join([pin.line, *(f"--hash={digest}" for digest in sorted(pin.hashes))]) + "\n"
    )


def _save(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8", newline="\n")


def check() -> list[str]:
    """Resolve again and compare with what is recorded; an empty list means agreement."""
    pins = export("--all-packages", "--all-extras", "--all-groups")
    found = differences("hashes.txt", parse(HASHES.read_text("utf-8")), pins)
    if resolved_manifest(pins) != MANIFEST.read_text("utf-8"):
        found.append("pyproject.toml: the pins under [tool.uv] are not those of hashes.txt")
    for name, requirements in COLUMNS.items():
        path = CONSTRAINTS / f"{name}.txt"
        resolved = parse(column(requirements, path, upgrade=None))
        found += differences(path.name, parse(path.read_text("utf-8")), resolved)
    return found


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Pin what the workspace installs.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    parser.add_argument(
        "--upgrade", nargs="*", metavar="NAME", help="move these pins, or all when none is named"
    )
    options = parser.parse_args()
    try:
        if options.check:
            found = check()
            print("\n".join(found) or "pins and requirements agree")
            if found:
                print("run: python tools/lock.py", file=sys.stderr)
            return 1 if found else 0
        write(options.upgrade)
    except LockError as error:
        print(error, file=sys.stderr)
        print("if a pin is in the way: python tools/lock.py --upgrade NAME", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
