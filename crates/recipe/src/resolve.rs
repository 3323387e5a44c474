//! From a draft to a worker: precedence of variables, references into ConfigMaps, engine configuration.

use model::{Engine, Form, Hidden, Located, Named, NamedBy, Place, Role, Setting, Value, Worker};

use crate::config_map;
use crate::connector;
use crate::credentials;
use crate::draft::{ConfigEntry, ConfigMapDraft, Draft, EnvDraft, EnvValue, FlagDraft, Run};
use crate::engine;
use crate::expand::{Expanded, Syntax, Variables};
use crate::lmcache;
use crate::possible;
use crate::resources;

/// Flags that name a configuration file, by engine.
pub(crate) const CONFIG_FLAGS: [&str; 5] = [
    "--config",
    "--config-file",
    "--extra-engine-args",
    "--extra-llm-api-options",
    "--engine-config",
];

/// A worker without its final role.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// Apart, since whole lists of these are moved about.
    pub(crate) worker: Box<Worker>,
    /// What the engine itself was told.
    pub(crate) strong: Option<Box<(Role, Place)>>,
    /// It runs an engine, or changes a container that may.
    pub(crate) is_worker: bool,
    /// A connector or backend that moves KV cache between workers is configured.
    pub(crate) moves_kv: bool,
    /// The role by words that count only beside a connector of its own, or of the other half.
    pub(crate) worded: Option<(Role, Option<Place>)>,
    /// Its engine does both where nothing tells it a role.
    pub(crate) whole_by_default: bool,
    pub(crate) frontend: bool,
    pub(crate) object_index: u32,
    pub(crate) declared: Option<Box<(Role, Place)>>,
    pub(crate) hinted: Option<Role>,
    pub(crate) patch: bool,
}

/// The role by field, label or name.
fn named(draft: &Draft) -> Option<Named> {
    let by = |role: Role, by, place: &Place| {
        role.moves_kv().then(|| Named {
            role,
            by,
            place: place.clone(),
        })
    };
    if let Some((role, place)) = &draft.declared {
        return by(*role, NamedBy::Field, place);
    }
    match (&draft.hint_label, draft.hinted) {
        (Some((what, place)), Some(role)) => by(role, *what, place),
        (None, Some(role)) => by(role, NamedBy::Name, &draft.place),
        (_, None) => None,
    }
}

/// Resolves one draft against the ConfigMaps of the same input.
pub(crate) fn resolve(draft: Draft, config_maps: &[ConfigMapDraft]) -> Resolved {
    let mut draft = draft;
    let mut hidden = draft.run.hidden.clone();
    scripts(&mut draft, config_maps, &mut hidden);
    let (variables_list, locals) = variables(&draft, config_maps, &mut hidden);
    // A patch, values of a chart and a configuration that others build upon leave variables to what they change.
    let elsewhere = draft.patch || draft.kind.is_empty() || draft.kind.starts_with("LLMInference");
    let variables = Variables {
        list: &variables_list,
        locals: &locals,
        open: elsewhere
            || hidden
                .iter()
                .any(|(what, _)| matches!(what, Hidden::Environment | Hidden::Secret)),
    };
    let mut settings: Vec<Setting> = Vec::new();
    let mut overridden = Vec::new();
    env_settings(&variables, &mut settings, &mut overridden);
    let possible = possible::values(&variables, &settings);

    let engine = draft.run.engine.or(draft.framework).or_else(|| {
        draft
            .image
            .as_ref()
            .and_then(|i| engine::engine_of_image(&i.value))
    });

    // KServe's own templates run vLLM in the container `main`, unless the manifest names something else.
    let assumed = engine.is_none()
        && !draft.run.frontend
        && !draft.run.tool
        && !hidden.iter().any(|(what, _)| *what == Hidden::Command)
        && draft.kind.starts_with("LLMInferenceService")
        && draft.container == "main";
    let engine = engine.or(assumed.then_some(Engine::Vllm));

    let mut flags = draft.run.flags.clone();
    let from_file = config_files(&draft, &flags, &variables, config_maps, &mut hidden);
    if let Some(why) = from_file
        .iter()
        .find(|f| f.name == model::CONFIG_FAULT)
        .and_then(|f| f.value.as_ref())
    {
        hidden.push((
            Hidden::EngineConfig,
            format!("the engine configuration is {why}"),
        ));
    }
    flags.extend(from_file);
    let mut unknown_names = unknown_names(&variables);
    unknown_names.append(&mut draft.run.misspelt);
    for flag in &flags {
        flag_settings(flag, &variables, &mut settings, &mut unknown_names);
    }
    if let Some(protocol) = mooncake_protocol(&draft, &variables, config_maps) {
        settings.push(protocol);
    }
    settings.extend(lmcache::settings(&draft, &variables, config_maps));
    let uses_cluster_names = cluster_names(&variables, &flags);
    let is_engine = engine.is_some();
    let moves_kv = moves_kv(&settings) && !is_idle_sglang(&settings, engine);
    let worded = draft.worded.take();
    if moves_kv && draft.declared.is_none() && draft.hinted.is_none() {
        call_by(worded.as_ref(), &mut draft.hinted, &mut draft.hint_label);
    }
    let named = named(&draft);
    let strong = strong_role(&settings, engine.unwrap_or(Engine::Unknown), named.as_ref());
    // A TensorRT-LLM worker of Dynamo serves whole requests unless it is told a mode; its configuration file often names a
    // transceiver all the same.
    let whole_by_default = engine == Some(Engine::Trtllm)
        && (draft.run.by_dynamo || draft.kind.starts_with("Dynamo"))
        && !hidden.iter().any(|(what, _)| *what == Hidden::Command);
    // A job that starts an engine under the name of a role serves like any other workload.
    let serves_a_role = draft.run.engine.is_some()
        && draft
            .declared
            .as_ref()
            .map(|(role, _)| *role)
            .or(draft.hinted)
            .is_some_and(Role::moves_kv);
    let job_without_role = draft.job && strong.is_none() && !moves_kv && !serves_a_role;
    let is_worker = !draft.run.frontend
        && !draft.run.tool
        && !job_without_role
        && (is_engine || draft.accelerators.is_some() || draft.patch);
    // A count without a kind is of the usual one, unless the image is for another.
    let accelerator = draft
        .accelerator
        .or_else(|| {
            let image = draft.image.as_ref()?;
            resources::accelerator_of_image(&image.value)
        })
        .or_else(|| draft.accelerators.map(|_| model::Accelerator::Nvidia));
    let worker = Box::new(Worker {
        name: draft.name,
        container: draft.container,
        kind: draft.kind,
        role: Role::Other,
        role_place: None,
        named: named.map(Box::new),
        place: if is_worker || draft.run.frontend {
            draft.place
        } else {
            draft.place.without_text()
        },
        engine: engine.unwrap_or(Engine::Unknown),
        engine_is_assumed: assumed,
        // A file can hold a hundred thousand containers without an engine; of them nobody asks for an image.
        image: draft
            .image
            .filter(|_| is_worker || draft.run.frontend)
            .map(Box::new),
        settings,
        possible,
        overridden,
        unknown_names,
        resources: draft.resources,
        accelerators: draft.accelerators,
        accelerator,
        claims: draft.claims,
        privileged: draft.privileged,
        capabilities: draft.capabilities,
        run_as_user: draft.run_as_user.map(Box::new),
        host_network: draft.host_network,
        host_ipc: draft.host_ipc,
        host_pid: draft.host_pid,
        host_paths: draft.host_paths,
        annotations: draft.annotations,
        nodes: draft.nodes,
        replicas: draft.replicas,
        has_command: draft.run.given,
        hidden,
        pod: draft.pod.boxed(),
        part: draft.part,
        starts_mpirun: draft.run.mpirun,
        by_dynamo: draft.run.by_dynamo,
        command_fault: draft.run.fault.map(Box::new),
        uses_cluster_names: uses_cluster_names.map(Box::new),
    });
    Resolved {
        worker,
        strong: strong.map(Box::new),
        is_worker,
        moves_kv,
        worded,
        whole_by_default,
        frontend: draft.run.frontend,
        object_index: draft.object_index,
        declared: draft.declared.map(Box::new),
        hinted: draft.hinted,
        patch: draft.patch,
    }
}

/// Takes the role that words beside a connector say.
fn call_by(
    worded: Option<&(Role, Option<Place>)>,
    hinted: &mut Option<Role>,
    label: &mut Option<(NamedBy, Place)>,
) {
    if let Some((role, place)) = worded {
        *hinted = Some(*role);
        *label = place.clone().map(|p| (NamedBy::Label, p));
    }
}

impl Resolved {
    /// Takes the role that its words say, since the other half has a connector.
    pub(crate) fn name_by_words(&mut self) {
        if self.declared.is_some() || self.hinted.is_some() {
            return;
        }
        let mut label = None;
        call_by(self.worded.as_ref(), &mut self.hinted, &mut label);
        if let Some(role) = self.hinted {
            let (by, place) = label.unwrap_or((NamedBy::Name, self.worker.place.clone()));
            self.worker.named = Some(Box::new(Named { role, by, place }));
        }
    }
}

/// SGLang with a transfer backend and without a mode serves whole requests.
pub(crate) fn is_idle_sglang(settings: &[Setting], engine: Option<Engine>) -> bool {
    engine == Some(Engine::Sglang) && !settings.iter().any(|s| s.name == "--disaggregation-mode")
}

/// Scripts that the command runs or sources: out of mounted ConfigMaps and files that the pod itself wrote.
fn scripts(draft: &mut Draft, config_maps: &[ConfigMapDraft], hidden: &mut Vec<(Hidden, String)>) {
    for path in std::mem::take(&mut draft.run.sources) {
        let written = draft
            .run
            .writes
            .iter()
            .chain(&draft.written)
            .filter(|(p, _)| *p == path);
        let exports: Vec<EnvDraft> = written.flat_map(|(_, e)| e.iter().cloned()).collect();
        if !exports.is_empty() {
            // What the script exports after the line that sources the file wins, which is rare; what stands
            // before it is replaced.
            draft.run.exports.extend(exports);
        } else if let Some(script) = mounted(draft, &path, config_maps).and_then(script_of) {
            draft.run.exports.extend(script.exports);
        } else {
            hidden.push((
                Hidden::Environment,
                format!(
                    "the start script sources {}, which is not in the input",
                    credentials::path(&path, "something")
                ),
            ));
        }
    }
    for path in std::mem::take(&mut draft.run.runs) {
        let script = mounted(draft, &path, config_maps).and_then(script_of);
        match script {
            Some(script) if draft.run.engine.is_none() => {
                draft.run.engine = script.engine;
                draft.run.by_dynamo = script.by_dynamo;
                draft.run.frontend |= script.frontend;
                draft.run.tool |= script.tool;
                draft.run.mpirun |= script.mpirun;
                draft.run.flags.extend(script.flags);
                draft.run.misspelt.extend(script.misspelt);
                draft.run.exports.extend(script.exports);
                draft.run.assigned.extend(script.assigned);
                hidden.extend(script.hidden);
            }
            Some(_) => {}
            None => hidden.push((
                Hidden::Command,
                format!(
                    "the start command runs {}, which is not in the input",
                    credentials::path(&path, "a program of its own")
                ),
            )),
        }
    }
    if draft.run.engine.is_some() {
        hidden
            .retain(|(h, why)| *h != Hidden::Command || !why.starts_with("the start command runs"));
    }
}

fn script_of(entry: &ConfigEntry) -> Option<Run> {
    entry.details.as_ref()?.script.clone()
}

/// The ConfigMap entry that is mounted at a path.
pub(crate) fn mounted<'m>(
    draft: &Draft,
    path: &str,
    config_maps: &'m [ConfigMapDraft],
) -> Option<&'m ConfigEntry> {
    let mount = draft
        .mounts
        .iter()
        .filter(|m| path.starts_with(m.path.trim_end_matches('/')))
        .max_by_key(|m| m.path.len())?;
    let base = path.rsplit('/').next().unwrap_or_default();
    let map = config_maps.iter().find(|m| m.name == mount.config_map)?;
    map.entries.iter().find(|e| e.key == base)
}

/// All definitions of variables, lowest precedence first: ConfigMaps by `envFrom`, the env lists, the script. Then
/// those of the script that no process inherits.
fn variables(
    draft: &Draft,
    config_maps: &[ConfigMapDraft],
    hidden: &mut Vec<(Hidden, String)>,
) -> (Vec<EnvDraft>, Vec<EnvDraft>) {
    let mut list = Vec::new();
    for from in &draft.env_from {
        if let Some(secret) = &from.secret {
            hidden.push((
                Hidden::Secret,
                format!("envFrom of Secret {secret}, whose values are not read"),
            ));
        }
        let Some(name) = &from.config_map else {
            continue;
        };
        let Some(map) = config_maps.iter().find(|m| m.name == *name) else {
            hidden.push((
                Hidden::Environment,
                format!("envFrom of ConfigMap {name}, which is not in the input"),
            ));
            continue;
        };
        for entry in &map.entries {
            list.push(EnvDraft {
                name: format!("{}{}", from.prefix, entry.key),
                value: EnvValue::Literal(entry.value.clone()),
                form: Form::EnvFrom,
                place: entry.place(&map.file),
                json: entry.json(),
            });
        }
    }
    for env in &draft.env {
        let mut env = env.clone();
        if let EnvValue::ConfigMapKey { map, key } = &env.value {
            let entry = config_maps
                .iter()
                .find(|m| m.name == *map)
                .and_then(|m| Some((m, m.entries.iter().find(|e| e.key == *key)?)));
            if let Some((map, entry)) = entry {
                env.place = entry.place(&map.file);
                env.json = entry.json();
                env.value = EnvValue::Literal(entry.value.clone());
                env.form = Form::ConfigMap;
            } else {
                env.form = Form::Reference;
            }
        } else if matches!(env.value, EnvValue::Dynamic(_)) {
            env.form = Form::Reference;
        }
        list.push(env);
    }
    let in_pod: Vec<String> = list.iter().map(|e| e.name.clone()).collect();
    // What a script assigns to stays exported where the pod has the variable already.
    let (inherited, locals): (Vec<EnvDraft>, Vec<EnvDraft>) = draft
        .run
        .assigned
        .iter()
        .cloned()
        .partition(|e| in_pod.contains(&e.name));
    list.extend(inherited);
    list.extend(draft.run.exports.iter().cloned());
    (list, locals)
}

fn env_settings(
    variables: &Variables<'_>,
    settings: &mut Vec<Setting>,
    overridden: &mut Vec<Setting>,
) {
    for (index, env) in variables.list.iter().enumerate() {
        if !crate::allow::is_shown(&env.name) {
            continue;
        }
        let value = match variables.value(env, 0) {
            Expanded::Known(text) => Value::Literal(credentials::masked(&text).into_owned()),
            Expanded::Unknown(why) => Value::Dynamic(why),
            Expanded::Unset => continue,
        };
        let setting = Setting {
            name: env.name.clone(),
            value,
            form: env.form,
            place: env.place.clone(),
        };
        let later = variables.list.get(index + 1..).unwrap_or_default();
        if later.iter().any(|e| e.name == env.name) {
            overridden.push(setting);
        } else {
            settings.push(setting);
        }
    }
}

/// Names of transport families that are in no table, and names that are one slip away from a family.
fn unknown_names(variables: &Variables<'_>) -> Vec<Located<String>> {
    let mut found: Vec<Located<String>> = Vec::new();
    for env in variables.list {
        let name = env.name.as_str();
        // What a name was meant to be is for the check to say; only names that it can say it of are kept.
        if settings::known_names::did_you_mean(name).is_some()
            && !crate::allow::is_shown(name)
            && !found.iter().any(|f| f.value == name)
        {
            found.push(Located {
                value: name.to_owned(),
                place: env.place.clone(),
            });
        }
    }
    found
}

/// Where a variable or flag names a service of the cluster: `….svc`, or a leader's name by its controller.
fn cluster_names(variables: &Variables<'_>, flags: &[FlagDraft]) -> Option<Place> {
    // `etcd.infra.svc:2379`, `nats.infra.svc.cluster.local`.
    let service = |text: &str| {
        text.match_indices(".svc").any(|(at, found)| {
            text.get(at + found.len()..).is_none_or(|rest| {
                rest.is_empty() || rest.starts_with([':', '/', '.', ',', '"', ' '])
            })
        })
    };
    let names = |text: &str| {
        service(text)
            || text.contains("LWS_LEADER_ADDRESS")
            || text.contains("GROVE_HEADLESS_SERVICE")
    };
    let of_env = variables.list.iter().find(
        |e| matches!(&e.value, EnvValue::Literal(text) | EnvValue::Shell(text) if names(text)),
    );
    of_env.map(|e| e.place.clone()).or_else(|| {
        flags
            .iter()
            .find(|f| f.value.as_deref().is_some_and(names))
            .map(|f| f.place.clone())
    })
}

/// `protocol` of the file that MOONCAKE_CONFIG_PATH names, where a ConfigMap of the input holds it.
fn mooncake_protocol(
    draft: &Draft,
    variables: &Variables<'_>,
    config_maps: &[ConfigMapDraft],
) -> Option<Setting> {
    let env = variables.find("MOONCAKE_CONFIG_PATH")?;
    let Expanded::Known(path) = variables.value(env, 0) else {
        return None;
    };
    let entry = mounted(draft, &path, config_maps)?;
    let json: serde_json::Value = serde_json::from_str(entry.value.trim()).ok()?;
    let protocol = json.get("protocol")?.as_str()?;
    Some(Setting {
        name: "mooncake.protocol".into(),
        value: Value::Literal(protocol.to_owned()),
        form: Form::EngineConfig,
        place: env.place.clone(),
    })
}

/// Flags out of the configuration files that the command names.
fn config_files(
    draft: &Draft,
    flags: &[FlagDraft],
    variables: &Variables<'_>,
    config_maps: &[ConfigMapDraft],
    hidden: &mut Vec<(Hidden, String)>,
) -> Vec<FlagDraft> {
    let mut found: Vec<FlagDraft> = Vec::new();
    for flag in flags
        .iter()
        .filter(|f| CONFIG_FLAGS.contains(&f.name.as_str()))
    {
        let Some(value) = &flag.value else { continue };
        let syntax = if flag.expands {
            Syntax::Shell
        } else {
            Syntax::Kubernetes
        };
        let path = match variables.expand(value, syntax, None, 0) {
            Expanded::Known(path) => path,
            Expanded::Unknown(why) => {
                hidden.push((Hidden::EngineConfig, format!("{} is {why}", flag.name)));
                continue;
            }
            Expanded::Unset => continue,
        };
        if path.trim_start().starts_with('{') {
            found.extend(inline_config(&path, flag));
            continue;
        }
        let mount = draft
            .mounts
            .iter()
            .filter(|m| path.starts_with(&m.path))
            .max_by_key(|m| m.path.len());
        let base = path.rsplit('/').next().unwrap_or_default();
        let entry = mount
            .and_then(|m| config_maps.iter().find(|c| c.name == m.config_map))
            .and_then(|c| {
                let entry =
                    c.entries
                        .iter()
                        .find(|e| e.key == base)
                        .or(if c.entries.len() == 1 {
                            c.entries.first()
                        } else {
                            None
                        })?;
                Some((entry, &c.file))
            });
        match entry {
            Some((entry, file)) => {
                found.extend(config_map::unreadable(entry, file));
                let given: Vec<&str> = flags.iter().map(|f| f.name.as_str()).collect();
                let config = entry.details.as_ref().and_then(|d| d.config.as_ref());
                found.extend(
                    config
                        .into_iter()
                        .flatten()
                        .filter(|f| !given.contains(&f.name.as_str()))
                        .cloned(),
                );
            }
            None => hidden.push((
                Hidden::EngineConfig,
                format!(
                    "engine configuration {} is not in the input",
                    credentials::path(&path, "that is no plain path")
                ),
            )),
        }
    }
    for flag in flags.iter().filter(|f| f.name == "--override-engine-args") {
        if let Some(json) = &flag.value {
            found.extend(inline_config(json, flag));
        }
    }
    found
}

/// TensorRT-LLM takes its configuration as JSON in a flag as well.
pub(crate) fn inline_config(json: &str, flag: &FlagDraft) -> Vec<FlagDraft> {
    let fault = |why: String| config_map::fault(why, flag.place.clone());
    let Ok(value) = serde_json::from_str::<serde_json::Value>(json.trim()) else {
        // Braces of a template and names of variables are no JSON until they are filled in.
        let open = json.contains("{{") || json.contains('$') || json.trim().is_empty();
        let why = format!("not valid JSON: {}", connector::not_json(json));
        return if open { Vec::new() } else { vec![fault(why)] };
    };
    let mut found = Vec::new();
    for (section, key) in [
        ("cache_transceiver_config", "backend"),
        ("kv_cache_config", "dtype"),
        ("kv_cache_config", "tokens_per_block"),
    ] {
        let Some(section_value) = value.get(section).filter(|s| !s.is_null()) else {
            continue;
        };
        if !section_value.is_object() {
            found.push(fault(format!(
                "{section}: expected a mapping, with {key} in it"
            )));
            break;
        }
        let text = section_value.get(key).and_then(|v| match v {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Number(number) => Some(number.to_string()),
            _ => None,
        });
        if let Some(text) = text {
            found.push(FlagDraft {
                name: format!("{section}.{key}"),
                value: Some(text),
                form: Form::EngineConfig,
                ..flag.clone()
            });
        }
    }
    found
}

pub(crate) fn flag_settings(
    flag: &FlagDraft,
    variables: &Variables<'_>,
    settings: &mut Vec<Setting>,
    unknown_names: &mut Vec<Located<String>>,
) {
    let raw = flag.value.clone().unwrap_or_default();
    let syntax = if flag.expands {
        Syntax::Shell
    } else {
        Syntax::Kubernetes
    };
    let expanded = if flag.form == Form::EngineConfig {
        Expanded::Known(raw.clone())
    } else {
        variables.expand(&raw, syntax, None, 0)
    };
    if flag.name == "--kv-transfer-config" {
        // Where the JSON stands in a variable, its lines are the ones to show.
        let source = raw
            .contains('$')
            .then(|| referenced(&raw))
            .flatten()
            .and_then(|name| variables.find(name));
        let (places, place, form) = match source {
            Some(env) => (&env.json, &env.place, env.form),
            None => (&flag.json, &flag.place, flag.form),
        };
        match expanded {
            Expanded::Known(json) => match connector::settings(&json, places, place, form) {
                Some(found) => {
                    settings.extend(found);
                    unknown_names.extend(connector::misspelt(&json, places, place));
                }
                // `${X}` and `{{ x }}` are filled in before the manifest is applied.
                None if json.contains('$') || json.contains("{{") => settings.push(Setting {
                    name: flag.name.clone(),
                    value: Value::Dynamic("filled in by a template".into()),
                    form,
                    place: place.clone(),
                }),
                None => {
                    settings.push(Setting {
                        name: flag.name.clone(),
                        value: Value::Dynamic(format!(
                            "{}: {}",
                            model::NOT_JSON,
                            connector::not_json(&json)
                        )),
                        form,
                        place: place.clone(),
                    });
                    settings.extend(connector::role_in_text(&json).map(|role| Setting {
                        name: "kv_role".to_owned(),
                        value: Value::Literal(role.to_owned()),
                        form,
                        place: place.clone(),
                    }));
                }
            },
            Expanded::Unknown(why) => settings.push(Setting {
                name: flag.name.clone(),
                value: Value::Dynamic(why),
                form,
                place: place.clone(),
            }),
            Expanded::Unset => {}
        }
        return;
    }
    let value = match expanded {
        Expanded::Known(text) => credentials::of_flag(&text),
        Expanded::Unknown(why) => Value::Dynamic(why),
        Expanded::Unset => return,
    };
    settings.push(Setting {
        name: flag.name.clone(),
        value,
        form: flag.form,
        place: flag.place.clone(),
    });
}

/// The name in a text that is nothing but one reference.
fn referenced(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix('$')?;
    let inner = inner
        .strip_prefix(['{', '('])
        .map_or(inner, |i| i.trim_end_matches(['}', ')']));
    (!inner.is_empty()
        && inner
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_'))
    .then_some(inner)
}

/// The role that the engine was told.
pub(crate) fn strong_role(
    settings: &[Setting],
    engine: Engine,
    named: Option<&Named>,
) -> Option<(Role, Place)> {
    // A flag wins over its variable, which only Dynamo's own engines read.
    for (name, reader) in [
        ("--disaggregation-mode", None),
        ("--server-role", None),
        (model::VLLM_MODE, Some(Engine::Vllm)),
        (model::TRTLLM_MODE, Some(Engine::Trtllm)),
    ] {
        if reader.is_none_or(|r| r == engine)
            && let Some(setting) = settings.iter().find(|s| s.name == name)
            && let Some(role) = setting.value.literal().and_then(engine::role_of_mode)
        {
            return Some((role, setting.place.clone()));
        }
    }
    for (name, role) in [
        ("--is-prefill-worker", Role::Prefill),
        ("--is-decode-worker", Role::Decode),
        ("DYN_VLLM_IS_PREFILL_WORKER", Role::Prefill),
        ("DYN_VLLM_IS_DECODE_WORKER", Role::Decode),
    ] {
        let is_variable = !name.starts_with('-');
        let on = |s: &&Setting| {
            s.name == name
                && (!is_variable
                    || (engine == Engine::Vllm && s.value.literal().is_some_and(engine::is_on)))
        };
        if let Some(setting) = settings.iter().find(on) {
            return Some((role, setting.place.clone()));
        }
    }
    if let Some(found) = lmcache::role(settings) {
        return Some(found);
    }
    // A P/D connector with one direction; `kv_both` says nothing. LMCache and others use the same words.
    let setting = settings.iter().find(|s| s.name == "kv_role")?;
    let role = match setting.value.literal()? {
        "kv_producer" => Role::Prefill,
        "kv_consumer" => Role::Decode,
        _ => return None,
    };
    // NIXL does not look at it, so that a name tells more.
    let obeys = settings
        .iter()
        .filter(|s| s.name == "kv_connector")
        .filter_map(|s| settings::connectors::lookup(s.value.literal()?))
        .find(|c| settings::connectors::moves_kv(c.name))
        .is_none_or(|c| c.obeys_role);
    if !obeys && named.is_some_and(|n| n.role != role) {
        return None;
    }
    Some((role, setting.place.clone()))
}

/// Whether a connector that carries KV cache between workers is configured.
pub(crate) fn moves_kv(settings: &[Setting]) -> bool {
    settings.iter().any(|s| match s.name.as_str() {
        "kv_connector" => s
            .value
            .literal()
            .is_some_and(settings::connectors::moves_kv),
        // The last stands for a value that cannot be read; it is there all the same.
        "--disaggregation-transfer-backend"
        | "cache_transceiver_config.backend"
        | "--kv-transfer-config" => true,
        _ => lmcache::moves_kv(s),
    })
}
