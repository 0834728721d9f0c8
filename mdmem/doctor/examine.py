"""Running every check; one that fails is a finding itself and stops no other."""

from __future__ import annotations

from mdmem.doctor import agent, git, place
from mdmem.doctor.finding import ERROR, RANK, WARNING, Check, Finding, Look
from mdmem.errors import MdmemError

CHECKS: tuple[Check, ...] = (*git.CHECKS, *place.CHECKS, *agent.CHECKS)


def examine(look: Look, fix: bool = False) -> list[Finding]:
    """Return all findings, the worst first. With `fix` what is safe to mend is mended, and says so."""
    found: list[Finding] = []
    for check in CHECKS:
        try:
            found += list(check(look))
        except (MdmemError, OSError) as error:
            name = check.__name__.replace("_", "-")
            found.append(Finding(f"check-{name}", WARNING, f"could not look at {name}: {error}"))
    if fix:
        for finding in found:
            if finding.fix is not None:
                try:
                    finding.fixed = finding.fix()
                except (MdmemError, OSError) as error:
                    finding.message += f" (could not be mended: {error})"
    return sorted(found, key=lambda finding: RANK[finding.severity])


def failed(found: list[Finding]) -> bool:
    """Return whether an error is left that was not mended."""
    return any(finding.severity == ERROR and not finding.fixed for finding in found)
