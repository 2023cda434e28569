"""Parts of many cars as arrays: the same numbers as their models', and a damaged part is named."""

import numpy as np
import pytest

import evband
from evband.adaptation import Base
from evband.adaptation.bulk import read_parts
from evband.adaptation.part import save_part
from evband.errors import ArtifactError
from evband.network.heads.base import SCALE_FLOOR
from evband.network.inference import softplus
from evband.network.predict import hidden_states, predict
from tests.adaptation.test_start_and_adapt import trip


def test_arrays_of_parts_predict_what_their_models_do(tmp_path) -> None:
    for k, mass in enumerate((1500.0, 1900.0)):
        model = evband.adapt(evband.start(mass_kg=mass, cda_m2=0.62, seed=k), evband.Trips([trip(k, mass, 240)]))
        save_part(model, Base.load(), tmp_path / f"car{k}.evband", [], k)
    (tmp_path / "cut.evband").write_bytes((tmp_path / "car0.evband").read_bytes()[:4000])
    fleet = read_parts(sorted(tmp_path.glob("*.evband")))
    assert [file.stem for file in fleet.files] == ["car0", "car1"]
    assert [file.stem for file, _ in fleet.bad] == ["cut"]
    views = fleet.base.views
    for car, file in enumerate(fleet.files):
        model = evband.load(file)
        rows = fleet.feature_map(car).transform(trip(9, 1600.0, 120).on_grid(1.0))
        said = predict(model.architecture_, model.theta_, rows.x, rows.r, rows.start)
        h = hidden_states(model.architecture_, fleet.base.theta, rows.x, rows.start)
        phi = np.concatenate([np.broadcast_to(rows.r, (len(h), *rows.r.shape)), h], 2)
        mu = np.einsum("mrq,mq->mr", phi, fleet.weights[car]) + views["head_b"][:, :1]
        raw = np.einsum("mrq,mq->mr", h, views["head_w"][:, 1]) + fleet.level[car][:, None]
        np.testing.assert_allclose(mu, said.mu, atol=1e-4)
        np.testing.assert_allclose(softplus(raw) + SCALE_FLOOR, said.scale, rtol=1e-4)


def test_no_part_at_all_is_one_sentence(tmp_path) -> None:
    with pytest.raises(ArtifactError, match="fleet fit"):
        read_parts([])
    (tmp_path / "x.evband").write_bytes(b"")
    with pytest.raises(ArtifactError, match="none of 1 parts"):
        read_parts([tmp_path / "x.evband"])
