"""The console as a record: stamps, boot marks, and the watch for what must not come."""
