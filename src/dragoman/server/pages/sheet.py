"""The frame of the hub's pages for people: one plain sheet, light or dark, without scripts, fonts or pictures."""

from collections.abc import Iterable
from html import escape
from typing import Final

_STYLE: Final = """
:root { --ink: #1b2430; --soft: #5a6675; --line: #dfe4ea; --paper: #ffffff; --tint: #f4f6f9; --link: #0b57d0;
  --good: #12703a; --good-tint: #e2f4e8; --bad: #9a3412; --bad-tint: #fdecdf; color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #9ba7b6; --line: #2b3441; --paper: #11161d;
  --tint: #1a212b; --link: #8ab4f8; --good: #7fd8a0; --good-tint: #14351f; --bad: #f4b183; --bad-tint: #3c2212 } }
* { box-sizing: border-box }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 60rem; padding: 2.5rem 1.25rem 4rem }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 } h2 { font-size: 1.15rem; margin: 2.4rem 0 .6rem }
h3 { font-size: 1rem; margin: 1.6rem 0 .3rem } p { margin: .4rem 0 } a { color: var(--link) }
.soft { color: var(--soft) }
.state { border-radius: 99px; padding: .1rem .6rem; font-size: .85rem; color: var(--bad); background: var(--bad-tint);
  white-space: nowrap }
.state.good { color: var(--good); background: var(--good-tint) }
code, pre { font: .92em/1.5 ui-monospace, monospace; background: var(--tint); border-radius: 5px }
code { padding: .08rem .32rem; overflow-wrap: anywhere }
pre { padding: .7rem .9rem; overflow-x: auto; margin: .5rem 0 }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .85rem }
th, td { padding: .55rem .9rem .55rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td code { white-space: nowrap } nav a { margin-right: 1.1rem }
"""


def sheet(title: str, body: Iterable[str]) -> str:
    """A whole page of that title; the body's lines are HTML already."""
    return "\n".join(
        (
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{_STYLE}</style></head><body>",
            *body,
            "</body></html>",
            "",
        )
    )


def code(text: str) -> str:
    """A piece of code within a line."""
    return f"<code>{escape(text)}</code>"


def block(text: str) -> str:
    """Lines of code on their own."""
    return f"<pre>{escape(text)}</pre>"


def link(address: str, text: str) -> str:
    """A link."""
    return f'<a href="{escape(address)}">{escape(text)}</a>'
