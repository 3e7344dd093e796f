"""Two nginx servers: an agent that costs nothing (a fixed answer with the request's id), and the floor (proxy_pass)."""

import json
import os
import shutil
from pathlib import Path
from string import Template
from typing import Final

from benchmarks.calls import echo_answer, echo_card
from benchmarks.http import Endpoint
from benchmarks.place import LOAD_CORE, SERVER_CORE, Void
from benchmarks.processes import Server
from tests.support.ports import free_port

MAIN: Final = Template("""
$user
daemon off;
worker_processes 1;
pid $folder/nginx.pid;
error_log $folder/error.log warn;
events { worker_connections 1024; }
http {
  access_log off;
  default_type application/json;
  keepalive_requests 1000000000;
  keepalive_timeout 300s;
  client_body_buffer_size 64k;
  client_body_temp_path $folder/body;
  proxy_temp_path $folder/proxy;
  fastcgi_temp_path $folder/fastcgi;
  uwsgi_temp_path $folder/uwsgi;
  scgi_temp_path $folder/scgi;
  $content
}
""")
STREAMS: Final = Template("""
  upstream agent { server 127.0.0.1:$upstream; keepalive 128; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:$port;
    location / {
      proxy_pass http://agent; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }
  }
""")
AGENT: Final = Template("""
  server {
    listen 127.0.0.1:$port;
    location = /.well-known/agent-card.json { return 200 '$card'; }
    location = /ready { return 200 '{}'; }
    location / { return 200 '$answer'; }
  }
""")
PROXY: Final = Template("""
  upstream agent { server 127.0.0.1:$upstream; keepalive 128; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:$port;
    location / { proxy_pass http://agent; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
""")


def program() -> str | None:
    """Where nginx is, if it is here."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class Nginx:
    """One nginx with one worker; `endpoint` is where it listens."""

    def __init__(self, folder: Path, content: Template, *, core: int, **values: str) -> None:
        found = program()
        if found is None:
            raise Void("nginx is not installed; with Debian: apt-get install nginx-light")
        self.endpoint = Endpoint(free_port())
        folder.mkdir()
        filled = content.substitute(values, port=self.endpoint.port)
        user = "user root;" if os.geteuid() == 0 else ""
        configuration = folder / "nginx.conf"
        configuration.write_text(MAIN.substitute(user=user, folder=folder, content=filled))
        command = [found, "-p", str(folder), "-c", str(configuration), "-e", str(folder / "error.log")]
        self.server = Server(command, core=core, log=folder / "output.log")

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.server.start(self.endpoint, "/ready")


def fixed_agent(folder: Path) -> Nginx:
    """The agent at the far end of every call whose rate is measured, on the load's core."""
    card = json.dumps(echo_card("/"))
    return Nginx(folder / "agent", AGENT, core=LOAD_CORE, card=card, answer=echo_answer("$http_x_trace_id"))


def stream_proxy(folder: Path, upstream: Endpoint) -> Nginx:
    """The floor of a stream: each piece is passed on as it comes."""
    return Nginx(folder / "streams", STREAMS, core=SERVER_CORE, upstream=str(upstream.port))


def proxy(folder: Path, upstream: Endpoint) -> Nginx:
    """The floor: what carrying a request costs a program that understands nothing of it."""
    return Nginx(folder / f"proxy-{upstream.port}", PROXY, core=SERVER_CORE, upstream=str(upstream.port))
