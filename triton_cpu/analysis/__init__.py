"""Questions about TTIR that are answered without emitting code."""
