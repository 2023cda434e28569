"""`evband info`: the model card."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from evband.cli.options import Model


def info(
    model: Model,
    json: Annotated[bool, typer.Option("--json", help="Print the whole card as JSON.")] = False,
) -> None:
    """How a model was made, on what, how well it did, and the car that can be read off its road-load path.

    Example: evband info car.evband
    """
    from json import dumps

    from evband.card import card
    from evband.model import load

    facts = card(load(model))
    if json:
        print(dumps(facts, indent=2))
        return
    for name, text in _lines(facts):
        print(f"{name:<22}{text}")


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    on, nu, bag = facts["trained_on"], facts["nu"], facts["out_of_bag"]
    names = {"elevation_m": "grade, from elevation_m"}
    ranges = (f"{names.get(c, c)} {low:.4g} .. {high:.4g}" for c, (low, high) in facts["ranges"].items())
    made_up = f", {on['simulated']} of them simulated: no measured car is behind those" if on["simulated"] else ""
    lines = [
        ("method", f"{facts['method']}, {facts['members']} members of {facts['network']}"),
        ("grid", f"{facts['grid_hz']:g} Hz"),
        ("trained on", f"{on['trips']} trips, {on['rows']} rows, {on['hours']:.2f} h{made_up}"),
        ("inputs and ranges", "\n".join(ranges).replace("\n", "\n" + " " * 22)),
        ("made with", ", ".join(f"{name} {version}" for name, version in facts["made_with"].items())),
    ]
    if facts["started"]:
        begun = facts["started"]
        mass = begun["moves_like_kg"]
        lines.append(("started as", f"{begun['vehicle']}, {begun['sheet_mass_kg']:.0f} kg; base: {begun['base']}"))
        lines.append(("has learned from", f"{begun['minutes']:.0f} minutes of the car in {begun['trips']} trips"))
        lines.append(("effective mass", f"moves like {mass['mean']:.0f} +- {mass['spread']:.0f} kg"))
    if facts["collapsed"]:
        lines.append(("collapsed", ", ".join(f"{name} {value}" for name, value in facts["collapsed"].items())))
    if facts["restarts"]:
        lines.append(("restarted members", ", ".join(facts["restarts"])))
    if facts["held_out_log_score"] is not None:
        lines.append(("held-out log score", f"{facts['held_out_log_score']:.3f} (mean of single members)"))
    if bag:
        lines.append(
            (
                "on trips left out",
                f"RMSE {bag['rmse_kw']:.3f} kW, MAE {bag['mae_kw']:.3f} kW, CRPS {bag['crps_kw']:.3f} kW, "
                f"90 % coverage {bag['coverage']:.3f}, width {bag['width_kw']:.2f} kW",
            )
        )
    if nu:
        floor = f"; {facts['nu_on_floor']} on the floor" if facts["nu_on_floor"] else ""
        lines.append(("degrees of freedom", f"{nu['mean']:.2f} ({nu['low']:.2f} to {nu['high']:.2f}{floor})"))
    lines.append(("calibration", str(facts["calibration"])))
    if facts["energy"]:
        energy = facts["energy"]
        lines.append(
            ("energy", f"errors of {energy['trips']} {energy['of']}, linear path {energy['linear_path_weight']:.0%}")
        )
        lines.append(("energy assumes", energy["assumed"]))
        lines += [("contradicts physics", problem) for problem in energy["contradictions"]]
    for name, term in facts["car"].items():
        lines.append((name, f"{term['mean']:.4g} +- {term['spread']:.3g} {term['unit']}"))
    if not facts["road_load_terms"]:
        lines.append(("road-load path", "none, so no mass, drag or rolling resistance to read"))
    elif "effective mass" not in facts["car"] and not facts["started"]:
        lines.append(("mass, drag, rolling", "not to be read: torque or force is an input and carries the load"))
    return lines
