# The dotted document's Python client, below this comment exactly as printed. Runs with the real `requests` in its own
# environment (tests/support/peers.py makes it); tests put where the hub listens in place of localhost:8001.
# ruff: noqa: S113 - it waits without a timeout, as printed
# fmt: off
import requests

# 1. Discover agent capabilities
agent_card = requests.get("http://localhost:8001/.well-known/agent-card").json()
print(f"Agent: {agent_card['name']}")
print(f"Skills: {[s['name'] for s in agent_card['skills']]}")

# 2. Send a message
rpc_request = {
    "jsonrpc": "2.0",
    "id": "req-001",
    "method": "message.send",
    "params": {
        "message": {
            "role": "user",
            "parts": [{
                "kind": "text",
                "text": "Write a bash script to monitor disk usage"
            }]
        }
    }
}

response = requests.post("http://localhost:8001/", json=rpc_request).json()
task = response["result"]

print(f"Task ID: {task['id']}")
print(f"Status: {task['status']['state']}")
print(f"Solution: {task['artifacts'][0]['parts'][0]['text']}")

# 3. Follow-up in the same context
followup_request = {
    "jsonrpc": "2.0",
    "id": "req-002",
    "method": "message.send",
    "params": {
        "message": {
            "role": "user",
            "contextId": task["contextId"],
            "referenceTaskIds": [task["id"]],
            "parts": [{
                "kind": "text",
                "text": "Add email alerting to that script"
            }]
        }
    }
}

response = requests.post("http://localhost:8001/", json=followup_request).json()
