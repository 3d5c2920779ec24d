"""Stand-ins for what lies outside: providers, remote sandboxes."""
