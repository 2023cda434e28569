"""Scripts that measure, run from the repository's root as `python -m benchmarks.FOLDER.SCRIPT`; README.md lists them."""
