"""Judging a run: same, better, worse, or not comparable, and why.

facets      what must be alike for two figures to be compared
nights      a board's earlier runs as series of medians
shift       has a series moved? (scipy, ruptures)
single      is a figure beside one other figure? (scipy)
judge       verdicts over a whole run
against     what to compare with: a release, a run, a guide, the last runs
accepted    changes that people meant
formats     verdicts as text, JSON, JUnit, Markdown, OpenMetrics
"""
