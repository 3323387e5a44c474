//! Named values of logs.

use model::observation::log::{Event, Lane, LaneLine, ProtocolTable, Scope, Severity, TableLayout};
use serde_json::{Map, Value, json};

use super::Read;

fn lane(lane: &Lane) -> String {
    format!("{}/{}", lane.transport, lane.device)
}

fn scope(scope: &Scope) -> &'static str {
    match scope {
        Scope::SelfEndpoint => "self",
        Scope::IntraNode => "intra-node",
        Scope::InterNode => "inter-node",
        Scope::Unknown => "unknown",
    }
}

fn lanes_of(line: &LaneLine, name: &str) -> Vec<String> {
    line.uses
        .iter()
        .find(|(n, _)| n == name)
        .map(|(_, lanes)| lanes.iter().map(lane).collect())
        .unwrap_or_default()
}

fn memory(table: &ProtocolTable) -> String {
    format!(
        "{}>{}",
        table.from_memory.as_deref().unwrap_or("?"),
        table.to_memory.as_deref().unwrap_or("?")
    )
}

/// `[0]eth0:10.0.0.1<0> [1]…`, without numbers and ends.
fn interfaces(text: &str) -> Vec<String> {
    text.split('[')
        .skip(1)
        .filter_map(|part| part.split_once(']')?.1.split('<').next())
        .map(|s| s.trim().to_owned())
        .collect()
}

pub(crate) fn project(tool: &str, key: &str, form: &Value, read: &Read) -> Option<Value> {
    match tool {
        "nccl-log" => nccl(key, read),
        "gloo-log" => gloo(key, read),
        "nixl-log" => nixl(key, read),
        _ => ucx(key, form, read),
    }
}

fn first<'a>(read: &'a Read, pattern: &'a str) -> Option<&'a Event> {
    read.seen.log.of(pattern).next()
}

fn field(read: &Read, pattern: &str, name: &str) -> Option<String> {
    first(read, pattern)?.field(name).map(str::to_owned)
}

fn number(read: &Read, pattern: &str, name: &str) -> Option<Value> {
    Some(json!(field(read, pattern, name)?.parse::<u64>().ok()?))
}

fn ucx(key: &str, form: &Value, read: &Read) -> Option<Value> {
    let log = &read.seen.log;
    // The whole table, where one begins before the text.
    let table = log.tables.iter().find(|t| !t.title.is_empty());
    let line = log.lanes.first();
    Some(match key {
        "version" => json!(read.seen.software.ucx.first()?.version.as_ref()?),
        "lib" => json!(read.seen.software.ucx.first()?.library.as_ref()?),
        "env" => Value::Object(
            form.as_object()?
                .keys()
                .map(|name| {
                    let fact = read.seen.process.environment.get(name);
                    (name.clone(), json!(fact.and_then(|f| f.value())))
                })
                .collect(),
        ),
        "cfg" if form.is_object() => {
            let mut map = Map::new();
            for line in &log.lanes {
                let (name, lanes) = line.uses.first()?;
                let lanes: Vec<String> = lanes.iter().map(lane).collect();
                map.insert(
                    format!("{}#{}", scope(&line.scope), line.config?),
                    json!(format!("{name}({})", lanes.join(" "))),
                );
            }
            Value::Object(map)
        }
        "cfg" => match (table, line) {
            (Some(table), _) => json!(table.title),
            (None, Some(line)) => json!(format!("{} {} cfg#{}", line.context, scope(&line.scope), line.config?)),
            _ => return None,
        },
        "cfgs" => json!(
            log.lanes
                .iter()
                .flat_map(|line| {
                    line.uses.iter().map(move |(name, lanes)| {
                        json!([scope(&line.scope), format!("cfg#{}", line.config.unwrap()), name,
                            lanes.iter().map(lane).collect::<Vec<_>>()])
                    })
                })
                .collect::<Vec<_>>()
        ),
        "rma" => json!(log.lanes.iter().any(|l| l.uses.iter().any(|(n, _)| n == "rma"))),
        "rma_am" | "amo_am" | "am" | "ka" => json!(lanes_of(line?, key)),
        "rdma" => json!(
            line?
                .uses
                .iter()
                .flat_map(|(_, lanes)| lanes)
                .filter(|l| ["rc", "dc", "ud", "srd"].iter().any(|p| l.transport.starts_with(p)))
                .map(lane)
                .collect::<Vec<_>>()
        ),
        "table" => json!(
            log.tables
                .iter()
                .map(|t| {
                    let row = &t.rows[0];
                    assert_eq!(t.layout, TableLayout::New);
                    json!({"peer": format!("{}#{}", scope(&t.scope), t.config.unwrap()), "op": t.operation,
                        "mem": memory(t), "range": format!("{}..{}", row.range.0, row.range.1),
                        "how": row.how, "on": row.lanes.iter().map(lane).collect::<Vec<_>>()})
                })
                .collect::<Vec<_>>()
        ),
        "op" if table.is_some() => json!(table?.operation),
        "mem" if table.is_some() => json!(memory(table?)),
        "rows" => json!(
            table?
                .rows
                .iter()
                .map(|r| {
                    let config = r.config.replace(" on ", " ").replace(" and ", " ");
                    json!([format!("{}..{}", r.range.0, r.range.1), r.how, config])
                })
                .collect::<Vec<_>>()
        ),
        "layout" => json!(if table?.layout == TableLayout::Old { "old" } else { "new" }),
        "cut" => json!(log.tables.iter().any(|t| t.cut)),
        "dev" => json!(
            field(read, "ucx-retry-exceeded", "port").or_else(|| field(read, "ucx-dmabuf-not-supported", "device"))?
        ),
        "link" => json!(field(read, "ucx-retry-exceeded", "link")?),
        "synd" => json!(field(read, "ucx-retry-exceeded", "syndrome")?),
        "vendor" => json!(field(read, "ucx-retry-exceeded", "vendor")?),
        "transport" => {
            let short = field(read, "ucx-queue-pair", "transport")?;
            assert_eq!(short, "DCI");
            json!("DC (DCI QP)")
        }
        "op" => json!(field(read, "ucx-queue-pair", "op")?),
        "sgid_index" | "traffic_class" => number(read, "ucx-queue-pair", key)?,
        "dgid" => json!(field(read, "ucx-queue-pair", "dgid")?),
        "cuda_gpudirect" | "rocm_gpudirect" => {
            let memory = key.split('_').next()?;
            json!(!log.of("ucx-gpudirect-disabled").any(|e| e.field("memory") == Some(memory)))
        }
        "nic_dmabuf" => json!(first(read, "ucx-dmabuf-not-supported").is_none()),
        "dmabuf_error" => json!(field(read, "ucx-dmabuf-not-supported", "error")?),
        "lines" => json!(log.events.iter().map(|e| e.count).sum::<u32>()),
        "pids" => {
            let mut pids: Vec<u32> = log.events.iter().filter_map(|e| e.process.pid).collect();
            pids.sort_unstable();
            json!(pids)
        }
        "warn" | "error" if form.is_number() => {
            let severity = if key == "warn" { Severity::Warn } else { Severity::Error };
            json!(log.events.iter().filter(|e| e.severity == Some(severity)).count())
        }
        "offered_tls" => json!(field(read, "ucx-transport-not-available", "offered")?),
        "offered_dev" => {
            let offered = field(read, "ucx-device-not-available", "offered")?;
            json!(offered.replace('\'', "").split(", ").collect::<Vec<_>>())
        }
        "unused" => json!(log.of("ucx-unused-variable").filter_map(|e| e.field("names")).collect::<Vec<_>>()),
        "missing_dev" => json!(log.of("ucx-device-not-available").filter_map(|e| e.field("names")).collect::<Vec<_>>()),
        "asked" => json!(field(read, "ucx-no-usable-transport", "asked")?),
        "call" => {
            first(read, "ucx-dmabuf-registration-failed")?;
            json!("ibv_reg_dmabuf_mr")
        }
        "errno" => number(read, "ucx-dmabuf-registration-failed", "errno")?,
        "length" | "dmabuf_fd" | "md_index" => number(read, "ucx-registration-failed", key)?,
        "mem" => json!(field(read, "ucx-registration-failed", "memory")?),
        "md" | "error" => json!(field(read, "ucx-registration-failed", key)?),
        _ => return None,
    })
}

fn nccl(key: &str, read: &Read) -> Option<Value> {
    let log = &read.seen.log;
    Some(match key {
        "ib_disable" => json!(
            read.seen
                .process
                .environment
                .get("NCCL_IB_DISABLE")?
                .value()?
                .parse::<u32>()
                .ok()?
        ),
        "open_failed" => json!(
            log.of("nccl-device-not-opened")
                .filter_map(|e| e.field("device"))
                .collect::<Vec<_>>()
        ),
        "ib_devices" => json!(u32::from(first(read, "nccl-no-ib-device").is_none())),
        "socket" => json!(interfaces(&field(read, "nccl-socket", "interfaces")?)),
        "network" => json!(log.of("nccl-network").last()?.field("network")?),
        "plugin" => json!(field(read, "nccl-plugin", "plugin")?),
        "plugin_path" => json!(field(read, "nccl-plugin-path", "path")?),
        "hcas" => {
            let text = field(read, "nccl-ib", "devices")?;
            let (devices, _) = text.split_once("[RO]")?;
            json!(
                interfaces(devices)
                    .iter()
                    .map(|d| {
                        let (name, rest) = d.split_once(':').unwrap();
                        let (port, link) = rest.split_once('/').unwrap();
                        json!([name, port.parse::<u32>().unwrap(), link])
                    })
                    .collect::<Vec<_>>()
            )
        }
        "relaxed_ordering" => json!(field(read, "nccl-ib", "devices")?.contains("[RO]")),
        "oob" => {
            let text = field(read, "nccl-ib", "devices")?;
            json!(text.split_once("OOB ")?.1.split('<').next()?)
        }
        _ => return None,
    })
}

fn gloo(key: &str, read: &Read) -> Option<Value> {
    Some(match key {
        "rank" => json!(first(read, "gloo-loopback")?.process.rank?),
        "loopback" => json!(first(read, "gloo-loopback").is_some()),
        "remote" => json!(format!(
            "{}:{}",
            field(read, "gloo-connect-failed", "host")?,
            field(read, "gloo-connect-failed", "port")?
        )),
        "error" => {
            let detail = field(read, "gloo-connect-failed", "detail")?;
            assert!(detail.contains("timed out"));
            json!(format!(
                "connectFullMesh timed out: {}",
                detail.rsplit(": ").next()?
            ))
        }
        "ifname" => json!(field(read, "gloo-no-address", "interface")?),
        "second_error" => json!(format!(
            "Unable to find address for: {}",
            field(read, "gloo-no-address", "interface")?
        )),
        _ => return None,
    })
}

fn nixl(key: &str, read: &Read) -> Option<Value> {
    Some(match key {
        "missing_key" => json!(field(read, "nixl-rail-tag", "key")?),
        "length" => json!(
            field(read, "nixl-rail-key", "length")?
                .parse::<i64>()
                .ok()?
        ),
        "stage" => json!(format!(
            "deserialize {}",
            field(read, "nixl-rail-endpoints", "what")?
        )),
        "nixl_error" => json!(field(read, "nixl-error", "code")?),
        _ => return None,
    })
}
