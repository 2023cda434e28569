"""The page on a fleet, as who reads it sees it."""

import polars as pl

from evband.fleet.report import MOST_ROWS, write_fleet_report


def row(name: str, kwh: float | None = 15.0, warning: str = "") -> dict:
    numbers = {"energy_kwh_100km": kwh, "lower": kwh and kwh - 1.0, "upper": kwh and kwh + 1.0, "coverage": 0.9}
    return {"vehicle_id": name, "trips": int(kwh is not None), "hours": 1.0, "warning": warning,
            "expected_kwh_100km": 14.5, "drift": None, **numbers}  # fmt: skip


def test_the_greediest_come_first_and_what_is_left_out_is_said(tmp_path) -> None:
    rows = [row(f"car{k}", 15.0 + 0.01 * k) for k in range(MOST_ROWS + 50)]
    write_fleet_report(tmp_path / "report.html", pl.DataFrame(rows))
    page = (tmp_path / "report.html").read_text()
    assert f"The first {MOST_ROWS} of {MOST_ROWS + 50} cars; all are in cars.parquet." in page
    assert page.index(">car249<") < page.index(">car248<")
    assert ">car3<" not in page
    assert page.count("<svg") == MOST_ROWS


def test_ids_of_any_kind_and_lost_cars_before_doubtful_ones(tmp_path) -> None:
    rows = [row("doubtful", warning="check the sheet"), row("", None, "no id"), row("<b>" + "x" * 300, None, "lost")]
    write_fleet_report(tmp_path / "report.html", pl.DataFrame(rows))
    page = (tmp_path / "report.html").read_text()
    assert "&lt;b&gt;xxx" in page
    assert "x" * 40 not in page
    assert page.index("(no id)") < page.index("check the sheet")
    assert "3 cars have a warning; 2 could not be learned from." in page


def test_a_fleet_of_lost_cars_claims_no_share_in_bands(tmp_path) -> None:
    write_fleet_report(
        tmp_path / "report.html", pl.DataFrame([row("lost", None, "no sheet")], infer_schema_length=None)
    )
    page = (tmp_path / "report.html").read_text()
    assert "0 of 1 cars were learned from" in page
    assert "nan" not in page.split("</style>")[1]
