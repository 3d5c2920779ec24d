"""From the form to the launch that the action takes: files are kept first, so that an error does not lose them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from benchwright.lib import wording
from benchwright.lib.canonical import digest
from billing.models import Account
from registry.actions import save_upload
from registry.models import Upload
from registry.queries import find_uploads
from runs.actions.requests import LaunchRequest, launch_request
from runs.pages import launch_form, launch_options

# Stands for a secret or a file that live validation never sends: only whether there is one matters then.
GIVEN = "(given)"


@dataclass(frozen=True)
class KeptFile:
    """A file that this form has handed in already."""

    id: str
    name: str
    size: int


def keep_files(account: Account, files: Iterable[UploadedFile], kept: Iterable[str] = ()) -> list[KeptFile]:
    """Stores new uploads beside those of an earlier try. Raises FormError when they are too big or empty."""
    files = list(files)
    total = sum(file.size or 0 for file in files)
    if total > settings.UPLOAD_MAX_BYTES:
        raise launch_form.FormError(
            f"The files are {wording.size(total)} together.",
            field="files",
            hint=f"At most {wording.size(settings.UPLOAD_MAX_BYTES)}. Compress them, or give a URL instead.",
        )
    for file in files:
        if not file.size:
            raise launch_form.FormError(f"{file.name} is empty.", field="files")
    rows: list[Upload] = find_uploads(account, tuple(dict.fromkeys(kept)))
    rows += [save_upload(account, file.name or "upload", file.read()) for file in files]
    return [KeptFile(row.id, row.name, row.size) for row in {row.id: row for row in rows}.values()]


def request_from(form: launch_form.LaunchForm, files: Iterable[KeptFile] = ()) -> tuple[LaunchRequest, str]:
    """The typed launch and the digest of its body. Raises BenchwrightError naming the field."""
    body = _body(form, [file.id for file in files])
    return launch_request(body), digest(body)


def preview_of(form: launch_form.LaunchForm, has_key: bool, has_files: bool) -> LaunchRequest:
    """The same for live validation, which is told only whether there is a key and whether there are files."""
    body = _body(form, [])
    if has_key and body["model"]["source"] != "control":
        body["model"]["api_key"] = GIVEN
    if has_files and form.source == "upload":
        body.setdefault("prompt", GIVEN)
    return launch_request(body)


def _body(form: launch_form.LaunchForm, ids: list[str]) -> dict[str, Any]:
    local = {model["id"]: model["base_url"] for model in launch_options.local_models()}
    body = launch_form.body(form, local)
    if form.source == "upload" and ids:
        body["files"] = ids
    return body
