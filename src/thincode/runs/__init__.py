"""The loops: distill, sft, rl, evaluate, pipeline. Wiring only; each reads like the paper."""
