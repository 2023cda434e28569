"""Answers of OSRM and Valhalla in small: a straight way of 40 thousandths of a degree to the north; a server of them."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

STEP = 111.195  # metres in a thousandth of a degree of latitude


def encoded(lat, lon, digits):
    """An encoded polyline, by the published recipe, one number at a time."""
    text, last = "", [0, 0]
    for pair in zip(lat, lon, strict=True):
        for k, x in enumerate(pair):
            now = round(x * 10**digits)
            value, last[k] = (now - last[k]) << 1, now
            value = ~value if value < 0 else value
            while value >= 32:
                text += chr((32 | (value & 31)) + 63)
                value >>= 5
            text += chr(value + 63)
    return text


LAT, LON = 47 + np.arange(41) / 1000, np.full(41, 9.5)


def osrm(distance=STEP, seconds=8.0, pieces=40, **route):
    note = {"distance": [distance] * pieces, "duration": [seconds] * pieces}
    body = {"legs": [{"annotation": note, "steps": []}], "distance": distance * pieces, "duration": seconds * pieces}
    return {"code": "Ok", "routes": [{**body, **route}], "waypoints": []}


def valhalla(shape=None, **leg):
    manoeuvres = [{"length": 2.0, "time": 100.0}, {"length": 2.448, "time": 200.0}, {"length": 0.0, "time": 0.0}]
    shape = shape or encoded(LAT, LON, 6)
    body = {"maneuvers": manoeuvres, "shape": shape, "summary": {"length": 4.448, "time": 300.0}, **leg}
    return {"trip": {"legs": [body], "summary": {"length": 4.448, "time": 300.0}, "units": "kilometers"}}


@contextmanager
def server(answers):
    """Answers by the beginning of the path; anything else is a 404 with JSON, as Valhalla gives."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = next((a for start, a in answers.items() if self.path.startswith(start)), None)
            body = json.dumps(found or {"error_code": 106, "error": "Try any of: '/route'"}).encode()
            self.send_response(200 if found and "error" not in found else 400)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _answer

        def log_message(self, *_):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}"
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()
