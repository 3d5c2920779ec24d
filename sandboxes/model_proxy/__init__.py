"""The model proxy: the only process that holds a provider's key, and the one that counts what was used."""
