"""Schemathesis on the OpenAPI document of a running server: no answer of 500 or more, nothing hangs."""

import subprocess

import pytest

from evband.live.run import DEMO
from live_real import PARTS, serving

pytestmark = pytest.mark.live


def test_schemathesis_finds_no_server_error(tmp_path):
    cars = f'[[car]]\nid = "kona"\nmodel = "{DEMO / "demo.evband"}"\ncapacity_kwh = 60\n'
    config = cars + '[store]\npath = "s.sqlite"\n[server]\nmax_requests_per_s = 100000\n'
    with serving(tmp_path, config) as served:
        command = [
            PARTS / "schemathesis", "run", f"{served.url}/openapi.json", "--checks", "not_a_server_error", "--max-examples", "25",
            "--seed", "1", "--request-timeout", "10", "--phases", "examples,coverage,fuzzing", "--exclude-path", "/openapi.json",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=tmp_path)
        assert done.returncode == 0, done.stdout[-4000:]
        assert served.get("/healthz")["status"] == "ok"
        assert served.process.poll() is None
