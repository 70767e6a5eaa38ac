"""Records in the shapes that other trainers read."""

from __future__ import annotations

import argparse
from pathlib import Path

from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """What, in which shape, and where to."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="run folder with records, for example a distillation")
    parser.add_argument("out", type=Path, metavar="FILE", help="ends in .jsonl, .json or .parquet")
    parser.add_argument("--to", choices=("messages", "text", "ids"), default="messages", help="default: messages")
    parser.add_argument("--model", type=Path, metavar="DIR", help="whose tokenizer and chat template count")
    parser.add_argument("--train-outputs", action="store_true", help="with ids: label the interpreter's tokens too")
    parser.add_argument("--all", action="store_true", help="also what a distillation dropped")


def run(words: argparse.Namespace) -> int:
    """Print how many rows were written."""
    from ...runs import export

    count = export.run(
        words.folder,
        to=export.To(words.to),
        out=words.out,
        tokenizer=words.model,
        train_outputs=words.train_outputs,
        all_records=words.all,
    )
    print(f"{count} rows in {words.out}")
    return 0


VERB = Verb(
    line="write records for TRL, LLaMA-Factory, axolotl or verl",
    usage="DIR FILE [--to messages|text|ids] [--model DIR]",
    description="Writes what a distillation kept: as messages, as text, or as token ids and labels.",
    add=add,
    run=run,
)
