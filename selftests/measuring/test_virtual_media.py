"""The virtual EVM with a display, a camera and SATA disks."""

import pytest

from selftests.support.sessions import whole

pytestmark = pytest.mark.virtual_evm

VARIANT = "virtual-media"


def test_display_camera_and_disks_are_measured(env_file, tmp_path):
    select = "glmark2 or sensor_capture or ((sata_ext4_1g or sata_vfat_1g) and 102400)"
    results = whole(env_file, tmp_path, select).measured()
    assert {result.status for result in results} == {"measured"}
    measured = {result.benchmark: result for result in results}
    assert set(measured) == {
        "glmark2",
        "sensor_capture",
        "sata_ext4_1g",
        "msata_ext4_1g",
        "sata_vfat_1g",
        "msata_vfat_1g",
    }
    assert measured["glmark2"].conditions["variant"].startswith("drawn by the CPU; surface ")
    captured = [result for result in results if result.benchmark == "sensor_capture"]
    assert sorted(result.case for result in captured) == ["320x240|nv12", "320x240|rgb4"]
    assert {result.conditions["sensor"] for result in captured} == {"vivid"}
