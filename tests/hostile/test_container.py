"""A plain container reaches T2, as an ordinary user and as root, with what Docker takes away by default."""

from __future__ import annotations

import errno
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostile.test_hostile import MODULES, ORDINARY, ROOT, public_python
from thincode.interpreter import doctor
from thincode.interpreter.tiers import Tier

CONTAINER = ROOT / "examples/container"
LEFT_TO_ROOT = ("chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap", "net_bind_service",
                "net_raw", "sys_chroot", "mknod", "audit_write", "setfcap")  # fmt: skip
"""Capabilities that a container's root has."""
REFUSED = {"unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "bpf": 321, "keyctl": 250,
           "add_key": 248, "userfaultfd": 323, "perf_event_open": 298, "io_uring_setup": 425}  # fmt: skip
"""System calls of x86_64 that a container's filter refuses, besides `clone` with namespaces."""
JAIL = """
import os, sys
from thincode.interpreter import _seccomp as s
rules = {number: s.refuse(%d) for number in %r}
rules |= {56: (s.Only(0, (0,), s.NEW_NAMESPACES),), 435: s.refuse(%d)}
s.install(s.program(rules, processor="x86_64", otherwise=s.ALLOW, unknown=s.ALLOW))
os.execvp(sys.argv[1], sys.argv[1:])
"""
LOOK = "import json; from thincode.interpreter import doctor; print(json.dumps(doctor.probe()))"


def looked(user: tuple[str, ...]) -> dict[str, Any]:
    """What the doctor finds inside."""
    jail = JAIL % (errno.EPERM, sorted(REFUSED.values()), errno.ENOSYS)
    done = subprocess.run(
        [sys.executable, "-c", jail, *user, str(public_python()), "-c", LOOK],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": MODULES}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(
    os.geteuid() != 0 or platform.machine() != "x86_64", reason="only root of x86_64 can build this jail"
)
@pytest.mark.parametrize("who", ["ordinary", "root"])
def test_what_docker_takes_away_leaves_t2(who: str) -> None:
    if public_python() is None:
        pytest.skip("no Python that an ordinary user can start")
    kept = ",".join(["-all", *(f"+{name}" for name in LEFT_TO_ROOT)])
    found = looked(ORDINARY if who == "ordinary" else ("setpriv", f"--bounding-set={kept}", "--inh-caps=-all"))
    assert found["tier"] == "T2", found
    assert found["open"] == list(doctor.ATTEMPTS[Tier.T3])
    assert "not permitted" in found["layers"]["namespaces"]


def test_the_pod_asks_for_what_the_checklist_names() -> None:
    pod = yaml.safe_load((CONTAINER / "pod.yaml").read_text())["spec"]
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["resources"]["limits"]["memory"]
    assert [volume["emptyDir"]["sizeLimit"] for volume in pod["volumes"]]
    assert container["args"] == ["doctor", "--tier", "T2"]


def test_the_image_runs_as_the_user_that_the_pod_names() -> None:
    lines = (CONTAINER / "Dockerfile").read_text().splitlines()
    pod = yaml.safe_load((CONTAINER / "pod.yaml").read_text())
    assert f"USER {pod['spec']['securityContext']['runAsUser']}" in lines
    copied = [line for line in lines if line.startswith(("COPY", "RUN pip"))]
    assert copied == ["COPY . .", "RUN pip install --no-cache-dir -c constraints.txt . && rm -rf /src"]
    assert Path(ROOT, "constraints.txt").is_file()
