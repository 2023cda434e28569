"""The report in Chromium: no sideways scrolling on a phone, nothing serious for axe, whole on paper, nobody asked."""

import re

import pytest

from live_real import PARTS
from tools.docs.gallery import PHONE, write_report

pytestmark = pytest.mark.live
DESK = {"width": 1280, "height": 800}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path)
    return path


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "light"), (DESK, "dark"), (PHONE, "light")])
def test_it_fits_the_screen_and_axe_finds_no_serious_fault(chromium, report, viewport, scheme):
    page = chromium.new_page(viewport=viewport, color_scheme=scheme)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"file://{report}")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("#energy-0 svg").count() == 2
    page.evaluate((PARTS.parent / "axe.min.js").read_text())
    found = page.evaluate("axe.run().then((r) => r.violations.map((v) => [v.impact, v.id]))")
    assert [fault for fault in found if fault[0] in ("serious", "critical")] == []
    assert [url for url in asked if not url.startswith(("file://", "data:", "blob:"))] == []
    page.close()


def test_it_prints_on_a4_with_every_fold_open(chromium, report, tmp_path):
    page = chromium.new_page()
    page.goto(f"file://{report}")
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = false; })")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('details')].every((fold) => fold.open)")
    printed = page.pdf(prefer_css_page_size=True)
    assert re.search(rb"/MediaBox \[0 0 594\.\d+ 841\.\d+\]", printed)
    assert len(re.findall(rb"/Type /Page\b", printed)) >= 3
    page.set_viewport_size({"width": 688, "height": 970})  # what A4 leaves between its margins
    page.emulate_media(media="print")
    page.wait_for_timeout(1000)  # the chart is drawn anew
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()
