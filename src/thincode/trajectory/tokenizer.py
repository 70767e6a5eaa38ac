"""Text to ids and back, and the chat template: what transformers' AutoTokenizer does, on `tokenizers` and jinja2 alone."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from .. import atomic
from ..errors import ModelError
from . import _chat, _stream

_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""Special tokens a tokenizer_config.json may name; templates see them under these names."""

_TAG = re.compile(r"<\S*>")
_SURROGATE = re.compile("[\ud800-\udfff]")

USER, ASSISTANT, END, PAD = "<|user|>", "<|assistant|>", "<|end|>", "<|pad|>"

_MINIMAL_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'user' %}<|user|>{{ message['content'] }}"
    "{% elif message['role'] == 'assistant' %}<|assistant|>{{ message['content'] }}<|end|>"
    "{% elif message['role'] == 'tool' %}<|user|>{{ message['content'] }}"
    "{% else %}{{ raise_exception('only user, assistant and tool can speak, not ' + message['role']) }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


class Tokenizer:
    """One model's tokenizer. Safe to share between threads."""

    def __init__(
        self,
        backend: Any,
        config: Mapping[str, Any],
        *,
        template: str | None,
        more_eos: Sequence[int] = (),
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        """Use `load` or `train`.

        Args:
            backend: a `tokenizers.Tokenizer`.
            config: what tokenizer_config.json holds, without the template.
            template: the chat template, if there is one.
            more_eos: ids that end a turn besides the `eos_token`.
            now: the clock for templates that write today's date.
        """
        self._backend = backend
        self._readers: dict[frozenset[str], Any] = {}
        self._config = dict(config)
        self._template = template
        self._compiled = None if template is None else _chat.compile_template(template, now=now)
        named = {name: _content(config[name]) for name in _NAMES if config.get(name) is not None}
        self._names: dict[str, Any] = named
        self.vocab_size: int = backend.get_vocab_size(with_added_tokens=True)
        """Ids there are, added tokens included."""
        eos = [self._id_of("eos_token"), *more_eos]
        self.eos_ids: tuple[int, ...] = tuple(dict.fromkeys(token for token in eos if token is not None))
        """Ids that end a turn; the first is the one that a finished record gets."""
        pad = self._id_of("pad_token")
        self.pad_id: int = pad if pad is not None else self.eos_ids[0]
        """The padding token's id; the first of `eos_ids` where the model has none."""

    def _id_of(self, name: str) -> int | None:
        text = self._names.get(name)
        token_id: int | None = None if text is None else self._backend.token_to_id(text)
        if text is not None and token_id is None:
            raise ModelError(f"tokenizer_config.json: {name} is {text!r}, which tokenizer.json does not know; mend one")
        if name == "eos_token" and text is None:
            raise ModelError("tokenizer_config.json: no eos_token, so no turn could end; add the key eos_token")
        return token_id

    # --- files ------------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, folder: Path | str, *, now: Callable[[], datetime] = datetime.now) -> Tokenizer:
        """Read the files of a model folder as transformers writes them.

        `tokenizer.json`, `tokenizer_config.json`, `chat_template.jinja` (or the template inside the config), and, for
        further ids that end a turn, `generation_config.json`.

        Raises:
            ModelError: a file is missing or broken; the message says which and what to do.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise ModelError(f"{folder}: no such folder; give the folder of a model (it holds tokenizer.json)")
        backend = _read_backend(folder / "tokenizer.json")
        config = _read_json(folder / "tokenizer_config.json")
        template = _template_of(config.pop("chat_template", None), folder)
        _add_tokens(backend, config)
        generation = folder / "generation_config.json"
        eos = _read_json(generation).get("eos_token_id") if generation.exists() else None
        more = [eos] if isinstance(eos, int) else list(eos or ())
        try:
            return cls(backend, config, template=template, more_eos=more, now=now)
        except ModelError as error:
            raise ModelError(f"{folder}: {error}") from None

    def save(self, folder: Path | str) -> None:
        """Write files that `load` and transformers' `AutoTokenizer` read back to equal behavior."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        atomic.write_text(folder / "tokenizer.json", self._backend.to_str(pretty=True))
        atomic.write_json(folder / "tokenizer_config.json", {**self._config, **self._names})
        if self._template is not None:
            atomic.write_text(folder / "chat_template.jinja", self._template)

    # --- text to ids and back ---------------------------------------------------------------------------------------

    def encode(self, text: str, *, special: bool, added: bool | None = None) -> list[int]:
        """Ids of a text; nothing is put before or behind it.

        Args:
            text: any text; lone surrogates are read as U+FFFD.
            special: True for our own text, in which special tokens mean themselves. False for text of strangers: what
                looks like a special token is encoded as the plain text it is.
            added: the same for added tokens that are not special (`<tool_call>`, a marker such as the fence's line);
                as `special` if not given.
        """
        backend = self._reader(special, special if added is None else added)
        return list(self._encode(backend, text)[0])

    def encode_sampled(self, text: str, *, markers: Iterable[str] = ()) -> tuple[list[int], list[int]]:
        """Ids of a text that a model wrote, and for each the character it starts in (inside a character: that one).

        A model can sample any added token, and of the special ones its format's markers, but never a forged end of turn.

        Args:
            text: as for `encode`.
            markers: texts that mean themselves also where the tokenizer holds them as special tokens.
        """
        return self._encode(self._reading_sampled(frozenset(markers)), text)

    def _encode(self, backend: Any, text: str) -> tuple[list[int], list[int]]:
        encoding = backend.encode(_SURROGATE.sub("�", text), add_special_tokens=False)
        return encoding.ids, [start for start, _ in encoding.offsets]

    def _reader(self, special: bool, added: bool) -> Any:
        if special:
            return self._reading_all
        return self._reading_sampled(frozenset()) if added else self._reading_plain

    @functools.cached_property
    def _reading_all(self) -> Any:
        return _reader(self._backend, drop=None)

    def _reading_sampled(self, markers: frozenset[str]) -> Any:
        if markers not in self._readers:
            ends = {self._added[token].content for token in self.eos_ids if token in self._added}
            reader = _reader(self._backend, drop=None, plain=markers - ends)
            reader.encode_special_tokens = True
            self._readers[markers] = reader
        return self._readers[markers]

    @functools.cached_property
    def _reading_plain(self) -> Any:
        return _reader(self._backend, drop={token.content for token in self._added.values()})

    @functools.cached_property
    def _added(self) -> dict[int, Any]:
        found: dict[int, Any] = self._backend.get_added_tokens_decoder()
        return found

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids, special tokens included."""
        text: str = self._backend.decode([int(token) for token in ids], skip_special_tokens=False)
        return text

    def stream(self) -> _stream.Stream:
        """Text of ids that come one by one; the pieces, `finish()` included, join to `decode` of all of them.

        Exact for byte-level tokenizers. With byte fallback (SentencePiece) a run of bytes that is no UTF-8 may show other
        replacement signs than `decode`, which judges the run as a whole.
        """
        if self._bytes_of_id is not None:
            return _stream.ByteStream(self._bytes_of_id)
        return _stream.WindowStream(self._backend)

    @functools.cached_property
    def _bytes_of_id(self) -> list[bytes] | None:
        if not _stream.is_byte_level(self._backend):
            return None
        size = 1 + max(self._backend.get_vocab(with_added_tokens=True).values())
        signs = (self._backend.id_to_token(token) for token in range(size))
        return [b"" if sign is None else _stream.bytes_of_token(sign) for sign in signs]

    # --- structure --------------------------------------------------------------------------------------------------

    def render_chat(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        continue_final: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> str:
        """A conversation as the text a model continues: what transformers' `apply_chat_template` renders.

        Args:
            messages: `role` and `content` each.
            continue_final: the last message is the assistant's and is to be continued; otherwise the text ends with the
                template's generation prompt.
            options: further names a template knows, for example `enable_thinking`.

        Raises:
            ModelError: there is no template, or it refuses these messages.
        """
        if self._compiled is None:
            raise ModelError("this tokenizer has no chat template; add chat_template.jinja to the model's folder")
        names = {**self._names, **(options or {})}
        return _chat.render(self._compiled, messages, continue_final=continue_final, names=names)

    @property
    def has_template(self) -> bool:
        """Whether `render_chat` can render."""
        return self._compiled is not None

    def plain_ends(self, text: str) -> tuple[int, int]:
        """Characters of our own text up to its first special token, and up to the end of its last one; its length and 0 if none."""
        encoding = self._reading_all.encode(text, add_special_tokens=False)
        offsets = [at for token, at in zip(encoding.ids, encoding.offsets, strict=True) if self._is_special(token)]
        return (offsets[0][0], offsets[-1][1]) if offsets else (len(text), 0)

    def _is_special(self, token_id: int) -> bool:
        return token_id in self._added and bool(self._added[token_id].special)

    def neutralize(self, text: str) -> str:
        """The text with a space inside whatever this model would read as a special token; doing it twice changes nothing.

        Added tokens that are not special are broken where they look like a tag (`<tool_call>`, `</think>`).
        """
        if self._special_pattern is None:
            return text
        # A match that begins inside another one appears once that one is broken.
        while (broken := self._special_pattern.sub(r"\g<0> ", text)) != text:
            text = broken
        return text

    @functools.cached_property
    def _special_pattern(self) -> re.Pattern[str] | None:
        # Tokens of one character, and those that hold white space only, can't be broken by a space.
        strings = [
            token.content
            for token in self._added.values()
            if (token.special or _TAG.fullmatch(token.content)) and len(token.content.strip()) > 1
        ]
        if not strings:
            return None
        # Each matches up to and including its first sign that shows; the space goes behind that.
        cut = {text: len(text) - len(text.lstrip()) + 1 for text in strings}
        return re.compile("|".join(f"(?:{re.escape(text[:at])})(?={re.escape(text[at:])})" for text, at in cut.items()))

    # --- training ---------------------------------------------------------------------------------------------------

    @classmethod
    def train(cls, texts: Iterable[str], *, vocab_size: int, markers: Sequence[str] = ()) -> Tokenizer:
        r"""A byte-level BPE of its own for a small model. The same texts in the same order give the same tokenizer.

        Args:
            texts: the corpus. Each digit is a token, whatever stands before it.
            vocab_size: ids in all; a small corpus may fill fewer.
            markers: texts that become one token each, for example "```python\n".

        Raises:
            ModelError: `vocab_size` has no room for 256 bytes, four special tokens and the markers.
        """
        from tokenizers import AddedToken, decoders, models, pre_tokenizers, trainers
        from tokenizers import Tokenizer as Backend

        special = [PAD, USER, ASSISTANT, END]
        merged = vocab_size - len(special) - len(markers)
        if merged < 256:
            raise ModelError(
                f"vocab_size is {vocab_size}: it must hold 256 bytes, {len(special)} special tokens and {len(markers)} "
                f"markers; set it to {256 + len(special) + len(markers)} or more"
            )
        backend = Backend(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        backend.decoder = decoders.ByteLevel()
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        trainer = trainers.BpeTrainer(vocab_size=merged, initial_alphabet=alphabet, show_progress=False)
        backend.train_from_iterator(_between(texts, [*special, *markers]), trainer)
        backend.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in special])
        backend.add_tokens([AddedToken(text, normalized=False) for text in markers])
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": END,
            "pad_token": PAD,
            "clean_up_tokenization_spaces": False,
            "model_max_length": 1_000_000,
        }
        return cls(backend, config, template=_MINIMAL_TEMPLATE)


def _between(texts: Iterable[str], strings: Sequence[str]) -> Iterator[str]:
    """The texts without the strings that are tokens anyway, so that no merge is spent on them."""
    pattern = re.compile("|".join(re.escape(text) for text in sorted(strings, key=len, reverse=True)))
    for text in texts:
        yield from pattern.split(_SURROGATE.sub("�", text))


def _reader(backend: Any, *, drop: set[str] | None, plain: Collection[str] = ()) -> Any:
    """A copy that reads text: offsets are exact (no post-processor trims them), the tokens in `drop` don't exist, and those
    in `plain` are not special.
    """
    from tokenizers import Tokenizer as Backend

    state = json.loads(backend.to_str())
    state["post_processor"] = None
    state["truncation"] = state["padding"] = None
    for token in state["added_tokens"]:
        token["special"] = token["special"] and token["content"] not in plain
    if drop is not None:
        state["added_tokens"] = []
        vocabulary = state["model"].get("vocab")
        if isinstance(vocabulary, dict):
            # Some tokenizers keep special tokens among the merged ones, where a whole word may still find them.
            parts = {part for merge in state["model"].get("merges", ()) for part in _merge_parts(merge)}
            gone = drop - parts - {state["model"].get("unk_token")}
            state["model"]["vocab"] = {text: token for text, token in vocabulary.items() if text not in gone}
    return Backend.from_str(json.dumps(state, ensure_ascii=False))


def _merge_parts(merge: Any) -> tuple[str, ...]:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return (left, right, left + right)


# --- reading files --------------------------------------------------------------------------------------------------


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{path}: missing; copy it from the model's own folder") from None
    except (ValueError, OSError) as error:
        raise ModelError(f"{path}: can't be read ({error}); copy it again from the model's own folder") from None
    if not isinstance(found, dict):
        raise ModelError(f"{path}: expected keys and values; copy it again from the model's own folder")
    return found


def _read_backend(path: Path) -> Any:
    from tokenizers import Tokenizer as Backend

    if not path.is_file():
        raise ModelError(
            f"{path}: missing; a model that has only vocab files must be saved once by transformers "
            "(AutoTokenizer.from_pretrained(…).save_pretrained(…))"
        )
    try:
        return Backend.from_file(str(path))
    except Exception as error:  # tokenizers raises bare Exception
        raise ModelError(f"{path}: can't be read ({error}); copy it again from the model's own folder") from None


def _template_of(inline: Any, folder: Path) -> str | None:
    """The file wins over the config, as in transformers; of several named templates the default one."""
    path = folder / "chat_template.jinja"
    if path.exists():
        return path.read_text(encoding="utf-8")
    if isinstance(inline, list):
        inline = {entry["name"]: entry["template"] for entry in inline}.get("default")
    if inline is not None and not isinstance(inline, str):
        raise ModelError(
            f"{folder / 'tokenizer_config.json'}: chat_template is no text; write the Jinja template there"
        )
    return inline


def _add_tokens(backend: Any, config: Mapping[str, Any]) -> None:
    """Tokens that only the config knows; transformers adds them too."""
    from tokenizers import AddedToken

    for _, entry in sorted(config.get("added_tokens_decoder", {}).items(), key=lambda item: int(item[0])):
        if backend.token_to_id(entry["content"]) is None:
            options = {key: entry[key] for key in ("lstrip", "rstrip", "single_word", "normalized") if key in entry}
            backend.add_tokens([AddedToken(entry["content"], special=entry.get("special", False), **options)])


def _content(token: Any) -> str:
    return str(token["content"] if isinstance(token, dict) else token)
