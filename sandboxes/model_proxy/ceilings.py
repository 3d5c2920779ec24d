"""Ceilings on what a run, a task and an attempt may use of the model. Money is exact; nothing here waits or sends.

The run's money is reserved at a call's worst case before it leaves, and settled when its answer is there: what was
spent and what may still be charged never pass the ceiling together. A task's and an attempt's use is counted as it is
reported: the answer that passes such a ceiling is the last one, and it is not handed on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import orjson

from sandboxes.model_proxy.calls import Call, CallKind
from sandboxes.model_proxy.config import RouteRefused
from sandboxes.model_proxy.faults import Fault, FaultKind
from sandboxes.model_proxy.prices import Price
from sandboxes.model_proxy.usage import Usage

KNOWN = {"run": {"cost"}, "task": {"cost", "duration"}, "attempt": {"cost", "tokens"}}
# Reserved where neither the route nor the price map says how long an answer can get.
USUAL_OUTPUT = 16_384
PART_TOKENS = 20_000  # an image or a file is short as text and long as tokens
LEAST_OUTPUT = 16  # an answer cut shorter than this is not worth its prompt
OUTPUT_PARAMS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@dataclass(slots=True)
class Hold:
    """Money set aside for one try. `cut`: the answer's length was bounded to what is left."""

    amount: Decimal
    cut: int | None = None


@dataclass(slots=True)
class Used:
    """What one task or attempt has used so far; `unmeasured`: a provider kept silent about a call."""

    tokens: int = 0
    cost: Decimal = Decimal(0)
    since: float = 0.0
    unmeasured: bool = False


class Ceilings:
    """The account of one gateway. `spent`: what the run had spent before this gateway, in dollars."""

    def __init__(
        self,
        limits: Mapping[str, Any],
        price: Price | None,
        params: Mapping[str, Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = read_ceilings(limits)
        self._price = price
        self._clock = clock
        self._bound = next((params[n] for n in OUTPUT_PARAMS if type(params.get(n)) is int), None)
        self.run_cost = self._limits.get("run.cost")
        self.spent = _amount(limits.get("spent", "0"), "limits.spent")
        self.held = Decimal(0)
        self.outstanding = 0
        self.passed: str | None = None  # the run's ceiling that is reached, for good
        self._hidden = 0  # prompt tokens that a provider counts beyond the text: learned from its answers
        self._seen = 0  # the longest answer so far
        self._tasks: dict[tuple[int, int, int], Used] = {}
        self._attempts: dict[tuple[int, int, int, int], Used] = {}

    def refuse(self, call: Call) -> Fault | None:
        """Why this call may not leave, or None: its task or attempt has used up what it had."""
        if call.key.index < 0 or not self._limits:
            return None
        return self._over(call)

    def reserve(self, call: Call) -> Hold | None:
        """Money for one try, or None when it does not fit while other calls are outstanding: come again.

        Raises Fault when it does not fit though nothing is outstanding; then `passed` says which ceiling.
        """
        if self.run_cost is None or self._price is None:
            return Hold(Decimal(0))
        for name in OUTPUT_PARAMS:
            call.body.pop(name, None)  # what an earlier try of this call was cut to
        if self.passed:
            raise self._run_fault()
        left = self.run_cost - self.spent - self.held
        prompt, most = prompt_tokens(call) + self._hidden, self._most(call)
        rates = self._price.rates(prompt)
        wanted = prompt * max(rates.input, rates.cache_written or rates.input) + most * rates.output
        if wanted <= left:
            return self._take(Hold(wanted))
        if self.outstanding:
            return None
        affordable = self._affordable(call, prompt, left)
        if affordable is None:
            self.passed = "run.cost"
            raise self._run_fault()
        call.body["max_output_tokens" if call.kind is CallKind.RESPONSES else "max_tokens"] = affordable
        return self._take(Hold(left, affordable))

    def settle(self, call: Call, hold: Hold, usage: Usage, finish_reason: str | None) -> Fault | None:
        """Books an answer; the fault to give instead of it where a ceiling is passed. An answer without usage counts
        as its worst case."""
        cost = self._cost(call, usage)
        self._give_back(hold)
        if self.run_cost is not None:
            self._hidden = max(self._hidden, (usage.input or 0) - prompt_tokens(call))
            self._seen = max(self._seen, usage.output or 0)
        self.spent += hold.amount if cost is None else cost
        fault = None
        if (
            hold.cut is not None
            and finish_reason in ("length", "max_output_tokens")
            and (usage.output or 0) >= hold.cut
        ):
            self.passed = "run.cost"
            fault = self._run_fault()
        if call.key.index >= 0 and self._limits:
            for used in self._accounts(call):
                tokens = None if usage.input is None else usage.input + (usage.output or 0)
                used.unmeasured = used.unmeasured or tokens is None or (cost is None and self._price is not None)
                used.tokens += tokens or 0
                used.cost += cost or 0
            fault = fault or self._over(call, answered=True)
        return fault

    def release(self, hold: Hold, fault: Fault | None) -> None:
        """A try without an answer. One that ran out of time may have been charged: it counts as its worst case."""
        self._give_back(hold)
        if fault is None or fault.kind is FaultKind.TIMEOUT:
            self.spent += hold.amount

    def _take(self, hold: Hold) -> Hold:
        self.held += hold.amount
        self.outstanding += 1
        return hold

    def _give_back(self, hold: Hold) -> None:
        if self.run_cost is not None and self._price is not None:
            self.held -= hold.amount
            self.outstanding -= 1

    def _most(self, call: Call) -> int:
        if call.kind is CallKind.EMBEDDINGS:
            return 0
        said = self._bound or (self._price.longest if self._price else None) or USUAL_OUTPUT
        return max(said, self._seen)

    def _affordable(self, call: Call, prompt: int, left: Decimal) -> int | None:
        """How long an answer the rest of the money pays for; None where an answer can't be bounded or is too short."""
        assert self._price is not None
        if self._bound is not None or call.stream or call.kind is CallKind.EMBEDDINGS:
            return None
        rates = self._price.rates(prompt)
        rest = left - prompt * max(rates.input, rates.cache_written or rates.input)
        if rates.output <= 0 or rest <= 0:
            return None
        tokens = int(rest / rates.output)
        return tokens if tokens >= LEAST_OUTPUT else None

    def _cost(self, call: Call, usage: Usage) -> Decimal | None:
        if self._price is None or usage.input is None:
            return None
        return self._price.cost(usage, embedding=call.kind is CallKind.EMBEDDINGS)

    def _accounts(self, call: Call) -> tuple[Used, Used]:
        key = call.key
        now = self._clock()
        task = self._tasks.setdefault((key.invocation, key.index, key.trial), Used(since=now))
        attempt = self._attempts.setdefault((key.invocation, key.index, key.trial, key.attempt), Used(since=now))
        return task, attempt

    def _over(self, call: Call, *, answered: bool = False) -> Fault | None:
        task, attempt = self._accounts(call)
        for name, limit in self._limits.items():
            level, quantity = name.split(".")
            if level == "run":
                continue
            used = task if level == "task" else attempt
            if quantity == "duration":
                over = self._clock() - used.since > float(limit)
            else:
                if used.unmeasured:
                    return _fault(f"The provider did not say what a call used, so {name} can't be held.")
                amount = used.cost if quantity == "cost" else Decimal(used.tokens)
                over = amount > limit or (amount == limit and not answered)
            if over:
                return _fault(f"{name} of {limit:f} is used up.")
        return None

    def _run_fault(self) -> Fault:
        return _fault(
            f"The run's ceiling of {self.run_cost} dollars leaves no room for this call: {self.spent:f} are spent."
        )


def read_ceilings(limits: Mapping[str, Any]) -> dict[str, Decimal]:
    """`{"run.cost": amount, …}` from the `limits` of gateway.json. Raises RouteRefused naming the field."""
    out = {}
    for level, group in limits.items():
        if level == "spent":
            continue
        if level not in KNOWN or not isinstance(group, Mapping) or set(group) - KNOWN[level]:
            raise RouteRefused(f"limits.{level} is not a ceiling of the gateway.", field=f"limits.{level}")
        for quantity, value in group.items():
            out[f"{level}.{quantity}"] = _amount(value, f"limits.{level}.{quantity}")
    return out


def prompt_tokens(call: Call) -> int:
    """No prompt has more tokens than its text has bytes; parts that are not text count apart."""
    return len(orjson.dumps(call.body)) + 64 + PART_TOKENS * _parts(call.body.get("messages") or call.body.get("input"))


def _parts(value: Any) -> int:
    if not isinstance(value, list):
        return 0
    found = 0
    for item in value:
        content = item.get("content") if isinstance(item, dict) else None
        if isinstance(content, list):
            texts = ("text", "input_text", "output_text", "refusal")
            found += sum(1 for part in content if isinstance(part, dict) and part.get("type") not in texts)
    return found


def _amount(value: Any, where: str) -> Decimal:
    try:
        number = Decimal(value) if isinstance(value, str) else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number < 0:
        raise RouteRefused(f"{where} must be an amount as text.", field=where)
    return number


def _fault(message: str) -> Fault:
    return Fault(FaultKind.CEILING, message, status=402)
