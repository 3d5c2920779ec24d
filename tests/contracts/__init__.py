"""What is promised to others."""
