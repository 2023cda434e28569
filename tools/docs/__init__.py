"""Fill the tables of README.md and docs/ from the committed result files; draw the pictures."""
