"""Looks at what tests/lab/rdma-transfer.sh brought from the command line: `rdma_nixl_reports.py FOLDER CASE...`.

Prints what is not as it must be, with the report that it was seen in; exit code 1 then.
"""
import json
import sys

# What explains that the engines' READ went over TCP.
CAUSES = {
    "as-shipped": "verbs-provider-not-loadable",
    "hidden": "dev-infiniband-missing",
    "closed": "uverbs-permission",
    "down": "ib-port-down-polling",
    "interface": "ucx-netdev-eth0",
}
OF_LIBRARY = ("rdma-library", "control", "mixed", "memlock")

folder, cases = sys.argv[1], [case for case in sys.argv[2:] if case not in OF_LIBRARY]
wrong = []
slow = []


class Report:
    def __init__(self, name):
        self.name = name
        self.wrong = []
        try:
            with open("%s/%s.json" % (folder, name)) as file:
                self.json = json.load(file)
            with open("%s/%s.code" % (folder, name)) as file:
                self.code = file.read().split()[-1]
        except (OSError, ValueError) as error:
            self.json = None
            wrong.append("%s: no report: %s" % (name, error))

    def __enter__(self):
        return self

    def is_slow(self):
        """Time that was over on a machine that is too slow says nothing about what is judged here."""
        late = any(check.get("reason") == "timed-out" for check in self.json["checks"])
        if late:
            slow.append(self.name)
        return late

    def __exit__(self, kind, error, _):
        if kind in (KeyError, IndexError, TypeError):
            self.wrong.append("not in the report: %r" % error)
        if self.wrong and self.json is not None:
            wrong.extend("%s: %s" % (self.name, one) for one in self.wrong)
            wrong.append(json.dumps(self.json, indent=1))
        return kind in (KeyError, IndexError, TypeError)

    def check(self, holds, what):
        if not holds:
            self.wrong.append(what)

    def of(self, name):
        return [check for check in self.json["checks"] if check["name"] == name]

    def causes(self):
        return [check.get("cause") for check in self.json["checks"]]


for case in cases:
    with Report(case) as report:
        if report.is_slow():
            continue
        check, legs = report.check, report.json["transfers"][0]["legs"]
        check(len(legs) == 2 and all(leg["verified"] for leg in legs), "not all content arrived")
        check(all(leg.get("grade") == "proven" for leg in legs), "a carrier is not proven")
        for leg in legs:
            agree = [e["kind"] for e in leg["evidence"] if e["finding"] == "agrees"]
            check(len(agree) >= 2, "only %s agree" % agree)
        check(not report.json["transfer_validated"], "validated")
        check(report.json["coverage"]["pairs_proven"] == 0, "a pair counts as proven")
        carriers = {leg["carrier"] for leg in legs}
        if case == "rdma":
            check(carriers == {"software-rdma"}, "carriers %s" % carriers)
            check(all(leg["over"] == ["rxe0:1"] for leg in legs), "not over rxe0:1")
            check({leg["operation"] for leg in legs} == {"READ", "WRITE"}, "not both operations")
            check("rc_verbs" in json.dumps(legs), "rc_verbs is not named")
            check(report.json["readiness"] == "unproven", report.json["readiness"])
            check(report.code == "0", "exit code %s" % report.code)
            check("software RDMA" in report.json["verdict"], report.json["verdict"])
            check("nixl-transfer-not-rdma" not in report.causes(), "called not RDMA")
        else:
            check(carriers == {"tcp"}, "carriers %s" % carriers)
            check(report.code == "1" and report.json["readiness"] == "blocked", report.json["readiness"])
            said = [c["detail"] for c in report.json["checks"] if c.get("cause") == "nixl-transfer-not-rdma"]
            check(said, "not called not RDMA: %s" % report.causes())
            check(any(CAUSES[case] in text for text in said), "not explained by %s: %s" % (CAUSES[case], said))
if "rdma" in cases:
    with Report("rdma.observed") as report:
        check, seen = report.check, report.json["observed"]
        check((seen["found"], seen.get("over")) == ("between", "rdma-port"), "found %s" % seen)
        check(seen["kv"], "not called KV: %s" % seen["words"])
        check(not report.json["transfer_validated"], "validated")
        payload = 32 << 20
        for moved in (m for m in seen["moved"] if m["medium"] == "rdma-port"):
            check(moved["name"] == "rxe0:1", "over %s" % moved)
            # What the kernel counts there: bytes with their headers, or packets, and then at most so many bytes.
            most = 1.15 if moved.get("packets") is None else 8
            check(payload * 0.95 <= moved["bytes"] <= payload * most, "bytes %s" % moved)
            words = "no bytes there" if moved.get("packets") is not None else "MiB on rxe0:1"
            check(words in seen["words"], seen["words"])
        one = report.of("nixl/observed-traffic")[0]
        check(one["status"] == "ok" and "software RDMA" in one.get("note", ""), one)
if "rdma" in cases and "hidden" in cases:
    with Report("rdma.ready") as report:
        offers = [c for c in report.of("nixl/transports") if "rc_verbs" in c["detail"]]
        report.check(offers and "software RDMA" in offers[0]["detail"], "offers %s" % report.of("nixl/transports"))
        report.check("nixl-ucx-offers-no-rdma" not in report.causes(), report.causes())
    with Report("hidden.ready") as report:
        none = [c for c in report.of("nixl/transports") if "no RDMA here" in c["detail"]]
        report.check(none, "offers %s" % report.of("nixl/transports"))
        # That the device node is missing is node's to say; what follows for the engine's UCX is told here.
        report.check("nixl-ucx-offers-no-rdma" in report.causes(), report.causes())
if slow:
    print("not judged, this machine is too slow: " + ", ".join(slow))
print("\n".join(wrong) or "all as it must be: " + (", ".join(cases) or "nothing was asked for"))
sys.exit(bool(wrong))
