"""What every page shares: its frame, its style, its scripts, and how text from outside becomes harmless."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import altair
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from dbdyno.report.words import safe


def page_text(template: Template | None = None, **values: object) -> str:
    """A page, with the style and the scripts that all pages share. A page without figures does not ask for
    what draws them. Another `template` than that of a file extends it."""
    shared = {
        "css": Markup(template_text("report.css")),
        "script": Markup(template_text("report.js")),
        "packed": packed,
    }
    return (template or environment().get_template("page.html")).render(
        **{"contents": False, **shared, **values}
    )


def fragment(template: str, **values: object) -> Markup:
    """What is drawn of elements and needs no library."""
    return Markup(environment().get_template(template).render(**values))


@cache
def environment() -> Environment:
    """What templates are read with: whatever is no markup of its own is escaped."""
    made = Environment(
        loader=PackageLoader("dbdyno.report"),
        autoescape=True,
        finalize=_harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"clean": lambda text: safe.clean(str(text)), "name": wrapping}
    return made


def embedded(value: object) -> Markup:
    """JSON in which no `<` can end the script element that holds it, its texts made harmless."""
    text = json.dumps(safe.clean_document(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def wrapping(name: str) -> Markup:
    """A variant's or factor's name that a browser may break after its punctuation."""
    parts = safe.clean(name)
    return Markup("").join(
        escape(part) + Markup("<wbr>") for part in re.findall(r"[^.=_/,]*[.=_/,]*", parts) if part
    )


def _harmless(value: object) -> object:
    """What a template shows: whatever is no markup of its own may come from outside."""
    return safe.clean_lines(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def template_text(name: str) -> str:
    """A file beside the templates."""
    return resources.files("dbdyno.report").joinpath("templates", name).read_text(encoding="utf-8")


def _vega_lite() -> str:
    """The version of Vega-Lite that Altair writes specifications for."""
    return ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])


@cache
def vega() -> str:
    """Vega in one script. Vega-Lite, which is a third of all, is not in it, because `compiled` does its work
    before. Nothing is fetched: vl-convert holds its modules under the addresses that they once came from."""
    named = re.search(r'src="([^"]*/vega@)', vl_convert.vega_to_html({}, bundle=False))
    assert named is not None  # the version of vl-convert is locked
    address = f"{named[1]}{vl_convert.get_vega_version()}/+esm"
    snippet = f'import * as all from "{address}"; window.vega = {{ View: all.View, parse: all.parse }};'
    bundle: str = vl_convert.javascript_bundle(snippet, vl_version=_vega_lite())
    return bundle.replace("</script", "<\\/script")


def compiled(specification: dict[str, Any]) -> dict[str, Any]:
    """A specification of Vega-Lite as one of Vega, its texts made harmless."""
    cleaned = json.dumps(safe.clean_document(specification))
    made: dict[str, Any] = vl_convert.vegalite_to_vega(cleaned, vl_version=_vega_lite())
    return made


def packed(figures: Mapping[str, Markup]) -> str:
    """Vega and the figures by their key, for a page that holds everything: as raw deflate (RFC 1951) in
    base64, a third as long. The page's own script unpacks it."""
    told = ",".join(f"{json.dumps(key)}:{figure}" for key, figure in figures.items())
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    content = packer.compress(f"{vega()}\0{{{told}}}".encode()) + packer.flush()
    return base64.b64encode(content).decode()
