"""Run by torchrun from a test: SFT of a tiny model in two processes, one leading and one following."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from invariants.test_sft import tiny_model, train_sft, with_lora


def main(base: Path, folder: Path) -> None:
    import torch

    from thincode.training.on_accelerate import processes, sft

    found: dict[str, Any] = {}
    for mode in ("full", "lora"):
        model = with_lora(base, dropout=0.0) if mode == "lora" else tiny_model()
        if processes.rank() == 0:
            records, _ = train_sft(model, folder / mode, max_steps=3, micro_tokens=64)
            found[mode] = [(record["loss"], record["grad_norm"], record["tokens"]) for record in records]
        else:
            settings = settings_like_the_first(sft)
            sft.follow_sft(model, settings=settings, seed=2, folder=folder / mode, resume_from=None)
    if processes.rank() == 0:
        result = {
            "world_size": torch.distributed.get_world_size(),
            "backend": torch.distributed.get_backend(),
            "records": found,
        }
        (folder / "result.json").write_text(json.dumps(result))
    torch.distributed.destroy_process_group()


def settings_like_the_first(sft: Any) -> Any:
    from invariants.test_training import MUON
    from thincode.training.optimizer import Decay, ScheduleSettings

    schedule = ScheduleSettings(warmup_updates=2, constant_share=0.5, decay=Decay.LINEAR, floor=0.05)
    return sft.SftSettings(
        optimizer=MUON, schedule=schedule, epochs=2, batch_tokens=96, checkpoint_every=3, log_every=1, max_steps=3,
        micro_tokens=64,
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
