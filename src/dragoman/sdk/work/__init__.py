"""One call in the hands of its handler."""
