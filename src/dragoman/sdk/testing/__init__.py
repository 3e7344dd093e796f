"""What tests of agents and callers need."""
