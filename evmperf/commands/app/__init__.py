"""Use cases: functions from typed requests to typed replies, and the processes that run them."""
