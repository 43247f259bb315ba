"""What importing the main names of `adk_fluent.cost` does not import."""

from __future__ import annotations

import subprocess
import sys


def test_the_main_names_import_nothing_slow() -> None:
    slow = {
        *("adk_fluent.backends.viz", "adk_fluent.builders", "asyncio", "google"),
        *("pathlib", "platform", "pydantic", "sqlite3", "uuid"),
    }
    code = (
        "import sys; "
        "from adk_fluent.cost import Budget, CostReport, cost_attribution, estimate_cost; "
        f"print(sorted({slow} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
