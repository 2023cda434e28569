"""What scripts share: the measured tasks with their folds, and the writer of result files."""
