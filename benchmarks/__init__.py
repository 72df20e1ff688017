"""Measurements of the project's own speed, each against what one would use instead, in one process. Not installed."""
