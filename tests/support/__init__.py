"""Tools of the tests: clocks, servers, peers, broken networks. Production code never imports them."""
