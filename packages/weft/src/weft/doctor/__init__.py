"""What weft finds on this machine, what it lacks, and whether each backend computes: `python -m weft.doctor`.

    python -m weft.doctor                        everything, as text
    python -m weft.doctor --json                 the same for programs
    python -m weft.doctor --only cpu,cuda        these platforms alone
    python -m weft.doctor --require cuda         fails where CUDA does not compute
    python -m weft.doctor --host ws://…          computes on that host; its token is in WEFT_HOST_TOKEN

Exit status: 0 where everything that is here works, 1 where something does not, where no platform computes, or where
one that `--require` names does not; 2 for an unknown option.
"""

from __future__ import annotations

from .examine import examine as examine, Examination as Examination
from .findings import Finding as Finding
