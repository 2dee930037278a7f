"""The features (drivers) that a board file may list: a misspelt one would skip its tests silently for
ever."""

from collections.abc import Mapping

from evmperf.boards import yamlfile

FEATURES: Mapping[str, str] = yamlfile.own("boards/features.yaml")
ETHERNET = ("eth", "cpsw", "icssg")
"""Drivers of a port with a cable to the tester; `eth` is any, TI's have names and tables of their own."""
CABLED = (*ETHERNET, "ipsec")
