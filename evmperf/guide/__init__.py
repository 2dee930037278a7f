"""The performance guide: reading the published ones, and writing the next.

cells the text of a figure source reStructuredText to tables, with line numbers match which benchmark a table
is (what words mean: evmperf.published.meaning) rows the rows of a known table to figures boards the boards of
a guide, and names that look misspelt importer tables to runs in the spool's schema teach drafts of files for
tables that are not known layout what a guide contains, in which order origin what a guide says of where its
figures are from writer figures and layout to reStructuredText plots plots beside it html the page and the
PDF; sphinxpage, theme: Sphinx's part of the page

How guides print each table is data: evmperf.published.
"""
