"""Which fields of each artifact are load-bearing. What is not listed here can't move a fingerprint.

The sandbox backend, snapshots' ids, proofs and words of explanation are left out: they don't change what is measured.
"""

LOAD_BEARING: dict[str, tuple[str, ...]] = {
    "FetchArtifact": ("sources.sha256",),
    "AnalyzeArtifact": ("shape", "field_map"),
    "DatasetTasksArtifact": ("snapshot_digest", "selected"),
    "SetupArtifact": ("scoring_version", "scoring_digest", "requirements"),
    "ModelProxyArtifact": ("model", "config"),
    "AtomizeArtifact": ("sha256",),
}
