"""The live service under load, with slow feeds, and killed."""
