"""What can go wrong with a run.

BenchwrightError
├── LaunchRefused         400  the body of a launch can't be honoured; `field` names the key
├── NotPaused             409  resume is for paused runs only
├── NotWaiting            409  a review can be resolved only while the run waits for one
├── AlreadyEnded          409  an ended run can't be stopped or paused
├── PhaseFailed           500  a phase could not do its work; the run ends in error with a receipt
└── StaleWorker           409  another worker has taken the run over
"""

from benchwright.lib.errors import BenchwrightError


class LaunchRefused(BenchwrightError):
    """The launch names something that isn't there or can't be done."""

    code = "launch_refused"
    status = 400


class NotPaused(BenchwrightError):
    """Only a run that an operator paused can be resumed."""

    code = "not_paused"
    status = 409


class NotWaiting(BenchwrightError):
    """The run does not wait for a review."""

    code = "not_waiting"
    status = 409


class AlreadyEnded(BenchwrightError):
    """The run has ended."""

    code = "already_ended"
    status = 409


class PhaseFailed(BenchwrightError):
    """A phase could not do its work. `message` and `hint` are for the person who launched."""

    code = "phase_failed"
    status = 500


class StaleWorker(BenchwrightError):
    """This worker's lease has ended; whatever it still holds must not be written."""

    code = "stale_worker"
    status = 409
