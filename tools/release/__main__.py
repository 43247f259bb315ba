"""Both ways to start it find the package by the folder it stands in."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from release.cli import main

if __name__ == "__main__":
    sys.exit(main())
