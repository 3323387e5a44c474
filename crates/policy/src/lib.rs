//! What a team has decided: levels, suppressions and a baseline for findings, and fixes of recipes.
//!
//! Nothing here reads or writes a file; the command line brings texts and takes texts. Of several decisions about
//! one finding the nearest to it wins: a suppression in the recipe, then the baseline, then the configuration file.
//! None of them touches a skipped result: missing evidence and broken inputs stay what they are.

mod apply;
mod baseline;
mod causes;
mod config;
mod diff;
mod edit;
mod result;
mod suppress;

pub use apply::{Decisions, Rules};
pub use baseline::{Baseline, BaselineError, SCHEMA_NAME as BASELINE_SCHEMA};
pub use causes::CAUSES;
pub use config::{Config, ConfigError, FILE_NAMES, Level, schema_config};
pub use diff::diff;
pub use edit::{Edit, Refusal, apply as apply_edits, edits};
pub use suppress::{Suppression, scan};
