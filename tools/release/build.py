"""Build the archives of a package, twice, and see that both are the same to the byte."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zipfile import ZipFile

from release.repository import ReleaseError, run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from release.repository import Package, Repository

#: Around the two builds everything differs that must not matter.
_SURROUNDINGS = (
    ("here", {"PYTHONHASHSEED": "1", "TZ": "UTC"}),
    ("there", {"PYTHONHASHSEED": "2", "TZ": "Asia/Kolkata"}),
)


def archives(package: Package, dist: Path) -> tuple[Path, Path]:
    """Give the wheel and the sdist of a package.

    Raises:
        ReleaseError: One of them is not there.
    """
    wheel, sdist = dist / f"{package.stem}-py3-none-any.whl", dist / f"{package.stem}.tar.gz"
    for path in (wheel, sdist):
        if not path.is_file():
            raise ReleaseError(f"{path} is absent; run: python -m tools.release build")
    return wheel, sdist


def build(repository: Repository, package: Package, dist: Path) -> tuple[Path, Path]:
    """Build a package from what a commit would hold of it; the wheel is made from the sdist.

    Returns:
        The wheel and the sdist.

    Raises:
        ReleaseError: It does not build, or two builds differ.
    """
    epoch = repository.git("log", "-1", "--format=%ct")
    with TemporaryDirectory() as folder:
        built = [
            _build(repository, package, Path(folder, name), {**env, "SOURCE_DATE_EPOCH": epoch})
            for name, env in _SURROUNDINGS
        ]
        for first, second in zip(*built, strict=True):
            differ = differences(first, second)
            if differ:
                raise ReleaseError(f"two builds of {first.name} differ in {', '.join(differ)}")
        dist.mkdir(parents=True, exist_ok=True)
        for path in built[0]:
            shutil.copy(path, dist)
    return archives(package, dist)


def _build(
    repository: Repository, package: Package, folder: Path, env: Mapping[str, str]
) -> tuple[Path, Path]:
    for name in repository.files(package):
        target = folder / package.name / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(package.path / name, target)
    dist = folder / "dist"
    pins = repository.root / "tools" / "constraints" / "hashes.txt"
    run(
        *("uv", "build", "--no-sources", "--out-dir", dist),
        *("--build-constraints", pins, "--require-hashes", folder / package.name),
        cwd=folder,
        env=env,
    )
    return archives(package, dist)


def differences(first: Path, second: Path) -> list[str]:
    """What differs between two archives: members, or the packing when all members are equal."""
    if first.read_bytes() == second.read_bytes():
        return []
    one, other = members(first), members(second)
    names = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    return names or ["dates, modes or order of its members"]


def members(archive: Path) -> dict[str, bytes]:
    """Give the files of a wheel or an sdist, those of an sdist without its top folder."""
    if archive.suffix == ".whl":
        with ZipFile(archive) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(archive) as sdist:
        found: dict[str, bytes] = {}
        for member in sdist.getmembers():
            opened = sdist.extractfile(member)
            if opened is not None:
                found[member.name.partition("/")[2]] = opened.read()
        return found
