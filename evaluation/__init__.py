"""Scores of extraction and of selector sets. Beside the program, not in the egg."""
