"""Measuring on one board: what a benchmark may touch, the runner, a step, facts."""
