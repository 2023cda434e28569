"""doctor: what a bug report needs, without naming its writer, and a self-test that notices."""

import getpass
import platform
from pathlib import Path

from evband.report import doctor


def test_facts_name_versions_and_nobody(monkeypatch):
    found = dict(doctor.facts())
    assert found["evband"]
    assert found["numba"][0].isdigit()
    text = "\n".join(found.values())
    assert str(Path.home()) not in text or str(Path.home()) == "/"
    assert platform.node() not in text.split()
    assert getpass.getuser() not in text.split()


def test_the_self_test_passes_here_and_notices_a_fault(monkeypatch):
    assert all(well for _, well, _ in doctor.run_checks())
    monkeypatch.setattr(doctor, "_read", lambda: 1 / 0)
    failed = [(name, seen) for name, well, seen in doctor.run_checks() if not well]
    assert failed[0][0] == "read a log"
    assert "ZeroDivisionError" in failed[0][1]
