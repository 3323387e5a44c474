//! What can be put right without asking anybody: slips for which there is only one right text.
//!
//! A fix is stated here in words (this variable, from this text to that one, at this place); the caller maps it to
//! bytes and has the result judged again. What needs knowledge of the cluster is never fixed.

use std::borrow::Cow;

use model::{Engine, Facts, Form, Hidden, Place, Setting, Value, Worker};
use settings::distance::edit_distance;
use settings::ucx_net_devices::{self, ItemKind};
use settings::{catalogue, effect, known_names, ucx_tls};

use crate::env::settings_in_force::check_name;

/// What is to become of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Another name.
    Rename {
        /// As written.
        from: String,
        /// As the library reads it.
        to: &'static str,
    },
    /// Another value.
    Value {
        /// The variable.
        name: &'static str,
        /// As written, decoded.
        from: String,
        /// As it was meant.
        to: String,
    },
    /// Not there: nothing reads it.
    Remove {
        /// The variable.
        name: String,
    },
}

/// One fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// The check whose finding it removes.
    pub check: Cow<'static, str>,
    /// The causes that the finding can have; none where it is a setting that is only told.
    pub causes: &'static [&'static str],
    /// The deployment.
    pub deployment: String,
    /// The worker.
    pub worker: String,
    /// Where the finding stands.
    pub place: Place,
    /// What is to be changed.
    pub change: Change,
}

/// Fixes for prefill and decode workers, in input order.
pub fn fixes(facts: &Facts) -> Vec<Fix> {
    let mut found = Vec::new();
    for deployment in &facts.deployments {
        for worker in deployment.kv_workers() {
            let mut add = |check: Cow<'static, str>, causes, place: &Place, change| {
                found.push(Fix {
                    check,
                    causes,
                    deployment: deployment.name.clone(),
                    worker: worker.name.clone(),
                    place: place.clone(),
                    change,
                });
            };
            for name in &worker.unknown_names {
                if let Some(to) = only_name(&name.value, worker) {
                    let from = name.value.clone();
                    add(
                        "env/setting-names".into(),
                        &["setting-name-typo", "flag-name-typo"],
                        &name.place,
                        Change::Rename { from, to },
                    );
                }
            }
            for setting in worker.settings.iter().filter(|s| is_useless(s, worker)) {
                add(
                    check_name(&setting.name),
                    &[],
                    &setting.place,
                    Change::Remove {
                        name: setting.name.clone(),
                    },
                );
            }
            for (name, check, causes, right) in [
                (
                    "UCX_TLS",
                    "env/ucx-tls",
                    &[
                        "ucx-tls-unknown-name",
                        "ucx-tls-spaces-quotes-case",
                        "ucx-tls-mid-list-caret",
                    ] as &[&str],
                    right_tls as fn(&str) -> Option<String>,
                ),
                (
                    "UCX_NET_DEVICES",
                    "env/ucx-net-devices",
                    &["ucx-netdev-space", "ucx-netdev-nccl-syntax"],
                    right_devices,
                ),
            ] {
                let Some(setting) = worker.setting(name) else {
                    continue;
                };
                if let Some(from) = setting.value.literal()
                    && let Some(to) = right(from)
                {
                    let from = from.to_owned();
                    add(
                        check.into(),
                        causes,
                        &setting.place,
                        Change::Value { name, from, to },
                    );
                }
            }
        }
    }
    found
}

/// A variable that nothing reads, in an env list, where what the container runs can be seen: a program of its own might
/// read anything. One that is mistaken for another is a decision, unless that other one is set as well.
fn is_useless(setting: &Setting, worker: &Worker) -> bool {
    let own_entry = matches!(setting.form, Form::EnvEntry | Form::EnvFlow)
        && matches!(setting.value, Value::Literal(_));
    let seen = worker.has_command
        && worker.engine != Engine::Unknown
        && worker.hidden(Hidden::Command).is_none()
        && worker.hidden(Hidden::Environment).is_none();
    own_entry
        && seen
        && catalogue::is_dead(&setting.name)
        && catalogue::mistaken_for(&setting.name).is_none_or(|n| worker.setting(n).is_some())
        && !worker.overridden.iter().any(|o| o.name == setting.name)
}

/// The name that was meant, where it is a slip of the hand, nothing else is as close, and the worker does not set
/// that name as well.
fn only_name(wrong: &str, worker: &Worker) -> Option<&'static str> {
    let right = known_names::did_you_mean(wrong)?;
    let upper = wrong.trim().to_ascii_uppercase();
    // Names that were made up for another one (`NIXL_SIDE_CHANNEL_HOST`) may mean something else.
    let cost = edit_distance(&upper, right, 3)?;
    let others = catalogue::all()
        .iter()
        .map(|v| v.name)
        .chain(known_names::all().map(|k| k.name))
        .filter(|name| *name != right && edit_distance(&upper, name, cost).is_some());
    if others.take(1).count() > 0 {
        return None;
    }
    let set = worker
        .settings
        .iter()
        .chain(&worker.overridden)
        .any(|s| s.name == right);
    (!set).then_some(right)
}

/// The list without the spaces, quotes and capitals that UCX takes for parts of names. `None` where there are none,
/// or where anything else is wrong with it.
fn right_tls(value: &str) -> Option<String> {
    let bad = ucx_tls::bad_items(value);
    if bad.is_empty() || !ucx_tls::is_allow_list(value) {
        return None;
    }
    let items: Vec<String> = value
        .split(',')
        .map(|item| plain(item).to_ascii_lowercase())
        .collect();
    let right = items.join(",");
    let known = items.iter().all(|item| ucx_tls::is_known(item));
    (known && right != value && ucx_tls::bad_items(&right).is_empty()).then_some(right)
}

/// The list without spaces and quotes around its items.
fn right_devices(value: &str) -> Option<String> {
    let items: Vec<&str> = value.split(',').map(plain).collect();
    let right = items.join(",");
    let good = |item: &ucx_net_devices::Item<'_>| {
        matches!(
            item.kind,
            ItemKind::Port { .. } | ItemKind::BareHca | ItemKind::Netdev
        )
    };
    let clean = ucx_net_devices::classify(&right);
    // An interface among devices may be a device that somebody misspelt.
    let one_kind = clean.iter().all(|i| i.kind == ItemKind::Netdev)
        || clean.iter().all(|i| i.kind != ItemKind::Netdev);
    (right != value
        && !clean.is_empty()
        && clean.len() == items.len()
        && clean.iter().all(good)
        && one_kind
        && effect::effect("UCX_NET_DEVICES", &right).problem.is_none())
    .then_some(right)
}

fn plain(item: &str) -> &str {
    item.trim_matches(|c: char| matches!(c, ' ' | '\t' | '"' | '\''))
}

#[cfg(test)]
mod tests {
    use super::{right_devices, right_tls};

    #[test]
    fn only_certain_lists_are_put_right() {
        for (value, right) in [
            ("rc, cuda_copy", Some("rc,cuda_copy")),
            ("RC,CUDA_COPY", Some("rc,cuda_copy")),
            ("'rc',\"cuda_copy\"", Some("rc,cuda_copy")),
            ("rc,cuda_copy", None),
            ("rc,cuda_cpy", None),
            ("rc, cuda_cpy", None),
            ("rc cuda_copy", None),
            ("^ib, tcp", None),
            ("", None),
        ] {
            assert_eq!(right_tls(value).as_deref(), right, "{value}");
        }
        for (value, right) in [
            ("mlx5_0:1, mlx5_1:1", Some("mlx5_0:1,mlx5_1:1")),
            ("mlx5_0:1,mlx5_1:1", None),
            ("mlx5_0:1 mlx5_1:1", None),
            ("mlx5_0:1, eth0", None),
            ("mlx5_*, mlx5_1:1", None),
            ("mlx5_0:1, all", None),
        ] {
            assert_eq!(right_devices(value).as_deref(), right, "{value}");
        }
    }
}
