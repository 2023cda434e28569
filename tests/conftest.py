"""One thread per test process: tests run side by side, and small tensors split over busy cores wait for each other (12 times slower)."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
