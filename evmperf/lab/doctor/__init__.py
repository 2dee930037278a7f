"""The checks of docs/day-one.md on a lab's own board, step by step; nothing is written."""
