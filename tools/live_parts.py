"""What the live tests need beside Python packages: mosquitto, Chromium and bubblewrap from Debian, axe-core from npm, an emulated dongle in an
environment of its own (`python -m tools.live_parts`).

ELM327-emulator (CC-BY-NC-SA) and python-OBD (GPL-2.0) are for tests only: they are installed into `.venv-parts`, apart from the project.
"""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PARTS = ROOT / ".venv-parts"
PACKAGES = ("ELM327-emulator==4.0.0", "obd==0.7.3", "schemathesis==4.32.5", "setuptools<81")
PROGRAMS = {"mosquitto": "mosquitto", "chromium": "chromium", "bwrap": "bubblewrap"}  # program -> Debian's package
AXE = "axe-core@4.14.0"
AXE_SHA512 = (
    "9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="  # as the registry has it
)


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


def axe() -> None:
    """The accessibility rules that the page is tested by (MPL-2.0; for tests only)."""
    if (PARTS / "axe.min.js").exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", AXE], check=True, cwd=folder, stdout=subprocess.DEVNULL)
        (file,) = Path(folder).glob("axe-core-*.tgz")
        packed = file.read_bytes()
    if base64.b64encode(hashlib.sha512(packed).digest()).decode() != AXE_SHA512:
        raise SystemExit(f"{AXE} is not the file it was; look at it before its hash is changed here.")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        found = archive.extractfile("package/axe.min.js")
        assert found is not None
        (PARTS / "axe.min.js").write_bytes(found.read())


def main() -> None:
    for program in PROGRAMS:
        install(program)
    emulator()
    axe()


if __name__ == "__main__":
    main()
