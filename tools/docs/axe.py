"""Look at the built site with axe-core in Chromium, at a desk's and a phone's width, light and dark; a serious fault fails.

    python -m tools.docs.axe          # after make site, and python -m tools.live_parts for Chromium and axe-core

Also fails where a page is wider than a phone's screen, or asks anybody but this machine.
"""

from __future__ import annotations

import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tools.docs.gallery import PHONE, browser
from tools.live_parts import PARTS

SITE = Path(__file__).parents[2] / "site"
PAGES = (
    "",
    "tutorial/",
    "gallery/",
    "guides/logs/",
    "guides/live/",
    "explanation/bands/",
    "reference/commands/",
    "reference/api/",
)
SERIOUS = ("serious", "critical")
LOOKS: tuple[dict[str, Any], ...] = (
    {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    {"viewport": PHONE, "color_scheme": "light"},
)
RULES = "axe.run().then((r) => r.violations.map((v) => [v.impact, v.id, v.nodes.map((n) => n.html.slice(0, 120))]))"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing: a line per file would hide what is found."""


def faults(page: Any, url: str, home: str) -> list[str]:
    """What is wrong with one page."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(url)
    page.evaluate((PARTS / "axe.min.js").read_text(encoding="utf-8"))
    found = [
        f"{name}: {nodes[0]} ({len(nodes)} places)" for impact, name, nodes in page.evaluate(RULES) if impact in SERIOUS
    ]
    wide, room = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    found += [f"{wide} px wide in a window of {room}"] if wide > room else []
    return found + [f"asks {other}" for other in asked if not other.startswith((home, "data:"))]


def main() -> int:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_port}/"
    wrong = 0
    with browser() as chromium:
        for look in LOOKS:
            for name in PAGES:
                context = chromium.new_context(**look)
                for fault in faults(context.new_page(), home + name, home):
                    wrong += 1
                    print(f"/{name} ({look['viewport']['width']} px, {look['color_scheme']}): {fault}")
                context.close()
    server.shutdown()
    print(f"{len(PAGES)} pages in {len(LOOKS)} looks: {wrong} serious faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
