"""Which InfluxDB, and the token for it, from the environment or from a file of the user's own."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from evmperf.model.errors import UsageError
from evmperf.model.tokens import address, usable


class _File(msgspec.Struct, forbid_unknown_fields=True):
    url: str = ""
    token: str = ""
    org: str = ""
    bucket: str = ""


@dataclass(frozen=True)
class Config:
    """A bucket of an InfluxDB 2.x server. The token is in no text that this class makes."""

    url: str
    org: str
    bucket: str
    token: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.url} (organisation {self.org}, bucket {self.bucket})"

    @property
    def key(self) -> str:
        """Tells one bucket from another, without the token."""
        return f"{self.url.rstrip('/')}|{self.org}|{self.bucket}"


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"EVMPERF_INFLUX_{name.upper()}"


def config_file(environment: Mapping[str, str]) -> Path:
    """Where the settings may stand: $EVMPERF_INFLUX_CONFIG or influx.toml in the user's config."""
    if own := environment.get("EVMPERF_INFLUX_CONFIG"):
        return Path(own)
    base = environment.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "evmperf" / "influx.toml"


def load(environment: Mapping[str, str] = os.environ) -> Config | None:
    """The settings, variables before the file, None without any; raises UsageError for wrong or open ones."""
    path = config_file(environment)
    of_file = msgspec.structs.asdict(_read(path))
    given = {name: environment.get(variable(name)) or value for name, value in of_file.items()}
    values = {name: usable(value, f"InfluxDB: the {name}") for name, value in given.items()}
    if not any(values.values()):
        return None
    if missing := [name for name, value in values.items() if not value]:
        raise UsageError(
            f"InfluxDB: {', '.join(missing)} not given: set "
            f"{', '.join(map(variable, missing))} or write a line for each into {path}"
        )
    url = address(values["url"], "InfluxDB: the url")
    return Config(url, values["org"], values["bucket"], values["token"])


def required() -> Config:
    """The same settings; raises UsageError where there are none, too."""
    config = load(os.environ)
    if config is None:
        raise UsageError(
            f"InfluxDB is not configured: set {variable('url')}, {variable('token')}, _ORG and "
            f"_BUCKET, or write {config_file(os.environ)}"
        )
    return config


def _read(path: Path) -> _File:
    try:
        with path.open("rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise UsageError(
                    f"{path}: others may read the token in it: chmod 600 {path}, and make a new "
                    f"token if others have"
                )
            return msgspec.toml.decode(file.read(), type=_File)
    except FileNotFoundError:
        return _File()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}: it takes url, token, org and bucket, each in quotes") from None
    except (ValueError, msgspec.DecodeError):
        # The message of a TOML error may quote the line with the token.
        raise UsageError(f'{path}: is not a TOML file of lines like url = "http://..."') from None
