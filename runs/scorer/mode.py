"""Sequential or fanout, decided from the run alone. The scorer does not choose. Pure."""


def scorer_mode(harness: str, backend: str, *, environment: bool = False) -> str:
    """`fanout`: a sandbox for each task. `sequential`: tasks run at once inside the shared work sandbox."""
    if environment:
        return "fanout"
    if harness != "benchwright":
        return "sequential"
    return "fanout" if backend == "e2b" else "sequential"
