"""Where an account's sandboxes may go."""

from __future__ import annotations

from django.db import models


class HostPolicy(models.Model):
    """The account's default: `allow` on a fresh account, or `deny`."""

    account = models.OneToOneField("billing.Account", models.CASCADE, related_name="host_policy")
    mode = models.CharField(max_length=5, default="allow")

    class Meta:
        db_table = "host_policies"


class HostRule(models.Model):
    """One pattern: an exact host, `*.domain`, optionally `:port`. A block rule beats an allow rule."""

    account = models.ForeignKey("billing.Account", models.CASCADE, related_name="host_rules")
    action = models.CharField(max_length=5)
    pattern = models.CharField(max_length=260)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "host_rules"
        constraints = [models.UniqueConstraint(fields=["account", "action", "pattern"], name="a_rule_once")]


class BlockedHost(models.Model):
    """A host that was refused, with how often and when."""

    account = models.ForeignKey("billing.Account", models.CASCADE, related_name="blocked_hosts")
    run_id = models.UUIDField()
    host = models.CharField(max_length=260)
    port = models.IntegerField()
    role = models.CharField(max_length=20)
    seen_count = models.IntegerField()
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()

    class Meta:
        db_table = "blocked_hosts"
        constraints = [
            models.UniqueConstraint(fields=["run_id", "host", "port", "role"], name="a_refusal_once_per_run")
        ]
