"""A page as an HTML parser sees it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

ALLOWED_LINKS = ("#",)


class Page(HTMLParser):
    """Elements with their attributes; texts of scripts and styles; the text people read."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.raw = path.read_text(encoding="utf-8")
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.text = ""
        self._inside: tuple[str, dict[str, str | None]] = ("", {})
        self.feed(self.raw)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = (tag, dict(attrs))
            if tag == "script":
                self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside[0]:
            self._inside = ("", {})

    def handle_data(self, data: str) -> None:
        if self._inside[0] == "script":
            attributes, before = self.scripts[-1]
            self.scripts[-1] = (attributes, before + data)
        elif self._inside[0] == "style":
            self.styles.append(data)
        else:
            self.text += data

    @property
    def policy(self) -> str:
        """The Content-Security-Policy."""
        return next(
            attributes["content"] or ""
            for tag, attributes in self.elements
            if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
        )

    @property
    def data(self) -> list[dict[str, Any]]:
        """The trajectories on the page."""
        return next(json.loads(text) for attributes, text in self.scripts if attributes.get("id") == "page-data")

    @property
    def formulas(self) -> list[Any]:
        """The MathML trees its rows name."""
        return next(json.loads(text) for attributes, text in self.scripts if attributes.get("id") == "page-formulas")

    @property
    def sections(self) -> list[str]:
        """Names of its sections, in order."""
        return [attributes["id"] or "" for tag, attributes in self.elements if tag == "section"]
