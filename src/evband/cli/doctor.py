"""`evband doctor`: environment and self-test, to paste into a bug report."""

from __future__ import annotations

import sys


def doctor() -> None:
    """Show versions, threads, caches and GPU, and test this installation in about ten seconds; paste it into bug reports.

    Example: evband doctor
    """
    from evband.report.doctor import facts, run_checks

    for name, value in facts():
        print(f"{name:<22}{value}")
    results = run_checks()
    for name, well, seen in results:
        print(f"{name:<22}{'well' if well else 'FAILED'}: {seen}")
    if not all(well for _, well, _ in results):
        sys.exit(1)
