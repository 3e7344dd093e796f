"""What the hub needs from outside, as small protocols: a store, a bus, a clock, a courier."""
