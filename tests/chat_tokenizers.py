"""Small tokenizers in the style of real chat models: their words, their special tokens, a chat template of our own writing."""

from __future__ import annotations

from pathlib import Path

from thincode.trajectory.tokenizer import Tokenizer

TEMPLATES = Path(__file__).parent / "chat_templates"
CORPUS = [
    "Count the pairs.\nprint(12)\n",
    '{"name": "code_interpreter", "arguments": {"code": "x"}}',
    "[(1, 9), (2, 8)]\n",
] * 3


def qwen_like(template: str) -> Tokenizer:
    """Qwen's pattern of words and its added tokens; `template` names a file in `chat_templates`, or is Jinja itself."""
    from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers
    from tokenizers import Tokenizer as Backend

    backend = Backend(models.BPE())
    backend.normalizer = normalizers.NFC()
    words = Regex(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(words, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    backend.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(CORPUS, trainer)
    backend.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tags = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
    backend.add_tokens([AddedToken(tag, normalized=False) for tag in tags])
    config = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "tokenizer_class": "PreTrainedTokenizerFast"}
    source = template if "{" in template else (TEMPLATES / f"{template}.jinja").read_text(encoding="utf-8")
    return Tokenizer(backend, config, template=source, more_eos=[backend.token_to_id("<|endoftext|>")])
