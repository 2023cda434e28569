"""`make lock`: what the base package needs, pinned as in constraints.txt, with the hash of each file that pip chose: requirements.lock.

pip resolves and reports without installing. Names, versions and hashes only: no index, host or path of whoever made it. The hashes are those of
one platform, named in the header; others make their own with the same command.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    lock = ROOT / "requirements.lock"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run", "--ignore-installed", "--no-build-isolation",
            "--constraint", "constraints.txt", "--report", str(report), ".",
        ]  # fmt: skip
        subprocess.run(command, cwd=ROOT, check=True)
        found = json.loads(report.read_text())["install"]
    pins = {}
    for item in found:
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        if re.sub(r"[-_.]+", "-", name).lower() != "evband":
            pins[re.sub(r"[-_.]+", "-", name).lower()] = (
                version,
                item["download_info"]["archive_info"]["hashes"]["sha256"],
            )
    where = f"Python {'.'.join(platform.python_version_tuple()[:2])}, {platform.system()} {platform.machine()}"
    lines = [
        f"# Made by `make lock` for {where}: what the base package needs, with hashes.",
        "#   pip install --require-hashes -r requirements.lock && pip install --no-deps evband",
        *(f"{name}=={version} \\\n    --hash=sha256:{digest}" for name, (version, digest) in sorted(pins.items())),
    ]
    lock.write_text("\n".join(lines) + "\n")
    print(f"{lock.name}: {len(pins)} packages")


if __name__ == "__main__":
    main()
