"""Scripts about the machine itself: its disks, memory, processes, ports and logs."""

from dragoman.cli.demo.terminal import reading
from dragoman.cli.demo.terminal.scripts import Script

PROCESSES = "ps -eo pid,user,%cpu,%mem,etime,comm --sort=-{}"


def disk_usage(question: str) -> Script:
    """File systems that are fuller than they should be."""
    return Script(
        name="disk-usage",
        purpose="Shows file systems that are fuller than a threshold.",
        usage="[THRESHOLD_PERCENT]",
        settings=(f'threshold="${{1:-{reading.percent(question, 80)}}}"',),
        report=(
            'df -P -x tmpfs -x devtmpfs | awk -v limit="$threshold" \'NR > 1 {',
            '  used = $5; sub(/%/, "", used)',
            '  if (used + 0 >= limit) printf "%s is %s full (%s)\\n", $6, $5, $1',
            "}'",
        ),
        nothing='"All file systems are below $threshold %."',
        keeps_going=True,
    )


def memory(question: str) -> Script:
    """Memory in use, above a threshold."""
    return Script(
        name="memory-usage",
        purpose="Says when more of the memory is in use than a threshold, and by which processes.",
        usage="[THRESHOLD_PERCENT]",
        settings=(f'threshold="${{1:-{reading.percent(question, 90)}}}"',),
        report=(
            "local used",
            "used=\"$(awk '/^MemTotal:/ { all = $2 } /^MemAvailable:/ { free = $2 }",
            '  END { printf "%d", 100 - 100 * free / all }\' /proc/meminfo)"',
            "if (( used >= threshold )); then",
            "  printf '%s %% of the memory is in use\\n' \"$used\"",
            f"  {PROCESSES.format('%mem')} | head -n 6",
            "fi",
        ),
        nothing='"Less than $threshold % of the memory is in use."',
        keeps_going=True,
    )


def busiest(question: str) -> Script:
    """Processes that take the most of the processor, or of the memory."""
    by = "%mem" if "memory" in question.lower() or "ram" in question.lower().split() else "%cpu"
    count = reading.count(question)
    return Script(
        name="top-processes",
        purpose=f"Shows the {count} processes that use the most {'memory' if by == '%mem' else 'processor time'}.",
        report=(f"{PROCESSES.format(by)} | head -n {count + 1}",),
        keeps_going=True,
    )


def on_port(question: str) -> Script:
    """Who listens on a port; without one, on which ports somebody listens."""
    port = reading.port(question)
    if port is None:
        return Script(
            name="open-ports",
            purpose="Shows which ports are listened on, and by whom (root sees all names).",
            report=("ss -tulpn",),
        )
    stop = "kill" in question.lower() or "stop" in question.lower()
    listed = 'ss -Hltnp "sport = :$port"'
    if not stop:
        return Script(
            name="who-listens",
            purpose="Shows which process listens on a port (root sees those of others).",
            usage="[PORT]",
            settings=(f'port="${{1:-{port}}}"',),
            report=(listed,),
            nothing='"Nobody listens on port $port."',
            keeps_going=True,
        )
    return Script(
        name="free-port",
        purpose="Ends the process that listens on a port: politely, then by force.",
        usage="[PORT]",
        settings=(f'port="${{1:-{port}}}"',),
        report=(
            "local pid",
            f"for pid in $({listed} | grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -u); do",
            *_ended("pid"),
            "done",
        ),
        nothing='"Nobody listens on port $port."',
        keeps_going=True,
    )


def ended(question: str) -> Script:
    """A process ended by its name."""
    name = next(iter(reading.quoted(question)), "NAME")
    return Script(
        name="end-process",
        purpose="Ends processes by their exact name: politely, then by force.",
        usage="[NAME]",
        settings=(f"name={name}", 'name="${1:-$name}"'),
        report=("local pid", 'for pid in $(pgrep -x -- "$name"); do', *_ended("pid"), "done"),
        nothing='"No process is called $name."',
        keeps_going=True,
    )


def kept_running(question: str) -> Script:
    """A service that is started again when it is down."""
    name = next(iter(reading.quoted(question)), "nginx")
    return Script(
        name="watch-service",
        purpose="Starts a service again when it does not run.",
        usage="[SERVICE]",
        settings=(f"service={name}", 'service="${1:-$service}"'),
        report=(
            'if ! systemctl is-active --quiet "$service"; then',
            "  printf '%s was down; ' \"$service\"",
            '  systemctl restart "$service" && echo "it runs again" || echo "it cannot be started"',
            "fi",
        ),
        nothing='"$service runs."',
        keeps_going=True,
    )


def log_errors(question: str) -> Script:
    """The messages that a log complains with most often."""
    count = reading.count(question)
    return Script(
        name="log-errors",
        purpose=f"Counts the errors of a log and shows the {count} most frequent, numbers and times left out.",
        usage="[LOG_FILE]",
        settings=(f'log="${{1:-{reading.file(question, "/var/log/syslog")}}}"',),
        report=(
            'printf \'%s errors in %s\\n\' "$(grep -ciE "error|fatal|critical" "$log")" "$log"',
            'grep -iE "error|fatal|critical" "$log" | sed -E "s/[0-9]+/N/g" | sort | uniq -c | sort -rn |',
            f"  head -n {count}",
        ),
        keeps_going=True,
    )


def log_addresses(question: str) -> Script:
    """Who asks a web server most."""
    count = reading.count(question)
    return Script(
        name="top-addresses",
        purpose=f"Shows the {count} addresses with the most requests in a web server's log.",
        usage="[LOG_FILE]",
        settings=(f'log="${{1:-{reading.file(question, "/var/log/nginx/access.log")}}}"',),
        report=(f"awk '{{ print $1 }}' \"$log\" | sort | uniq -c | sort -rn | head -n {count}",),
        keeps_going=True,
    )


def rotated_logs(question: str) -> Script:
    """Old logs compressed, very old ones removed."""
    days = reading.days(question, 7)
    return Script(
        name="compress-logs",
        purpose=f"Compresses logs older than {days} days and removes compressed ones older than {days * 4}.",
        usage="[FOLDER]",
        settings=(f'folder="${{1:-{reading.folder(question, "/var/log")}}}"', f"days={days}"),
        report=(
            'find "$folder" -xdev -type f -name "*.log" -mtime "+$days" -print -exec gzip -- {} \\;',
            'find "$folder" -xdev -type f -name "*.log.gz" -mtime "+$((days * 4))" -print -delete',
        ),
        nothing='"Nothing is that old."',
        keeps_going=True,
    )


def followed_log(question: str) -> Script:
    """A log's new lines as they come, those that matter."""
    return Script(
        name="follow-log",
        purpose="Shows the errors of a log as they are written, also after it was rotated.",
        usage="[LOG_FILE]",
        settings=(f'log="${{1:-{reading.file(question, "/var/log/syslog")}}}"',),
        report=('tail -n 0 -F -- "$log" | grep --line-buffered -iE "error|fatal|critical"',),
    )


def url_check(question: str) -> Script:
    """Whether something answers at a URL."""
    return Script(
        name="check-url",
        purpose="Says when a URL does not answer with success within ten seconds.",
        usage="[URL]",
        settings=(f"url={reading.url(question) or 'http://localhost:8080/'}", 'url="${1:-$url}"'),
        report=(
            "local status",
            'status="$(curl -sS -o /dev/null -m 10 -w \'%{http_code}\' "$url" 2> /dev/null)"',
            "if (( 10#${status:-0} < 200 || 10#${status:-0} >= 400 )); then",
            '  printf \'%s answers %s\\n\' "$url" "${status:-nothing}"',
            "fi",
        ),
        nothing='"$url answers."',
        keeps_going=True,
    )


def load(question: str) -> Script:
    """How busy the machine is."""
    return Script(
        name="load",
        purpose="Says when more work waits than the machine has processors.",
        report=(
            "local one rest",
            "read -r one rest < /proc/loadavg",
            'awk -v one="$one" -v cores="$(nproc)" \'BEGIN {',
            '  if (one + 0 > cores + 0) printf "load %s on %s processors\\n", one, cores',
            "}'",
        ),
        nothing='"The load is normal: $(cut -d" " -f1-3 /proc/loadavg)"',
        keeps_going=True,
    )


def _ended(variable: str) -> tuple[str, ...]:
    """Lines that end one process: five seconds to leave by itself."""
    return (
        f'  kill -- "${variable}" && printf \'asked %s to end\\n\' "${variable}"',
        f'  for _ in 1 2 3 4 5; do kill -0 -- "${variable}" 2> /dev/null || break; sleep 1; done',
        f'  if kill -0 -- "${variable}" 2> /dev/null; then',
        f'    kill -KILL -- "${variable}" && printf \'forced %s\\n\' "${variable}"',
        "  fi",
    )
