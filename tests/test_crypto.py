"""Crypto: OpenSSL."""

import pytest

pytestmark = pytest.mark.lg_feature("crypto")


def test_crypto(measure, benchmark, case):
    measure(benchmark, case)
