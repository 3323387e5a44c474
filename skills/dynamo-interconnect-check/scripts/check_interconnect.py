#!/usr/bin/env python3
"""Runs check-interconnect with the same arguments and JSON output.

Usage: check_interconnect.py env PATH...
       check_interconnect.py node [--namespace N --pod P --container C]
       check_interconnect.py nixl [--namespace N --pod P --container C]

The program check-interconnect is taken from the variable CHECK_INTERCONNECT_BIN, from this skill's folder
(scripts/, the folder itself, bin/), or from PATH. Exit codes: 0 nothing failed, 1 a check failed, 2 wrong
usage, 3 inconclusive or no program, 4 nothing to check, 5 the cluster cannot be reached.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

NAME = "check-interconnect"
VARIABLE = "CHECK_INTERCONNECT_BIN"
BUILD = "cargo install --locked --path crates/cli"
REPORTS = ("env", "node", "nixl")


def find_program():
    """Where the program is: as the variable says, beside the skill, or on PATH."""
    if named := os.environ.get(VARIABLE):
        return shutil.which(named)
    here = Path(__file__).resolve().parent
    file = NAME + (".exe" if os.name == "nt" else "")
    beside = (here / file, here.parent / file, here.parent / "bin" / file)
    return next((str(p) for p in beside if os.access(p, os.X_OK) and p.is_file()), shutil.which(NAME))


def without_program(command, why):
    """The report of a run that could not be: the same keys, nothing looked at."""
    fix = f"build it in a clone of its repository ({BUILD}), put it on PATH, or name it in {VARIABLE}"
    seen = ("inputs_read", "inputs_not_read", "workers_found", "workers_probed")
    seen += ("pairs_required", "pairs_tested", "pairs_proven", "facts_seen")
    check = {"name": "skill/program", "status": "skipped", "detail": why, "fix": fix}
    return {
        "schema": "check-interconnect/report-v1",
        "tool": {"name": NAME, "version": "none"},
        "command": command,
        "scope": [],
        "checks": [{**check, "reason": "no-tool", "grade": "assumed", "subject": {}}],
        "counts": {"ok": 0, "warn": 0, "fail": 0, "skipped": 1},
        "verdict": f"nothing was looked at: {why}; {fix}",
        "readiness": "inconclusive",
        "transfer_validated": False,
        "coverage": {**dict.fromkeys(seen, 0), "facts_missing": 1},
        "deployments": [],
        "next": [{"command": BUILD, "why": f"builds {NAME}", "read_only": True}],
    }


def main(arguments):
    """Runs the program, or says why not."""
    program = find_program()
    command = arguments[0] if arguments else ""
    own_format = any(a.startswith(("-o", "--output")) for a in arguments)
    if command in REPORTS and not own_format:
        arguments = [command, "-o", "json", *arguments[1:]]
    why = f"{os.environ.get(VARIABLE) or NAME} was not found, or cannot be executed"
    if program:
        try:
            if os.name == "posix":
                os.execv(program, [program, *arguments])
            return subprocess.call([program, *arguments])
        except OSError as error:
            why = f"{program} cannot be started: {error.strerror}"
    if command in ("", "help") or "-h" in arguments or "--help" in arguments:
        print(__doc__, file=sys.stdout if command else sys.stderr)
        return 0 if command else 2
    print(json.dumps(without_program(command, why), indent=2))
    return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
