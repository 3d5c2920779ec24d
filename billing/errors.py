"""What can go wrong with people, keys and money.

BenchwrightError
├── NotSignedIn           401
└── KeyRevoked            401
"""

from benchwright.lib.errors import BenchwrightError


class NotSignedIn(BenchwrightError):
    """No session and no key, or a key that is not known."""

    code = "not_signed_in"
    status = 401


class KeyRevoked(BenchwrightError):
    """The key was valid once."""

    code = "key_revoked"
    status = 401
