"""Benchwright: a score you can believe and check."""


def __getattr__(name: str) -> object:
    # `celery -A benchwright` asks for `app`; the guest and `./bw` import this package without Django or Celery
    # installed.
    if name in {"app", "celery"}:
        from benchwright.celery import app

        return app
    raise AttributeError(name)
