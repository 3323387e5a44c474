//! Which variables may be kept and shown.

/// Whether a variable is in the catalogue or read by UCX or NCCL, and cannot hold a secret. Values of all
/// others are blanked.
pub(crate) fn is_shown(name: &str) -> bool {
    settings::catalogue::is_allowed(name)
}
