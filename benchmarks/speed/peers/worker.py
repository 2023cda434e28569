"""One peer as a process: a JSON request a line in, a JSON answer a line out.

    {"do": "prepare", "work": "step", "shape": {"members": 30, ...}}   ->  {"version": "..."}
    {"do": "run", "times": 1}                                          ->  {"seconds": [...]}

Run by client.py with the Python of the peers' environment.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    cores = sorted(os.sched_getaffinity(0))[: int(sys.argv[2])]
    os.sched_setaffinity(0, cores)  # before the import: libraries count cores once
    peer = importlib.import_module(f"benchmarks.speed.peers.{sys.argv[1]}_peer")
    run = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "prepare":
            run = peer.WORK[request["work"]](request["shape"])
            answer: dict[str, object] = {"version": peer.VERSION}
        else:
            assert run is not None
            seconds = []
            for _ in range(request["times"]):
                begin = time.perf_counter()
                run()
                seconds.append(time.perf_counter() - begin)
            answer = {"seconds": seconds}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
