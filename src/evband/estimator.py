"""scikit-learn's habits without importing it: its base class alone costs a command a second at start."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any, Self

from evband.errors import NotFittedError


class Estimator:
    """Every argument of the constructor is a setting kept under its own name; `sklearn.base.clone` and searches work."""

    @classmethod
    def _settings(cls) -> dict[str, Any]:
        """Name and default of each argument."""
        return {a.name: a.default for a in inspect.signature(cls).parameters.values()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings; with ``deep`` also those of a setting that is itself an estimator, as ``name__its_name``."""
        params = {name: getattr(self, name) for name in self._settings()}
        for name, value in list(params.items()) if deep else ():
            if hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{inner}": setting for inner, setting in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change settings; ``name__its_name`` reaches into a setting that is itself an estimator."""
        known = self._settings()
        for name, value in params.items():
            first, inside, rest = name.partition("__")
            if first not in known:
                raise ValueError(f"{type(self).__name__} has no setting {first!r}; it has {', '.join(known)}")
            if inside:
                getattr(self, first).set_params(**{rest: value})
            else:
                setattr(self, first, value)
        return self

    def __repr__(self) -> str:
        """What differs from the defaults."""
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._changed().items())})"

    def _changed(self) -> dict[str, Any]:
        known = self._settings()
        return {k: v for k, v in self.get_params(deep=False).items() if isinstance(v, Estimator) or v != known[k]}

    def _repr_html_(self) -> str:
        """For notebooks: what differs from the defaults, whether it is fitted, and what its calibration rests on."""
        from evband.bands.picture import table

        rows = [[name, repr(value)] for name, value in self._changed().items()]
        if "calibration_" in vars(self):
            rows.append(["calibration", vars(self)["calibration_"].describe()])
        fitted = any(name.endswith("_") and not name.startswith("_") for name in vars(self))
        return table(["setting", "value"], rows, f"{type(self).__name__}, {'fitted' if fitted else 'not fitted'}")

    def score(self, trips: Any, y: None = None) -> float:
        """Minus the mean CRPS in kW on trips with measured power: higher is better, as scikit-learn's searches expect."""
        from evband.scores import evaluate

        bands: Any = self.predict(trips)  # type: ignore[attr-defined]
        return -float(evaluate(bands)["crps_kw"])

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            if name.endswith("_") and not name.startswith("_"):
                kind = type(self).__name__
                raise NotFittedError(f"This {kind} is not fitted and has no {name}; call fit, or load a fitted model.")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of an estimator before it works with one."""
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)


def notebook_progress() -> Any:
    """What shows the progress of a fit as a bar under a notebook's cell; None where there is no notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import HTML, display

    handle: Any = display(HTML(""), display_id=True)

    def show(now: Any) -> None:
        bar = f'<progress value="{now.epoch}" max="{now.epochs}"></progress>'
        handle.update(
            HTML(f"{bar} epoch {now.epoch} of {now.epochs}, loss {now.loss:.3f}, {now.seconds_left:.0f} s left")
        )

    return show
