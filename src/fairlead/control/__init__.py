"""The use cases, and the loop that carries them out. Knows stores and engines by their seams alone."""
