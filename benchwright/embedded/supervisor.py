"""`./bw up`: services, migrations, then web, worker, beat and sandboxd, watched until somebody says stop.

One process and one thread: it waits on the children's output, on signals and on the clock, and does little else.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from types import FrameType

from benchwright.embedded import bytecode, runfiles
from benchwright.embedded.binaries import ServiceFailed
from benchwright.embedded.listener import open_listener, url_of
from benchwright.embedded.logs import LineSink, Terminal
from benchwright.embedded.processes import Child, Spec, log_path
from benchwright.embedded.services import Services, prepare_state
from benchwright.lib.paths import ROOT, state_dir

READY_SECONDS = 90.0
SERVICE_CHECK_SECONDS = 2.0


class Stop(BaseException):
    """Somebody said stop while we were still starting."""


class StartFailed(Exception):
    """A step of the start failed. The message says which and where to look."""


class Supervisor:
    """Everything that `./bw up` keeps running."""

    def __init__(self, terminal: Terminal, *, watch_stdin: bool = False) -> None:
        self.terminal, self.watch_stdin = terminal, watch_stdin
        self.state = state_dir()
        self.services = Services()
        self.listener: socket.socket | None = None
        self.selector = selectors.DefaultSelector()
        self.children: list[Child] = []
        self.stop_wanted = self.starting = False
        self.hurry = False
        self.url = ""
        self.ready = False
        self.sign_in = ""
        self.compiler: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Until stopped. 0 = ended as asked; 1 = could not start (the reason has been printed)."""
        self._catch_signals()
        try:
            self.starting = True
            with self.services.used() as env:
                try:
                    self._start(env)
                    self.starting = False
                    self._watch()
                finally:
                    # The children go first: a worker without its database would only fill the log.
                    self.starting = False
                    self._stop_children()
                    self.say("Stopping Valkey and PostgreSQL …" if self.services.embedded else "Stopped.")
        except Stop:
            self.say("Stopped while starting.")
            return 0
        except (ServiceFailed, StartFailed) as failure:
            for line in str(failure).splitlines():
                self.say(line)
            return 1
        return 0

    def say(self, text: str) -> None:
        """A line of the supervisor's own."""
        self.terminal.line("bw", text)

    # Starting

    def _start(self, env: dict[str, str]) -> None:
        began = time.monotonic()
        for name in runfiles.end_orphans():
            self.say(f"Ended a {name} that an earlier, killed supervisor left behind.")
        self.say("PostgreSQL: " + ("embedded" if self.services.own_postgres else "given by DATABASE_URL"))
        self.say("Valkey: " + ("embedded" if self.services.own_valkey else "given by REDIS_URL"))
        self.services.check_given()
        host, wanted = os.environ.get("BENCHWRIGHT_HOST") or "127.0.0.1", os.environ.get("BENCHWRIGHT_PORT") or "8800"
        try:
            listener = open_listener(host, int(wanted))
        except (OSError, ValueError) as error:
            raise StartFailed(
                f"Can't listen on {host}:{wanted}: {error}. Set BENCHWRIGHT_HOST or BENCHWRIGHT_PORT."
            ) from None
        port = listener.getsockname()[1]
        if wanted not in ("0", str(port)):
            self.say(f"Port {wanted} is taken; using {port}.")
        self.url = url_of(listener)
        os.environ.update(env)
        os.environ.update(
            BENCHWRIGHT_STATE=str(self.state), BENCHWRIGHT_HOST=host, BENCHWRIGHT_PORT=str(port), PYTHONUNBUFFERED="1",
            BENCHWRIGHT_BASE_URL=self.url, LITELLM_LOCAL_MODEL_COST_MAP="True",
        )  # fmt: skip
        self._manage("migrate", "--noinput", "--verbosity", "1")
        runfiles.write_status(url=self.url, ready=False)
        listener.set_inheritable(True)
        self.listener = listener  # kept: the socket must stay open while no web process runs
        for spec in self._specs(listener.fileno()):
            child = Child(spec, LineSink(spec.name, log_path(self.state, spec.name), self.terminal))
            self.children.append(child)
            self._spawn(child)
        self.sign_in = self._manage("bootstrap").strip()
        self._wait_ready()
        self.compiler = bytecode.start()
        self.say(f"Benchwright is up at {self.url} ({time.monotonic() - began:.1f} s). Ctrl-C stops it.")
        for line in self.sign_in.splitlines():
            self.say(line)

    def _specs(self, listener: int) -> list[Spec]:
        python = [sys.executable, "-m"]
        celery = [*python, "celery", "-q", "-A", "benchwright"]
        workers = os.environ.get("BENCHWRIGHT_WORKERS") or "2"
        # Celery warns root at every start; a container's only user is root.
        calm = {"PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges"}
        web = [*python, "uvicorn", "benchwright.asgi:application", "--fd", str(listener), "--no-access-log"]
        web += ["--log-level", "warning", "--timeout-graceful-shutdown", "2", "--timeout-keep-alive", "30"]
        specs = [
            Spec("sandboxd", [*python, "sandboxes.backends.local.daemon"], grace=((signal.SIGTERM, 10.0),)),
            Spec("web", web, grace=((signal.SIGTERM, 5.0),), pass_fds=(listener,)),
            Spec(
                "worker",
                [
                    *celery,
                    "worker",
                    "--loglevel",
                    "INFO",
                    "--concurrency",
                    workers,
                    "--without-gossip",
                    "--without-mingle",
                ],
                env=calm,
                # A warm shutdown waits for the runs in hand, which may take hours; their leases let another worker
                # go on.
                grace=((signal.SIGTERM, 3.0), (signal.SIGQUIT, 3.0)),
            ),
            Spec(
                "beat",
                [*celery, "beat", "--loglevel", "WARNING", "--pidfile", ""],
                env=calm,
                grace=((signal.SIGTERM, 3.0),),
            ),
        ]
        return specs if sys.platform == "linux" else specs[1:]

    def _manage(self, *arguments: str) -> str:
        """One manage.py command, its output in the log and, when it fails, on the terminal."""
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *arguments], cwd=ROOT, check=False, text=True, errors="replace",
            stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
        path = log_path(self.state, "manage")
        with path.open("a") as log:
            log.write(
                f"$ manage.py {' '.join(arguments)}\n{done.stdout if arguments[0] != 'bootstrap' else ''}{done.stderr}"
            )
        if done.returncode:
            last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
            raise StartFailed(
                f"manage.py {arguments[0]} failed:\n{last}\nAll of it: {path}\n./bw doctor may know more."
            )
        return done.stdout

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        next_look = 0.0
        while not self.ready:
            self._turn(0.1)
            if time.monotonic() >= next_look:
                self.ready = answers(self.url_here())
                next_look = time.monotonic() + 0.2
            if time.monotonic() > deadline:
                raise StartFailed(
                    f"The web process did not answer within {READY_SECONDS:.0f} s: {log_path(self.state, 'web')}"
                )
        runfiles.write_status(url=self.url, ready=True, local_url=self.url_here())

    def url_here(self) -> str:
        """The address on this machine, whatever BENCHWRIGHT_BASE_URL says about the way from outside."""
        host = os.environ["BENCHWRIGHT_HOST"]
        host = "127.0.0.1" if host in ("0.0.0.0", "::") else host
        return f"http://{f'[{host}]' if ':' in host else host}:{os.environ['BENCHWRIGHT_PORT']}"

    # Watching

    def _watch(self) -> None:
        next_look = 0.0
        while not self.stop_wanted:
            self._turn(0.5)
            if time.monotonic() >= next_look:
                self._check_services()
                next_look = time.monotonic() + SERVICE_CHECK_SECONDS

    def _turn(self, seconds: float) -> None:
        """Waits a little, passes output on, restarts who died."""
        for key, _ in self.selector.select(seconds):
            if isinstance(key.data, Child):
                if not key.data.pump():
                    self.selector.unregister(key.fileobj)
            elif key.data == "stdin":
                if not os.read(sys.stdin.fileno(), 4096):
                    self.selector.unregister(key.fileobj)
                    self._wanted()
            else:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
        if self.compiler is not None and self.compiler.poll() is not None:
            self.compiler = None
        for child in self.children:
            if child.process is not None and child.process.poll() is not None:
                self._forget(child)
                code = child.bury()
                pause = child.restart_at - time.monotonic()
                self.say(f"{child.spec.name} ended ({_exit(code)}); starting it again in {max(pause, 0):.1f} s.")
                if child.recent_deaths == 5:
                    self.say(f"{child.spec.name} keeps ending. {log_path(self.state, child.spec.name)}; ./bw doctor")
            if child.process is None and not self.stop_wanted and time.monotonic() >= child.restart_at:
                self._spawn(child)

    def _spawn(self, child: Child) -> None:
        child.start()
        self.selector.register(child.fd, selectors.EVENT_READ, child)
        runfiles.write_children({c.spec.name: c.process.pid for c in self.children if c.process is not None})

    def _forget(self, child: Child) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(child.fd)

    def _check_services(self) -> None:
        for name in self.services.dead():
            self.say(f"{name} is gone; starting it again.")
            try:
                self.services.start()
            except ServiceFailed as failure:
                self.say(str(failure).splitlines()[0])

    # Stopping

    def _stop_children(self) -> None:
        """Who asks for work first, who does it last: sandboxd ends the boxes after nobody needs them."""
        self.stop_wanted = True
        for names in ({"beat", "worker", "web"}, {"sandboxd"}):
            group = [child for child in self.children if child.spec.name in names and child.running]
            for child in group:
                child.ask_to_stop()
            while group:
                for key, _ in self.selector.select(0.05):
                    if isinstance(key.data, Child) and not key.data.pump():
                        self.selector.unregister(key.fileobj)
                for child in list(group):
                    if child.process is not None and child.process.poll() is not None:
                        self._forget(child)
                    if child.stopping_step(self.hurry):
                        group.remove(child)
        if self.compiler is not None and self.compiler.poll() is None:
            self.compiler.kill()
            self.compiler.wait()
        for child in self.children:
            child.sink.close()
        self.children = []
        runfiles.clear()

    def _catch_signals(self) -> None:
        self._wake, write = os.pipe()
        for fd in (self._wake, write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._signal)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(self._wake, selectors.EVENT_READ, "signal")
        if self.watch_stdin:
            self.selector.register(sys.stdin.fileno(), selectors.EVENT_READ, "stdin")

    def _signal(self, number: int, frame: FrameType | None) -> None:
        self._wanted()
        if self.starting:
            self.starting = False
            raise Stop

    def _wanted(self) -> None:
        if self.stop_wanted:
            self.hurry = True
            return
        self.stop_wanted = True
        self.say("Stopping … (again to hurry)" if sys.stdin.isatty() else "Stopping …")


def answers(url: str, seconds: float = 1.0) -> bool:
    """Does GET /healthz say 200?"""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy: it is this machine
    try:
        with opener.open(f"{url}/healthz", timeout=seconds) as reply:
            return bool(reply.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _exit(code: int) -> str:
    if code >= 0:
        return f"exit {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def main(argv: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="./bw up", description="Start everything and keep it running until Ctrl-C.")
    parser.add_argument("--while-stdin", action="store_true", help="stop when standard input ends")
    options = parser.parse_args(argv)
    prepare_state(state_dir())
    lock = runfiles.take_lock()
    if lock is None:
        url = runfiles.read_status().get("url")
        print(f"Benchwright is already up at {url}" if url else "Benchwright is already being started by another ./bw")
        return 0
    os.umask(0o022)
    return Supervisor(Terminal(), watch_stdin=options.while_stdin).run()


if __name__ == "__main__":
    sys.exit(main())
