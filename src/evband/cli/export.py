"""`evband export`: a model for programs without Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    model: Annotated[Path, typer.Argument(metavar="CAR.EVBAND", help="A fitted model.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="ONNX file to write.")],
) -> None:
    """Write all members as one ONNX graph that takes a tick and the state before it, and gives mean, aleatoric and epistemic.

    Example: evband export car.evband -o car.onnx
    """
    from evband.export.onnx import export_onnx, model_graph
    from evband.model import load

    fitted = load(model)
    export_onnx(output, model_graph(fitted))
    inputs = len(fitted.feature_map_.input_names)
    print(
        f"{output}: {fitted.settings_.members} members, {inputs} inputs, one tick per run; its metadata name and scale them"
    )
