# The dotted document's curl examples, below this comment exactly as printed, the misplaced quote included; tests put
# where the hub listens in place of localhost:8001, and the quote where it belongs.
# Get agent card
curl http://localhost:8001/.well-known/agent-card

# Send a message
curl -X POST http://localhost:8001/ \
  -H "Content-Type: application/json" \
  -d '{
    "jsonrpc": "2.0",
    "id": "req-001",
    "method": "message.send",
    "params": {
      "message": {
        "role": "user",
        "parts": [{
          "kind": "text",
          "text": "Write a bash script to find large files"
        }]
      }
    }
  }'

# Get task status
curl -X POST http://localhost:8001/ \
  -H "Content-Type": application/json" \
  -d '{
    "jsonrpc": "2.0",
    "id": "req-002",
    "method": "task.get",
    "params": {
      "taskId": "task-abc123"
    }
  }'
