"""The page in Chromium: it moves, is quick, asks nobody outside, shows nothing old as new, and works by keyboard and for a screen reader."""

import json
import time
import urllib.request

import pytest

from evband.live.run import DEMO
from live_real import PARTS, ROOT, serving, wait_for

pytestmark = pytest.mark.live

HOSTILE = "<img src=x onerror=document.title='taken'>"
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
MODEL = f'model = "{DEMO / "demo.evband"}"\ncapacity_kwh = 60\n'
REPLAY = f'[[car]]\nid = "demo"\nname = "Demo"\nsource = "replay"\nfile = "{DEMO / "drive.csv"}"\nroute = "{DEMO / "route.csv"}"\n{MODEL}'
OTHERS = f'[[car]]\nid = "hostile"\nname = "{HOSTILE}"\n{MODEL}[[car]]\nid = "low"\nname = "Low"\n{MODEL}'
STORE = '[store]\npath = "s.sqlite"\n'


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("page"), REPLAY + OTHERS + STORE) as found:
        wait_for(lambda: found.get("/api/cars/demo")["arrival_probability"] is not None, 120)
        yield found


@pytest.fixture
def opened(chromium):
    """Open a page and keep what it complains about and whom it asks."""
    contexts = []

    def make(url, viewport=DESK, **more):
        context = chromium.new_context(viewport=viewport, locale="de-DE", **more)
        contexts.append(context)
        page = context.new_page()
        page.complaints, page.asked = [], []
        page.on("console", lambda m: page.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: page.complaints.append(str(e)))
        page.on("request", lambda r: page.asked.append(r.url))
        page.on("websocket", lambda w: page.asked.append(w.url))
        page.goto(url)
        return page

    yield make
    for context in contexts:
        context.close()


def shows(page, condition, seconds=30):
    """Wait for a condition; asked from outside, as the page's policy allows no evaluation inside."""
    wait_for(lambda: page.evaluate(condition), seconds, 0.1)


def power_shown(page):
    shows(page, "/kW/.test(document.getElementById('power').textContent)")


def pixels(page, chart="power-chart"):
    return page.evaluate(f"document.getElementById('{chart}').toDataURL()")


def send(served, car, **values):
    body = json.dumps({"utc": time.time(), "car": car} | values).encode()
    urllib.request.urlopen(urllib.request.Request(f"{served.url}/api/in", body, method="POST"), timeout=10).close()


def test_it_is_quick_moves_and_asks_nobody_outside(served, opened):
    page = opened(f"{served.url}/#car=demo")
    power_shown(page)
    assert page.evaluate("performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart") < 5000
    seen = set()
    for _ in range(5):
        seen.add((pixels(page), page.evaluate("document.getElementById('power-chart').dataset.at")))
        time.sleep(1.2)
    assert len({picture for picture, _ in seen}) == 5
    assert len({at for _, at in seen}) >= 3
    shows(page, "/of range not to make it|short/.test(document.getElementById('sentence').textContent)")
    shows(page, "/%/.test(document.getElementById('hero').textContent)")
    assert pixels(page, "fan-chart") != pixels(page, "energy-chart")
    here = served.url.split("//")[1]
    assert all(url.split("//")[1].startswith(here) for url in page.asked)
    assert page.complaints == []


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "light"), (DESK, "dark"), (PHONE, "light"), (PHONE, "dark")])
def test_axe_finds_no_serious_fault(served, opened, viewport, scheme):
    page = opened(f"{served.url}/#car=demo", viewport, color_scheme=scheme)
    power_shown(page)
    page.wait_for_selector("#trips table, #trips p")
    page.evaluate((PARTS.parent / "axe.min.js").read_text())
    for dialog in (None, "route", "delete"):
        if dialog:
            page.click(f"#{dialog}")
        faults = page.evaluate(
            "axe.run().then((r) => r.violations.map((v) => [v.impact, v.id, v.nodes.map((n) => n.html)]))"
        )
        assert [fault for fault in faults if fault[0] in ("serious", "critical")] == []
        page.keyboard.press("Escape")
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= viewport["width"]


def test_everything_is_reached_by_keyboard(served, opened):
    page = opened(f"{served.url}/#car=demo")
    power_shown(page)
    reached = []
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "document.activeElement.id || document.activeElement.getAttribute('href') || document.activeElement.textContent"
            )
        )
        if reached[-1] == "distance":
            page.keyboard.press("Enter")
        if reached[-1] == "route":
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        if reached[-1] == "delete":
            page.keyboard.press("Enter")
            shows(page, "document.getElementById('delete-dialog').open")
            assert page.evaluate("document.activeElement.textContent") == "Keep it"
            page.keyboard.press("Escape")
            assert page.evaluate("document.activeElement.id") == "delete"
            break
    assert reached[0] == "#main"
    assert {"distance", "temperature", "theme", "route", "delete", "#car=low"} <= set(reached)
    shows(page, "/mi/.test(document.getElementById('verdict-facts').textContent)")
    assert page.get_attribute("#announce", "aria-live") == "polite"
    shows(page, "/Driving, power/.test(document.getElementById('announce').textContent)")


def test_names_are_text_and_the_neediest_car_is_first(served, opened):
    send(served, "low", speed=40.0, soc=11.0, elevation=200, ext_temp=10)
    send(served, "hostile", speed=40.0, soc=80.0, elevation=200, ext_temp=10)
    page = opened(f"{served.url}/#car=hostile")
    shows(page, "document.querySelectorAll('#cars li').length === 3")
    assert page.text_content("#name") == HOSTILE
    assert page.query_selector("main img") is None
    assert "taken" not in page.title().split("<")[0]
    shows(page, "document.querySelector('#cars .car-name').textContent === 'Low'")
    assert "onerror" not in page.evaluate(
        "[...document.querySelectorAll('*')].flatMap((e) => e.getAttributeNames()).join()"
    )


def test_theme_and_units_are_remembered(served, opened):
    page = opened(f"{served.url}/#car=demo", color_scheme="light")
    power_shown(page)
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(paper)
    page.click("#theme")
    page.click("#theme")
    assert page.evaluate(paper) != light
    page.click("#temperature")
    page.reload()
    assert page.evaluate(paper) != light
    shows(page, "/°F/.test(document.getElementById('tiles').textContent)")


def test_data_of_a_car_are_deleted_after_a_question(served, opened):
    wait_for(lambda: served.get("/api/cars/demo/trips"), 60)
    page = opened(f"{served.url}/#car=demo")
    page.wait_for_selector("#trips a[href$='.csv']")
    page.click("#trips button.link")
    shows(page, "/km/.test(document.getElementById('trip-text').textContent)")
    page.keyboard.press("Escape")
    before = served.get("/api/cars/demo/trips")[0]["id"]
    page.click("#delete")
    page.click("#delete-yes")
    wait_for(lambda: before not in [trip["id"] for trip in served.get("/api/cars/demo/trips")], 30)
    assert page.complaints == []


def test_memory_does_not_grow(tmp_path, opened):
    with serving(tmp_path, REPLAY.replace('source = "replay"', 'source = "replay"\nspeed = 60.0')) as fast:
        page = opened(f"{fast.url}/#car=demo")
        power_shown(page)
        tools = page.context.new_cdp_session(page)

        def used():
            tools.send("HeapProfiler.collectGarbage")
            return tools.send("Runtime.getHeapUsage")["usedSize"]

        time.sleep(10.0)
        first = used()
        time.sleep(15.0)  # some 150 states: the server sends a client at most ten per second
        assert used() < first + 1_000_000
        assert page.complaints == []


def test_nothing_old_is_shown_as_new(tmp_path, opened):
    with serving(tmp_path, f'[[car]]\nid = "c"\n{MODEL}') as own:
        for _ in range(12):
            send(own, "c", speed=50.0, soc=60.0, elevation=200, ext_temp=10)
            time.sleep(1.0)
        page = opened(own.url)
        power_shown(page)
        shows(page, "document.getElementById('state').textContent === 'No data'", 40)  # the feed stops
        assert page.text_content("#power") == "–"
        assert "no speed for" in page.text_content("#notice")
        own.stop()
        shows(page, "document.getElementById('connection').dataset.state === 'lost'")
        shows(page, "document.getElementById('car').classList.contains('stale')")
        shows(page, "/old/.test(document.getElementById('notice').textContent)")
        own.start()
        shows(page, "document.getElementById('connection').dataset.state === 'live'", 60)


def test_no_inline_script_or_style():
    folder = ROOT / "src" / "evband" / "live" / "page"
    html = (folder / "index.html").read_text()
    assert "style=" not in html
    assert "<script>" not in html
    assert " onclick" not in html
    for script in folder.glob("*.js"):
        assert not any(
            word in script.read_text()
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(")
        )
        assert len(script.read_text().splitlines()) <= 350
