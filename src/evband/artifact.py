"""The .evband file: safetensors weights, and one JSON text in its header with all the rest. Nothing in it is executed.

Reading trusts nothing: the header's size, every tensor's name, type and shape, and every JSON field are checked
against what the settings in it imply before anything is built.
"""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from evband.calibration.value import Calibration
from evband.errors import ArtifactError, EvbandError
from evband.features import FeatureMap
from evband.files import header_json, read_bounded, write_whole
from evband.settings import DEFAULTS, FROM_BASE, RUN, Arguments, Settings, check_names, check_run, completed, resolve

if TYPE_CHECKING:
    from evband.model import PowerModel

VERSION = 2
READS = (1, 2)  # 1: no arguments, calibration as factors and a sentence
MOST_BYTES = 512 << 20  # of a whole file
HUGE = 1e18  # a standardised feature of a whole model is near 1; float32 overflows at 3e38
MOST_WEIGHT = 1e6  # beyond it sums of 128 units are no longer power; trained weights are under 100
PRIOR = "prior/"  # before the names of the weights of the model that this one started from


def save(model: PowerModel, path: Path) -> None:
    """Write the model; an existing file is replaced only once the new one is whole."""
    write_whole(path, to_bytes(model))


def to_bytes(model: PowerModel) -> bytes:
    """What a .evband file of the model holds."""
    meta, tensors = _facts(model), _tensors(model)
    prior = model.get_params(deep=False)["prior"]
    if not (prior is None or isinstance(prior, str)):  # a fitted model: a clone must be able to start from it again
        meta["prior"] = _facts(prior)
        tensors |= {f"{PRIOR}{name}": tensor for name, tensor in _tensors(prior).items()}
    return bytes(save_tensors(tensors, {"evband": json.dumps(meta, allow_nan=False)}))


def _facts(model: PowerModel) -> dict[str, Any]:
    """Everything but the weights."""
    given = model.get_params(deep=False)
    return {
        "version": VERSION,
        "made_with": _versions(),
        "arguments": {k: v for k, v in given.items() if v != DEFAULTS[k] and (k != "prior" or isinstance(v, str))},
        "settings": model.settings_.to_dict(),
        "features": model.feature_map_.to_dict(),
        "networks": len(model.theta_),
        "calibration": model.calibration_.to_dict(),
        "energy": model.energy_,
        "summary": model.summary_,
        "fingerprints": model.fingerprints_,
        "adaptation": None if model.adaptation_ is None else model.adaptation_.meta(),
    }


def _tensors(model: PowerModel) -> dict[str, NDArray[np.float32]]:
    weights = model.architecture_.unpack(model.theta_)
    tensors = {name: np.ascontiguousarray(value, np.float32) for name, value in weights.items()}
    return tensors if model.adaptation_ is None else tensors | model.adaptation_.tensors()


def load(path: Path) -> PowerModel:
    """Read a model, or say in one sentence why the file is none."""
    data = read_bounded(path, MOST_BYTES, ArtifactError, "model")
    try:
        if b'"evband_part"' in data[:64]:
            from evband.adaptation.part import read_part

            return read_part(path, data)
        return from_bytes(data)
    except ArtifactError as problem:
        raise ArtifactError(f"{path}: {problem}") from None
    except (*_DAMAGE, SafetensorError, EvbandError) as problem:
        raise ArtifactError(f"{path} is not a whole .evband file ({problem}); fit or copy it again.") from None


def from_bytes(data: bytes) -> PowerModel:
    """Inverse of `to_bytes`; what is damaged raises, and the caller words it."""
    meta, tensors = _meta(data), load_tensors(data)
    theirs = {name: tensor for name, tensor in tensors.items() if name.startswith(PRIOR)}
    model = _model(meta, {name: tensor for name, tensor in tensors.items() if name not in theirs})
    if "prior" in meta:
        prior = _model(dict(meta["prior"]), {name.removeprefix(PRIOR): t for name, t in theirs.items()})
        model.set_params(prior=prior)
    return model


def _model(meta: dict[str, Any], tensors: dict[str, NDArray]) -> PowerModel:
    """The fitted model of one header and its weights."""
    from evband.model import PowerModel

    settings = _settings(meta["settings"])
    features = _features(meta["features"])
    arch = settings.architecture(len(features.input_names), len(features.road_names))
    learned = {name: tensors.pop(name) for name in list(tensors) if name.startswith("adapt.")}
    theta = _weights(tensors, arch.shapes, _networks(meta["networks"], settings))
    model = PowerModel(**_arguments(meta, settings))
    model.settings_, model.feature_map_, model.theta_ = settings, features, theta
    old = isinstance(meta["calibration"], str)
    model.calibration_ = Calibration.of_version_1(meta) if old else Calibration.from_dict(meta["calibration"])
    model.energy_, model.summary_ = meta["energy"], {"made_with": dict(meta["made_with"]), **meta["summary"]}
    model.fingerprints_ = [str(f) for f in meta["fingerprints"]]
    if meta.get("adaptation") is not None:
        from evband.adaptation.state import Adaptation

        model.adaptation_ = Adaptation.read(dict(meta["adaptation"]), learned, len(theta), arch.road + arch.hidden)
    return model


def _arguments(meta: dict[str, Any], settings: Settings) -> Arguments:
    """PowerModel's arguments as they were given, so that a clone trains the same model.

    Where they no longer give the settings that the file holds (version 1 kept no arguments, a default may have changed
    since), the settings win; those that were tuned, or go with a start from the base, are what the arguments gave then,
    too. `thinning` decided nothing in a model that bridges no silences: a clone takes it as given, or the default.
    """
    given = dict(meta.get("arguments", {}))
    check_names(given, "the file")
    check_run(given)
    now = resolve(given.get("preset", "default"), **{k: v for k, v in given.items() if k not in RUN})
    tuned: set[str] = set().union(*(meta["summary"].get("tuning") or [])[:1])
    found = tuned | ({"from_base", *FROM_BASE} if "from_base" in meta["settings"] else set())
    found |= set() if settings.bridge_s else {"thinning"}
    kept = {k: v for k, v in settings.to_dict().items() if v != getattr(now, k) and k not in found}
    return cast(Arguments, given | kept)


_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, MemoryError)


def _meta(data: bytes) -> dict[str, Any]:
    meta = header_json(data, "evband", "a .evband file")
    if meta["version"] not in READS:
        raise ArtifactError(
            f"it has format version {meta['version']}, this evband reads {VERSION} and before; install the evband that wrote it."
        )
    return meta


def _settings(saved: dict[str, Any]) -> Settings:
    unknown = set(saved) - {f.name for f in fields(Settings)}
    if unknown:
        raise ArtifactError(f"it has settings this evband does not know ({', '.join(sorted(unknown))}); update evband.")
    return resolve("default", **completed(saved))


def _features(saved: dict[str, Any]) -> FeatureMap:
    """The feature map, once it has shown on its own typical values that it can make a row."""
    features = FeatureMap.from_dict(saved)
    with np.errstate(all="ignore"):  # what comes of damaged numbers is looked at below
        x, r = features._rows(dict(zip(features.channels, features.typical.tolist(), strict=True)))
    good = x.shape == (len(features.input_names),) and r.shape == (len(features.road_names),)
    if not (good and (np.abs(x) < HUGE).all() and (np.abs(r) < HUGE).all()):
        raise ArtifactError("its features are damaged; fit it again.")
    return features


def _networks(saved: Any, settings: Settings) -> int:
    """How many networks there are: one per member, or those of a dropout method."""
    right = saved >= 1 if settings.kind == "dropout" else saved == settings.members
    if not (isinstance(saved, int) and right):
        raise ArtifactError("it does not hold as many networks as its settings name; fit it again.")
    return saved


def _weights(tensors: dict[str, NDArray], shapes: dict[str, tuple[int, ...]], networks: int) -> NDArray[np.float32]:
    """``theta [networks, parameters]``, each block checked for name, type, shape and size."""
    if set(tensors) != set(shapes):
        raise ArtifactError("its weights do not fit its settings; fit it again.")
    blocks = []
    for name, shape in shapes.items():
        tensor = tensors[name]
        if (
            tensor.dtype != np.float32
            or tensor.shape != (networks, *shape)
            or not (np.abs(tensor) <= MOST_WEIGHT).all()
        ):
            raise ArtifactError(f"its weights {name} are damaged; fit it again.")
        blocks.append(tensor.reshape(networks, -1))
    return np.concatenate(blocks, axis=1)


def _versions() -> dict[str, str]:
    import evband

    torch = sys.modules.get("torch")  # whatever trained here was imported
    trained = {} if torch is None else {"torch": torch.__version__}
    return {"evband": evband.__version__, **trained, "python": platform.python_version()}
