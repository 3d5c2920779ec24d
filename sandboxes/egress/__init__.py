"""What a sandbox may reach: the policy, and what it refused."""
