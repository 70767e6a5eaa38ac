"""Chat templates as model folders carry them: Jinja in a sandbox, with the names Hugging Face templates rely on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2
import jinja2.ext
import jinja2.sandbox

from ..errors import ModelError

_CUT = "THINCODE_CONTINUES_HERE "
"""Stands behind a last message that is to be continued; everything from it on is cut. Its space tells whether the
template trimmed the message."""


class _GenerationBlock(jinja2.ext.Extension):
    """`{% generation %}…{% endgeneration %}` marks what a model writes; for rendering it is transparent."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it as a plain set

    def parse(self, parser: Any) -> Any:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def compile_template(source: str, *, now: Callable[[], datetime]) -> jinja2.Template:
    """Compile a chat template.

    Args:
        source: Jinja text.
        now: the clock behind `strftime_now`.

    Raises:
        ModelError: the template is no Jinja (line named).
    """

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    def as_json(value: Any, ensure_ascii: bool = False, indent: Any = None, **options: Any) -> str:
        # Jinja's own filter escapes HTML, which no chat template wants.
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlock, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = as_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda pattern: now().strftime(pattern)
    try:
        return environment.from_string(source)
    except jinja2.TemplateSyntaxError as error:
        raise ModelError(
            f"chat template, line {error.lineno}: {error.message}; restore chat_template.jinja (or chat_template in "
            "tokenizer_config.json) from the model's own folder"
        ) from None


def render(
    template: jinja2.Template,
    messages: Sequence[Mapping[str, str]],
    *,
    continue_final: bool,
    names: Mapping[str, Any],
) -> str:
    """The conversation as one text; see `Tokenizer.render_chat`."""
    copies = [dict(message) for message in messages]
    if continue_final:
        copies[-1]["content"] += _CUT
    try:
        text = template.render(
            **{"tools": None, "documents": None, **names}, messages=copies, add_generation_prompt=not continue_final
        )
    except jinja2.TemplateError as error:
        raise ModelError(
            f"chat template: {error}; roles of the messages: {', '.join(message['role'] for message in messages)}; "
            "use roles in the order this model's template allows"
        ) from None
    if not continue_final:
        return text
    at = text.rfind(_CUT.strip())
    if at < 0:
        raise ModelError(
            "chat template: it drops the last message, which was to be continued; use another model folder"
        )
    return text[:at] if text.startswith(_CUT, at) else text[:at].rstrip()
