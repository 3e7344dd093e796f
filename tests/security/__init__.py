"""The goals of security, each with the bug that its test must find."""
