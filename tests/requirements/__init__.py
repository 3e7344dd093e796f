"""The requirements ledger: which rules have a passing test."""
