"""Ethernet of CPSW and ICSSG: TCP both ways, UDP without loss, UDP with loss."""

from evmperf.benchmarks.families.ethernet import tcp_benchmark, udp_flood_benchmark, udp_search_benchmark

_SECTIONS = {
    "cpsw": ("Ethernet", "CPSW/CPSW2g/CPSW3g Ethernet Driver"),
    "icssg": ("Ethernet", "ICSSG Ethernet Driver"),
}

BENCHMARKS = (
    *(
        tcp_benchmark(
            name=f"eth_{driver}_tcp_bidir{'_pacing' if pacing else ''}",
            driver=driver,
            title=f"{driver.upper()} TCP Bidirectional Throughput{' Interrupt Pacing' if pacing else ''}",
            section=_SECTIONS[driver],
            published_tester=tester,
            pacing=pacing,
        )
        for driver, tester in (("cpsw", "192.168.0.1"), ("icssg", "192.168.2.1"))
        for pacing in (False, True)
    ),
    *(
        udp_search_benchmark(
            name=f"eth_{driver}_udp_egress_0loss",
            driver=driver,
            title=f"{driver.upper()} UDP Egress Throughput",
            section=_SECTIONS[driver],
            ingress=False,
        )
        for driver in _SECTIONS
    ),
    udp_search_benchmark(
        name="eth_cpsw_udp_ingress_0loss",
        driver="cpsw",
        title="CPSW UDP Ingress Throughput (0% loss)",
        section=_SECTIONS["cpsw"],
        ingress=True,
    ),
    udp_search_benchmark(
        name="eth_icssg_udp_ingress_0loss",
        driver="icssg",
        title="ICSSG UDP Ingress Throughput 0 loss",
        section=_SECTIONS["icssg"],
        ingress=True,
        load="CPU Load %",
    ),
    *(
        udp_flood_benchmark(
            name=f"eth_{driver}_udp_ingress_loss",
            driver=driver,
            title=f"{driver.upper()} UDP Ingress Throughput (possible loss)",
            section=_SECTIONS[driver],
        )
        for driver in _SECTIONS
    ),
)
