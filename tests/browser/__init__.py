"""What only a browser shows: the page live, the map, the drawer."""
