"""One action, query, endpoint or trigger against a real Postgres."""
