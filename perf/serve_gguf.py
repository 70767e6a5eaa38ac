"""Serves a GGUF model on this machine by llama.cpp, with the OpenAI format: a real teacher without a GPU.

    pip install xllamacpp
    python perf/serve_gguf.py MODEL.gguf --port 8080 --threads 2 --parallel 4

Ctrl-C ends it. A wheel without dependencies; see https://pypi.org/project/xllamacpp.
"""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

import xllamacpp  # type: ignore[import-not-found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="the .gguf file")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--parallel", type=int, default=4, help="conversations at once")
    parser.add_argument("--context", type=int, default=4096, help="tokens of each conversation")
    words = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = words.model
    params.model_alias = {Path(words.model).stem}
    params.port, params.n_parallel = words.port, words.parallel
    params.n_ctx = words.context * words.parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = words.threads
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
