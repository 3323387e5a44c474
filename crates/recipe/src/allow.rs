//! Which variables may be kept and shown.

/// Whether a variable is in the catalogue or read by UCX or NCCL, and cannot hold a secret. Values of all
/// others are blanked.
pub(crate) fn is_shown(name: &str) -> bool {
    // Every such name looks like this, and most names of a manifest do not.
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.contains('_')
        && settings::catalogue::is_allowed(name)
}
