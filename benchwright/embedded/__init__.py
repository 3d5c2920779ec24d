"""One machine, one command: the environment, Postgres and Valkey from wheels, and the supervisor of all processes."""
