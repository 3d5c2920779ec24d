"""A run as a log of Inspect, in its JSON form (version 2): `inspect view` opens it, `read_eval_log` reads it.

One sample for each trial: the task's index is the sample's id, the trial counts as epoch. A task that could not be
scored has an error and no score, as here. What is not known is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from benchwright.lib.clock import stamp
from benchwright.lib.inert import inert, readable
from runs.exports.results import results
from runs.models import Run
from runs.queries.run_detail import score_of
from runs.vocabulary import DisplayStatus

SCORER = "benchwright"
STATUS = {DisplayStatus.OK: "success", DisplayStatus.ERROR: "error", DisplayStatus.RUNNING: "started"}
STOP_REASONS = {"stop": "stop", "length": "max_tokens", "tool_calls": "tool_calls", "content_filter": "content_filter"}
ROLES = ("system", "user", "assistant", "tool")


def inspect_name(run: Run) -> str:
    """Time, task and id with underscores between: Inspect View lists only files that are called so."""
    return f"{run.created_at:%Y-%m-%dT%H-%M-%S}+00-00_benchwright_{run.pk.hex}.json"


def inspect_log(run: Run) -> Iterator[str]:
    """The log in pieces; the samples are never all in memory."""
    head = json.dumps(_head(run))
    yield head[:-1] + ', "samples": ['
    model = _model(run)
    for number, row in enumerate(results(run)):
        yield (",\n" if number else "\n") + json.dumps(_plain(_sample(row, model)))
    yield "\n]}\n"


def _model(run: Run) -> str:
    """`provider/model`, as Inspect writes it."""
    name = str(run.model.get("identifier", ""))
    return inert(name if "/" in name else f"{run.model.get('source')}/{name}")


def _head(run: Run) -> dict[str, Any]:
    created, trials = stamp(run.created_at), run.trials_config["plan"]["k"]
    out: dict[str, Any] = {
        "version": 2,
        "status": STATUS.get(run.display_status, "cancelled"),
        "eval": {
            "eval_id": str(run.pk),
            "run_id": str(run.pk),
            "created": created,
            "task": inert(run.title),
            "task_id": run.subset_id or str(run.pk),
            "dataset": {"name": run.subset_id, "samples": run.tasks_selected},
            "model": _model(run),
            "model_base_url": run.model.get("base_url"),
            "config": {"epochs": trials, "max_samples": run.concurrency},
            "scorers": [{"name": SCORER}],
            "metadata": {
                "benchwright_fingerprint": run.fingerprint_sha256 or None,
                "benchwright_comparability_key": run.comparability_key or None,
                "benchwright_head_digest": run.head_digest,
                "benchwright_impl_id": run.impl_id,
            },
        },
        "plan": {"name": "benchwright", "steps": []},
        "stats": {"started_at": created, "completed_at": stamp(run.finished_at) if run.finished_at else ""},
    }
    if run.display_status is DisplayStatus.ERROR:
        out["error"] = {"message": "The run ended in error; its log says why.", "traceback": "", "traceback_ansi": ""}
    score = score_of(run)
    if score is not None:
        named = {"accuracy": score.accuracy, "mean": score.mean, "stderr": score.stderr}
        out["results"] = {
            "total_samples": (run.tasks_selected or 0) * trials,
            "completed_samples": (score.passed + score.failed + score.errored) * trials,
            "scores": [
                {
                    "name": SCORER,
                    "scorer": SCORER,
                    "scored_samples": score.n * trials,
                    "unscored_samples": score.errored * trials,
                    "metrics": {k: {"name": k, "value": v} for k, v in named.items() if v is not None},
                }
            ],
        }
    return dict(_plain(out))


def _sample(row: dict[str, Any], model: str) -> dict[str, Any]:
    said, calls = _answer(row["response"])
    reason = STOP_REASONS.get(row["finish_reason"] or "", "unknown")
    message: dict[str, Any] = {"role": "assistant", "content": said, "tool_calls": _tool_calls(calls)}
    output: dict[str, Any] = {"model": model, "choices": [{"message": message, "stop_reason": reason}]}
    if row["latency_ms"] is not None:
        output["time"] = row["latency_ms"] / 1000
    usage = row["usage"] or {}
    if usage.get("input") is not None and usage.get("output") is not None:
        output["usage"] = {
            "input_tokens": usage["input"],
            "output_tokens": usage["output"],
            "total_tokens": usage["input"] + usage["output"],
            "input_tokens_cache_read": usage.get("cached"),
            "reasoning_tokens": usage.get("reasoning"),
        }
    asked = _messages(row["prompt"])
    out: dict[str, Any] = {
        "id": row["index"],
        "epoch": row["trial"] + 1,
        "input": asked,
        "target": _words(row["target"]),
        "messages": [*asked, message] if isinstance(asked, list) else [{"role": "user", "content": asked}, message],
        "output": output if row["response"] is not None else {"model": model, "choices": []},
        "metadata": {"outcome": row["outcome"], "attempts": row["attempts"], "tool_calls": calls, "seq": row["seq"]},
        "completed_at": stamp(row["at"]),
    }
    if row["response"] is None:
        out["messages"].pop()
    if row["score"] is not None:
        out["scores"] = {
            SCORER: {
                "value": row["score"],
                "answer": None if row["extracted"] is None else _words(row["extracted"]),
                "explanation": row["rule"],
                "metadata": row["score_meta"] if isinstance(row["score_meta"], dict) else None,
            }
        }
    if row["error"]:
        error = row["error"] if isinstance(row["error"], dict) else {"message": _words(row["error"])}
        text = f"{error.get('kind', 'error')}: {error.get('type') or ''} {error.get('message') or ''}".strip()
        out["error"] = {"message": text, "traceback": _words(error.get("trace")), "traceback_ansi": ""}
    return out


def _answer(response: Any) -> tuple[str, Any]:
    """The words of a response, and its tool calls as they came."""
    if isinstance(response, dict) and "text" in response:
        return _words(response["text"]), response.get("tool_calls")
    return _words(response), None


def _tool_calls(calls: Any) -> list[dict[str, Any]] | None:
    """The calls as Inspect has them; those of another form are only in the sample's metadata."""
    out = []
    for place, call in enumerate(calls if isinstance(calls, list) else []):
        made = call.get("function", call) if isinstance(call, dict) else None
        arguments = made.get("arguments") if isinstance(made, dict) else None
        if isinstance(made, dict) and isinstance(made.get("name"), str) and isinstance(arguments, dict):
            name = str(call.get("id") or f"call-{place}")
            out.append({"id": name, "function": made["name"], "arguments": arguments, "type": "function"})
    return out or None


def _messages(prompt: Any) -> str | list[dict[str, Any]]:
    """The messages of a chat; any other prompt as text."""
    if not isinstance(prompt, list) or not prompt:
        return _words(prompt)
    if not all(isinstance(m, dict) and m.get("role") in ROLES for m in prompt):
        return _words(prompt)
    return [{"role": m["role"], "content": _words(m.get("content"))} for m in prompt]


def _words(value: Any) -> str:
    return "" if value is None else readable(value)


def _plain(value: Any) -> Any:
    """The same value with inert text: readers of the format refuse lone surrogates."""
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {inert(k): _plain(v) for k, v in value.items()}
    return value
