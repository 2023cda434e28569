"""How often the logs of a car read its speed is remembered, and the car is asked about itself at that rate."""

import json
import struct
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

import evband
from evband.adaptation import Base
from evband.adaptation.driving import Learner
from evband.adaptation.energy_evidence import TripEnergy, adapt_to_energy
from evband.adaptation.mass import effective_mass
from evband.adaptation.part import save_part
from evband.adaptation.probes import consumption
from evband.adaptation.state import Adaptation
from evband.adaptation.update import features_of
from evband.channels import DENSE
from evband.errors import ArtifactError
from evband.trips import Trip, Trips
from tests.adaptation.test_start_and_adapt import CDA, CRR, KG, trip


def read_every(seconds: float, seed: int) -> Trip:
    """The drive of this seed, of whose readings, four per second, some are left out."""
    drive = trip(seed)
    return replace(drive, table=drive.table.gather_every(round(4 * seconds)))


@pytest.fixture(scope="module")
def started() -> evband.PowerModel:
    return evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR)


@pytest.fixture(scope="module")
def slow(started: evband.PowerModel) -> evband.PowerModel:
    return evband.adapt(started, Trips([read_every(1.0, 1), read_every(1.0, 2)]))


@pytest.mark.parametrize(("seconds", "per_second"), [(0.25, 4.0), (0.5, 2.0), (1.0, 1.0), (2.0, 1.0)])
def test_the_rate_is_that_of_the_log(started: evband.PowerModel, seconds: float, per_second: float) -> None:
    assert evband.adapt(started, Trips([read_every(seconds, 1)])).adaptation_.readings == pytest.approx(per_second)


def test_logs_count_by_their_rows(started: evband.PowerModel, slow: evband.PowerModel) -> None:
    assert started.adaptation_.readings is None
    assert started.adaptation_.asked_at == DENSE
    both = evband.adapt(slow, Trips([read_every(0.25, 3)])).adaptation_
    assert both.readings == pytest.approx(2.0, abs=0.02)  # two trips of one, one of four readings per second
    parked = replace(both, readings=None).with_readings(5.0, np.zeros(0))
    assert parked.readings is None
    energies = adapt_to_energy(slow, [TripEnergy(20.0, 40.0, 3.0, 15.0)])  # tells nothing of how the speed was read
    assert energies.adaptation_.readings == slow.adaptation_.readings


def test_mass_and_consumption_are_asked_at_the_rate_of_the_log(started: evband.PowerModel) -> None:
    found = [evband.adapt(started, Trips([read_every(s, n) for n in range(20, 24)])) for s in (0.25, 1.0)]
    asked_densely = copy(found[1])
    asked_densely.adaptation_ = replace(found[1].adaptation_, readings=None)
    dense, slow, wrong = (effective_mass(model).mean() for model in (*found, asked_densely))
    assert abs(slow - dense) < min(0.05 * dense, abs(wrong - dense))
    dense, slow, wrong = (consumption(model).mean() for model in (*found, asked_densely))
    assert slow == pytest.approx(dense, rel=0.1)
    assert slow != pytest.approx(wrong, rel=0.002)


def test_it_survives_files_parts_and_streams(started: evband.PowerModel, slow: evband.PowerModel, tmp_path) -> None:
    slow.save(tmp_path / "car.evband")
    save_part(slow, Base.load(), tmp_path / "part.evband", [], 0)
    for name in ("car.evband", "part.evband"):
        assert evband.load(tmp_path / name).adaptation_.readings == slow.adaptation_.readings
    drive = Trips([read_every(0.5, 1)]).on_grid(1.0)
    learner = Learner(started)
    x, r, start, power, _, speed = features_of(started, drive)
    for row in zip(x, r, start, speed, power, strict=True):
        learner.take(*row)
    learner.end()
    again = Learner(started)
    again.restore(json.loads(json.dumps(learner.to_dict())))
    expected = pytest.approx(evband.adapt(started, drive).adaptation_.readings)
    assert learner.model.adaptation_.readings == again.model.adaptation_.readings == expected


def test_an_older_file_loads_and_a_damaged_one_does_not(slow: evband.PowerModel, tmp_path) -> None:
    save_part(slow, Base.load(), tmp_path / "part.evband", [], 0)
    saved = (tmp_path / "part.evband").read_bytes()
    (size,) = struct.unpack("<Q", saved[:8])
    head = json.loads(saved[8 : 8 + size])
    meta = json.loads(head["__metadata__"]["evband_part"])
    state = slow.adaptation_
    assert meta.pop("readings") == state.readings
    for changed, words in ((meta, None), (meta | {"readings": 9.0}, "readings is out of bounds")):
        text = json.dumps(head | {"__metadata__": {"evband_part": json.dumps(changed)}}).encode()
        (tmp_path / "part.evband").write_bytes(struct.pack("<Q", len(text)) + text + saved[8 + size :])
        whole = {**state.meta(), "readings": changed.get("readings")}
        shape = state.precision.shape[:2]
        if words is None:
            assert evband.load(tmp_path / "part.evband").adaptation_.asked_at == DENSE
            whole.pop("readings")
            assert Adaptation.read(whole, state.tensors(), *shape).readings is None
        else:
            with pytest.raises(ArtifactError, match=words):
                evband.load(tmp_path / "part.evband")
            with pytest.raises(ArtifactError, match=words):
                Adaptation.read(whole, state.tensors(), *shape)
