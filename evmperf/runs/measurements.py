"""Names of the measurements that runs are stored as in a database (docs/results.md)."""

SAMPLE, RESULT, BOOT_MARK, RUN, VERDICT = "sample", "result", "boot_mark", "run", "verdict"
ADDRESSES = ("report", "job", "pipeline")
"""What the point of a run leads to, as the fields `report_url` and so on."""
UNKNOWN = "unknown"
"""The release of a run that has none: a tag cannot be empty."""
