"""`evband export`: a model for programs without Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evband.cli.options import Model


def export(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="ONNX file to write.")],
) -> None:
    """Write all members as one ONNX graph: channels of a tick, band level and state in; mean, band, both parts and state out.

    Example: evband export car.evband -o car.onnx
    """
    from evband.export.onnx import export_onnx, model_graph
    from evband.model import load

    fitted = load(model)
    export_onnx(output, model_graph(fitted))
    channels = ", ".join(fitted.feature_map_.channels)
    print(
        f"{output}: {fitted.settings_.members} members on {channels}, one tick per run; docs/guides/onnx.md lists the inputs"
    )
