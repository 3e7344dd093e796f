"""Side-by-side benchmarks: what a call through the hub costs, as a ratio to peers that run in the same minutes.

Run as `python -m benchmarks [NAME…]`, which scripts/bench does; README.md has the method. Nothing here is imported by
the package, and no figure is asserted by the tests: time on a shared machine proves nothing, ratios of one run do.
"""
