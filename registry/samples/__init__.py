"""Small benchmarks written for this project, so that a fresh machine has something to measure; see `index.json`."""
