"""The performance guide: reading the published ones, and writing the next.

declared   what each table looks like (tables/*.yaml, outline.yaml), by benchmark
dialect    how a guide spells units
cells      the text of a figure
source     reStructuredText to tables, with line numbers
match      which benchmark a table is
importer   tables to runs in the spool's schema
layout     what a guide contains, in which order
writer     figures and layout to reStructuredText
"""
