"""Runs in the environment of the emulator (`tools.live_parts`), never in the project's: an emulated dongle, or python-OBD as an oracle.

`python elm_emulated.py drive SPEEDS.json`: a dongle whose car drives these speeds (km/h), one per 0.25 s, again and again; prints its pty.
`python elm_emulated.py ask PORT COMMAND...`: what python-OBD reads, as JSON lines of hexadecimal data.
"""

import json
import sys
import time


def drive(speeds):
    from elm import Elm

    with Elm(batch_mode=True) as session:
        print(session.get_pty(), flush=True)
        session.scenario = "car"
        while True:
            for speed in speeds:
                data = f"41 0D {min(max(int(speed), 0), 255):02X}"
                session.answer["SPEED"] = f"<header>7E8</header><size>03</size><data>{data}</data>"
                session.answer["AMBIANT_AIR_TEMP"] = "<header>7E8</header><size>03</size><data>41 46 3C</data>"
                time.sleep(0.25)


def ask(port, commands):
    import obd

    obd.logger.setLevel(obd.logging.CRITICAL)
    connection = obd.OBD(port, fast=False, timeout=2)
    for command in commands:
        known = obd.commands[int(command[:2], 16)][int(command[2:4], 16)]
        answer = connection.query(known, force=True)
        data = answer.messages[0].data if not answer.is_null() else b""
        print(json.dumps(bytes(data).hex()), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "drive":
        with open(sys.argv[2]) as file:
            drive(json.load(file))
    ask(sys.argv[2], sys.argv[3:])
