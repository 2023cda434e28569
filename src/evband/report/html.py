"""Small pieces of HTML. Whatever comes from a file or a user is escaped here, and only here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> str:
    """HTML of anything: escaped unless it is HTML."""
    return value if isinstance(value, Html) else escape(str(value), quote=True)


def table(
    head: Sequence[object], rows: Iterable[Sequence[object]], numbers: Sequence[int] = (), hide: Sequence[int] = ()
) -> Html:
    """A table; columns in `numbers` are set right, those in `hide` left out on narrow screens."""

    def css(column: int) -> str:
        names = [name for name, chosen in (("num", numbers), ("wide", hide)) if column in chosen]
        return f' class="{" ".join(names)}"' if names else ""

    top = "".join(f'<th scope="col"{css(i)}>{text(cell)}</th>' for i, cell in enumerate(head))
    body = "".join(
        "<tr>" + "".join(f"<td{css(i)}>{text(cell)}</td>" for i, cell in enumerate(row)) + "</tr>" for row in rows
    )
    return Html(
        f'<div class="scroll" tabindex="0"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def figure(picture: str, title: str, caption: object) -> Html:
    """A picture under its title and over what it means."""
    return Html(f"<figure><h4>{text(title)}</h4>{picture}<figcaption>{text(caption)}</figcaption></figure>")


def section(title: str, lead: object, body: str, anchor: str) -> Html:
    return Html(f'<section id="{text(anchor)}"><h3>{text(title)}</h3><p class="lead">{text(lead)}</p>{body}</section>')


def fold(title: str, lead: object, body: str, anchor: str, opened: bool) -> Html:
    """A section that can be folded away."""
    return Html(
        f'<details id="{text(anchor)}"{" open" if opened else ""}><summary><h3>{text(title)}</h3></summary>'
        f'<p class="lead">{text(lead)}</p>{body}</details>'
    )
