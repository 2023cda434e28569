"""Tables of energy over whole trips: against others, in time order, with and without the cabin, of plans."""

from __future__ import annotations

import polars as pl

from tools.docs.written import number

Table = tuple[list[str], list[list[str]]]

LOGS = {
    "all": "all logs, pooled", "i3_torque": "BMW i3, torque", "i3_motion": "BMW i3, no torque", "tesla_road": "Tesla Model 3, road",
    "e208": "Peugeot e-208, phone app", "ved_10": "Nissan Leaf, VED 10", "ved_455": "Nissan Leaf, VED 455",
    "cc_pittsburgh": "RAV4 EV, Pittsburgh", "cc_georgia": "RAV4 EV, Georgia", "cc_unknown": "RAV4 EV, a third", "cc_belmont": "RAV4 EV, Belmont",
}  # fmt: skip


def _row(frame: pl.DataFrame, **where: str) -> dict[str, float] | None:
    found = frame.filter(pl.all_horizontal(pl.col(k) == v for k, v in where.items()))
    return found.row(0, named=True) if len(found) else None


def energy_over_trips(frame: pl.DataFrame, what: str = "trip") -> Table:
    """Coverage in folds and on the last third, and evband's width over others' at equal coverage."""
    head = ["log", "trips", "coverage", "coverage with 10 members", "evband's width", "over least squares'", "over average consumption's", "coverage of the last third"]  # fmt: skip
    rows = []
    for log, name in LOGS.items():
        own, ten, squares, average = (
            _row(frame, features="auto", split="folds", what=what, log=log, contender=c)
            for c in ("evband", "evband 10", "least squares", "average")
        )
        late = _row(frame, features="auto", split="last third", what=what, log=log, contender="evband")
        if own is None:
            continue
        rows.append([
            name, str(own["trips"]), *(("-" if r is None else number(r["cover90"], 3)) for r in (own, ten)), number(own["width_at_90"], 3),
            *(("-" if r is None else number(r["ratio"], 2)) for r in (squares, average)), "-" if late is None else f"{late['cover90']:.3f} of {late['trips']}",
        ])  # fmt: skip
    return head, rows


def over_stretches(frame: pl.DataFrame) -> Table:
    """The same of stretches of 10 km."""
    head, rows = energy_over_trips(frame, "10 km")
    average = head.index("over average consumption's")
    return [cell for i, cell in enumerate(head) if i != average], [
        [cell for i, cell in enumerate(row) if i != average] for row in rows
    ]


def ranges(frame: pl.DataFrame) -> Table:
    """Range: coverage and width, and evband's width over others' at equal coverage."""
    return energy_over_trips(frame, "range")


def so_far(frame: pl.DataFrame) -> Table:
    """Range after 5 km without and with the power measured until then, at equal coverage."""
    head = ["models", "log", "trips", "coverage without", "with", "width without", "with", "with over without"]
    rows = []
    for features, what, models in (
        ("base", "after 5 km", "the cabin is not an input"),
        ("auto", "after 5 km", "the cabin is an input, known ahead"),
        ("auto", "after 5 km, cabin unknown", "the cabin is an input, unknown ahead"),
    ):
        for log, name in list(LOGS.items())[1:]:
            pair = [
                _row(frame, features=features, split="folds", what=what, log=log, contender=c)
                for c in ("without the drive so far", "evband")
            ]
            if pair[0] is not None and pair[1] is not None and pair[0]["trips"] >= 10:
                cells = [number(r[key], 3) for key in ("cover90", "width_at_90") for r in pair if r is not None]
                rows.append([models, name, str(pair[0]["trips"]), *cells, number(pair[0]["ratio"], 2)])
    return head, rows


def so_far_bound(frame: pl.DataFrame) -> Table:
    """How far the first 5 km and the rest of drives err alike, and what width that leaves at best."""
    head = [
        "log",
        "trips",
        "correlation",
        "width left at best",
        "correlation, cabin not an input",
        "width left at best",
    ]
    rows = []
    for log in dict.fromkeys(frame["log"].to_list()):
        auto, base = (_row(frame, features=features, log=log) for features in ("auto", "base"))
        if auto is not None and base is not None:
            cells = ["-" if r[key] is None else number(r[key], 2) for r in (auto, base) for key in ("correlation", "left")]  # fmt: skip
            rows.append([LOGS.get(log, log), str(auto["trips"]), *cells])
    return head, rows


def routers(frame: pl.DataFrame) -> Table:
    """Energy along Valhalla's speeds against OSRM's on one geometry."""
    energy = frame.filter(pl.col("check").str.starts_with("energy"))
    terrains = {"hills": "short hills", "valley": "valley and mountain"}
    rows = []
    for speeds in energy["speeds"].unique(maintain_order=True):
        for terrain, words in terrains.items():
            own = energy.filter((pl.col("speeds") == speeds) & (pl.col("terrain") == terrain))
            worst = own.sort(pl.col("off_pct").abs())["off_pct"][-1]
            rows.append([speeds, words, f"{int(own['passed'].sum())} of {len(own)}", f"{abs(worst):.1f} %"])
    return ["speeds", "terrain", "within 5 %", "largest difference"], rows


def cabin(frame: pl.DataFrame) -> Table:
    """Median error of trip energy and width at equal coverage, without the cabin's draw and with it."""
    head = ["log", "median error without", "with", "width without", "with"]
    rows = []
    for log, features in (("i3_torque", "auto"), ("i3_motion", "cabin, no torque"), ("ved_10", "auto"), ("ved_455", "auto")):  # fmt: skip
        pair = [_row(frame, features=f, split="folds", what="trip", log=log, contender="evband") for f in ("without cabin", features)]  # fmt: skip
        cells = [f"{r[key]:.1%}" for key in ("median_error", "width_at_90") for r in pair if r is not None]
        rows.append([LOGS[log], *cells])
    return head, rows


def planned(frame: pl.DataFrame) -> Table:
    """Coverage of trips planned as a router would, with what plans differ by and without."""
    head = [
        "log",
        "trips",
        "coverage",
        "as if driven as planned",
        "width",
        "average consumption's coverage",
        "its width",
    ]
    rows = []
    for log, name in LOGS.items():
        own, plain, average = (
            _row(frame, features="plans", split="folds", what="planned", log=log, contender=c)
            for c in ("evband", "as if driven as planned", "average")
        )
        if own is not None and plain is not None and average is not None:
            rows.append([name, str(own["trips"]), number(own["cover90"], 3), number(plain["cover90"], 3), number(own["width_at_90"], 3), number(average["cover90"], 3), number(average["width_at_90"], 3)])  # fmt: skip
    return head, rows


def later(frame: pl.DataFrame) -> Table:
    """Coverage on the last third of each log: trips, stretches of 10 km, and plans."""
    head = ["log", "trips", "coverage", "least squares", "trips over 10 km", "stretches' coverage", "least squares", "trips planned", "plans' coverage"]  # fmt: skip
    rows = []
    for log, name in LOGS.items():
        found = [
            _row(frame, features=features, split="last third", what=what, log=log, contender=contender)
            for features, what in (("auto", "trip"), ("auto", "10 km"), ("plans", "planned"))
            for contender in ("evband", "least squares")
        ]
        if found[0] is None and found[4] is None:
            continue
        cells = [
            cell
            for own, squares in zip(found[::2], found[1::2], strict=True)
            for cell in ("-" if own is None else str(own["trips"]), *("-" if r is None else number(r["cover90"], 3) for r in (own, squares)))
        ]  # fmt: skip
        rows.append([name, *cells[:8]])
    return head, rows


def started_plans(frame: pl.DataFrame) -> Table:
    """Measured trips planned for cars known by their data sheet alone, with and without simulated drivers."""
    head = ["car", "trips", "coverage", "without drivers", "median error", "without drivers", "bias", "without drivers"]
    rows = []
    for car in dict.fromkeys(frame["car"].to_list()):
        own, plain = (_row(frame, car=car, contender=c) for c in ("with drivers", "as planned"))
        assert own is not None
        assert plain is not None
        pairs = [f"{r[k]:{form}}" for k, form in (("cover90", ".3f"), ("median_error", ".1%"), ("bias", "+.1%")) for r in (own, plain)]  # fmt: skip
        name = {"all": "all cars, each counting alike", "i3": "BMW i3"}.get(car, LOGS.get(car, car))
        rows.append([name, str(own["trips"]), *pairs])
    return head, rows


def arrivals(frame: pl.DataFrame) -> Table:
    """Chance to arrive and how many did, in five bins, and Brier scores."""
    head = ["contender", "Brier score", *(f"{k * 20}-{k * 20 + 20} %" for k in range(5))]
    rows = []
    for name in frame["contender"].unique(maintain_order=True):
        own = frame.filter(pl.col("contender") == name)
        cells = [f"{c:.0%}: {a:.0%}" for c, a in zip(own["chance"], own["arrived"], strict=True)]
        rows.append([name, number(own["brier"][0], 3), *cells])
    return head, rows
