"""How thirsty the population's drive trains are, by the labels of the catalogue's cars.

    python -m tools.base_model.labels

Every car of the catalogue with an EPA label drives the label's two cycles on a warm bench with a drive train drawn
from the population, at its own mass, CdA and c_rr. Printed: the label's consumption at the battery over the
simulated one; 1 in the median is what the constants of `evband.simulation.population` are set for.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evband.simulation.cycles import standard_cycle
from evband.simulation.population import STEP_S, Specimen, bench_kw, draw
from evband.vehicles import Sheet, catalogue
from evband.vehicles.sharpening import EPA_ADJUSTED, TEST_LOAD_KG, WALL_TO_BATTERY

CITY = 0.55  # of the label


def kwh_100km(car: Specimen, cycle: str) -> float:
    """At the battery, on the bench."""
    time_s, speed = standard_cycle(cycle)
    speed = np.interp(np.arange(0.0, time_s[-1], STEP_S), time_s, speed)
    return float(bench_kw(car, speed).sum() / speed.sum() / 0.036)


def over_label(sheet: Sheet, rng: np.random.Generator) -> tuple[float, float, float]:
    """(label, city, motorway) in kWh per 100 km at the battery, of the sheet with a drawn drive train."""
    car = draw(rng)
    while car.heavy:
        car = draw(rng)
    mass = sheet.kerb_kg + TEST_LOAD_KG
    watts = car.motor_kw / car.sheet[0] * mass
    own = replace(
        car, sheet=(mass, sheet.cda_m2, sheet.crr), mass_kg=mass, cda_m2=sheet.cda_m2, crr=sheet.crr, motor_kw=watts
    )
    assert sheet.epa_kwh_100km is not None
    label = sheet.epa_kwh_100km * WALL_TO_BATTERY * EPA_ADJUSTED
    return label, kwh_100km(own, "udds"), kwh_100km(own, "hwfet")


def main() -> None:
    rng, sheets = np.random.default_rng(0), [s for s in catalogue() if s.epa_kwh_100km is not None]
    label, city, motorway = np.array([over_label(sheet, rng) for sheet in sheets]).T
    ratio = label / (CITY * city + (1 - CITY) * motorway)
    print(f"{len(sheets)} cars: label over simulated {np.median(ratio):.3f}, spread {np.std(np.log(ratio)):.3f}")
    print(f"city {np.median(city):.1f}, motorway {np.median(motorway):.1f} kWh/100 km")


if __name__ == "__main__":
    main()
