"""What leaves a run: the signed receipt, the key to check it with, and exports."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Router

from benchwright.auth import caller
from benchwright.lib.errors import BenchwrightError
from benchwright.lib.signing import public_key
from benchwright.lib.streamed import streamed
from runs.exports.formats import FORMATS
from runs.queries.access import visible_run
from runs.queries.receipt import signed_receipt

router = Router(tags=["receipts"])


@router.get("/runs/{run_id}/receipt", summary="The signed receipt")
def read_receipt(request: HttpRequest, run_id: str) -> HttpResponse:
    """Made from the log alone: the same log gives the same bytes. `benchwright verify` checks it offline."""
    text = json.dumps(signed_receipt(caller(request).account, run_id), indent=2)
    answer = HttpResponse(text + "\n", content_type="application/json")
    answer["Content-Disposition"] = f'inline; filename="receipt-{run_id}.json"'
    return answer


@router.get("/receipt-key", summary="The key that receipts are signed with")
def read_receipt_key(request: HttpRequest) -> dict[str, Any]:
    """Public, for anybody: compare it with the key in a receipt."""
    return public_key()


@router.get("/runs/{run_id}/export", summary="Export the results")
def export_run(request: HttpRequest, run_id: str) -> StreamingHttpResponse:
    """The latest sweep, one trial each. `format`: jsonl, csv or inspect."""
    run = visible_run(caller(request).account, run_id)
    name = request.GET.get("format", "jsonl")
    chosen = FORMATS.get(name)
    if chosen is None:
        raise BenchwrightError(
            f"There is no export format {name[:40]!r}.",
            code="invalid_request",
            field="format",
            hint=f"Known: {', '.join(FORMATS)}.",
        )
    return streamed(request, chosen.write(run), chosen.content_type, chosen.name(run))
