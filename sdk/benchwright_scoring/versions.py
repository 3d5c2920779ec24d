"""The version of the helpers. Helpers change scores, so a scorer names the one it was written for."""


class WrongVersion(ImportError):
    """The scorer was written for another version of the helpers."""


def require(version: str) -> None:
    """Refuse to score with another version than the scorer was written for. Raises WrongVersion."""
    from . import VERSION

    if version != VERSION:
        raise WrongVersion(
            f"this scorer was written for benchwright_scoring {version}; {VERSION} is here. Put version {version} "
            f"first on the path, or check the scores of the newer one and change the line."
        )
