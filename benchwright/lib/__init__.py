"""Small things that every app may use and that know no app."""
