"""Fixtures of the tests of commands."""

import pytest

import evband.cli


@pytest.fixture
def call(monkeypatch, capsys):
    """Run the command line; (status, out, err)."""

    def go(*words):
        monkeypatch.setattr("sys.argv", ["evband", *map(str, words)])
        with pytest.raises(SystemExit) as exit:
            evband.cli.main()
        shown = capsys.readouterr()
        return exit.value.code or 0, shown.out, shown.err

    return go
