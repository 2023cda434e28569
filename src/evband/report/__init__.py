"""One self-contained HTML page that shows bands against what was measured, and says what each number means."""
