//! What the agent skill derives from the code: its two references and its benchmark.
//!
//! Everything here is a pure function of the code and of the texts that it is given, so a check for drift is a
//! comparison of strings. [`files`] is the one door that reads: the texts of the skill itself.

mod benchmark;
mod causes;
mod checklist;
mod markdown;
pub mod record;
pub mod rules;
pub mod skill;
mod variables;

use std::collections::BTreeMap;
use std::path::Path;

pub use benchmark::benchmark;
pub use causes::troubleshooting;
pub use variables::env_vars_reference;

/// Folder of the skill, from the root of the repository.
pub const FOLDER: &str = "skills/dynamo-interconnect-check";

/// The command that writes all of it.
pub const WRITE: &str = "cargo run -p check-interconnect-skill-docs";

/// Every generated file of the skill, by its path from the root of the repository.
pub fn files(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut skill = skill::Skill::read(&root.join(FOLDER))?;
    skill.references = BTreeMap::from([
        (
            "references/interconnect-env-vars.md".to_owned(),
            env_vars_reference(),
        ),
        (
            "references/troubleshooting.md".to_owned(),
            troubleshooting(),
        ),
    ]);
    let benchmark = benchmark(&skill);
    let mut files: BTreeMap<String, String> = skill
        .references
        .into_iter()
        .map(|(path, text)| (format!("{FOLDER}/{path}"), text))
        .collect();
    files.insert(format!("{FOLDER}/BENCHMARK.md"), benchmark);
    Ok(files)
}
