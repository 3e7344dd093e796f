"""What an agent is: its skills from type hints, its card, its definition."""
