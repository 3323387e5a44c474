//! Recipes: Kubernetes manifests and what surrounds them, read into deployments with workers, settings and
//! fabric requests, each with the place where it is written.
//!
//! Reading goes in two steps. [`read`] turns one text into a draft without looking at any other; drafts of many
//! files can be made in parallel, and the text can be dropped afterwards. [`assemble`] resolves what refers to
//! other documents (ConfigMaps, the other role) and decides what is judged together.
//!
//! No file is opened here; the caller brings the text.

mod allow;
mod blank;
mod command;
mod config_map;
mod connector;
mod credentials;
mod document;
mod draft;
mod dynamo;
mod elsewhere;
mod engine;
mod env;
mod expand;
mod generic;
mod group;
mod inline_json;
mod json_keys;
pub mod live;
mod lmcache;
mod pairing;
mod patches;
mod place;
mod pod_facts;
mod pods;
mod possible;
mod ray;
mod resolve;
mod resources;
mod scalar_map;
mod shapes;
mod shell;
mod values;

pub use credentials::{
    masked as without_credentials, masked_message as message_without_credentials,
};
pub use document::read;
pub use draft::FileDraft;
pub use engine::{FLAGS as ENGINE_FLAGS, SWITCHES as ENGINE_SWITCHES};
pub use group::assemble;
pub use inline_json::{kept_keys, value_of_flag};
