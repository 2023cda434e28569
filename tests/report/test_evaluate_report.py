"""`evband evaluate --report` with a fitted model, from log to page, and what it says of unfit logs."""

import pytest

import evband.cli
from drives import made_up_trips, small_model
from evband.logs.writing import write_table


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    small_model().save("car.evband")

    def go(trips, *words):
        write_table(trips, tmp_path / "drives.csv")
        monkeypatch.setattr("sys.argv", ["evband", "evaluate", "car.evband", "drives.csv", *words])
        with pytest.raises(SystemExit) as exit:
            evband.cli.main()
        return exit.value.code or 0, capsys.readouterr().err

    return go


def test_a_report_of_new_drives(run, tmp_path):
    status, err = run(made_up_trips(14)[12:].to_polars(), "--report", "report.html", "--level", "0.8")
    assert (status, err) == (0, "")
    page = (tmp_path / "report.html").read_text()
    assert "8 of 10 measured values should fall inside the band." in page
    assert "trip13" in page


def test_a_training_trip_is_warned_about_and_still_shown(run, tmp_path):
    status, err = run(made_up_trips()[:1].to_polars(), "--report", "report.html")
    assert status == 0
    assert "1 of 1 trips were in the training or calibration data" in err
    assert "1 of 1 trips were in the training data" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("columns", "path", "says"), [(["power_kw"], "report.html", "measured power"), ([], "no/report.html", "directory")]
)
def test_bad_input_is_one_sentence_and_leaves_no_report(run, tmp_path, columns, path, says):
    status, err = run(made_up_trips(13)[12:].to_polars().drop(columns), "--report", path)
    assert status == 2
    assert says in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("**/*.html"))
