"""Put a hub together, from the bottom up, on the store and the bus it is handed."""

import asyncio
import os
import uuid
from datetime import datetime
from functools import partial
from typing import Final

from dragoman import __version__
from dragoman.config import Settings
from dragoman.delivery.connections import Connections
from dragoman.delivery.courier import HttpCourier
from dragoman.delivery.credentials import Credentials
from dragoman.delivery.documents import Documents
from dragoman.delivery.over_http import Wire
from dragoman.delivery.pulse import Pulse
from dragoman.delivery.repeats import WAITS_S
from dragoman.delivery.tries import Retries
from dragoman.dialects import spoken
from dragoman.dialects.cards import read_any_card
from dragoman.hub.admission import Admission
from dragoman.hub.audit import AuditDesk, Heads, note_settings
from dragoman.hub.authenticate import Authenticator
from dragoman.hub.boxes import Boxes
from dragoman.hub.callback_secrets import CallbackSecrets
from dragoman.hub.cancel import Canceller
from dragoman.hub.card_key import open_card_key
from dragoman.hub.card_trust import CardJudge
from dragoman.hub.carry import Carrier, Spawn
from dragoman.hub.durations import Estimates
from dragoman.hub.earlier import Earlier
from dragoman.hub.endings import Endings
from dragoman.hub.figures import Figures
from dragoman.hub.files import Files
from dragoman.hub.flow.breakers import Breakers
from dragoman.hub.flow.flow import Flow
from dragoman.hub.flow.gate import Gate
from dragoman.hub.flow.limits import Limits
from dragoman.hub.flow.pressure import Pressure
from dragoman.hub.flow.spending import Spending
from dragoman.hub.forgetting import Forgetter
from dragoman.hub.handle import Hub
from dragoman.hub.happenings import Happenings
from dragoman.hub.health import Health
from dragoman.hub.inspection import Inspection
from dragoman.hub.intake import Intake
from dragoman.hub.issuers import Issuers
from dragoman.hub.key_ring import KeyRing
from dragoman.hub.looking import SecondLook
from dragoman.hub.outbox import Outbox
from dragoman.hub.parents import Parents
from dragoman.hub.presence import Presence
from dragoman.hub.registry import Registry
from dragoman.hub.reports import Reports
from dragoman.hub.reprobe import Reprobe
from dragoman.hub.routing import Router
from dragoman.hub.senders import Senders
from dragoman.hub.sending import Sending
from dragoman.hub.series import Series
from dragoman.hub.signing_keys import access_of, open_signing_keys
from dragoman.hub.take_up import TakeUp
from dragoman.hub.tasks import TaskBook
from dragoman.hub.traces import Traces
from dragoman.hub.validate import Schemas
from dragoman.hub.watching import Watching
from dragoman.hub.ways import Ways
from dragoman.hub.worker import Worker
from dragoman.hub.workflow import AT_ONCE, Workflows
from dragoman.model.circuit import Circuit
from dragoman.model.ended import Alike
from dragoman.model.task import Task
from dragoman.net.client import Client
from dragoman.observe import memory
from dragoman.observe.calls import CallLog
from dragoman.observe.metrics import Metrics
from dragoman.observe.noticed import Noticed
from dragoman.observe.process import process_samples
from dragoman.observe.scrape import Scrape
from dragoman.observe.wall_watch import WallWatch
from dragoman.ports.bus import AGENTS_CHANGED, KEY_REVOKED, Bus, Lost
from dragoman.ports.clock import Clock, SteadyClock
from dragoman.ports.store import CALLBACKS, CALLS, WORKFLOWS, Store, Vault
from dragoman.security.card_signing import CardSigner
from dragoman.security.file_links import FileLinks
from dragoman.security.sealed import Purpose, Sealer
from dragoman.security.tokens import Access, HubTokens
from dragoman.server import gauges
from dragoman.server.built import MIB, Built, Resident, Secrets
from dragoman.server.desk import Desk
from dragoman.server.drain import Drain
from dragoman.server.exchange import spoken_of
from dragoman.server.from_settings import (
    address_rule,
    client_limits,
    exporting_of,
    key_file_of,
    pressure_of,
    quotas_of,
    retention_of,
    tenant_limits,
)

REPLICA: Final = "hub"  # SQLite has one process; its epochs tell its lives apart
HUB_UUID: Final = "hub uuid"
KIB: Final = 1024


async def build(
    settings: Settings,
    secrets: Secrets,
    store: Store,
    bus: Bus,
    clock: Clock,
    drain: Drain,
    calls: CallLog,
    endings: Endings,
    spawn: Spawn,
    resident: Resident | None = None,
    metrics: Metrics | None = None,
) -> Built:
    """Every part, from the bottom up, for a hub with what lives beside it."""
    root_agent = None if resident is None else resident.root_agent
    steady = SteadyClock(clock)
    metrics = metrics or Metrics(clock=clock, max_values=settings.metrics.max_values)
    sealer = Sealer(secrets.root)
    pepper = secrets.root.subkey(Purpose.PEPPER)
    signers = await open_signing_keys(store, sealer, clock, settings.public_url)
    card_key = await open_card_key(store, sealer)
    owner = await store.begin_epoch(REPLICA)
    dialects = spoken(lenient_envelope_ids=settings.envelope.ids == "lenient")
    metrics.expect(dialects, linking=[slug for slug, each in dialects.items() if not spoken_of(each).inline])
    hub_uuid = await _hub_uuid(store)
    client = Client(clock=clock, rule=address_rule(settings), limits=client_limits(settings))
    ring = KeyRing(keys=store, vault=store, clock=clock, pepper=pepper, sealer=sealer, random_bytes=os.urandom)
    tokens = HubTokens(signers.signing, issuer=settings.public_url)
    wire = Wire(client=client, max_answer=settings.client.answer_mib * MIB)
    bindings = {dialect.slug: dialect.bindings for dialect in dialects.values()}
    credentials = Credentials(
        vault=store,
        sealer=sealer,
        clock=clock,
        tokens=tokens,
        signing_secret=ring.agent_secret,
        fetch=wire.fetch,
        check=wire.check,
        spoken=bindings,
        key_file=key_file_of(settings, store, sealer),
    )

    def stands_differently(agent_id: str) -> None:
        registry.forget(agent_id)

    lease_s = settings.connect.lease_s
    presence = Presence(store=store, clock=clock, spawn=spawn, lease_s=lease_s, changed=stands_differently)
    connections = Connections(
        store=store,
        clock=clock,
        lease_s=lease_s,
        resting=lambda: queued.resting(),
        gone=presence.gone,
        outlived=root_agent is None,
    )
    breakers = Breakers(
        clock=clock,
        opens=settings.calls.breakers,
        p95_ms=lambda tenant, agent_id, skill: estimates.p95_ms(tenant, agent_id, skill),
        listeners=(metrics.attempted,),
        unreached=lambda call: health_checks.unreached(call),
        aside=lambda call, seconds: flow.gate.aside(call, seconds),
    )
    courier = HttpCourier(
        wire=wire,
        boxes=store,
        connections=connections,
        credentials=credentials,
        keeper=credentials,
        clock=clock,
        dialects=dialects,
        hub_url=settings.public_url,
        hub_id=hub_uuid,
        retries=Retries(
            waits_s=WAITS_S[: settings.calls.retries],
            clock=clock,
            attempts=breakers,
            resting=lambda: queued.resting(),
        ),
        spoke=metrics.spoke,
    )
    registry = Registry(
        store=store,
        courier=courier,
        clock=clock,
        spoken=bindings,
        hub_uuid=hub_uuid,
        protected=settings.auth != "none",
        default_agent=settings.default_agent,
        signer=CardSigner(card_key.signing, jku=f"{settings.public_url}/.well-known/jwks.json", now=clock.now),
        root_agent=root_agent,
        changed=lambda: router.forget(),
        seen_at=lambda tenant, agent_id: figures.seen_at(tenant, agent_id),
    )
    figures = Figures(store=store, clock=clock, spawn=spawn, changed=registry.refigured, catch_up=endings.catch_up)
    pulse = Pulse(wire=wire, credentials=credentials, clock=clock, timeout_s=settings.health.timeout_s)
    health_checks = Health(
        store=store,
        changed=stands_differently,
        figures=figures,
        problem=pulse.problem,
        clock=clock,
        spawn=spawn,
        every_s=settings.health.every_s,
        longest_s=settings.health.longest_s,
        per_s=settings.health.per_s,
    )
    read_card = partial(read_any_card, dialects=dialects)
    judge = CardJudge(
        fetch=Documents(wire, clock).fetch,
        read_card=read_card,
        forms={each.slug: each.signed_forms for each in dialects.values() if each.signed_forms is not None},
    )
    looker = SecondLook(
        registry=registry,
        judge=judge,
        store=store,
        courier=courier,
        clock=clock,
        protected=settings.auth != "none",
    )
    intake = Intake(
        registry=registry,
        looker=looker,
        judge=judge,
        store=store,
        courier=courier,
        clock=clock,
        keys=ring,
        read_card=read_card,
        new_uuid=_new_uuid,
        max_card=settings.limits.card_kib * KIB,
        protected=settings.auth != "none",
        root_agent=root_agent,
        most_agents=settings.quotas.agents,
    )

    def own(token: str, now: datetime) -> Access | None:
        said = None if resident is None else resident.verify(token, now)
        return signers.access(token, now) or (None if said is None else access_of(said))

    issuers = Issuers(
        settings.issuers,
        own=own,
        audience=settings.public_url,
        fetch=Documents(wire, clock).fetch,
        clock=clock,
        spawn=spawn,
    )
    authenticator = Authenticator(
        keys=store,
        clock=clock,
        pepper=pepper,
        admin_token=secrets.admin,
        trusting=settings.auth == "none",
        verify=issuers.access,
    )
    schemas = Schemas()
    links = FileLinks(
        secrets.root.subkey(Purpose.FILE_URLS),
        hub_url=settings.public_url,
        keep_s=round(settings.files.link_h * 3600),
    )
    hosting = Files(links, clock)
    callback_secrets = CallbackSecrets(sealer)
    quotas = quotas_of(settings, store, clock)
    spending = Spending(
        store=store,
        clock=clock,
        spawn=spawn,
        per_conversation=settings.calls.per_conversation,
        catch_up=endings.catch_up,
    )
    spawn(spending.ledger.begin(clock.now()))
    tasks = TaskBook(
        store=store,
        clock=clock,
        owner=owner,
        keep_h=settings.idempotency.keep_h,
        owing=lambda: callbacks.wake(),
        secrets=callback_secrets,
        over_quota=quotas.over,
        opened=spending.opened,
    )
    earlier = Earlier(store=store, tasks=tasks)
    estimates = Estimates(
        store=store, clock=clock, spawn=spawn, unknown_s=settings.calls.timeout_s, catch_up=endings.catch_up
    )
    flow = Flow(
        breakers=breakers,
        limits=Limits(clock=clock, tenants=tenant_limits(settings)),
        gate=Gate(
            clock=clock,
            per_agent=settings.calls.per_agent,
            accepted=settings.calls.queued_per_agent,
            usual_ms=estimates.mean_ms,
        ),
    )
    router = Router(
        store=store,
        figures=figures,
        clock=clock,
        load=flow.gate.load,
        is_open=lambda agent: breakers.state(agent) is Circuit.OPEN,
    )
    admission = Admission(
        registry=registry,
        router=router,
        parents=Parents(live=tasks.live, store=store, resolve=registry.resolve),
        earlier=earlier,
        ways=Ways(schemas=schemas, can_call=registry.can_call),
        files=hosting,
        flow=flow,
        spending=spending,
        clock=clock,
        timeout_s=settings.calls.timeout_s,
        max_timeout_s=settings.calls.max_timeout_s,
        signed_only=settings.signing.required,
        max_depth=settings.calls.max_depth,
    )
    reprobe = Reprobe(look=looker.look_again, clock=clock, spawn=spawn)

    trace_finder = Traces(store=store, endpoint_of=registry.endpoint_of)
    exporting = exporting_of(os.environ, trace_finder.spans, clock)

    def noted(task: Task) -> None:
        flow.ended(task)
        if exporting is not None:
            exporting.exporter.ended(task)
        if not task.asked.then:  # What its agents did is told by its steps.
            reprobe.ended(task)
            if task.usage is not None:
                spending.ended(task)

    def counted(alike: Alike) -> None:
        metrics.ended(alike)
        task = alike[0].task
        if not task.asked.then:
            estimates.ended(alike)
            figures.ended(alike)
            if task.usage is None:
                spending.ledger.ended(task, len(alike))

    endings.listen(noted=noted, told=calls.write, counted=counted, carried=metrics.carried)
    carrier = Carrier(
        courier=courier,
        tasks=tasks,
        store=store,
        bus=bus,
        clock=clock,
        spawn=spawn,
        flow=flow,
        resting=lambda: queued.resting(),
        ended=endings.ended,
        waited=metrics.waited,
        next_for=admission.elsewhere,
    )
    canceller = Canceller(
        store=store, bus=bus, registry=registry, tasks=tasks, courier=courier, carrier=carrier, clock=clock
    )
    take_up = TakeUp(store=store, clock=clock, admission=admission, tasks=tasks, carrier=carrier, canceller=canceller)
    outbox = Outbox(
        store=store,
        clock=steady,
        registry=registry,
        courier=courier,
        keys=ring,
        secrets=callback_secrets,
        attempted=metrics.delivered,
        traced=None if exporting is None else exporting.exporter.made,
    )
    queue = partial(Worker, store=store, owner=owner, clock=steady, spawn=spawn)
    queued = queue(CALLS, slots=settings.calls.queued_at_once, work=take_up.carry)
    workflows = Workflows(
        store=store,
        bus=bus,
        clock=clock,
        admission=admission,
        tasks=tasks,
        canceller=canceller,
        flow=flow,
        opened=queued.wake,
        ended=endings.ended,
        most_bytes=settings.client.answer_mib * MIB,
    )
    followed = queue(WORKFLOWS, slots=AT_ONCE, work=workflows.carry)
    callbacks = queue(CALLBACKS, slots=settings.callbacks.at_once, work=outbox.deliver)
    pressure = Pressure(
        clock=clock,
        lane=store.lane,
        memory=memory.held_bytes,
        soon=asyncio.get_running_loop().call_soon,
        thresholds=pressure_of(settings, memory.limit_bytes()),
    )
    sending = Sending(
        store=store,
        bus=bus,
        clock=clock,
        admission=admission,
        earlier=earlier,
        tasks=tasks,
        carrier=carrier,
        canceller=canceller,
        estimates=estimates,
        queue=queued,
        followed=followed.wake,
        drain=drain,
        pressure=pressure,
        flow=flow,
    )
    noticed = Noticed(clock)
    hub = Hub(
        store=store,
        bus=bus,
        registry=registry,
        intake=intake,
        tasks=tasks,
        sending=sending,
        canceller=canceller,
        reports=Reports(
            store=store, registry=registry, tasks=tasks, schemas=schemas, canceller=canceller, ended=endings.ended
        ),
        watching=Watching(registry=registry, tasks=tasks),
        happenings=Happenings(store=store, bus=bus, clock=clock),
        senders=Senders(registry=registry, keep_h=settings.idempotency.keep_h),
        noticed=noticed,
        pressure=pressure,
        breakers=breakers,
    )
    await note_settings(store, {name: each.value for name, each in settings.sources.items()}, __version__)
    desk = Desk(
        connections=connections,
        registry=registry,
        intake=intake,
        presence=presence,
        clock=clock,
        signing=signers.signing,
        hub_url=settings.public_url,
    )

    def distrust() -> None:
        authenticator.forget()
        tokens.forget()
        desk.forget_tokens()
        spawn(card_key.renew())

    return Built(
        hub=hub,
        boxes=Boxes(store=store, bus=bus, registry=registry),
        registry=registry,
        authenticator=authenticator,
        credentials=credentials,
        ring=ring,
        client=client,
        dialects=dialects,
        calls=queued,
        callbacks=callbacks,
        workflows=followed,
        estimates=estimates,
        figures=figures,
        health=health_checks,
        series=Series(store=store, figures=figures, registry=registry),
        spending=spending,
        files=hosting,
        links=links,
        signing_keys=signers,
        card_key=card_key,
        distrust=distrust,
        connections=connections,
        presence=presence,
        desk=desk,
        noticed=noticed,
        quotas=quotas,
        retention=retention_of(settings, store, clock),
        inspection=Inspection(store=store, clock=clock),
        gate=flow.gate,
        breakers=breakers,
        heads=Heads(store=store, clock=clock, signing=signers.signing, issuer=settings.public_url),
        audit=AuditDesk(store=store, jwks=signers.jwks),
        forgetter=Forgetter(store=store, tasks=tasks, canceller=canceller),
        traces=trace_finder,
        exporting=exporting,
        pressure=pressure,
        wall=WallWatch(clock),
        metrics=metrics,
        scrape=Scrape(
            metrics,
            clock=clock,
            catch_up=endings.catch_up,
            readers=(
                process_samples,
                partial(gauges.build_info, settings),
                partial(gauges.dropped, calls, None if exporting is None else exporting.exporter),
                partial(gauges.lane, store),
                partial(gauges.bus_lost, bus, settings.bus),
                partial(gauges.sessions, connections),
                partial(gauges.pressed, pressure),
                partial(gauges.queued, flow.gate),
                partial(gauges.broken, breakers),
                partial(gauges.up, metrics, health_checks, connections),
            ),
            asking=(partial(gauges.backlog, store),),
        ),
        set_level=partial(gauges.set_level, endings, calls),
    )


def _new_uuid() -> str:
    return str(uuid.UUID(bytes=os.urandom(16), version=4))


async def _hub_uuid(vault: Vault) -> str:
    """The hub's own UUID, by which some dialects address it: made on the first start. No secret, so not sealed."""
    known = await vault.get_sealed(HUB_UUID)
    if known is None:
        known = _new_uuid().encode()
        await vault.put_sealed(HUB_UUID, known)
    return known.decode()


async def forget_changes(bus: Bus, registry: Registry, authenticator: Authenticator, credentials: Credentials) -> None:
    """Drop from the caches what the bus says has changed; all of it, when something may have been missed."""

    async def changed_agents() -> None:
        async with bus.subscribe(AGENTS_CHANGED) as said:
            async for each in said:
                if isinstance(each, Lost):
                    registry.forget_all()
                else:
                    registry.forget(each.data.decode().rpartition("\n")[2])
                credentials.forget()

    async def revoked_keys() -> None:
        async with bus.subscribe(KEY_REVOKED) as said:
            async for each in said:
                authenticator.forget(None if isinstance(each, Lost) else each.data.decode())

    async with asyncio.TaskGroup() as group:
        group.create_task(changed_agents())
        group.create_task(revoked_keys())
