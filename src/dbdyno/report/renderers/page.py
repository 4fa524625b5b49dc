"""What every page shares: its frame, its style, its scripts, and how text from outside becomes harmless."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources

import altair
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from dbdyno.report.words import safe


def page(template: Template | None = None, **values: object) -> str:
    """A page, with the style and the scripts that all pages share. A page without figures does not ask for
    what draws them. Another `template` than that of a file extends it."""
    shared = {
        "css": Markup(template_text("report.css")),
        "script": Markup(template_text("report.js")),
        "vega": lambda: Markup(vega()),
    }
    return (template or environment().get_template("page.html")).render(**shared, **values)


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


@cache
def vega() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script, of the version that the specifications are written
    for.
    """
    version = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    return bundle.replace("</script", "<\\/script")
