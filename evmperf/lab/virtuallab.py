"""The lab of a virtual EVM as boards' drivers see it: HTTP beside the power switch."""

import json
from typing import Any
from urllib.parse import urlsplit

import requests

from evmperf.lab.tester import CommandTester, SshTester
from evmperf.model.errors import LabError

VIRTUAL = "virtual"
"""The name of the tester that stands beside a virtual EVM."""
_ANSWER_S = 10.0
_TESTER_S = 300.0
"""The tester's answer may wait until it has booted."""


def ask(host: str, method: str, what: str, body: str = "", timeout_s: float = _ANSWER_S) -> str:
    """The answer of the lab at the `host` of a NetworkPowerPort; raises LabError."""
    base, _, _ = host.partition("/power/")  # http://HOST:PORT/power/{index}
    try:
        answer = requests.request(method, f"{base}/{what}", data=body, timeout=timeout_s)
    except requests.RequestException as error:
        raise LabError(
            f"the lab of the virtual EVM does not answer ({type(error).__name__}): is it running? "
            f"(`evmperf virtual status`)"
        ) from None
    if answer.status_code != requests.codes.ok:
        raise LabError(f"the lab of the virtual EVM refused: {answer.text.strip()}")
    return answer.text.strip()


def tester(target: Any) -> CommandTester:
    """The tester beside the virtual EVM of a Labgrid target; raises LabError without one."""
    switch = urlsplit(target.get_resource("NetworkPowerPort").host)
    # The answer is a command to run: only this machine's lab is asked for it.
    host = f"http://127.0.0.1:{switch.port or 0}"
    said = json.loads(ask(host, "GET", "tester", timeout_s=_TESTER_S))
    if said["ssh_host"]:
        return SshTester(said["ssh_host"], said["ssh_options"])
    return CommandTester(said["command"], f"the tester {said['namespace']}")
