"""Drive logs in: one small reader per format, cleaning with a report, and the causal grid."""
