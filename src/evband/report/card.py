"""The model card as the report shows it: how the model was made, on what, and what its calibration rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evband import __version__
from evband.card import card
from evband.network.heads import HEADS
from evband.report.words import count, minus, significant
from evband.settings import METHODS

if TYPE_CHECKING:
    from evband.model import PowerModel

MEMBERS = {
    "anchor": "each pulled to an anchor of its own",
    "ensemble": "trained apart, without anchors",
    "dropout": "passes of one network with units dropped",
    "distilled": "taught to stand for an ensemble",
}


def model_card(model: PowerModel) -> list[tuple[str, str]]:
    """(what, answer) of the facts one asks about a model before trusting it."""
    facts, settings = card(model), model.settings_
    head, kind = METHODS[settings.method]
    trained = facts["trained_on"]
    kept = ""
    if facts["collapsed"]:
        kept = f", for one network in place of {facts['collapsed']['members']} members"
    elif kind != "dropout" and facts["held_out_log_score"] is not None:
        kept = ", each member as it was when it did best on trips left out"
    lines = [
        ("Method", f"{facts['method']}: {facts['members']} members, {MEMBERS[kind]}"),
        ("Each member", f"LSTM of {settings.layers} × {settings.hidden}, giving {HEADS[head].label} at every step"),
        ("Inputs", ", ".join(facts["inputs"])),
        ("Grid", f"a row every {1 / facts['grid_hz']:g} s, the mean over that time"),
        (
            "Trained on",
            f"{trained['trips']} trips, {trained['hours']:.1f} h, {count(trained['rows'])} rows{_made_up(trained)}",
        ),
        ("Training", f"{facts['epochs_run']} epochs{kept}; seed {settings.seed}"),
        ("Calibration", facts["calibration"]),
        *_energy(facts["energy"]),
        ("Road load", _road(facts["road_load_terms"])),
    ]
    if facts["nu"]:
        low, high = facts["nu"]["low"], facts["nu"]["high"]
        lines.append(
            ("Tails", f"{low:.1f} to {high:.1f} degrees of freedom over members: heavy under 5, Gaussian from 30")
        )
    for name, term in facts["car"].items():
        figures = f"{minus(significant(term['mean'], 3))} ± {significant(term['spread'], 2)} {term['unit']}"
        lines.append((name[:1].upper() + name[1:], f"{figures}, read off the road-load path, ± over members"))
    return [*lines, ("Made with", f"evband {__version__}")]


def _made_up(trained: dict[str, Any]) -> str:
    return f"; {trained['simulated']} of the trips are simulated" if trained["simulated"] else ""


def _energy(facts: dict[str, Any] | None) -> list[tuple[str, str]]:
    if facts is None:
        return [("Energy", "no bands of trip energy: too few trips could be left out in turn")]
    weight = facts["linear_path_weight"]
    mixed = f"{weight:.0%} linear path, " if weight else ""
    lines = [("Energy", f"{mixed}errors of {facts['trips']} {facts['of']}; assumes that {facts['assumed']}")]
    return lines + [("Contradicts physics", problem) for problem in facts["contradictions"]]


def _road(terms: int) -> str:
    if not terms:
        return "no linear path; the network learns everything"
    return f"a linear path of {terms} physics terms, which the network corrects"
