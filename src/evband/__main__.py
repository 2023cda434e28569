"""`python -m evband` is `evband`."""

from evband.cli import main

main()
