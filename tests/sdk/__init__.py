"""The client, the command and the check of receipts."""
