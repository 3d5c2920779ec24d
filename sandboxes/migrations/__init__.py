"""Schema, small and numbered; SQL only through benchwright.lib.sql."""
