"""Which version of adk-fluent-core is installed; imported when somebody asks."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from adk_fluent.errors import UnknownNameError


def core_version() -> str:
    """The installed version.

    Raises:
        UnknownNameError: Only sources are on the path.
    """
    try:
        return version("adk-fluent-core")
    except PackageNotFoundError:
        raise UnknownNameError(
            "adk_fluent has no __version__",
            unknown="__version__",
            found="sources of adk-fluent-core on the path, and no installation of it",
            help="pip install adk-fluent-core, or a folder that has it",
        ) from None
