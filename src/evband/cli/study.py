"""`evband study`: the paper's experiments on its simulated vehicles or on any log."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evband.cli.options import grouped, setting
from evband.cli.progress import reporting
from evband.cli.show import say

if TYPE_CHECKING:
    from evband.studies.cases import Case
    from evband.studies.runs import Recipe

study = typer.Typer(no_args_is_help=True, help="The paper's experiments: compare methods, feature sets, settings.")

Features = Annotated[str | None, typer.Option(help="auto, motion, torque, S1..S5, or channels a,b,c.")]
OUT = typer.Option(help="Folder for tables and figures; a stopped study continues in it.")
Where = Annotated[str, setting("device")]


@dataclass(frozen=True)
class Data:
    """What a study runs on."""

    vehicles: Annotated[str | None, typer.Option(help="Simulated vehicles, comma-separated, or all.")] = None
    logs: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]LOG", help="A log or glob, one vehicle each; may be repeated."),
    ] = None
    hz: Annotated[float | None, typer.Option(help="Rows per second of the grid; simulated benches 10, else 1.")] = None
    trips: Annotated[int, typer.Option(help="Drives of each simulated vehicle; 1 is the paper's single run.")] = 1


@dataclass(frozen=True)
class Fits:
    """How each cell of a study's tables is trained."""

    preset: Annotated[str, setting("preset", what="The recipe of every fit.")] = "paper"
    members: Annotated[int | None, typer.Option(help="Networks in the ensemble; the preset's 30.")] = None
    epochs: Annotated[int | None, typer.Option(help="Maximum number of epochs; the preset's own.")] = None
    prior_variance: Annotated[
        float | None, typer.Option(help="Of the paper preset's flat prior; its 0.01 learns nothing from one short run.")
    ] = None
    seeds: Annotated[str, typer.Option(help="Seeds, comma-separated: each cell is run with each.")] = "0"
    device: Where = "auto"

    def recipes(self, methods: list[str], dropout: float | None = None) -> list[Recipe]:
        from evband.studies.runs import Recipe, check_methods

        check_methods(methods)
        asked = {"prior_variance": self.prior_variance, "dropout": dropout, "device": str(self.device)}
        return [
            Recipe(name, str(self.preset), self.members, self.epochs, seed, **asked)  # type: ignore[arg-type]
            for name in methods
            for seed in _seeds(self.seeds)
        ]


@study.command("compare")
@grouped
def compare(
    data: Data,
    fits: Fits,
    out: Annotated[Path | None, OUT] = None,
    methods: Annotated[
        str, typer.Option(help="Methods and rivals, comma-separated.")
    ] = "t-anchor,t-dropout,quantile-anchor,quantile-dropout",
    features: Features = None,
    dropout: Annotated[float | None, typer.Option(help="Rate of the dropout methods; tuned if not given.")] = None,
    prepare: Annotated[
        Path | None, typer.Option(help="Only write the arrays, for python -m evband.studies.remote DIR elsewhere.")
    ] = None,
    trained: Annotated[Path | None, typer.Option(help="Take the weights trained elsewhere from this folder.")] = None,
) -> None:
    """Methods x vehicles: accuracy, uncertainty, coverage with both intervals, width (the paper's Tables II and III).

    Example: evband study compare --vehicles sedan_1 --methods t-anchor,ngboost --members 5 --epochs 50 --out study/
    """
    from evband.errors import SettingsError
    from evband.studies.compare import compare as run
    from evband.studies.remote import prepare_case

    recipes = fits.recipes(_parts(methods), dropout)
    if (out is None) == (prepare is None):
        raise SettingsError("Give --out DIR to run the study, or --prepare DIR to only write its arrays.")
    cases = _cases(data, features)
    if prepare is not None:
        for case in cases:
            for recipe in recipes:
                if not recipe.rival:
                    print(f"{prepare_case(case, recipe, prepare)}: written")
        return
    assert out is not None
    say(
        f"{len(cases) * len(recipes)} fits ({len(cases)} vehicles x {len(recipes)} methods and seeds); 30 members on one simulated "
        "run take 1 to 5 minutes each on two cores, long logs longer; the same command continues a stopped study"
    )
    with reporting("fit") as report:
        accuracy, calibration = run(cases, recipes, out, trained, report, say, _header())
    _show(accuracy, f"{out / 'table2.csv'}: accuracy and uncertainty")
    _show(calibration, f"{out / 'table3.csv'}: calibration")


@study.command("ablation")
@grouped
def ablation(
    data: Data,
    fits: Fits,
    out: Annotated[Path, OUT],
    sets: Annotated[
        str, typer.Option(help="Feature sets, comma-separated; channels of a set of your own joined by +.")
    ] = "S1,S2,S3,S4,S5",
    method: Annotated[str, typer.Option(help="The method every set is tried with.")] = "t-anchor",
) -> None:
    """Feature sets on vehicles: what each input is worth (the paper's Table I).

    Example: evband study ablation --vehicles sedan_1 --sets S1,S5 --members 3 --out study/
    """
    from evband.studies.compare import ablation as run

    recipes, cases = fits.recipes([method]), _cases(data)
    with reporting("fit") as report:
        table = run(cases, _parts(sets), recipes, out, report, say, _header())
    _show(table, f"{out / 'table1.csv'}: feature sets")


@study.command("search")
@grouped
def search(
    data: Data,
    out: Annotated[Path, OUT],
    trials: Annotated[int, typer.Option(help="Trials in all, those of earlier runs counted in.")] = 30,
    sampler: Annotated[str, typer.Option(help="random (the paper's) or tpe.")] = "random",
    features: Features = None,
    members: Annotated[int, typer.Option(help="Networks of each trial.")] = 3,
    max_epochs: Annotated[int | None, typer.Option(help="A cap on the epochs, for a quick look.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same trials.")] = 0,
    device: Where = "auto",
) -> None:
    """The paper's random search over depth, width, prior variance, epochs, rate and optimiser, on one vehicle.

    Stop it and continue it at will.

    Example: evband study search --vehicles sedan_1 --trials 30 --out search/
    """
    import polars as pl

    from evband.errors import SettingsError
    from evband.studies.search import Plan
    from evband.studies.search import search as run

    cases = _cases(data, features)
    if len(cases) != 1:
        raise SettingsError("A search is on one vehicle; name one with --vehicles or --logs.")
    plan = Plan(trials, sampler, members, max_epochs, seed, str(device))
    with reporting("trial") as report:
        table = run(cases[0], plan, out, report, say)
    rate = pl.col("rate").map_elements("{:.2g}".format, return_dtype=pl.String)
    _show(table.sort("log_score").head(5).with_columns(rate), f"{out / 'trials.csv'}: the best of {len(table)} trials")
    print(f"{out / 'best.toml'}: settings for evband fit --config")


def _cases(data: Data, features: str | None = None) -> list[Case]:
    """The vehicles of a study; without any named, the simulated ones."""
    from evband.cli.logs import Logs as Named
    from evband.studies import cases

    found = []
    if data.vehicles is not None or not data.logs:
        names = cases.simulated_names("all" if data.vehicles is None else data.vehicles)
        found += [cases.simulated(name, features, data.hz, data.trips) for name in names]
    for log in data.logs or ():
        name, pattern = cases.name_of(log)
        wanted, grid = "auto" if features is None else features, cases.ROAD_HZ if data.hz is None else data.hz
        found.append(cases.cut(name, Named([pattern]).read(), wanted, grid))
    cases.check_names(found)
    return found


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _seeds(text: str) -> list[int]:
    from evband.errors import SettingsError

    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise SettingsError(f"--seeds {text}: write whole numbers with commas, such as 0,1,2.") from None


def _header() -> list[str]:
    import platform

    from evband import __version__

    command = " ".join(["evband", *sys.argv[1:]])
    return [command, f"evband {__version__}, Python {platform.python_version()}, {platform.machine()}"]


def _show(table: object, title: str) -> None:
    import polars as pl

    assert isinstance(table, pl.DataFrame)
    with pl.Config(
        tbl_rows=-1, tbl_cols=-1, float_precision=3, tbl_width_chars=200, tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True, tbl_formatting="ASCII_MARKDOWN",
    ):  # fmt: skip
        print(f"{title}\n{table}")
