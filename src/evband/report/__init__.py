"""One self-contained HTML page that shows bands against what was measured, and says what each number means."""

from evband.report.chapter import Chapter
from evband.report.page import write_page, write_report

__all__ = ["Chapter", "write_page", "write_report"]
