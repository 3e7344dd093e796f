"""Each of these tests finds the bug that was planted for it."""

from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import pytest

from dragoman.dialects.a2a_v03 import rest_out
from dragoman.dialects.a2a_v10 import outbound
from tests.dialects.loops import WIRES
from tests.end_to_end.every_dialect import Everyone
from tests.end_to_end.world import eventually
from tests.security import test_addresses, test_caps, test_foreign, test_reach, test_secrets, test_translation
from tests.security.asking import line_of, listed
from tests.security.expected import TASK
from tests.support.hub import HubProcess
from tests.support.reach import Reached, everything


@pytest.mark.planted
@pytest.mark.parametrize("bug", ["name_judged_only", "resolved_again", "redirect_followed"])
def test_a_way_to_forbidden_addresses_is_found(tmp_path: Path, bug: str) -> None:
    with ExitStack() as stack:
        world = test_addresses.world_of(tmp_path, stack, planted=bug)
        match bug:
            case "redirect_followed":
                test_addresses.redirect(world)
                eventually(lambda: test_addresses.OpenAgent.followed, "the redirect is followed")
                return
            case "resolved_again":
                test_addresses.rebind(world)
            case _:
                test_addresses.attack(world, test_addresses.short_set())
        assert world.forbidden(), f"{bug} was not found"
        assert world.canary.visits > 0


@pytest.mark.planted
@pytest.mark.parametrize("bug", ["followed_without_owner", "shown_to_every_tenant"])
def test_a_task_that_is_shown_to_others_is_found(tmp_path: Path, bug: str) -> None:
    with ExitStack() as stack:
        hub = HubProcess(tmp_path / "data", planted=bug).start()
        stack.callback(hub.stop)
        world = test_foreign.World(hub, stack)
        found, _ = test_foreign.differences(world, listed(everything(tmp_path / "same")), TASK)
        assert found, f"{bug} was not found"


@pytest.mark.planted
def test_an_operation_that_strangers_may_use_is_found(tmp_path: Path) -> None:
    with ExitStack() as stack:
        hub = HubProcess(tmp_path / "data", planted="tasks_listed_to_strangers").start()
        stack.callback(hub.stop)
        agent = Everyone(hub, stack).agent("platform").id
        world = test_reach.world_of(hub, agent, listed(everything(tmp_path / "same")))
        wrong = test_reach.accidents(world)
        assert any("a2a-1.0 ListTasks" in each for each in wrong)
        assert any("GET /v1/calls" in each or "a2a-1.0 list" in each for each in wrong)


@pytest.mark.planted
def test_a_route_that_the_table_does_not_know_is_found() -> None:
    with pytest.raises(AssertionError, match=r"not in tests/security/expected\.py"):
        line_of(Reached(key="GET /v1/backdoor", method="GET", path="/v1/backdoor"))


@pytest.mark.planted
def test_a_depth_that_nobody_looks_at_is_found(tmp_path: Path) -> None:
    with ExitStack() as stack:
        hub = HubProcess(tmp_path / "data", planted="depth_unchecked").start()
        stack.callback(hub.stop)
        world = test_caps.world_of(hub, stack, tmp_path)
        gone_off, _ = test_caps.survivors(world)
        assert any("65 levels" in each for each in gone_off), "the bug was not found"


@pytest.mark.planted
def test_secrets_that_are_not_sealed_are_found(tmp_path: Path) -> None:
    with ExitStack() as stack:
        hub = HubProcess(tmp_path / "data", planted="nothing_sealed").start({"DRAGOMAN_LOG_LEVEL": "debug"})
        stack.callback(hub.stop)
        planted = test_secrets.Planted(hub, stack)
        test_secrets.plant(planted)
        lying = test_secrets.found(planted, tmp_path)
        assert any("bearer token" in each and "hub.db" in each for each in lying)
        assert any("push token" in each and "backup" in each for each in lying)


@pytest.mark.planted
@pytest.mark.parametrize("slug", ["a2a-0.3-http", "a2a-1.0-http"])
def test_an_id_that_is_not_escaped_is_found(slug: str) -> None:
    wire = next(each for each in WIRES if each.name == slug)
    with (
        mock.patch.object(rest_out, "path_segment", str),
        mock.patch.object(outbound, "path_segment", str),
        pytest.raises((AssertionError, ValueError)),
    ):
        test_translation.test_no_text_leaves_its_place_in_a_request(wire, lambda *_, **__: None)
