"""Demo agents: small, real and deterministic, started by `dragoman dev` as processes of their own."""
