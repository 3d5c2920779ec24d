"""What can go wrong with benchmarks.

BenchwrightError
├── UnknownBenchmark      404
├── UnknownSubset         404
├── UnknownImpl           404
├── ImplIsImmutable       409
├── NotImmune             409
└── StandingUnchanged     409
"""

from benchwright.lib.errors import BenchwrightError, NotFound


class UnknownBenchmark(NotFound):
    """No benchmark with this id or exact name that you may see."""

    code = "unknown_benchmark"


class UnknownSubset(NotFound):
    """The benchmark has no subset of this name."""

    code = "unknown_subset"


class UnknownImpl(NotFound):
    """No such impl, or no official one yet."""

    code = "unknown_impl"


class ImplIsImmutable(BenchwrightError):
    """A published scorer never changes; a change has a new id."""

    code = "impl_is_immutable"
    status = 409


class NotImmune(BenchwrightError):
    """The scorer did not withstand what an official one must; an admin may say why that is right here."""

    code = "not_immune"
    status = 409


class StandingUnchanged(BenchwrightError):
    """The scorer already is, or is not, official."""

    code = "standing_unchanged"
    status = 409
