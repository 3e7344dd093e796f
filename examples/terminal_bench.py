"""The terminal bench agent on its own, in every dialect at http://localhost:8001: examples/terminal_bench.py [PORT]"""

import sys

from dragoman.cli.demo.terminal_bench import terminal_bench

agent = terminal_bench()

if __name__ == "__main__":
    agent.serve(port=int(sys.argv[1]) if len(sys.argv) > 1 else 8001)
