"""fio on ext4 on an SSD in the PCIe slot."""

from evmperf.benchmarks.families.storage import fio_benchmark

BENCHMARK = fio_benchmark(
    name="pcie_nvme_ext4_fio_10g",
    driver="pcie",
    title="PCIE SSD EXT4 FIO 10G",
    section=("PCIe Driver", "PCIe-NVMe-SSD", "{BOARD}"),
    file_system="ext4",
    size="10g",
)
