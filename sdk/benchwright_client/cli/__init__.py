"""The command `benchwright`, on top of the client."""
