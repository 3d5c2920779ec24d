"""What pip has been told about package indexes, said again in uv's words. Standard library only.

uv reads no pip.conf: without this, a machine behind a mirror would install with pip and fail with uv.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

_LINE = re.compile(r"^(?P<section>[^.=]+)\.(?P<key>[^=]+)=(?P<value>.*)$")
_SECTIONS = ("global", "install", ":env:")  # weakest first, as pip weighs them
_MULTIPLE = {"extra-index-url", "find-links", "trusted-host"}


def parse_config(text: str) -> dict[str, str]:
    """`pip config list` as one dict: the environment beats `[install]`, which beats `[global]`. Lists are
    space-separated.
    """
    found: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in text.splitlines():
        match = _LINE.match(line.strip())
        if match is None or match["section"] not in found:
            continue
        try:
            value = str(ast.literal_eval(match["value"]))
        except (ValueError, SyntaxError):
            value = match["value"]
        key = match["key"].strip().replace("_", "-")
        found[match["section"]][key] = " ".join(value.split()) if key in _MULTIPLE else value.strip()
    return {key: value for section in _SECTIONS for key, value in found[section].items() if value}


def uv_environment(pip: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables to add for uv. What the user already said in uv's own words stays; nothing is taken away."""
    new: dict[str, str] = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "UV_LINK_MODE": "copy"}
    if not any(environ.get(name) for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL")) and (url := pip.get("index-url")):
        new["UV_DEFAULT_INDEX"] = url
    if not any(environ.get(name) for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL")) and (
        more := pip.get("extra-index-url")
    ):
        new["UV_INDEX"] = more
        # pip looks at all indexes together. With hashes checked, a stranger's package of the same name can't get in.
        new["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    if links := [link for link in pip.get("find-links", "").split() if _usable(link)]:
        new["UV_FIND_LINKS"] = ",".join(links)
    if pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        new["UV_NO_INDEX"] = "1"
    if hosts := pip.get("trusted-host"):
        new["UV_INSECURE_HOST"] = hosts
    if cert := pip.get("cert"):
        new["SSL_CERT_FILE"] = cert
    if client := pip.get("client-cert"):
        new["SSL_CLIENT_CERT"] = client
    if proxy := pip.get("proxy"):
        new["ALL_PROXY"] = proxy
    if timeout := pip.get("default-timeout") or pip.get("timeout"):
        new["UV_HTTP_TIMEOUT"] = timeout.split(".")[0]
    return {name: value for name, value in new.items() if not environ.get(name)}


def _usable(link: str) -> bool:
    """pip shrugs at a folder that is not there; uv stops."""
    if "://" in link and not link.startswith("file:"):
        return True
    return os.path.isdir(urlsplit(link).path if link.startswith("file:") else os.path.expanduser(link))
