"""What a running hub shows of itself: trace context, logs. Observing never changes an outcome."""
