"""Which InfluxDB, and the token for it, from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from evmperf.model.errors import UsageError
from evmperf.model.tokens import address, usable


@dataclass(frozen=True)
class Config:
    """A bucket of an InfluxDB 2.x server. The token is in no text that this class makes."""

    url: str
    org: str
    bucket: str
    token: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.url} (organisation {self.org}, bucket {self.bucket})"


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"EVMPERF_INFLUX_{name.upper()}"


def load(environment: Mapping[str, str] = os.environ) -> Config | None:
    """The settings, None without any; raises UsageError for wrong ones."""
    names = {name: variable(name) for name in ("url", "token", "org", "bucket")}
    values = {name: usable(environment.get(named, ""), f"InfluxDB: {named}") for name, named in names.items()}
    if not any(values.values()):
        return None
    if missing := [named for name, named in names.items() if not values[name]]:
        raise UsageError(f"InfluxDB: set {', '.join(missing)}, too")
    url = address(values["url"], f"InfluxDB: {names['url']}")
    return Config(url, values["org"], values["bucket"], values["token"])


def required() -> Config:
    """The same settings; raises UsageError where there are none, too."""
    config = load(os.environ)
    if config is None:
        raise UsageError(f"InfluxDB is not configured: set {variable('url')}, _TOKEN, _ORG and _BUCKET")
    return config
