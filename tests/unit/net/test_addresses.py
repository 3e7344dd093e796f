"""Which addresses may be dialled: pure, but for the resolver that reads numbers written in other ways."""

import ipaddress
import socket

import pytest

from dragoman.net import AddressRule, NetError, Reach, Target, judge, parse
from tests.unit.net.servers import ManualClock, Run, always, client_of, closed_port, failure, get, serving, soon

LISTED = """
127.0.0.1 127.255.255.254 0.0.0.0 0.1.2.3 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 169.254.170.2
100.64.0.1 100.100.100.200 192.0.0.1 192.0.0.192 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 192.88.99.1 192.52.193.1
192.175.48.1 192.31.196.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 168.63.129.16 :: ::1 ::ffff:127.0.0.1
::ffff:169.254.169.254 ::ffff:10.0.0.1 ::127.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe
64:ff9b:1::a00:1 2002:7f00:1:: 2002:a9fe:a9fe:: 2001:0:a9fe:a9fe:: 2001:db8::1 3fff::1 100::1 100:0:0:1::1 fc00::1
fd00:ec2::254 fd20:ce::254 fe80::1 fec0::1 ff02::1 5f00::1 2001:2::1 2001:10::1 2001:20::1
"""
FORBIDDEN = LISTED.split()
NETWORKS = """
0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24
203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16 3fff::/20 2620:4f:8000::/48 ::/3 4000::/2
8000::/1
"""
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.215.14", "2606:4700::1111", "2a00:1450:4001::200e"]
METADATA = [
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd20:ce::254",
]
CLOSED = AddressRule.of([])


def refused(target: Target, addresses: list[str], rule: AddressRule) -> bool:
    try:
        judge(target, addresses, rule)
    except NetError as error:
        assert error.kind is Reach.FORBIDDEN
        assert not error.sent
        assert str(error) == "address not allowed"
        return True
    return False


def unparsed(url: str) -> bool:
    try:
        parse(url)
    except NetError as error:
        assert error.kind is Reach.FORBIDDEN
        return True
    return False


def forms(address: str) -> list[str]:
    """The ways to write an IPv4 address that some resolver understands."""
    if ":" in address:
        return [f"[{address}]", f"[{ipaddress.IPv6Address(address).exploded}]", f"[{address.upper()}]"]
    parts = [int(part) for part in address.split(".")]
    number = int(ipaddress.IPv4Address(address))
    return [
        address,
        f"{parts[0]}.{number & 0xFFFFFF}",
        f"{parts[0]}.{parts[1]}.{number & 0xFFFF}",
        str(number),
        hex(number),
        ".".join(f"0{part:o}" for part in parts),
        ".".join(hex(part) for part in parts),
        address + ".",
        "".join(chr(ord(digit) + 0xFEE0) if digit.isdigit() else digit for digit in address),
        "。".join(address.split(".")),
        f"[::ffff:{address}]",
    ]


def resolved(host: str) -> list[str]:
    """What the system makes of a numeric host, without asking any server."""
    try:
        found = socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except OSError:
        return []
    return [str(entry[4][0]) for entry in found]


@pytest.mark.req("X-17")
@pytest.mark.parametrize("address", FORBIDDEN)
def test_a_forbidden_address_is_refused_in_every_form(address: str) -> None:
    assert refused(parse("https://name.example/"), [address], CLOSED)
    for form in forms(address):
        for scheme in ("http", "https"):
            target = parse(f"{scheme}://{form}/path")
            addresses = resolved(target.host)
            assert addresses or form.endswith("."), form
            assert not addresses or refused(target, addresses, CLOSED), form
            assert not addresses or refused(target, addresses, AddressRule.of([], plain_http_anywhere=True)), form
        assert unparsed(f"https://name.example@{form}/")
        assert unparsed(f"https://{form}#@name.example/")
        assert unparsed(f"https://{form}\\@name.example/")


@pytest.mark.req("X-17")
@pytest.mark.parametrize("network", NETWORKS.split())
def test_a_refused_network_is_refused_from_end_to_end_and_not_beyond(network: str) -> None:
    found = ipaddress.ip_network(network)
    target = parse("https://name.example/")
    for address in (found.network_address, found.broadcast_address):
        assert refused(target, [str(address)], CLOSED)
    if network in ("198.18.0.0/15", "2001:db8::/32", "172.16.0.0/12", "100.64.0.0/10"):
        assert not refused(target, [str(found.network_address - 1)], CLOSED)
        assert not refused(target, [str(found.broadcast_address + 1)], CLOSED)


@pytest.mark.req("X-17")
def test_there_are_fifty_four_forbidden_addresses() -> None:
    assert len(set(FORBIDDEN)) == 54


@pytest.mark.req("X-17")
@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_passes_over_https(address: str) -> None:
    assert not refused(parse("https://name.example/"), [address], CLOSED)
    assert refused(parse("http://name.example/"), [address], CLOSED)
    assert not refused(parse("http://name.example/"), [address], AddressRule.of([], plain_http_anywhere=True))


@pytest.mark.req("X-17")
@pytest.mark.parametrize("bad", FORBIDDEN)
def test_one_bad_address_among_good_ones_is_refused(bad: str) -> None:
    target = parse("https://name.example/")
    assert refused(target, ["1.1.1.1", bad], CLOSED)
    assert refused(target, [bad, "1.1.1.1"], CLOSED)


@pytest.mark.req("X-17")
def test_no_address_and_no_number_are_refused() -> None:
    target = parse("https://name.example/")
    assert refused(target, [], CLOSED)
    assert refused(target, ["name.example"], CLOSED)
    assert refused(target, ["fe80::1%eth0"], AddressRule.of(["fe80::/10"]))


@pytest.mark.req("X-17")
@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://h/", True),
        ("https://h:8443/", True),
        ("https://h:8080/", True),
        ("https://h:80/", True),
        ("https://h:22/", False),
        ("https://h:9000/", False),
        ("https://h:6379/", False),
    ],
)
def test_public_addresses_have_four_ports(url: str, allowed: bool) -> None:
    assert refused(parse(url), ["1.1.1.1"], CLOSED) is not allowed


@pytest.mark.req("X-17")
@pytest.mark.parametrize("port", [1, 21, 22, 25, 1023, 3306, 4222, 5432, 6379, 9042, 11211, 27017])
def test_allowed_networks_keep_other_services_closed(port: int) -> None:
    assert refused(parse(f"http://h:{port}/"), ["127.0.0.1"], AddressRule.of(["loopback"]))


@pytest.mark.req("X-17")
@pytest.mark.parametrize("port", [80, 443, 1024, 8000, 65535])
def test_allowed_networks_open_the_other_ports(port: int) -> None:
    assert not refused(parse(f"http://h:{port}/"), ["127.0.0.1"], AddressRule.of(["loopback"]))


@pytest.mark.req("X-17")
def test_words_open_what_they_say_and_no_more() -> None:
    target = parse("http://h/")
    loopback, private = AddressRule.of(["loopback"]), AddressRule.of(["private"])
    for address in ("127.0.0.1", "127.9.9.9", "::1"):
        assert not refused(target, [address], loopback)
        assert refused(target, [address], private)
    for address in ("10.1.2.3", "172.16.0.1", "192.168.0.1", "fd12::1"):
        assert not refused(target, [address], private)
        assert refused(target, [address], loopback)
    for address in ("169.254.1.1", "0.0.0.0", "::ffff:127.0.0.1", "fe80::1"):
        assert refused(target, [address], loopback)
        assert refused(target, [address], private)


@pytest.mark.req("X-17")
@pytest.mark.parametrize("address", METADATA)
def test_metadata_needs_its_exact_address(address: str) -> None:
    target = parse("http://h/")
    wide = AddressRule.of(["0.0.0.0/0", "::/0", "private"])
    exact = AddressRule.of([f"{address}/{128 if ':' in address else 32}"])
    assert refused(target, [address], wide)
    assert not refused(target, [address], exact)
    if ":" not in address:
        assert refused(target, [f"::ffff:{address}"], wide)


@pytest.mark.req("X-17")
def test_own_listeners_are_refused_whatever_is_open() -> None:
    wide = ["loopback", "0.0.0.0/0", "::/0"]
    exact = AddressRule.of(wide, own=[("127.0.0.1", 8000)])
    everywhere = AddressRule.of(wide, own=[("0.0.0.0", 8000)])
    named = AddressRule.of(wide, own=[("localhost", 8000)])
    for address in ("127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "::"):
        for rule in (exact, everywhere, named):
            assert refused(parse("http://h:8000/"), [address], rule), (address, rule)
            assert not refused(parse("http://h:8001/"), [address], rule)
    assert refused(parse("http://h:8000/"), ["127.8.8.8"], everywhere)
    assert not refused(parse("http://h:8000/"), ["127.8.8.8"], exact)
    assert not refused(parse("http://h:8000/"), ["10.255.255.1"], everywhere)


@pytest.mark.req("X-17")
@pytest.mark.parametrize(
    "url",
    [
        "",
        "name.example",
        "//name.example/",
        "ftp://name.example/",
        "file:///etc/passwd",
        "gopher://name.example/",
        "unix:///run/x.sock",
        "https://",
        "https:///path",
        "https://user@name.example/",
        "https://user:word@name.example/",
        "https://name.example/#part",
        "https://name.example\\@127.0.0.1/",
        "https://name.example/a b",
        "https://name.example/a\tb",
        "https://name.example/a\r\nb",
        "https://name.example/\x00",
        "https://name.example/\x7f",
        "https://name.example/\u2028",
        "https://name.example/\u200b",
        "https://na\u200bme.example/",
        "https://[fe80::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://[::1/",
        "https://::1/",
        "https://[zz]/",
        "https://name%2eexample/",
        "https://name.example:0/",
        "https://name.example:65536/",
        "https://name.example:/",
        "https://name.example:80:80/",
        "https://name.example:+80/",
        "https://name..example/",
        "https://.example/",
        "https://-name.example/",
        "https://" + "a" * 64 + ".example/",
        "https://name.example/" + "a" * 9000,
        " https://name.example/",
    ],
)
def test_a_doubtful_url_is_refused(url: str) -> None:
    assert unparsed(url)


@pytest.mark.parametrize(
    ("url", "host", "port", "path", "authority"),
    [
        ("https://Name.Example", "name.example", 443, "/", "name.example"),
        ("HTTP://name.example:80/a?b=c", "name.example", 80, "/a?b=c", "name.example"),
        ("http://name.example:8000?q", "name.example", 8000, "/?q", "name.example:8000"),
        ("https://[2606:4700::1111]:8443/x", "2606:4700::1111", 8443, "/x", "[2606:4700::1111]:8443"),
        ("https://bücher.example/ä", "xn--bcher-kva.example", 443, "/%C3%A4", "xn--bcher-kva.example"),
        ("https://a_b.example./", "a_b.example.", 443, "/", "a_b.example."),
        ("https://name.example/@a:b", "name.example", 443, "/@a:b", "name.example"),
    ],
)
def test_a_url_is_taken_apart_once(url: str, host: str, port: int, path: str, authority: str) -> None:
    target = parse(url)
    assert (target.host, target.port, target.path, target.authority) == (host, port, path, authority)


def test_a_setting_that_is_no_network_is_an_error() -> None:
    for word in ("everything", "10.0.0.1/8", ""):
        with pytest.raises(ValueError, match=r".*"):
            AddressRule.of([word])


@pytest.mark.req("X-17")
def test_a_forbidden_address_is_never_connected_to(run: Run) -> None:
    async def scenario() -> None:
        async with serving(always()) as server, client_of(rule=CLOSED) as client:
            for host in ("127.0.0.1", "localhost", "127.1", "0x7f000001", "2130706433"):
                error = await failure(client.send(get(f"http://{host}:{server.port}/"), deadline=soon()))
                assert (error.kind, error.sent) == (Reach.FORBIDDEN, False)
                assert str(error) == "address not allowed"
            assert server.accepted == 0

    run(scenario())


@pytest.mark.req("X-17")
@pytest.mark.parametrize("later", [["127.0.0.1"], ["1.1.1.1", "127.0.0.1"], ["::ffff:127.0.0.1"]])
def test_an_answer_that_changes_after_the_check_is_judged_again(run: Run, later: list[str]) -> None:
    answers = [["1.1.1.1"], later]

    async def changing(_: str) -> list[str]:
        return answers.pop(0)

    async def scenario() -> None:
        clock = ManualClock()
        async with serving(always()) as server, client_of(clock=clock, rule=CLOSED, resolve=changing) as client:
            await client.check("https://changing.example/")
            clock.advance(30.1)
            url = f"https://changing.example:{server.port}/"
            error = await failure(client.send(get(url), deadline=clock.monotonic() + 5))
            assert error.kind is Reach.FORBIDDEN
            assert answers == []
            assert server.accepted == 0

    run(scenario())


@pytest.mark.req("X-17")
def test_one_resolution_serves_check_and_dial(run: Run) -> None:
    asked: list[str] = []

    async def rebinding(host: str) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    async def scenario() -> None:
        async with serving(always()) as server, client_of(resolve=rebinding) as client:
            reply = await client.send(get(f"http://rebinding.example:{server.port}/"), deadline=soon())
            assert reply.body == b"ok"
            assert asked == ["rebinding.example"]

    run(scenario())


@pytest.mark.req("X-17")
def test_registration_refuses_forbidden_and_lets_unknown_names_pass(run: Run) -> None:
    async def resolve(host: str) -> list[str]:
        if host == "unknown.example":
            raise OSError("no such name")
        return {"good.example": ["1.1.1.1"], "bad.example": ["1.1.1.1", "10.0.0.1"]}[host]

    async def scenario() -> None:
        async with client_of(rule=CLOSED, resolve=resolve) as client:
            await client.check("https://good.example/")
            await client.check("https://unknown.example/")
            for url in (
                "https://bad.example/",
                "http://good.example/",
                "https://127.0.0.1/",
                "https://u@good.example/",
            ):
                assert (await failure(client.check(url))).kind is Reach.FORBIDDEN
            unknown = await failure(client.send(get("https://unknown.example/"), deadline=soon()))
            assert (unknown.kind, str(unknown)) == (Reach.UNRESOLVED, "not reachable")

    run(scenario())


def test_the_next_address_is_tried_when_one_refuses(run: Run) -> None:
    async def both(_: str) -> list[str]:
        return ["::1", "127.0.0.1"]

    async def scenario() -> None:
        async with serving(always()) as server, client_of(resolve=both) as client:
            reply = await client.send(get(f"http://both.example:{server.port}/"), deadline=soon())
            assert reply.status == 200
            gone = await failure(client.send(get(f"http://both.example:{closed_port()}/"), deadline=soon()))
            assert (gone.kind, gone.sent) == (Reach.REFUSED, False)

    run(scenario())
