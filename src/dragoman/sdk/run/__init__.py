"""An agent's own model: requests, replies, tools, memory."""
