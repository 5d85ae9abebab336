"""Variables of the person's shell that count for a project: which tools it finds, and how they reach the network.

An allow-list. Addresses of registries are not on it, since they often carry a password; `sandbox.env` passes them, and
proxies with their password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_PROXIES = tuple(
    name for word in ("HTTP", "HTTPS", "FTP", "ALL") for name in (f"{word}_PROXY", f"{word.lower()}_proxy")
)
_DIRECT = ("NO_PROXY", "no_proxy")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
CERTIFICATES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT"),
    *("GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE", "NPM_CONFIG_CAFILE", "DENO_CERT"),
)
_MANAGERS = (
    *("NVM_DIR", "NVM_BIN", "FNM_DIR", "VOLTA_HOME", "NODENV_ROOT", "NODENV_VERSION"),
    *("PYENV_ROOT", "PYENV_VERSION", "CONDA_PREFIX", "RBENV_ROOT", "RBENV_VERSION", "GOENV_ROOT", "GOENV_VERSION"),
    *("GOROOT", "GOTOOLCHAIN", "JAVA_HOME", "SDKMAN_DIR", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "ELAN_HOME"),
    *("ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "MISE_ENV", "DOTNET_ROOT"),
)
NAMES = ("PATH", *_PROXIES, *_DIRECT, *CERTIFICATES, *_MANAGERS)
_LONGEST = 16_384
_CREDENTIALS = re.compile(r"([a-z][a-z0-9+.-]*://)?.*@", re.IGNORECASE | re.DOTALL)
"""Up to the last @ of an address: a password may hold any character."""


def chosen(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of the variables that count, proxies without user and password."""
    found = {name: variables[name] for name in NAMES if variables.get(name)}
    found |= {name: _CREDENTIALS.sub(r"\1", found[name]) for name in _PROXIES if name in found}
    return {name: value for name, value in found.items() if len(value) <= _LONGEST and value.isprintable()}


def with_password(variables: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the proxies whose user and password are left out."""
    return tuple(name for name in _PROXIES if _CREDENTIALS.match(variables.get(name, "")))


def different(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the variables that the two have not in common."""
    return tuple(name for name in NAMES if one.get(name) != other.get(name))


def for_programs(variables: Mapping[str, str]) -> dict[str, str]:
    """With a proxy, what is on this machine (Legion's gateway and tools) is still reached directly."""
    if not any(name in variables for name in _PROXIES):
        return dict(variables)
    said = next((variables[name] for name in _DIRECT if name in variables), "")
    direct = ",".join(dict.fromkeys((*filter(None, said.split(",")), *_LOOPBACK)))
    return {**variables, **dict.fromkeys(_DIRECT, direct)}
