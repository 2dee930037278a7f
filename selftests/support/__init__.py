"""Helpers of the selftests."""
