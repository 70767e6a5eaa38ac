"""A recipe is read and planned without torch."""

from __future__ import annotations

import subprocess
import sys


def test_importing_settings_of_training_loads_no_torch() -> None:
    names = [
        "models",
        "optimizer",
        "batch",
        "curriculum",
        "checkpoint",
        "rows",
        "on_accelerate.rl",
        "on_accelerate.sft",
    ]
    names += ["algorithms.grpo", "algorithms.dapo"]
    imports = "; ".join(f"import thincode.training.{name}" for name in names)
    check = "import sys; print([m for m in ('torch', 'transformers', 'trl', 'accelerate') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", f"{imports}; {check}"], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
