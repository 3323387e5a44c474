"""Looks at the reports that tests/lab/rdma-nixl.sh wrote: `rdma_nixl_reports.py FOLDER CASE...`."""
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

wrong = []
folder, cases = sys.argv[1], sys.argv[2:]
for case in cases:
    with open("%s/%s.json" % (folder, case)) as file:
        report = json.load(file)
    with open("%s/%s.code" % (folder, case)) as file:
        code = file.read().split()[-1]

    def check(holds, what):
        if not holds:
            wrong.append("%s: %s" % (case, what))

    legs = report["transfers"][0]["legs"]
    causes = [c.get("cause") for c in report["checks"]]
    check(len(legs) == 4 and all(leg["verified"] for leg in legs), "not all content arrived")
    check(all(leg.get("grade") == "proven" for leg in legs), "a carrier is not proven")
    check(not report["transfer_validated"], "validated")
    check(report["coverage"]["pairs_proven"] == 0, "a pair counts as proven")
    carriers = {leg["carrier"] for leg in legs}
    if case == "rdma":
        check(carriers == {"software-rdma"}, "carriers %s" % carriers)
        check(all(leg["over"] == ["rxe0:1"] for leg in legs), "not over rxe0:1")
        check(report["readiness"] in ("unproven", "degraded"), report["readiness"])
        check("nixl-transfer-not-rdma" not in causes, "called not RDMA")
    else:
        check(carriers == {"tcp"}, "carriers %s" % carriers)
        check(code == "1" and report["readiness"] == "blocked", "%s, exit code %s" % (report["readiness"], code))
        check("nixl-transfer-not-rdma" in causes, "causes %s" % causes)
        said = [c["detail"] for c in report["checks"] if c.get("cause") == "nixl-transfer-not-rdma"]
        check(any(CAUSES[case] in text for text in said), "not explained by %s: %s" % (CAUSES[case], said))
print("\n".join(wrong) or "all as it must be: " + ", ".join(cases))
sys.exit(bool(wrong))
