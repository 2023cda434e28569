"""One thread per test process: tests run side by side, and small tensors split over busy cores wait for each other (12 times slower)."""

import os

import pytest
from hypothesis import settings

settings.register_profile("seeded", derandomize=True)  # the same examples in every run
settings.load_profile("seeded")

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")


@pytest.fixture
def call(monkeypatch, capsys):
    """Run the command line; (status, out, err)."""
    import evband.cli

    def go(*words):
        monkeypatch.setattr("sys.argv", ["evband", *map(str, words)])
        with pytest.raises(SystemExit) as exit:
            evband.cli.main()
        shown = capsys.readouterr()
        return exit.value.code or 0, shown.out, shown.err

    return go
