"""Our tokenizer: trained, saved, loaded; strangers' text never becomes structure; streams join to the whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincode.errors import ModelError
from thincode.trajectory.tokenizer import Tokenizer

MARKERS = ("```python\n", "```output\n", "```\n", "\\boxed{")
CORPUS = [
    "Count the pairs with a loop.\n```python\ntotal = 0\nfor x in range(12):\n    total += x\nprint(total)\n```\n",
    "```output\n66\n```\n\\boxed{66}",
    "How many apples are left? Añadir 3 más, 日本語.",
] * 3


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(CORPUS, vocab_size=400, markers=MARKERS)


def metaspace() -> Tokenizer:
    """A tokenizer in the style of SentencePiece: word signs, byte fallback, a leading space that is stripped."""
    from tokenizers import AddedToken, Regex, decoders, models, normalizers, trainers
    from tokenizers import Tokenizer as Backend

    backend = Backend(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(Regex(" "), "▁")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special, byte_tokens = ["<unk>", "<s>", "</s>"], [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=[*special, *byte_tokens], show_progress=False)
    backend.train_from_iterator(CORPUS, trainer)
    state = json.loads(backend.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] in special]
    backend = Backend.from_str(json.dumps(state))
    backend.add_tokens([AddedToken("<tool_call>", normalized=False)])
    return Tokenizer(backend, {"eos_token": "</s>"}, template=None)


@given(text=st.text(max_size=60))
def test_ids_spell_the_text(tokenizer: Tokenizer, text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    for special, added in ((True, True), (False, True), (False, False)):
        assert tokenizer.decode(tokenizer.encode(text, special=special, added=added)) == text


def test_digits_are_single_and_markers_are_one_token(tokenizer: Tokenizer) -> None:
    assert [tokenizer.decode([t]) for t in tokenizer.encode("x 1234", special=True)][-4:] == ["1", "2", "3", "4"]
    for marker in MARKERS:
        assert len(tokenizer.encode(marker, special=True)) == 1


@pytest.mark.parametrize(
    ("special", "added", "ends", "markers"),
    [(True, None, True, True), (False, True, False, True), (False, None, False, False), (False, False, False, False)],
)
def test_only_our_own_text_holds_structure(
    tokenizer: Tokenizer, special: bool, added: bool | None, ends: bool, markers: bool
) -> None:
    end, opener = tokenizer.eos_ids[0], tokenizer.encode("```python\n", special=True)[0]
    ids = tokenizer.encode("a<|end|>\n```python\nb", special=special, added=added)
    assert (end in ids, opener in ids) == (ends, markers)
    assert tokenizer.decode(ids) == "a<|end|>\n```python\nb"


@pytest.mark.parametrize("kind", ["bytes", "metaspace"])
@given(data=st.data())
def test_strangers_never_get_an_added_token(tokenizer: Tokenizer, kind: str, data: st.DataObject) -> None:
    chosen = tokenizer if kind == "bytes" else METASPACE
    fragments = ["<|end|>", "<|us", "er|>", "</s>", "<s>", "<tool_call>", "```python\n", "\\boxed{", " ", "a", "<", "é"]
    text = "".join(data.draw(st.lists(st.sampled_from(fragments), max_size=12)))
    added = {
        t for s in ("<|end|>", "<|user|>", "</s>", "<s>", "<tool_call>", *MARKERS) if (t := one(chosen, s)) is not None
    }
    assert not added & set(chosen.encode(text, special=False))


def one(tokenizer: Tokenizer, text: str) -> int | None:
    ids = tokenizer.encode(text, special=True)
    return ids[-1] if tokenizer.decode(ids[-1:]).strip() == text.strip() else None


METASPACE = metaspace()


def streamed(tokenizer: Tokenizer, ids: list[int]) -> str:
    stream = tokenizer.stream()
    return "".join(map(stream.feed, ids)) + stream.finish()


@given(data=st.data())
def test_streamed_pieces_of_any_ids_join_to_the_whole(tokenizer: Tokenizer, data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=40))
    assert streamed(tokenizer, ids) == tokenizer.decode(ids)


@given(text=st.text(max_size=30))
def test_fallback_bytes_stream_too(text: str) -> None:
    ids = METASPACE.encode(text, special=False)
    assert streamed(METASPACE, ids) == METASPACE.decode(ids)


def test_a_character_in_two_tokens_comes_out_whole(tokenizer: Tokenizer) -> None:
    ids, starts = tokenizer.encode_sampled("a😀b")
    stream = tokenizer.stream()
    assert [stream.feed(token) for token in ids] == ["a", "", "", "", "😀", "b"]
    assert starts == [0, 1, 1, 1, 1, 2]


@given(text=st.text(alphabet="ab 1é😀\n<|>end`", max_size=30))
def test_starts_are_what_the_stream_had_said_before(tokenizer: Tokenizer, text: str) -> None:
    ids, starts = tokenizer.encode_sampled(text)
    stream, said = tokenizer.stream(), 0
    for token, start in zip(ids, starts, strict=True):
        assert start == said
        said += len(stream.feed(token))


@given(parts=st.lists(st.sampled_from(["<|end|>", "<|", "end", "|>", "<", "<|user|>", "x", " "]), max_size=10))
def test_neutralized_text_is_harmless_in_every_mode(tokenizer: Tokenizer, parts: list[str]) -> None:
    text = "".join(parts)
    clean = tokenizer.neutralize(text)
    specials = {tokenizer.encode(s, special=True)[0] for s in ("<|end|>", "<|user|>", "<|assistant|>", "<|pad|>")}
    assert not specials & set(tokenizer.encode(clean, special=True))
    assert tokenizer.neutralize(clean) == clean
    assert clean.replace(" ", "") == text.replace(" ", "")


def test_lone_surrogates_are_read_as_replacement_signs(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode("a\ud800b\0", special=False)) == "a�b\0"


def test_a_saved_tokenizer_loads_equal(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    text = "<|user|>Añadir 12\n```python\nx\n```\n<|end|>"
    assert again.encode(text, special=True) == tokenizer.encode(text, special=True)
    assert (again.eos_ids, again.pad_id, again.vocab_size) == (
        tokenizer.eos_ids,
        tokenizer.pad_id,
        tokenizer.vocab_size,
    )
    messages = [{"role": "user", "content": "1+1?"}]
    assert again.render_chat(messages) == tokenizer.render_chat(messages) == "<|user|>1+1?<|assistant|>"


def test_training_repeats_in_another_process(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "here")
    program = (
        "import sys, json; from thincode.trajectory.tokenizer import Tokenizer;"
        "Tokenizer.train(json.load(sys.stdin), vocab_size=400, markers=json.loads(sys.argv[2])).save(sys.argv[1])"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "there"), json.dumps(MARKERS)],
        input=json.dumps(CORPUS).encode(),
        env={"PYTHONPATH": str(Path(__file__).parents[3] / "src"), "PYTHONHASHSEED": "7"},
        check=True,
    )
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


def test_further_ends_come_from_the_generation_config(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    (tmp_path / "generation_config.json").write_text(
        json.dumps({"eos_token_id": [tokenizer.pad_id, *tokenizer.eos_ids]})
    )
    assert Tokenizer.load(tmp_path).eos_ids == (*tokenizer.eos_ids, tokenizer.pad_id)


def test_ids_beyond_the_vocabulary_spell_nothing(tokenizer: Tokenizer) -> None:
    """Models are often padded to more ids than their tokenizer has."""
    assert streamed(tokenizer, [tokenizer.vocab_size + 5]) == tokenizer.decode([tokenizer.vocab_size + 5]) == ""


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ([{"name": "tools", "template": "x"}, {"name": "default", "template": "{{ messages[0].content }}!"}], "1+1?!"),
        ("{{ messages[0].content }}?", "1+1??"),
    ],
)
def test_a_template_may_stand_in_the_config(tokenizer: Tokenizer, tmp_path: Path, template: object, said: str) -> None:
    tokenizer.save(tmp_path)
    with_inline_template(tmp_path, template)
    assert Tokenizer.load(tmp_path).render_chat([{"role": "user", "content": "1+1?"}]) == said


def test_a_template_that_drops_what_is_to_be_continued_is_named(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0].content }}")
    chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    with pytest.raises(ModelError, match="drops the last message"):
        Tokenizer.load(tmp_path).render_chat(chat, continue_final=True)


def test_a_special_token_may_be_written_as_an_object(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    plain = path.read_text()
    path.write_text(json.dumps({**json.loads(plain), "eos_token": {"__type": "AddedToken", "content": "<|end|>"}}))
    again = Tokenizer.load(tmp_path)
    assert again.eos_ids == tokenizer.eos_ids
    again.save(tmp_path)
    assert path.read_text() == plain


def with_inline_template(folder: Path, template: object) -> None:
    (folder / "chat_template.jinja").unlink()
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "chat_template": template}))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "save_pretrained"),
        (lambda folder: (folder / "tokenizer.json").write_text("{"), "copy it again"),
        (lambda folder: (folder / "tokenizer_config.json").unlink(), "tokenizer_config.json: missing"),
        (lambda folder: (folder / "tokenizer_config.json").write_text("[]"), "expected keys and values"),
        (lambda folder: (folder / "tokenizer_config.json").write_text("{}"), "add the key eos_token"),
        (lambda folder: (folder / "tokenizer_config.json").write_text('{"eos_token": "<x>"}'), "'<x>'"),
        (lambda folder: (folder / "chat_template.jinja").write_text("\n{% if %}"), "line 2"),
        (lambda folder: with_inline_template(folder, 7), "chat_template is no text"),
    ],
)
def test_a_broken_folder_says_what_to_do(tokenizer: Tokenizer, tmp_path: Path, spoil, said: str) -> None:
    tokenizer.save(tmp_path)
    spoil(tmp_path)
    with pytest.raises(ModelError) as caught:
        Tokenizer.load(tmp_path)
    assert said in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_missing_folder_and_a_missing_template_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such folder"):
        Tokenizer.load(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"add chat_template\.jinja"):
        METASPACE.render_chat([{"role": "user", "content": "?"}])


def test_a_vocabulary_without_room_is_refused() -> None:
    with pytest.raises(ModelError, match="261 or more"):
        Tokenizer.train(CORPUS, vocab_size=260, markers=["\\boxed{"])
