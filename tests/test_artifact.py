"""The .evband file: what goes in comes out, and nothing hostile gets in."""

import json
import pickle
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save
from sklearn.base import clone

import evband
from evband.calibration import Calibration
from evband.errors import ArtifactError
from evband.model import PowerModel
from tiny_car import TINY, drives

FIRST_RELEASE = [84.07174224853516, 58.96119661740574, 113.25820457328633]  # mean and 90 % band of a row, in kW


@pytest.fixture(scope="module")
def model():
    return PowerModel(**{**TINY, "epochs": 1, "members": 2}).fit(drives(3, seconds=120))


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("artifact") / "car.evband"
    model.save(path)
    return path.read_bytes()


def parts(data):
    size = struct.unpack("<Q", data[:8])[0]
    meta = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["evband"])
    return load(data), meta


def test_a_loaded_model_is_the_saved_one(model, whole, tmp_path):
    (tmp_path / "car.evband").write_bytes(whole)
    back = evband.load(tmp_path / "car.evband")
    trips = drives(2, seconds=90, seed=5)
    a, b = model.predict(trips), back.predict(trips)
    np.testing.assert_array_equal(a.members.mu, b.members.mu)
    np.testing.assert_array_equal(a.interval(0.9), b.interval(0.9))
    assert back.settings_ == model.settings_
    assert back.fingerprints_ == model.fingerprints_
    assert back.summary_["history"] == model.summary_["history"]
    back.save(tmp_path / "again.evband")
    assert evband.load(tmp_path / "again.evband").settings_ == model.settings_


def test_a_loaded_model_has_the_arguments_and_its_clone_trains_the_same_weights(tmp_path):
    trips = drives(3, seconds=120)
    first = PowerModel(**{**TINY, "epochs": 1, "members": 2, "clip": 0.5, "nu_pace": 2.0}).fit(trips)
    tuned = PowerModel(**{**TINY, "epochs": 1, "members": 1}, tune=True, features="motion").fit(trips)
    after = PowerModel(**{**TINY, "epochs": 1, "members": 2, "clip": 0.5}, prior=first).fit(trips[:2])
    for model in (first, tuned, after):
        model.save(tmp_path / "car.evband")
        back = evband.load(tmp_path / "car.evband")
        mine, theirs = model.get_params(deep=False), back.get_params(deep=False)
        if model is after:
            assert mine.pop("prior").get_params() == theirs.pop("prior").get_params()
        assert theirs == mine
        if model is not after:
            assert repr(back) == repr(model)
        np.testing.assert_array_equal(clone(back).fit(trips if model is not after else trips[:2]).theta_, model.theta_)
    assert repr(evband.load(tmp_path / "car.evband").set_params(prior=None)).count("=") == len(TINY) + 1


def test_a_file_of_the_first_release_still_loads(tmp_path):
    """tests/fixtures/version1.evband: five members on nine drives of the tiny car, written by evband 0.1.0."""
    old = evband.load(Path(__file__).parent / "fixtures" / "version1.evband")
    bands = old.predict(drives(1, seconds=90, seed=5))
    lower, upper = bands.interval(0.9)
    np.testing.assert_allclose([bands.mean[40], lower[40], upper[40]], FIRST_RELEASE, rtol=1e-5)
    assert (old.settings_.features, old.settings_.hinges, old.settings_.beta) == ("motion", False, 1.0)
    assert clone(old)._resolve() == old.settings_
    assert len(repr(old)) < 200
    assert (old.calibration_.how, old.calibration_.moving) == ("earlier", pytest.approx(0.6512049101175353))
    assert old.calibration_.describe().startswith("stretched by 0.651 on 9 trips")
    old.save(tmp_path / "now.evband")
    again = evband.load(tmp_path / "now.evband")
    assert again.get_params() == old.get_params()
    np.testing.assert_array_equal(again.predict(drives(1, seconds=90, seed=5)).interval(0.9)[0], lower)


def test_a_model_of_an_earlier_version_is_what_it_was(model, whole, tmp_path):
    """Without trip effects, a pace of nu, limits of road terms, and a stretch of its own at a standstill."""
    tensors, meta = parts(whole)
    assert meta["settings"].pop("trip_effect") == 0.5
    assert meta["settings"].pop("nu_pace") == 10
    meta["version"], meta["stretch"], meta["calibration"] = 1, 1.25, "stretched by 1.250 on 12 trips"
    meta.pop("arguments")
    for name in ("r_low", "r_high"):  # nor limits
        meta["features"].pop(name)
    (tmp_path / "old.evband").write_bytes(save(tensors, {"evband": json.dumps(meta)}))
    old = evband.load(tmp_path / "old.evband")
    assert (old.settings_.trip_effect, old.settings_.nu_pace) == (0, 1)
    assert old.calibration_ == Calibration(1.25, 1.25, how="earlier", why="stretched by 1.250 on 12 trips")
    trips = drives(1, seconds=90, seed=5)
    np.testing.assert_allclose(old.predict(trips).mean, model.predict(trips).mean, rtol=1e-6)
    old.save(tmp_path / "again.evband")
    assert evband.load(tmp_path / "again.evband").settings_ == old.settings_


@pytest.mark.parametrize(("bridge_s", "share"), [(0.0, 1.0), (30.0, 0.1)])
def test_an_earlier_default_share_of_copies_is_kept_where_it_was_used_alone(whole, tmp_path, bridge_s, share):
    tensors, meta = parts(whole)
    meta["settings"] |= {"thinning": 0.1, "bridge_s": bridge_s}
    (tmp_path / "old.evband").write_bytes(save(tensors, {"evband": json.dumps(meta)}))
    again = clone(evband.load(tmp_path / "old.evband"))._resolve()
    assert (again.bridge_s, again.thinning) == (bridge_s, share)


def test_no_number_in_the_header_is_nan_or_infinite(whole):
    size = struct.unpack("<Q", whole[:8])[0]
    text = json.loads(whole[8 : 8 + size])["__metadata__"]["evband"]
    assert "NaN" not in text
    assert "Infinity" not in text


def edit(**changes):
    def apply(tensors, meta):
        for key, value in changes.items():
            place, *rest = key.split("__")
            if rest:
                meta[place][rest[0]] = value
            else:
                meta[place] = value

    return apply


def drop(key):
    return lambda tensors, meta: meta.pop(key)


def weights(name, change):
    def apply(tensors, meta):
        tensors[name] = change(tensors[name].copy())

    return apply


def poke(value):
    def apply(array):
        array.flat[0] = value
        return array

    return apply


def nested(tensors, meta):
    for _ in range(3):
        meta["calibration"] = {**meta["calibration"], "of": dict(meta["calibration"])}


HOSTILE = {
    "unknown version": edit(version=99),
    "no settings": drop("settings"),
    "no features": drop("features"),
    "no fingerprints": drop("fingerprints"),
    "unknown setting": edit(settings__backdoor=1),
    "setting of another type": edit(settings__hidden="8"),
    "settings a list": edit(settings=[1, 2]),
    "absurd width": edit(settings__hidden=10**9),
    "width of another model": edit(settings__hidden=16),
    "more layers than weights": edit(settings__layers=2),
    "another head": edit(settings__method="quantile-anchor"),
    "distilled without nu": edit(settings__method="distilled"),
    "unknown method": edit(settings__method="__import__('os')"),
    "no networks": edit(networks=0),
    "too many networks": edit(networks=10**9),
    "networks no number": edit(networks="2"),
    "more members than networks": edit(settings__members=5),
    "stretch zero": edit(calibration__moving=0.0),
    "stretch negative": edit(calibration__moving=-1.0),
    "stretch no number": edit(calibration__moving="wide"),
    "stretch infinite": edit(calibration__moving=float("inf")),
    "stretch of astronomers": edit(calibration__moving=1e300),
    "standing stretch zero": edit(calibration__standing=0.0),
    "standing stretch no number": edit(calibration__standing="narrow"),
    "standing stretch tiny": edit(calibration__standing=1e-300),
    "calibration of an earlier version with such a stretch": edit(calibration="wide", stretch=1e300),
    "calibration without a stretch": edit(calibration="wide"),
    "calibration of no kind": edit(calibration__how="magic"),
    "calibration nested without end": nested,
    "calibration a list": edit(calibration=[1.0, 1.0]),
    "calibration on a fraction of a trip": edit(calibration__trips=None),
    "calibration at no level": edit(calibration__level=1.5),
    "degrees of freedom of astronomers": edit(settings__nu=1e308),
    "floor of degrees of freedom of astronomers": edit(settings__nu_min=1e308),
    "learned degrees of freedom of astronomers": weights("nu_raw", poke(3e38)),
    "weights of astronomers": weights("head_w", poke(3e38)),
    "road weights of astronomers": weights("road_w", poke(-3e38)),
    "arguments of another tool": edit(arguments={"backdoor": 1}),
    "arguments a list": edit(arguments=[1]),
    "argument of another type": edit(arguments={"members": "many"}),
    "prior without weights": lambda tensors, meta: meta.update(prior=dict(meta)),
    "power of astronomers": edit(features__y_mean=1e300),
    "scale of nothing": edit(features__y_std=1e-300),
    "zero scale": edit(features__y_std=0.0),
    "mean not a number": edit(features__y_mean=float("nan")),
    "scales too short": edit(features__x_scale=[1.0]),
    "knot of no term": edit(features__knots=[["x", 1.0]]),
    "input of no channel": edit(features__input_names=["speed_kmh", "spell"]),
    "features of another shape": edit(features__road_names=["v"]),
    "features no map": edit(features=7),
    "an extra field of features": edit(features__spell="x"),
    "extra tensor": lambda tensors, meta: tensors.update(more=np.zeros(3, np.float32)),
    "missing tensor": lambda tensors, meta: tensors.pop("head_w"),
    "wrong shape": weights("head_w", lambda a: a[:, :1]),
    "wrong type": weights("head_w", lambda a: a.astype(np.float64)),
    "nan weight": weights("w_hh.0", poke(np.nan)),
    "infinite weight": weights("road_w", poke(np.inf)),
}


def rewritten(data, change):
    tensors, meta = parts(data)
    change(tensors, meta)
    return save(tensors, {"evband": json.dumps(meta)})


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_contents_are_refused(whole, tmp_path, case):
    refused(tmp_path, rewritten(whole, HOSTILE[case]))


def header(text):
    return struct.pack("<Q", len(text)) + text


BYTES = {
    "empty": b"",
    "three bytes": b"abc",
    "header longer than the file": struct.pack("<Q", 1 << 62) + b"{}",
    "header of 4 GB": struct.pack("<Q", 1 << 32) + b"{}" * 50,
    "no json": header(b"not json at all"),
    "not utf-8": header(b"\xff\xfe\xfa\x00"),
    "no metadata": header(b'{"a": 1}'),
    "json of 100000 brackets": header(b"[" * 100_000),
    "brackets inside": header(json.dumps({"__metadata__": {"evband": "[" * 100_000}}).encode()),
    "metadata a number": header(b'{"__metadata__": {"evband": 7}}'),
    "an endless number": header(json.dumps({"__metadata__": {"evband": "9" * 100_000}}).encode()),
    "a pickle": pickle.dumps({"weights": [1.0, 2.0]}),
    "a csv": b"time_s,speed_kmh\n1,2\n",
}


@pytest.mark.parametrize("case", BYTES)
def test_other_files_are_refused(tmp_path, case):
    refused(tmp_path, BYTES[case])


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(whole, tmp_path, share):
    refused(tmp_path, whole[: int(share * len(whole))])


def test_flipped_bytes_load_or_are_refused_but_never_crash(whole, tmp_path):
    rng = np.random.default_rng(0)
    size = 8 + struct.unpack("<Q", whole[:8])[0]
    for _ in range(60):
        data = bytearray(whole)
        data[int(rng.integers(size))] ^= 1 << int(rng.integers(8))
        path = tmp_path / "flipped.evband"
        path.write_bytes(bytes(data))
        with suppress(ArtifactError):
            evband.load(path)


def refused(tmp_path, data):
    path = tmp_path / "bad.evband"
    path.write_bytes(data)
    with pytest.raises(ArtifactError) as problem:
        evband.load(path)
    assert "bad.evband" in str(problem.value)
    assert "\n" not in str(problem.value)


def test_a_missing_file_and_a_directory_are_one_sentence(tmp_path):
    for path in (tmp_path / "none.evband", tmp_path):
        with pytest.raises(ArtifactError, match=r"cannot be read|no such file"):
            evband.load(path)


def test_an_existing_file_stays_until_the_new_one_is_whole(model, tmp_path, monkeypatch):
    path = tmp_path / "car.evband"
    path.write_bytes(b"old")
    monkeypatch.setattr(model, "summary_", {"bad": float("nan")})
    with pytest.raises(ValueError):
        model.save(path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["car.evband"]
