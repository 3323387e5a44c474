//! LMCache's own configuration, as far as it decides how KV cache moves: variables, or the file that
//! `LMCACHE_CONFIG_FILE` names where a ConfigMap of the input holds it.
//!
//! With a sender and a receiver LMCache moves KV cache over its transfer channel, which is NIXL; without them it only
//! keeps KV cache in memory, on disk or in a store.

use model::{Form, Place, Role, Setting, Value};
use yaml::Limits;

use crate::credentials;
use crate::draft::{ConfigMapDraft, Draft};
use crate::expand::{Expanded, Variables};
use crate::resolve;

/// Keys of the file that decide, each with the variable that says the same.
const KEYS: [(&str, &str); 6] = [
    ("enable_pd", "LMCACHE_ENABLE_PD"),
    ("enable_nixl", "LMCACHE_ENABLE_NIXL"),
    ("transfer_channel", "LMCACHE_TRANSFER_CHANNEL"),
    ("pd_role", "LMCACHE_PD_ROLE"),
    ("nixl_role", "LMCACHE_NIXL_ROLE"),
    ("nixl_backends", "LMCACHE_NIXL_BACKENDS"),
];

/// What the file says, under the names of the variables. `lmcache.file` tells that it was seen.
pub(crate) fn settings(
    draft: &Draft,
    variables: &Variables<'_>,
    config_maps: &[ConfigMapDraft],
) -> Vec<Setting> {
    let Some(env) = variables.find("LMCACHE_CONFIG_FILE") else {
        return Vec::new();
    };
    let Expanded::Known(path) = variables.value(env, 0) else {
        return Vec::new();
    };
    let Some(entry) = resolve::mounted(draft, &path, config_maps) else {
        return Vec::new();
    };
    let stream = yaml::parse(&entry.value, &Limits::default());
    let Some(document) = stream.documents.first() else {
        return Vec::new();
    };
    let root = document.root();
    let setting = |name: String, value: String, place: &Place| Setting {
        name,
        value: Value::Literal(credentials::masked(&value).into_owned()),
        form: Form::EngineConfig,
        place: place.clone(),
    };
    let mut found = vec![setting("lmcache.file".into(), "seen".into(), &env.place)];
    for (key, variable) in KEYS {
        let Some(node) = root.get(key) else { continue };
        let value = if node.is_sequence() {
            let items: Vec<String> = node.items().map(|i| i.raw().into_owned()).collect();
            items.join(",")
        } else {
            node.raw().into_owned()
        };
        // The variable wins over the file.
        if variables.find(variable).is_none() {
            found.push(setting(variable.to_owned(), value, &env.place));
        }
    }
    found
}

/// The role that LMCache was told.
pub(crate) fn role(settings: &[Setting]) -> Option<(Role, Place)> {
    settings
        .iter()
        .filter(|s| matches!(s.name.as_str(), "LMCACHE_PD_ROLE" | "LMCACHE_NIXL_ROLE"))
        .find_map(|s| {
            let role = match s.value.literal()?.trim() {
                "sender" => Role::Prefill,
                "receiver" => Role::Decode,
                _ => return None,
            };
            Some((role, s.place.clone()))
        })
}

/// Whether a setting makes LMCache move KV cache between workers.
pub(crate) fn moves_kv(setting: &Setting) -> bool {
    matches!(
        setting.name.as_str(),
        "LMCACHE_ENABLE_PD" | "LMCACHE_ENABLE_NIXL"
    ) && setting
        .value
        .literal()
        .is_some_and(|v| matches!(v.trim().to_ascii_lowercase().as_str(), "true" | "1" | "yes"))
}
