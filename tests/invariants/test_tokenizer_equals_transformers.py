"""Our tokenizer is AutoTokenizer without torch: same ids, same text, same rendered chats, files that either reads."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from thincode.errors import ModelError
from thincode.trajectory.tokenizer import Tokenizer

pytestmark = pytest.mark.train

CORPUS = ["Count the pairs.\n```python\nprint(12)\n```\n", "The answer is \\boxed{66}, über alles. 日本"] * 3
TEXTS = [
    "",
    "<|user|>1 + 1?<|assistant|>",
    "Plan.\n```python\nx = 12\n\n    y\n```\n```output\n7\n```\n\\boxed{7}<|end|>",
    "  spaced , out .  日本 🎈 e\u0301 \0 \r\n",
    "<|im_start|>user\n<think>\n</think><tool_call>",
]

CHATML = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
THINKING = """\
{%- if tools %}
    {{- 'Tools: ' + tools | tojson }}
{%- endif %}
{%- if messages[0].role != 'system' %}
    {{- '<|im_start|>system\\nToday is ' + strftime_now('%d %B %Y') + '. ' + {'a': '<é>'} | tojson + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(last=-1) %}
{%- for message in messages[::-1] %}
    {%- if message.role == 'user' %}
        {%- set ns.last = messages | length - loop.index %}
        {%- break %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == 'assistant' and loop.index0 < ns.last and '</think>' in message.content %}
        {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
    {%- elif message.role not in ['system', 'user', 'assistant', 'tool'] %}
        {{- raise_exception('no role ' + message.role) }}
    {%- else %}
        {%- set content = message.content %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- generation %}{{- content }}{%- endgeneration %}
    {{- eos_token + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""
TRIMMING = """\
{% for message in messages %}
[{{ message.role }}] {{ message.content | trim }}
{% endfor %}
{% if add_generation_prompt %}[assistant]{% endif %}"""

CHATS = [
    [{"role": "user", "content": "How many?\n"}],
    [
        {"role": "user", "content": "  <b>1</b> & 2  "},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nThree "},
    ],
    [
        {"role": "user", "content": "One."},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\n1"},
        {"role": "user", "content": "Two."},
        {"role": "assistant", "content": "<think>\nhm</think> 2\n"},
    ],
]


def own(tmp_path: Path, template: str | None = None) -> Path:
    Tokenizer.train(CORPUS, vocab_size=320, markers=["```python\n", "```output\n", "```\n", "\\boxed{"]).save(tmp_path)
    if template is not None:
        (tmp_path / "chat_template.jinja").write_text(template)
    return tmp_path


def in_the_style_of_qwen(tmp_path: Path) -> Path:
    """NFC, an own word pattern, tags that are added and not special, tokens that only the config knows, inline template."""
    from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from tokenizers import Tokenizer as Backend

    backend = Backend(models.BPE())
    backend.normalizer = normalizers.NFC()
    words = Regex(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(words, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    )
    backend.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    backend.add_tokens([AddedToken("<think>", normalized=False)])
    tmp_path.mkdir(exist_ok=True)
    backend.save(str(tmp_path / "tokenizer.json"))
    plain = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": False}
    size = backend.get_vocab_size()
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "bos_token": None,
        "chat_template": CHATML,
        "added_tokens_decoder": {
            str(size): {"content": "<tool_call>", **plain},
            str(size + 1): {"content": "</think>", **plain},
        },
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path


def theirs(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def assert_equal(ours: Tokenizer, other: Any) -> None:
    assert ours.eos_ids == (other.eos_token_id,)
    assert ours.pad_id == other.pad_token_id
    assert ours.vocab_size == len(other)
    for text in TEXTS:
        ids = other(text, add_special_tokens=False)["input_ids"]
        assert ours.encode(text, special=True) == ids
        assert ours.decode(ids) == other.decode(ids)


@pytest.mark.parametrize("make", [own, in_the_style_of_qwen])
@pytest.mark.parametrize("model", [None, "qwen3"])
def test_ids_and_text_are_the_same_both_ways(tmp_path: Path, make: Any, model: str | None) -> None:
    folder = make(tmp_path / "first")
    if model is not None:
        (folder / "config.json").write_text(json.dumps({"model_type": model}))
    assert_equal(Tokenizer.load(folder), theirs(folder))
    Tokenizer.load(folder).save(tmp_path / "by us")
    assert_equal(Tokenizer.load(folder), theirs(tmp_path / "by us"))
    theirs(folder).save_pretrained(tmp_path / "by them")
    assert_equal(Tokenizer.load(tmp_path / "by them"), theirs(folder))


@pytest.mark.parametrize(
    "template", [None, CHATML, THINKING, TRIMMING], ids=["minimal", "chatml", "thinking", "trimming"]
)
@pytest.mark.parametrize("chat", CHATS, ids=["one", "two", "four"])
def test_chats_render_the_same(tmp_path: Path, template: str | None, chat: list[dict[str, str]]) -> None:
    folder = own(tmp_path, template)
    ours, other = Tokenizer.load(folder), theirs(folder)
    expected = other.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert ours.render_chat(chat) == expected
    options = {"enable_thinking": False}
    expected = other.apply_chat_template(chat, tokenize=False, add_generation_prompt=True, **options)
    assert ours.render_chat(chat, options=options) == expected
    if chat[-1]["role"] == "assistant":
        expected = other.apply_chat_template(chat, tokenize=False, continue_final_message=True)
        assert ours.render_chat(chat, continue_final=True) == expected


def test_an_inline_template_renders_the_same(tmp_path: Path) -> None:
    folder = in_the_style_of_qwen(tmp_path)
    expected = theirs(folder).apply_chat_template(CHATS[0], tokenize=False, add_generation_prompt=True)
    assert Tokenizer.load(folder).render_chat(CHATS[0]) == expected
    Tokenizer.load(folder).save(tmp_path / "again")
    assert Tokenizer.load(tmp_path / "again").render_chat(CHATS[0]) == expected


def test_a_template_gets_the_clock_it_is_given_and_may_refuse(tmp_path: Path) -> None:
    ours = Tokenizer.load(own(tmp_path, THINKING), now=lambda: datetime(2026, 1, 2))
    assert "Today is 02 January 2026. " in ours.render_chat(CHATS[0])
    with pytest.raises(ModelError, match="no role judge"):
        ours.render_chat([{"role": "judge", "content": "?"}])
