#!/usr/bin/env python3
"""Runs check-interconnect with the same arguments and JSON output.

Usage: check_interconnect.py env PATH...
       check_interconnect.py node [--namespace N --pod P --container C]
       check_interconnect.py nixl [--namespace N --pod P --container C]

The program check-interconnect is the one that CHECK_INTERCONNECT_BIN names, else
the one in this skill (scripts/, the skill's folder, bin/), else the one on PATH.

Exit codes: 0 nothing failed, 1 a check failed, 2 wrong usage, 3 inconclusive or no
program, 4 nothing to check, 5 the cluster cannot be reached.
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
GET = f"in a clone of its repository run {BUILD}, or name the program in {VARIABLE}"


def find_program():
    """Where the program is: as the variable says, beside the skill, or on PATH."""
    if named := os.environ.get(VARIABLE):
        return shutil.which(named)
    here = Path(__file__).resolve().parent
    file = f"{NAME}.exe" if os.name == "nt" else NAME
    for path in (here / file, here.parent / file, here.parent / "bin" / file):
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return shutil.which(NAME)


def without_program(command, why):
    """The report of a run that could not be: the same keys, nothing looked at."""
    check = {"name": "skill/program", "status": "skipped", "detail": why, "fix": GET}
    nothing = "inputs_read inputs_not_read workers_found workers_probed pairs_required"
    nothing += " pairs_tested pairs_proven facts_seen"
    return {
        "schema": "check-interconnect/report-v1",
        "tool": {"name": NAME, "version": "none"},
        "command": command,
        "scope": [],
        "checks": [{**check, "reason": "no-tool", "grade": "assumed", "subject": {}}],
        "counts": {"ok": 0, "warn": 0, "fail": 0, "skipped": 1},
        "verdict": f"nothing was looked at: {why}; {GET}",
        "readiness": "inconclusive",
        "transfer_validated": False,
        "coverage": {**dict.fromkeys(nothing.split(), 0), "facts_missing": 1},
        "deployments": [],
        "next": [{"command": BUILD, "why": f"builds {NAME}", "read_only": True}],
    }


def main(arguments):
    """Run the program, or say why not."""
    program = find_program()
    command = arguments[0] if arguments else ""
    own_format = any(a.startswith(("-o", "--output")) for a in arguments)
    if command in ("env", "node", "nixl") and not own_format:
        arguments = [command, "-o", "json", *arguments[1:]]
    why = f"{os.environ.get(VARIABLE) or NAME} was not found or is not executable"
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
