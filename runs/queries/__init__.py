"""Questions: typed answers that page and API render alike."""
