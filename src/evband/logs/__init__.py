"""Drive logs in: one small reader a format, cleaning with a report, and the causal grid."""
