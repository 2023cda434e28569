"""What the live tests need beside Python packages: mosquitto and Chromium from Debian, an emulated dongle in an environment of
its own (`python -m tools.live_parts [chromium]`).

ELM327-emulator (CC-BY-NC-SA) and python-OBD (GPL-2.0) are for tests only: they are installed into `.venv-parts`, apart from the project.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PARTS = ROOT / ".venv-parts"
PACKAGES = ("ELM327-emulator==4.0.0", "obd==0.7.3", "schemathesis==4.32.5", "setuptools<81")
PROGRAMS = {"mosquitto": "mosquitto", "chromium": "chromium"}  # program -> Debian's package


def install(program: str) -> None:
    """A program from Debian, unless it is there."""
    if shutil.which(program, path="/usr/sbin:/usr/bin:/bin:/usr/local/bin") is not None:
        return
    sudo = [] if shutil.which("sudo") is None else ["sudo", "-n"]
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-qq", "-y", "--no-install-recommends", PROGRAMS[program]],
    ):
        subprocess.run([*sudo, *command], check=True, stdout=subprocess.DEVNULL)


def emulator() -> None:
    """The emulated dongle's environment."""
    if (PARTS / ".made").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(PARTS)], check=True)
    pip = [str(PARTS / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *PACKAGES], check=True)
    (PARTS / ".made").touch()


def main() -> None:
    for program in ("mosquitto", *sys.argv[1:]):
        install(program)
    emulator()


if __name__ == "__main__":
    main()
