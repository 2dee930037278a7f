"""Names of the measurements that runs are stored as in a database (docs/results.md)."""

SAMPLE, RESULT, BOOT_MARK, RUN, EVENT, VERDICT = "sample", "result", "boot_mark", "run", "event", "verdict"
ADDRESSES = ("report", "job", "pipeline")
"""What the point of a run leads to, as the fields `report_url` and so on."""
