"""How fast: training, prediction, starting, reading, memory."""
