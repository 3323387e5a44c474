//! Which variables may be kept and shown.

use std::cell::RefCell;
use std::collections::HashMap;

thread_local! {
    /// Recipes repeat the same few names, and a look-up searches a table of two thousand.
    static KNOWN: RefCell<HashMap<String, bool>> = RefCell::new(HashMap::new());
}

/// Names remembered at most: a hostile file could bring millions.
const REMEMBERED: usize = 4096;

/// Whether a variable is in the catalogue or read by UCX or NCCL, and cannot hold a secret. Values of all
/// others are blanked.
pub(crate) fn is_shown(name: &str) -> bool {
    // Every such name looks like this, and most names of a manifest do not.
    if !name.starts_with(|c: char| c.is_ascii_uppercase()) || !name.contains('_') {
        return false;
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some(shown) = known.get(name) {
            return *shown;
        }
        let shown = settings::catalogue::is_allowed(name);
        if known.len() < REMEMBERED {
            known.insert(name.to_owned(), shown);
        }
        shown
    })
}
