"""Training of anchored ensembles. Needs torch and numpy only."""
