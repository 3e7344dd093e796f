"""`dragoman doctor [URL]`: what an agent really speaks, or how this installation and its hub are.

Looking starts no work at the agent; one real message is sent only with --send.
"""

import click

from dragoman.cli.discover import DIALECTS
from dragoman.cli.fault import wrong_usage
from dragoman.cli.output import Output
from dragoman.cli.session import common, current_output, named_hub
from dragoman.sdk.client.settings import DEFAULT_HUB


@click.command("doctor", epilog="Example: dragoman doctor")
@click.argument("url", required=False)
@click.option("--send", "text", metavar="TEXT", help="Also send this message; it may cost the agent's owner money.")
@click.option("--as", "--dialect", "dialect", type=click.Choice(DIALECTS), help="The dialect to try first.")
@click.option("--all", "everything", is_flag=True, help="Also ask for dialects that nothing points to.")
@common
def command(url: str | None, text: str | None, dialect: str | None, everything: bool) -> int:
    """Check an agent by its URL, or this installation and its hub.

    With -v every request and its answer is shown.
    """
    output = current_output()
    if url is None:
        if text is not None or dialect is not None or everything:
            raise wrong_usage("--send, --as and --all are about an agent", next="dragoman doctor http://HOST:PORT")
        # Each half brings what it needs: --help needs neither.
        from dragoman.cli.doctor.checkup import check_hub

        return check_hub(output)
    if not url.startswith(("http://", "https://")):
        raise wrong_usage(f'"{url}" is no URL', next="dragoman doctor http://HOST:PORT")
    return _check_agent(output, url, text, dialect, everything)


def _check_agent(output: Output, url: str, text: str | None, dialect: str | None, everything: bool) -> int:
    import asyncio

    from dragoman.cli.doctor.checklist import Finding, Mark, show_end, show_findings
    from dragoman.cli.doctor.examine import examine, may_hub_call
    from dragoman.cli.doctor.findings import end_of, findings_of, requests_of
    from dragoman.delivery.probe import Verdict, document

    examined = asyncio.run(examine(url, output, named=dialect, text=text, everything=everything))
    end = end_of(examined)
    reachable: bool | None = None
    if examined.verdict is not Verdict.SILENT:
        place = examined.card.endpoints[0].url if examined.card is not None else None
        reachable = asyncio.run(may_hub_call(place or url, named_hub() or DEFAULT_HUB))
    if output.json:
        output.document({**document(examined), "reachable_from_hub": reachable, "next": end.next})
        return end.exit_code
    findings = findings_of(examined, sending=text is not None)
    if not any(each.answered for each in examined.spoken):
        findings += requests_of(examined)
    if reachable is not None:
        hub = ("may call this address, by its default settings",)
        if not reachable:
            hub = ("may not call this address, by its default settings", "DRAGOMAN_ALLOW_NETWORKS opens it")
        findings.append(Finding(Mark.GOOD if reachable else Mark.NOTE, "hub", hub))
    show_findings(output, findings)
    show_end(output, end.verdict, end.style, end.next)
    return end.exit_code
