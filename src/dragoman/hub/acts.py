"""Whose act something is, as the audit notes it: a caller's, or the hub's own."""

from typing import Final

from dragoman.model.call import Caller
from dragoman.ports.audit import Act

THE_HUB: Final = "hub"


def act_of(
    caller: Caller, action: str, object: str, request_id: str | None = None, *, tenant: str | None = None
) -> Act:
    """What a caller does, as the audit notes it: with the tenant whose the thing is, if that is another."""
    return Act(
        tenant=caller.tenant if tenant is None else tenant,
        principal=caller.id,
        key_id=caller.key_id,
        action=action,
        object=object,
        request_id=request_id,
    )


def act_of_hub(action: str, object: str, tenant: str = "", digest: bytes | None = None) -> Act:
    """What the hub does by itself."""
    return Act(tenant=tenant, principal=THE_HUB, action=action, object=object, digest=digest)
