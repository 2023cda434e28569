"""Right or wrong: each row of the result has a bound that it must keep."""
