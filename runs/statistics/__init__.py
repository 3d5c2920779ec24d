"""What has to stand beside a score: intervals, errors, tests. Pure, standard library only; unknown is None."""
