"""Run by torchrun from a test: the made-up steps in two processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from training_cases import algorithm, tiny_model, train_policy


def main(folder: Path) -> None:
    import torch

    kind = algorithm("grpo")
    records = train_policy(tiny_model(), kind, folder / "checkpoint", steps=2)
    if torch.distributed.get_rank() == 0:
        result = {"world_size": torch.distributed.get_world_size(), "records": records}
        (folder / "result.json").write_text(json.dumps(result))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
