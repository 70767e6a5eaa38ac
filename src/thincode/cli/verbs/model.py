"""Model folders."""

from __future__ import annotations

import argparse
from pathlib import Path

from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """What to convert, and where to."""
    parser.add_argument("action", choices=("convert",))
    parser.add_argument("file", type=Path, metavar="FILE.gguf")
    parser.add_argument("out", type=Path, metavar="DIR", help="folder to write")


def run(words: argparse.Namespace) -> int:
    """Print where the model lies."""
    from ...training import models

    print(models.convert(words.file, words.out))
    return 0


VERB = Verb(
    line="turn a GGUF file into a model folder",
    usage="convert FILE.gguf DIR",
    description="Writes a GGUF file as safetensors, with tokenizer and chat template, for training.",
    add=add,
    run=run,
)
