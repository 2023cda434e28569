"""A service on a machine that fails."""

import json
import socket
import subprocess
import time
import urllib.request

from evband.live.run import DEMO
from faults.machine import EVBAND


class Server:
    """`evband serve` in a process of its own, with a store, fed over HTTP."""

    def __init__(self, folder, place, **how):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        text = f'[server]\nport = {self.port}\n[store]\npath = "s.sqlite"\n[[car]]\nid = "a"\ncapacity_kwh = 60\nmodel = "{DEMO / "demo.evband"}"\n'
        (place / "serve.toml").write_text(text)
        self.child = subprocess.Popen(
            [*EVBAND, "serve", "serve.toml"], cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **how
        )
        self.wait(lambda: self.get("/healthz"))

    def wait(self, what, seconds=240.0):
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.child.poll() is None:
            try:
                if found := what():
                    return found
            except OSError:
                pass
            time.sleep(0.1)
        raise AssertionError(self.child.stderr.read() if self.child.poll() is not None else "it did not happen")

    def get(self, path, body=None):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", body, timeout=60) as answer:
            return json.loads(answer.read())

    def drive(self, first, count):
        """Seconds `first` to `first + count` of a drive that ends now; when its last row is there."""
        end = time.time() - 3.0
        lines = [json.dumps({"utc": end - count + i, "speed": 40 + (first + i) % 9, "power": 8, "soc": 60}) for i in range(count)]  # fmt: skip
        assert self.get("/api/cars/a/in", "\n".join(lines).encode())["taken"] == count
        return self.wait(lambda: (self.get("/api/cars/a").get("at") or 0) >= end - 3.0)

    def kept(self):
        return [trip for trip in self.get("/api/cars/a/trips") if trip["distance_km"] > 0]

    def end(self, number):
        self.child.send_signal(number)
        status = self.child.wait(120)
        problems = self.child.stderr.read().decode()
        self.child.stderr.close()
        assert "Traceback" not in problems, problems
        return status
