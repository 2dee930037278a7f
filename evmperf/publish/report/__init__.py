"""The report of a run: one HTML file that opens anywhere, offline and on a phone."""
