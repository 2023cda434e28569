"""`evband fit`: train a model on logs with measured power."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evband.cli.logs import Logs, reads_logs
from evband.cli.options import setting
from evband.cli.progress import duration, reporting
from evband.cli.show import say
from evband.errors import SettingsError
from evband.files import read_toml
from evband.settings import check_names

if TYPE_CHECKING:
    from evband.model import PowerModel
    from evband.training.loop import Progress
    from evband.trips import Trips


@reads_logs
def fit(
    logs: Logs,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write, car.evband.")],
    preset: Annotated[str | None, setting("preset")] = None,
    method: Annotated[str | None, setting("method")] = None,
    features: Annotated[str | None, setting("features")] = None,
    vehicle: Annotated[str | None, setting("vehicle")] = None,
    members: Annotated[int | None, setting("members")] = None,
    epochs: Annotated[int | None, setting("epochs")] = None,
    hz: Annotated[float | None, setting("hz")] = None,
    seed: Annotated[int | None, setting("seed")] = None,
    tune: Annotated[bool, setting("tune", "--tune")] = False,
    prior: Annotated[Path | None, typer.Option(help="A model of another car to start from, car0.evband.")] = None,
    from_scratch: Annotated[
        bool,
        typer.Option("--from-scratch", help="Start from random weights, not from the base that ships with evband."),
    ] = False,
    no_calibrate: Annotated[bool, typer.Option("--no-calibrate", help="Leave the bands as trained.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run of this output.")] = False,
    device: Annotated[str | None, setting("device")] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file of PowerModel's arguments; options given here win.")
    ] = None,
) -> None:
    """Train a model on logs with measured power, and calibrate its bands on trips left out in turn.

    Example: evband fit "logs/*.csv" -o car.evband --members 30
    """
    from evband.model import PowerModel
    from evband.report.fitted import fit_summary

    given = {
        "preset": preset, "method": method, "features": features, "vehicle": vehicle, "members": members, "epochs": epochs, "hz": hz,
        "seed": seed, "tune": tune or None, "prior": prior and str(prior), "calibrate": False if no_calibrate else None,
        "from_base": False if from_scratch else None, "device": device,
    }  # fmt: skip
    settings = _configured(config) | {k: v for k, v in given.items() if v is not None}
    if str(settings.get("prior", "")).endswith(".evband"):
        from evband.model import load

        settings["prior"] = load(settings["prior"])
    model = PowerModel(**settings)
    model.check()
    if not output.absolute().parent.is_dir():
        raise SettingsError(f"{output}: its directory does not exist; make it first.")
    trips = logs.read()
    logs.warn_of_faults(trips)
    _train(model, trips, output, resume)
    for line in fit_summary(model):
        print(line)
    print(f"{output}: written")


def _configured(path: Path | None) -> dict[str, Any]:
    """PowerModel's arguments from a TOML file."""
    if path is None:
        return {}
    found = read_toml(path, SettingsError, "file of settings")
    check_names(found, str(path))
    if isinstance(found.get("features"), list):
        found["features"] = ",".join(map(str, found["features"]))
    return found


def _train(model: PowerModel, trips: Trips, output: Path, resume: bool) -> None:
    """Fit and save, with a checkpoint beside the output for as long as that takes."""
    from evband.training.checkpoint import Checkpoint

    checkpoint = Checkpoint(output.with_name(output.name + ".checkpoint"), resume)
    if checkpoint.path.exists() and not resume:
        say(f"{checkpoint.path} of an interrupted run is overwritten; --resume would have continued it")
    if resume and not checkpoint.path.exists():
        say(f"there is no {checkpoint.path} to resume; training from the start")
    try:
        with reporting("epoch") as report:

            def show(now: Progress) -> None:
                score = "" if now.log_score is None else f", held-out log score {now.log_score:.3f}"
                report(now.epoch, now.epochs, f"loss {now.loss:.3f}{score}, {duration(now.seconds_left)} left")

            model.fit(trips, progress=show, say=say, checkpoint=checkpoint)
        model.save(output)
    except KeyboardInterrupt:
        kept = f"finished epochs are in {checkpoint.path}; the same command with --resume continues"
        say(f"stopped: {kept if checkpoint.path.exists() else 'no epoch was finished, nothing was kept'}")
        raise
    checkpoint.remove()
