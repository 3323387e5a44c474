//! Named values of the other tools.

use model::observation::modules::Presence;
use model::observation::pci::PciDevice;
use serde_json::{Value, json};

use super::Read;

pub(crate) fn project(tool: &str, key: &str, form: &Value, read: &Read) -> Option<Value> {
    match tool {
        "lsmod" => lsmod(key, read),
        "ucx_info" => ucx_info(key, form, read),
        "fi_info" => fi_info(key, read),
        "lspci" => lspci(key, read),
        _ => match key {
            "bytes" => {
                assert_eq!(
                    read.seen.unrecognised[0].why,
                    model::observation::NotRead::Empty
                );
                Some(json!(read.bytes))
            }
            _ => None,
        },
    }
}

fn lsmod(key: &str, read: &Read) -> Option<Value> {
    let modules = &read.seen.modules;
    Some(match key {
        "nvidia_peermem_use" => json!(modules.modules.get("nvidia_peermem")?.use_count.value()?),
        "gdrdrv_seen_in" => json!(if modules.modules.get("gdrdrv")?.only_in_used_by.value()
            == Some(&true)
        {
            "used-by"
        } else {
            "list"
        }),
        "filtered_by_grep" => json!(!modules.listings.first()?.whole),
        name => json!(match modules.presence(name) {
            Presence::Loaded => true,
            Presence::Absent => false,
            Presence::Unknown => return None,
        }),
    })
}

fn ucx_info(key: &str, form: &Value, read: &Read) -> Option<Value> {
    let build = read.seen.software.ucx.first();
    let resources = read.seen.software.ucx_resources.first();
    let rdma = |name: &str| {
        ["rc", "dc", "ud", "srd"]
            .iter()
            .any(|p| name.starts_with(p))
    };
    Some(match key {
        "version" => json!(build?.version.as_ref()?),
        "api" => json!(build?.api_version.as_ref()?),
        "revision" => json!(build?.revision.as_ref()?),
        "library" => json!(build?.library.as_ref()?),
        "with_verbs" | "with_rdmacm" | "with_cuda" => {
            json!(build?.with(key.trim_start_matches("with_"))?)
        }
        "mt" => json!(build?.with("mt")?),
        "transports" => {
            let all = &resources?.transports;
            match form.get(0)? {
                Value::Array(columns) => json!(
                    all.iter()
                        .map(|t| {
                            let mut row = vec![json!(t.name), json!(t.device), json!(t.device_type)];
                            row.truncate(columns.len());
                            row
                        })
                        .collect::<Vec<_>>()
                ),
                _ => {
                    let mut names: Vec<&String> = Vec::new();
                    for t in all {
                        if !names.contains(&&t.name) {
                            names.push(&t.name);
                        }
                    }
                    json!(names)
                }
            }
        }
        "devices" => json!({"tcp": resources?.transports.iter().filter(|t| t.name == "tcp")
            .map(|t| t.device.clone()).collect::<Vec<_>>()}),
        "rdma" => json!(resources?.transports.iter().filter(|t| rdma(&t.name)).map(|t| &t.name).collect::<Vec<_>>()),
        "cuda" => json!(resources?.transports.iter().filter(|t| t.name.starts_with("cuda")).map(|t| &t.name).collect::<Vec<_>>()),
        "tcp_bw" => Value::Object(
            resources?
                .transports
                .iter()
                .filter(|t| t.name == "tcp")
                .map(|t| {
                    let bandwidth = t.bandwidth.as_deref().unwrap().split(' ').next();
                    (t.device.clone().unwrap(), json!(bandwidth))
                })
                .collect(),
        ),
        "mds" => json!(
            resources?
                .domains
                .iter()
                .map(|md| {
                    let memory = md.memory_types.as_deref().unwrap();
                    if md.name.starts_with("cuda") {
                        // `cuda (…,dmabuf)`: what it exports.
                        let cuda = memory.split("),").find(|m| m.trim().starts_with("cuda (")).unwrap();
                        json!({"name": md.name, "dmabuf": md.registers_dmabuf(), "cuda_dmabuf": cuda.contains("dmabuf")})
                    } else {
                        json!({"name": md.name, "component": md.component, "dmabuf": md.registers_dmabuf(),
                            "memory": memory.split(" (").next()})
                    }
                })
                .collect::<Vec<_>>()
        ),
        "failed_to_open" => json!(resources?.failed_to_open),
        "errors" => json!(resources?.errors.iter().map(|e| e.trim_start_matches("ERROR").trim()).collect::<Vec<_>>()),
        "system_device" => {
            let text = resources?.transports.first()?.system_device.as_ref()?;
            json!(text.split(' ').next()?)
        }
        "cut" => json!(resources?.cut && read.cut()),
        _ => return None,
    })
}

fn fi_info(key: &str, read: &Read) -> Option<Value> {
    let listing = read.seen.software.libfabric.first()?;
    let entry = listing.entries.first();
    let unique = |pick: &dyn Fn(usize) -> Option<String>| {
        let mut all: Vec<String> = Vec::new();
        for at in 0..listing.entries.len() {
            if let Some(text) = pick(at)
                && !all.contains(&text)
            {
                all.push(text);
            }
        }
        all
    };
    Some(match key {
        "provider" => json!(entry?.provider),
        "entries" => json!(listing.entries.len()),
        "domains" => json!(unique(&|at| listing.entries[at].domain.clone())),
        "fabrics" => json!(unique(&|at| listing.entries[at].fabric.clone())),
        "devices" => json!(unique(&|at| listing.entries[at].device().map(str::to_owned)).len()),
        "version" => json!(entry?.version.as_ref()?),
        "type" => json!(entry?.endpoint_type.as_ref()?),
        "protocol" => json!(entry?.protocol.as_ref()?),
        "errno" => json!(listing.errno?),
        "meaning" => json!(match listing.errno? {
            -61 => "FI_ENODATA",
            _ => return None,
        }),
        "providers" => json!(
            listing
                .entries
                .iter()
                .map(|e| &e.provider)
                .collect::<Vec<_>>()
        ),
        _ => return None,
    })
}

fn lspci(key: &str, read: &Read) -> Option<Value> {
    let all = &read.seen.host.pci;
    let of = |class: u32, vendor: u32| -> Vec<&PciDevice> {
        all.values()
            .map(|device| &**device)
            .filter(|d| d.class.value() == Some(&class) && d.vendor.value() == Some(&vendor))
            .collect()
    };
    let id = |d: &PciDevice| {
        format!(
            "{:04x}:{:04x}",
            d.vendor.value().unwrap(),
            d.device.value().unwrap()
        )
    };
    let (gpus, switches) = (of(0x0302, 0x10de), of(0x0680, 0x10de));
    let (ib, eth) = (of(0x0207, 0x15b3), of(0x0200, 0x15b3));
    let one = all.values().next()?;
    let speed = |mts: Option<&u32>| Some(json!(format!("{}GT/s", f64::from(*mts?) / 1000.0)));
    Some(match key {
        "gpus" => json!(gpus.len()),
        "gpu" => {
            let name = gpus[0].name.value()?;
            let inner = name.split_once('[')?.1.split(']').next()?;
            json!(format!("{inner} [{}]", id(gpus[0])))
        }
        "nvswitch" => json!(switches.len()),
        "nvswitch_id" => json!(id(switches[0])),
        "ib" => json!(ib.len()),
        "ib_class" => json!(format!("{:04x}", ib[0].class.value()?)),
        "ib_id" => json!(id(ib[0])),
        "ib_vf" => json!(ib.iter().all(|d| d.virtual_function.value() == Some(&true))),
        "eth" => json!(eth.len()),
        "eth_id" => json!(id(eth[0])),
        "eth_vf" => json!(
            eth.iter()
                .all(|d| d.virtual_function.value() == Some(&true))
        ),
        "nvme" => json!(
            all.values()
                .filter(|d| d.class.value() == Some(&0x0108))
                .count()
        ),
        "cap_speed" => speed(one.pcie.max_speed_mts.value())?,
        "sta_speed" => speed(one.pcie.speed_mts.value())?,
        "cap_width" => json!(one.pcie.max_width.value()?),
        "sta_width" => json!(one.pcie.width.value()?),
        "speed_downgraded" => json!(one.pcie.speed_downgraded.value()?),
        "width_ok" => json!(!one.pcie.width_downgraded.value()?),
        "device" => json!(all.keys().next().filter(|k| !k.is_empty())),
        _ => return None,
    })
}
