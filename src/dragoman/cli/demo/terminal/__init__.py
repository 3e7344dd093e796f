"""What the terminal bench agent knows: shell scripts from rules, and faults it sees in code. No model, no network."""
