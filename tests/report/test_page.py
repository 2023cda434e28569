"""The page: complete, well formed, self-contained, escaped, and right about what it says."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from evband.report.card import model_card
from evband.report.page import html_page, write_page, write_report
from evband.report.words import kw, of_ten, percent, plain, verdict
from evband.scores import evaluate
from evband.trips import Trips

VOID = {"meta", "link", "br", "path", "line", "rect"}
SECTIONS = ("drives", "trust", "regimes", "worst", "trips", "scores", "quality", "model")


class Structure(HTMLParser):
    """Collects ids, links and text, and checks that every element is closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        self.links += [attrs[name] for name in ("href", "src") if name in attrs]

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)


def read(page):
    structure = Structure()
    structure.feed(page)
    assert structure.open == []
    return structure


@pytest.fixture(scope="module")
def page(chapter):
    return html_page([chapter], "Battery power from motion")


def test_it_is_one_well_formed_file_that_loads_nothing(page):
    structure = read(page)
    assert [link for link in structure.links if not link.startswith(("#", "data:"))] == []
    assert not re.search(r"@import|url\(|<iframe|<img|fetch\(|XMLHttpRequest", page[: page.index('id="plotly"')])
    assert len(page) < 6e6
    assert len(structure.ids) == len(set(structure.ids))


def test_every_section_is_there(page):
    assert {f"{name}-0" for name in SECTIONS} <= set(read(page).ids)


def test_the_first_picture_stands_before_any_script(page):
    assert page.index('class="hero"') < page.index("<script")


def test_the_headline_is_the_coverage(page, chapter):
    text = "".join(read(page).text)
    assert f"9 of 10 measured values should fall inside the band. {percent(chapter.scores['coverage'])} did." in text
    assert "simulated" not in text


def test_every_score_is_explained(page, chapter):
    text = "".join(read(page).text)
    for label in ("Coverage", "RMSE", "CRPS", "Log score", "Interval score", "Calibration error", "Epistemic part"):
        assert label in text
    assert f"{chapter.scores['crps_kw']:.2f}\u00a0kW" in text


def test_no_number_is_left_unformatted(page):
    assert not re.search(r"\bnan\b|\binf\b|None|<built-in", " ".join(read(page).text))


def renamed(chapter, names):
    trips = Trips(replace(trip, trip_id=name) for trip, name in zip(chapter.trips, names, strict=True))
    bands = chapter.model.predict(trips)
    return replace(chapter, bands=bands, scores=evaluate(bands, trips), trips=trips)


def test_what_comes_from_files_is_escaped(chapter):
    page = html_page([renamed(chapter, ["</script><script>alert(1)</script>", "<b>&"])], "<i>title")
    read(page)
    assert "<script>alert" not in page
    assert "<i>title" not in page


def test_simulated_trips_are_called_simulated_and_never_measured(chapter):
    text = "".join(read(html_page([renamed(chapter, ["sim_a_000", "sim_a_001"])], "Drives")).text)
    assert "simulated data, nothing here was measured" in text
    assert "measured" not in text.replace("nothing here was measured", "")


def test_several_chapters_have_an_overview(chapter, tmp_path):
    two = [replace(chapter, name="One", about="A car."), replace(chapter, name="Two", about="Another.")]
    write_page(tmp_path / "two.html", two)
    structure = read((tmp_path / "two.html").read_text())
    assert {"overview", "chapter-0", "chapter-1", "drives-1"} <= set(structure.ids)
    assert "#chapter-1" in structure.links


def test_one_trip_without_speed_or_motion_regimes_still_makes_a_page(chapter, tmp_path):
    trip = Trips([chapter.trips[0]])
    bands = chapter.model.predict(trip)
    standing = replace(bands, speed_kmh=np.zeros(len(bands)), power_kw=np.full(len(bands), 1.0))
    scores = evaluate(standing, trip)
    assert set(scores["by_regime"]) == {"standstill"}
    write_report(tmp_path / "one.html", chapter.model, standing, scores, trip)
    text = "".join(read((tmp_path / "one.html").read_text()).text)
    assert "No driving here was braking, city, rural or motorway." in text


@pytest.mark.parametrize("scored", [1, 2, 3])
def test_a_few_scored_rows_still_make_a_page(chapter, scored):
    trips = Trips([chapter.trips[0]])
    bands = chapter.model.predict(trips)
    bands = bands.rows(np.flatnonzero(bands.warmup)[-1] + 1 - 20 + np.arange(20 + scored))
    few = replace(chapter, bands=bands, scores=evaluate(bands, trips), trips=trips)
    assert few.scores["n"] == scored
    page = html_page([few], "Few rows")
    read(page)
    assert ('class="hero"' in page) == (scored > 1)


def test_quantile_bands_have_a_page_without_a_log_score(chapter, tmp_path):
    from evband.bands import QuantileSet

    levels = np.arange(1, 20) / 20
    q = np.stack([chapter.rows.quantile(p) for p in levels])[None]
    bands = replace(chapter.rows, members=QuantileSet(q, levels))
    page = html_page([replace(chapter, bands=bands, scores=evaluate(bands, chapter.trips))], "Quantiles")
    assert "Log score" not in "".join(read(page).text)


def test_much_driving_outside_training_is_said_on_the_first_screen(chapter):
    outside = replace(chapter.bands, outside=np.ones(len(chapter.bands), bool))
    text = "".join(read(html_page([replace(chapter, bands=outside)], "Drives")).text)
    assert f"{percent(1.0)} of the rows have an input outside the range it had in training" in text


@pytest.mark.parametrize(
    ("level", "words"), [(0.9, "9 of 10"), (0.95, "19 of 20"), (0.8, "8 of 10"), (0.5, "5 of 10"), (0.99, "99 of 100")]
)
def test_a_level_in_words(level, words):
    assert of_ten(level) == words


@pytest.mark.parametrize(
    ("interval", "says"),
    [
        ([0.88, 0.92], "keeps its promise"),
        ([0.70, 0.85], "too narrow"),
        ([0.95, 0.99], "wider than necessary"),
        ([0.60, 1.00], "show little"),
        (None, "too little driving"),
    ],
)
def test_the_verdict_follows_the_honest_interval(interval, says):
    coverage = 0.9 if interval is None else sum(interval) / 2
    assert says in verdict(coverage, interval, 0.9, trips=10)


def test_the_verdict_is_not_fooled_by_an_interval_cut_at_one():
    assert "show little" in verdict(0.958, [0.885, 1.0], 0.9, trips=10)


def test_few_trips_promise_nothing_but_can_fail():
    assert "show little" in verdict(0.9, [0.88, 0.92], 0.9, trips=4)
    assert "show little" in verdict(1.0, [1.0, 1.0], 0.9, trips=2)
    assert "too narrow" in verdict(0.5, [0.4, 0.6], 0.9, trips=2)


def test_huge_numbers_are_short_and_units_stay_with_their_number():
    assert plain(-4.7e26) == "−4.7e26"
    assert kw(2.5e7) == "2.5e7\u00a0kW"
    assert (percent(0.96), plain(-0.5), plain(None)) == ("96.0\u00a0%", "−0.500", "unknown")


def test_the_card_says_which_weights_a_member_keeps(chapter, monkeypatch):
    """Those of its best look, unless it left nothing out or is the one network that dropout passes go through."""
    model = chapter.model
    for score, method, kept in ((1.2, "t-anchor", True), (None, "t-anchor", False), (1.2, "t-dropout", False)):
        monkeypatch.setitem(model.summary_, "held_out_log_score", score)
        monkeypatch.setattr(model, "settings_", replace(model.settings_, method=method))
        assert ("did best on trips left out" in dict(model_card(model))["Training"]) == kept
    monkeypatch.setitem(model.summary_, "collapsed", {"how": "distill", "members": 30})
    assert "one network in place of 30 members" in dict(model_card(model))["Training"]
