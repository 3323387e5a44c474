//! What can be wrong with decisions themselves.

use checks::{
    CHECKS, Cause, FABRIC_NOT_AS_EXPECTED, FABRIC_NOT_OF_PROVIDER, NETWORKS_NOT_ATTACHED,
};

/// Findings that come of what the configuration file declares.
const DECLARED: [&str; 3] = [
    FABRIC_NOT_AS_EXPECTED.id,
    FABRIC_NOT_OF_PROVIDER.id,
    NETWORKS_NOT_ATTACHED.id,
];

/// Causes of results about decisions.
pub const CAUSES: &[Cause] = &[
    Cause {
        id: "suppression-without-reason",
        what: "a suppression says which finding it is about and not why",
        why: "nobody can tell later whether it still holds, so it does not count",
        fix: "write the reason behind the bracket: # check-interconnect: ignore[NAME] reason",
        quiet_if: "there is a reason",
        source: "the comment itself",
    },
    Cause {
        id: "suppression-unknown-name",
        what: "a suppression names a check or cause that does not exist",
        why: "it suppresses nothing",
        fix: "use a name from check-interconnect explain",
        quiet_if: "every name is a check or a cause",
        source: "the comment itself",
    },
    Cause {
        id: "suppression-malformed",
        what: "a comment starts like a suppression and cannot be read as one",
        why: "it suppresses nothing",
        fix: "write: # check-interconnect: ignore[NAME] reason",
        quiet_if: "the text behind check-interconnect: is a sentence",
        source: "the comment itself",
    },
    Cause {
        id: "unused-suppression",
        what: "a suppression has no finding on its line or on the line below",
        why: "the finding was fixed, or the comment stands in the wrong place; it would hide the next one",
        fix: "remove it, or move it to the line that the finding names",
        quiet_if: "each of its names has a finding there",
        source: "the comment itself",
    },
    FABRIC_NOT_AS_EXPECTED,
    FABRIC_NOT_OF_PROVIDER,
    NETWORKS_NOT_ATTACHED,
];

/// Names that can be suppressed: they stand for findings.
pub(crate) fn suppressible() -> impl Iterator<Item = &'static str> {
    CHECKS
        .iter()
        .map(|c| c.name)
        .chain(CHECKS.iter().flat_map(|c| c.causes.iter().map(|c| c.id)))
        .chain(DECLARED)
}

/// Names that can be given a level: findings, and what is said about decisions.
pub(crate) fn leveled() -> impl Iterator<Item = &'static str> {
    suppressible().chain(
        CAUSES
            .iter()
            .map(|c| c.id)
            .filter(|id| !DECLARED.contains(id)),
    )
}

/// Whether a name tells what could not be read.
pub(crate) fn is_input(name: &str) -> bool {
    name == "input" || checks::PROBLEMS.iter().any(|p| p.id == name)
}

/// Why a name is not one of `names`, with the one that was probably meant.
pub(crate) fn unknown(name: &str, names: impl Iterator<Item = &'static str>) -> String {
    if is_input(name) {
        return format!("{name} tells what could not be read, which cannot be accepted away");
    }
    let hint = settings::distance::closest(name, names)
        .map(|close| format!("; did you mean {close}?"))
        .unwrap_or_default();
    format!(
        "no check or cause is called '{}'{hint}",
        name.escape_debug()
    )
}
