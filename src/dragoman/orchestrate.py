"""Several calls that belong together, in this process: chains, fans, delegation."""

from dragoman.sdk.client.orchestrate import chain, delegate, fan_out
from dragoman.sdk.client.step import Step

__all__ = ["Step", "chain", "delegate", "fan_out"]
