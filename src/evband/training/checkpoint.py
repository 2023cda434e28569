"""Checkpoints: a run killed at any moment goes on to the same end result.

All random numbers are drawn from (seed, member, purpose, epoch), so the weights, the optimiser's moments and the
epoch are all there is to keep. A checkpoint is an npz of plain arrays, written beside its name and then renamed. It
is taken at the end of an epoch only: weights in the middle of one belong to no epoch that a run could go on from.
"""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from evband.files import whole_file
from evband.training.loop import Trainer


class CheckpointMismatch(ValueError):
    """The checkpoint belongs to another run."""


class Checkpoint:
    """One file; written at most every few seconds, and at once when a run ends or is interrupted."""

    def __init__(self, path: Path, resume: bool, every_s: float = 5.0):
        self.path, self.resume, self.every_s = path, resume, every_s
        self._written = time.monotonic()
        self._last: dict[str, NDArray] | None = None  # the last finished epoch, not yet on disk
        self._fingerprint: str | None = None

    def fingerprint(self, trainer: Trainer) -> str:
        """What must be equal for a run to go on: settings, architecture, data, members, windows."""
        if self._fingerprint is None:
            self._fingerprint = self._digest(trainer)
        return self._fingerprint

    def _digest(self, trainer: Trainer) -> str:
        digest = hashlib.sha256(json.dumps([asdict(trainer.settings), asdict(trainer.arch)]).encode())
        for member in trainer.members:
            digest.update(np.array([member.number, member.beta, member.temperature, member.trip_effect]).tobytes())
            digest.update(member.train.tobytes() + member.held_out.tobytes())
        for tensor in (trainer.rows.x, trainer.rows.r, trainer.rows.y, trainer.anchor, trainer.epoch_batches(0)):
            digest.update(tensor.cpu().numpy().tobytes())
        return digest.hexdigest()

    def save(self, trainer: Trainer) -> None:
        """Keep the epoch that has just ended; it goes to disk now or with the next `flush`."""
        state = trainer.state
        arrays = {
            "theta": trainer.theta.detach(),
            "best": state.best,
            "best_score": state.best_score,
        }
        moments = trainer.optimiser.state[trainer.theta]
        arrays |= {f"moment.{k}": torch.as_tensor(v) for k, v in moments.items() if v is not None}
        meta = {
            "fingerprint": self.fingerprint(trainer),
            "epoch": state.epoch,
            "restarts": state.restarts,
            "history": state.history,
        }
        self._last = {k: np.array(v.cpu().numpy()) for k, v in arrays.items()} | {"meta": np.array(json.dumps(meta))}
        if time.monotonic() - self._written >= self.every_s:
            self.flush()

    def flush(self) -> None:
        if self._last is None:
            return
        with whole_file(self.path) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **self._last)
        self._written, self._last = time.monotonic(), None

    def restore(self, trainer: Trainer) -> bool:
        """Put the trainer where the checkpoint stands; False if there is none or it is not asked for."""
        if not (self.resume and self.path.exists()):
            return False
        try:
            with self.path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                meta = json.loads(str(file["meta"]))
                arrays = {k: torch.from_numpy(file[k]).to(trainer.device) for k in file.files if k != "meta"}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            raise CheckpointMismatch(f"{self.path} is not a readable checkpoint; delete it and fit anew") from None
        if meta["fingerprint"] != self.fingerprint(trainer):
            raise CheckpointMismatch(
                f"{self.path} is of another run (other settings, trips or version); delete it, or repeat the settings it began with"
            )
        state = trainer.state
        with torch.no_grad():
            trainer.theta.copy_(arrays["theta"])
        state.best, state.best_score = arrays["best"], arrays["best_score"]
        state.epoch, state.history = meta["epoch"], [tuple(h) for h in meta["history"]]
        state.restarts = {int(k): v for k, v in meta["restarts"].items()}
        moments = {k.removeprefix("moment."): v for k, v in arrays.items() if k.startswith("moment.")}
        if moments:
            if trainer.device.type == "cpu" and "step" in moments:
                moments["step"] = moments["step"].cpu()
            trainer.optimiser.state[trainer.theta] = moments
        return True

    def remove(self) -> None:
        """The run is over and its result is kept elsewhere."""
        self.path.unlink(missing_ok=True)
