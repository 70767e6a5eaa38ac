"""Vega-Lite specification → SVG, while the page is built: the page needs no plotting script and no network.

Colors are the page's CSS variables, so that light, dark and print share one drawing. Labels may be hostile text: they stand
in a specification as data, never in an expression, and what comes back is rebuilt from a list of allowed elements and
attributes. vl-convert runs Vega in a JavaScript engine of its own, in this process; nothing in a specification names an
address it could load.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup

SVG = "http://www.w3.org/2000/svg"
ELEMENTS = frozenset({"svg", "g", "path", "line", "rect", "text", "tspan", "title"})
ATTRIBUTES = frozenset(
    {
        "class", "viewBox", "transform", "d", "x", "y", "x1", "x2", "y1", "y2", "width", "height", "fill", "fill-opacity",
        "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "stroke-linecap", "stroke-linejoin",
        "stroke-miterlimit", "opacity", "text-anchor", "font-size", "font-weight", "aria-label",
    }
)  # fmt: skip
"""What a chart may hold: nothing that loads, links, scripts or styles."""
MOST_CHARS = 300
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

CONFIG: Mapping[str, Any] = {
    "font": "Helvetica",
    "background": None,
    "padding": 2,
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--quiet)",
        "titleColor": "var(--quiet)",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelLimit": 0,  # Vega would cut in the middle of a character that takes two code units, and fail
        "gridColor": "var(--rule)",
        "domainColor": "var(--quiet)",
        "tickColor": "var(--quiet)",
        "tickSize": 4,
        "labelPadding": 4,
    },
    "axisX": {"grid": False, "titlePadding": 7},
    "axisY": {"domain": False, "ticks": False},
    "text": {"color": "var(--ink)", "fontSize": 12},
}

_PLACES = {"transform", "d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height"}
_BELOW_PIXELS = re.compile(r"(\.\d\d)\d+")
"""Decimals of a place that no screen shows."""


def draw(spec: Mapping[str, Any], *, title: str, name: str = "chart") -> Markup:
    """A specification as inline SVG with a title that screen readers say; labels lose what XML can't hold, and their far end."""
    return _draw(json.dumps(_legal({**spec, "config": CONFIG})), _legal(title), name)


def _legal(value: Any) -> Any:
    """The same with texts that are legal in XML and not endless: anything else would end the engine, and this process."""
    if isinstance(value, str):
        return _ILLEGAL.sub("\ufffd", value[:MOST_CHARS])
    if isinstance(value, Mapping):
        return {key: _legal(one) for key, one in value.items()}
    return [_legal(one) for one in value] if isinstance(value, (list, tuple)) else value


@lru_cache(maxsize=256)
def _draw(spec: str, title: str, name: str) -> Markup:
    import vl_convert

    drawn = ElementTree.fromstring(vl_convert.vegalite_to_svg(spec, vl_version="6.4", allowed_base_urls=[]))
    root = _allowed(drawn)
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.attrib |= {"class": name, "role": "img"}
    said = ElementTree.Element(f"{{{SVG}}}title")
    said.text = title
    root.insert(0, said)
    ElementTree.register_namespace("", SVG)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _allowed(node: ElementTree.Element) -> ElementTree.Element:
    """A copy without what is not on the lists, and without empty groups."""
    kept = {key: value for key, value in node.attrib.items() if key in ATTRIBUTES}
    for place in _PLACES & kept.keys():
        kept[place] = _BELOW_PIXELS.sub(r"\1", kept[place])
    copy = ElementTree.Element(node.tag, kept)
    if said := copy.attrib.pop("aria-label", ""):
        copy.set("data-tip", said)  # a picture's parts have no roles, so no labels either
    copy.text = node.text
    copy.extend(
        _allowed(child)
        for child in node
        if child.tag.removeprefix(f"{{{SVG}}}") in ELEMENTS
        and (len(child) or child.text or child.tag != f"{{{SVG}}}g")
        and child.get("d") not in ("", "M0,0h0v0h0Z")
    )
    return copy
