"""A whole run, from the form to the receipt."""
