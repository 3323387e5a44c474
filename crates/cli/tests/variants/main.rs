//! Machine-made variants of good recipes: what means the same must be judged the same, in whatever form it is
//! written; what does harm must be found, and the finding must point at it.
//!
//! The recipes are those of the corpus beside a checkout that an expert judged ok, and a few of our own, so that
//! a checkout without the corpus tests the same kinds.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    missing_docs,
    unreachable_pub,
    reason = "a test program"
)]

mod edit;
mod fixtures;
mod harm;
mod same;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use model::{Facts, Report, Role, Status, Value};

/// What a variant has to show.
enum Expect {
    Same,
    /// Verdict, readiness and roles as before; the settings differ on purpose.
    SameVerdict,
    /// Worse, with a finding on a line with this text, where there is one.
    Worse(Option<String>),
}

pub struct Variant {
    kind: String,
    what: String,
    text: String,
    expect: Expect,
}

impl Variant {
    pub fn same(kind: &str, what: &str, text: String) -> Self {
        Self {
            kind: kind.to_owned(),
            what: what.to_owned(),
            text,
            expect: Expect::Same,
        }
    }

    pub fn verdict_only(kind: &str, what: &str, text: String) -> Self {
        Self {
            kind: kind.to_owned(),
            what: what.to_owned(),
            text,
            expect: Expect::SameVerdict,
        }
    }

    pub fn worse(kind: &str, what: &str, text: String, marker: Option<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            what: what.to_owned(),
            text,
            expect: Expect::Worse(marker),
        }
    }
}

/// What is compared between a recipe and its variants.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    verdict: &'static str,
    readiness: String,
    roles: BTreeSet<&'static str>,
    settings: BTreeSet<(String, &'static str, String, String)>,
}

fn verdict(report: &Report) -> &'static str {
    let counts = report.counts();
    match (counts.fail, counts.warn) {
        (0, 0) => "ok",
        (0, _) => "warn",
        _ => "fail",
    }
}

fn seen(facts: &Facts, report: &Report) -> Seen {
    let workers = || {
        facts
            .deployments
            .iter()
            .flat_map(model::Deployment::kv_workers)
    };
    Seen {
        verdict: verdict(report),
        readiness: format!("{:?}", report.readiness),
        roles: workers().map(|w| w.role.as_str()).collect(),
        settings: workers()
            .flat_map(|w| {
                w.settings.iter().map(|s| {
                    let value = match &s.value {
                        Value::Literal(text) => text.clone(),
                        Value::Dynamic(_) => "(at start)".to_owned(),
                    };
                    (w.name.clone(), w.role.as_str(), s.name.clone(), value)
                })
            })
            .filter(|(_, _, name, _)| name != "--kv-transfer-config")
            .collect(),
    }
}

fn judge(name: &str, text: &str) -> (Facts, Report) {
    let facts = edit::facts(name, text);
    let report = checks::judge_env(&facts, vec![name.to_owned()]);
    (facts, report)
}

/// Variants that may be judged otherwise, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

#[derive(Default)]
struct Tally {
    made: u32,
    right: u32,
    wrong: Vec<String>,
}

fn variants_of(name: &str, text: &str) -> Vec<Variant> {
    let facts = edit::facts(name, text);
    let stream = edit::parse(text);
    assert!(stream.errors.is_empty(), "{name}");
    let sites = edit::sites(&stream.documents, &facts, text);
    let mut out = Vec::new();
    if sites.is_empty() {
        return out;
    }
    let kv: Vec<_> = facts
        .deployments
        .iter()
        .flat_map(model::Deployment::kv_workers)
        .collect();
    let carriers: Vec<_> = kv.iter().map(|w| harm::carrier(w)).collect();
    let carrier = if carriers.iter().all(|c| *c == carriers[0]) {
        carriers[0]
    } else {
        harm::Carrier::Unknown
    };
    let base = harm::Base {
        text,
        sites: &sites,
        facts: &facts,
        carrier,
        rdma: kv.iter().all(|w| {
            w.resources
                .iter()
                .any(|r| r.name.contains("rdma/") || r.name.contains("/rdma"))
        }),
        efa: kv
            .iter()
            .all(|w| w.resources.iter().any(|r| r.name.ends_with("/efa"))),
        mnnvl: kv
            .iter()
            .all(|w| !w.claims.is_empty() && w.resources.is_empty()),
        single_host: kv
            .iter()
            .all(|w| w.pod().same_host.is_some() && w.resources.is_empty()),
        partial: facts.deployments.iter().any(|d| d.partial.is_some()),
        gateway: facts.deployments.iter().any(|d| &*d.kind == "StormService"),
    };
    same::env_forms(text, &sites, &facts, &mut out);
    same::flag_forms(text, &sites, &mut out);
    same::whole(name, text, &sites, &mut out);
    if matches!(carrier, harm::Carrier::Libfabric | harm::Carrier::Mooncake) {
        same::without_effect(text, &sites, &mut out);
    }
    harm::env_values(&base, &mut out);
    harm::names(&base, &mut out);
    harm::fabric(&base, &mut out);
    harm::connectors(&base, &mut out);
    harm::roles(&base, &mut out);
    out
}

/// Why a variant is judged wrongly; `None` where it is right.
fn wrong(base: &Seen, name: &str, variant: &Variant) -> Option<String> {
    let (facts, report) = judge(name, &variant.text);
    let now = seen(&facts, &report);
    let head = |n: &Seen| format!("{} {} {:?}", n.verdict, n.readiness, n.roles);
    match &variant.expect {
        Expect::Same | Expect::SameVerdict => {
            if (now.verdict, &now.readiness, &now.roles)
                != (base.verdict, &base.readiness, &base.roles)
            {
                let said: Vec<String> = report
                    .results
                    .iter()
                    .filter(|r| matches!(r.status, Status::Warn | Status::Fail))
                    .map(|r| format!("{:?} {}", r.cause, r.detail))
                    .collect();
                return Some(format!(
                    "{} instead of {}: {said:?} {:?}",
                    head(&now),
                    head(base),
                    facts
                        .inputs
                        .iter()
                        .flat_map(|i| &i.problems)
                        .map(|p| &p.detail)
                        .collect::<Vec<_>>()
                ));
            }
            if matches!(variant.expect, Expect::Same) && now.settings != base.settings {
                let lost: Vec<_> = base.settings.difference(&now.settings).take(3).collect();
                let new: Vec<_> = now.settings.difference(&base.settings).take(3).collect();
                return Some(format!("settings: lost {lost:?}, new {new:?}"));
            }
            None
        }
        Expect::Worse(marker) => {
            if now.verdict == "ok" {
                return Some(format!(
                    "still {} {:?}",
                    head(&now),
                    facts
                        .inputs
                        .iter()
                        .flat_map(|i| &i.problems)
                        .map(|p| &p.detail)
                        .collect::<Vec<_>>()
                ));
            }
            let marker = marker.as_ref()?;
            let lines: Vec<&str> = variant.text.lines().collect();
            let near = |line: u32| {
                let line = line as usize;
                // A value stands on its entry's line or on the one behind; a name is pointed at itself.
                let slack = usize::from(!variant.kind.starts_with("misspelt"));
                (line.saturating_sub(slack)..=line).any(|l| {
                    l > 0
                        && lines
                            .get(l - 1)
                            .is_some_and(|t| t.contains(marker.as_str()))
                })
            };
            let points = report
                .results
                .iter()
                .filter(|r| matches!(r.status, Status::Warn | Status::Fail))
                .flat_map(|r| &r.sources)
                .any(|s| near(s.place.line));
            (!points).then(|| {
                let said: Vec<String> = report
                    .results
                    .iter()
                    .filter(|r| matches!(r.status, Status::Warn | Status::Fail))
                    .map(|r| {
                        format!(
                            "{:?} {:?}",
                            r.cause,
                            r.sources.iter().map(|s| s.place.line).collect::<Vec<_>>()
                        )
                    })
                    .collect();
                format!("{} but no finding on '{marker}': {said:?}", now.verdict)
            })
        }
    }
}

fn excused(kind: &str, name: &str) -> bool {
    EXCEPTIONS
        .iter()
        .any(|(k, n, _)| *k == kind && name.contains(n))
}

fn run(recipes: &[(String, String)]) -> BTreeMap<String, Tally> {
    let all = std::thread::scope(|scope| {
        let handles: Vec<_> = recipes
            .iter()
            .map(|(name, text)| scope.spawn(move || run_one(name, text)))
            .collect();
        handles
            .into_iter()
            .map(|h| h.join().unwrap())
            .collect::<Vec<_>>()
    });
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for (kind, tally) in all.into_iter().flatten() {
        let sum = tallies.entry(kind).or_default();
        sum.made += tally.made;
        sum.right += tally.right;
        sum.wrong.extend(tally.wrong);
    }
    tallies
}

fn run_one(name: &str, text: &str) -> BTreeMap<String, Tally> {
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    // To look at one kind, and to keep the variants that are judged wrongly.
    let only = std::env::var("VARIANT_KIND").ok();
    let keep = std::env::var("VARIANT_DIR").ok();
    let (facts, report) = judge(name, text);
    let base = seen(&facts, &report);
    assert_eq!(base.verdict, "ok", "{name}");
    for (n, variant) in variants_of(name, text).iter().enumerate() {
        if only
            .as_ref()
            .is_some_and(|k| !variant.kind.contains(k.as_str()))
            || excused(&variant.kind, name)
        {
            continue;
        }
        let group = match variant.expect {
            Expect::Worse(_) => "worse",
            _ => "same",
        };
        let tally = tallies
            .entry(format!("{group}: {}", variant.kind))
            .or_default();
        tally.made += 1;
        match wrong(&base, name, variant) {
            None => tally.right += 1,
            Some(why) => {
                if let Some(dir) = &keep {
                    let name = name.rsplit("__").next().unwrap();
                    std::fs::write(format!("{dir}/{n}-{name}"), &variant.text).unwrap();
                }
                tally
                    .wrong
                    .push(format!("{n} {name} [{}]: {why}", variant.what));
            }
        }
    }
    tallies
}

fn settle(tallies: &BTreeMap<String, Tally>) {
    let (mut made, mut right) = (0, 0);
    println!("{:<60} {:>6} {:>6}", "kind of variant", "made", "right");
    for (kind, tally) in tallies {
        made += tally.made;
        right += tally.right;
        println!("{kind:<60} {:>6} {:>6}", tally.made, tally.right);
        for wrong in tally.wrong.iter().take(3) {
            println!("      {}", wrong.chars().take(600).collect::<String>());
        }
    }
    println!("{:<60} {made:>6} {right:>6}", "all");
    assert_eq!(made, right, "variants are judged wrongly");
}

/// Recipes of the corpus that an expert judged ok and that move KV cache.
fn corpus() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if !path.is_dir() {
        println!("skipped: no corpus of recipes beside this checkout");
        return Vec::new();
    }
    let table = std::fs::read_to_string(path.join("recipes-expected.tsv")).unwrap();
    table
        .lines()
        .skip(1)
        .map(|l| l.split('\t').collect::<Vec<_>>())
        .filter(|c| c[1].starts_with("disagg") && c[5] == "ok")
        .map(|c| {
            (
                c[0].to_owned(),
                std::fs::read_to_string(path.join("recipes").join(c[0])).unwrap(),
            )
        })
        .filter(|(name, text)| verdict(&judge(name, text).1) == "ok")
        .collect()
}

#[test]
fn variants_of_recipes_of_the_corpus() {
    let recipes = corpus();
    if recipes.is_empty() {
        return;
    }
    let both = recipes
        .iter()
        .filter(|(n, t)| {
            let roles = seen(&edit::facts(n, t), &judge(n, t).1).roles;
            roles.contains(Role::Prefill.as_str()) && roles.contains(Role::Decode.as_str())
        })
        .count();
    assert!(both >= 20, "only {both} recipes with both roles");
    settle(&run(&recipes));
}

#[test]
fn variants_of_own_recipes() {
    settle(&run(&fixtures::all()));
}

/// Each workload in a file of its own, as people keep prefill and decode apart: judged together as before.
#[test]
fn roles_in_two_files() {
    let mut made = 0;
    for (name, text) in fixtures::all() {
        if !name.starts_with("deployments") {
            continue;
        }
        let (facts, report) = judge(&name, &text);
        let base = seen(&facts, &report);
        let (prefill, decode) = text.split_once("---\n").unwrap();
        for reversed in [false, true] {
            let mut drafts = vec![
                recipe::read("kv/prefill.yaml", prefill),
                recipe::read("kv/decode.yaml", decode),
            ];
            if reversed {
                drafts.reverse();
            }
            let facts = recipe::assemble(drafts);
            let report = checks::judge_env(&facts, vec!["kv".to_owned()]);
            assert_eq!(seen(&facts, &report), base, "{name}");
            assert_eq!(facts.deployments.len(), 1, "{name}");
            made += 1;
        }
        // One fabric is dropped in one of the files.
        let without = decode
            .replace("rdma/ib", "example.org/slot")
            .replace("rdma/hca_shared_devices_a", "example.org/slot");
        let facts = recipe::assemble(vec![
            recipe::read("kv/prefill.yaml", prefill),
            recipe::read(
                "kv/decode.yaml",
                &without.replace("privileged: true", "privileged: false"),
            ),
        ]);
        let report = checks::judge_env(&facts, vec!["kv".to_owned()]);
        assert_eq!(verdict(&report), "fail", "{name}");
        made += 1;
    }
    println!("{made} variants in two files");
}
