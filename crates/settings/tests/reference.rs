//! The grammars against reference models written independently in Python, on random values.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use settings::nccl_ib_hca::NameList;
use settings::nccl_int::NcclInt;
use settings::nccl_level::Level;
use settings::nccl_socket_ifname;
use settings::ucx_net_devices::DeviceList;
use settings::ucx_tls::{Build, NetDevices, evaluate};
use settings::version::{NcclVersion, UcxVersion};

const CASES: usize = 10_000;

/// xorshift64*: the same values on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33).unwrap() % limit
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

fn ref_folder() -> Option<PathBuf> {
    // Python takes `..` out of its module path by text, which goes astray where the crate is reached by a link.
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/knowledge/ref")
        .canonicalize()
        .ok()
}

/// Runs a Python script over JSON lines and gives its output lines; None where Python or the models are absent.
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
fn model(script: &str, input: &str) -> Option<Vec<String>> {
    let Some(folder) = ref_folder() else {
        eprintln!("skipped: the reference models are not here");
        return None;
    };
    let child = Command::new("python3")
        .args(["-B", "-c", script])
        .env("PYTHONPATH", folder)
        .env("PYTHONIOENCODING", "utf-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("skipped: python3 is not here");
        return None;
    };
    // The script reads all of its input before it writes, so neither side can block the other.
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the reference model failed");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

fn json(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            c if u32::from(c) < 0x20 => write!(quoted, "\\u{:04x}", u32::from(c)).unwrap(),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn json_or_null(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), json)
}

fn json_list(items: &[&str]) -> String {
    let items: Vec<String> = items.iter().map(|item| json(item)).collect();
    format!("[{}]", items.join(","))
}

/// Compares line by line and shows the input of the first difference.
fn compare(ours: &[String], theirs: &[String], input: &str) {
    assert_eq!(ours.len(), theirs.len());
    for ((our, their), case) in ours.iter().zip(theirs).zip(input.lines()) {
        assert_eq!(our, their, "{case}");
    }
    assert_eq!(ours.len(), CASES);
}

fn join_tokens(
    random: &mut Random,
    tokens: &[&str],
    prefixes: &[&str],
    suffixes: &[&str],
) -> String {
    let mut value = String::new();
    if random.chance(3) {
        value.push('^');
    }
    for index in 0..random.below(6) {
        if index > 0 || random.chance(20) {
            value.push(',');
        }
        if random.chance(6) {
            value.push_str(random.pick(prefixes));
        }
        // Empty items now and then.
        if !random.chance(20) {
            value.push_str(random.pick(tokens));
        }
        if random.chance(6) {
            value.push_str(random.pick(suffixes));
        }
    }
    value
}

const TLS_TOKENS: &[&str] = &[
    "self",
    "tcp",
    "sysv",
    "posix",
    "xpmem",
    "knem",
    "cma",
    "rc_verbs",
    "ud_verbs",
    "rc_mlx5",
    "ud_mlx5",
    "dc_mlx5",
    "gga_mlx5",
    "srd",
    "rc_gda",
    "cuda_copy",
    "cuda_ipc",
    "gdr_copy",
    "mm",
    "sm",
    "shm",
    "ib",
    "ud_v",
    "ud_x",
    "ud",
    "rc_v",
    "rc_x",
    "rc",
    "dc",
    "dc_x",
    "cuda",
    "rocm",
    "ze",
    "gga",
    "gaudi",
    "ugni",
    "rocm_copy",
    "rocm_ipc",
    "all",
    "rdma",
    "RC",
    "nvlink",
    "tcp4",
    "é",
    "全部",
];

/// The transports that the model places; it knows no device type for those of Intel, Habana and Cray.
const MODEL_TRANSPORTS: &[&str] = &[
    "self",
    "tcp",
    "sysv",
    "posix",
    "xpmem",
    "knem",
    "cma",
    "rc_verbs",
    "ud_verbs",
    "rc_mlx5",
    "ud_mlx5",
    "dc_mlx5",
    "gga_mlx5",
    "srd",
    "rc_gda",
    "cuda_copy",
    "cuda_ipc",
    "gdr_copy",
    "rocm_copy",
    "rocm_ipc",
    "rocm_gdr",
];

const TLS_SCRIPT: &str = r#"
import json, sys
import ucx_ref as u
out = []
for line in sys.stdin.buffer.read().decode().splitlines():
    c = json.loads(line)
    ver = tuple(c["version"])
    net = [t for t in c["universe"] if u.DEVTYPE.get(t) == "net"]
    devices = {t: (c["netdevs"] if t == "tcp" else c["rdma"]) for t in net}
    try:
        # UCX reads both variables before it uses either; the model reads the second only where a transport needs it.
        if c["net"] is not None:
            u.dev_enabled("", c["net"], ver)
        r = u.evaluate(c["value"], set(c["universe"]), ver, c["net"], devices)
    except u.ParseError:
        r = {"init": "fail:parse"}
    keys = ["init", "detect", "rdma", "ud_only", "gdr", "nvlink", "mnnvl", "tcp", "shm", "inter", "boot_missing"]
    cells = [str(r.get(k, "False")) for k in keys]
    cells += ["|".join(r.get(k, [])) for k in ("warn", "main", "aux")]
    out.append("\x1f".join(cells))
sys.stdout.write("\n".join(out) + "\n")
"#;

#[test]
fn ucx_tls_agrees_with_the_model() {
    let mut random = Random(0x5EED_0001);
    let mut input = String::new();
    let mut ours = Vec::new();
    let rdma = ["mlx5_0:1", "mlx5_1:1"];
    let netdevs = ["eth0", "lo"];
    for _ in 0..CASES {
        let value = join_tokens(
            &mut random,
            TLS_TOKENS,
            &["\\", "^", " ", "="],
            &[":aux", " ", ":1"],
        );
        let value = (!random.chance(50)).then_some(value);
        let version = UcxVersion::new(1, u16::try_from(8 + random.below(16)).unwrap());
        let keep = 1 + random.below(4);
        let universe: Vec<&str> = MODEL_TRANSPORTS
            .iter()
            .copied()
            .filter(|_| random.below(4) < keep)
            .collect();
        let net = random.chance(3).then(|| device_value(&mut random));
        writeln!(
            input,
            r#"{{"value":{},"version":[1,{}],"universe":{},"net":{},"rdma":{},"netdevs":{}}}"#,
            json_or_null(value.as_deref()),
            version.minor,
            json_list(&universe),
            json_or_null(net.as_deref()),
            json_list(&rdma),
            json_list(&netdevs),
        )
        .unwrap();
        let net = net.as_deref().map(|value| NetDevices {
            value,
            rdma: &rdma,
            netdevs: &netdevs,
        });
        let effect = evaluate(value.as_deref(), &Build::new(version, universe), net);
        let flags = [
            effect.detect,
            effect.rdma,
            effect.ud_only,
            effect.gdr,
            effect.nvlink,
            effect.mnnvl,
            effect.tcp,
            effect.shm,
            effect.inter,
            effect.boot_missing,
        ];
        let mut cells = vec![effect.init.as_str().to_owned()];
        cells.extend(flags.map(|on| if on { "True" } else { "False" }.to_owned()));
        cells.push(effect.warn.join("|"));
        cells.push(effect.main.join("|"));
        cells.push(effect.aux.join("|"));
        ours.push(cells.join("\x1f"));
    }
    if let Some(theirs) = model(TLS_SCRIPT, &input) {
        compare(&ours, &theirs, &input);
    }
}

const DEVICE_TOKENS: &[&str] = &[
    "mlx5_0",
    "mlx5_1",
    "mlx5_10",
    "mlx5_bond_0",
    "eth0",
    "lo",
    "ib0",
    "all",
    "mlx5_",
    "MLX5_0",
    "mlx5_[0-1]",
    "mlx5_[0-10]",
    "mlx5_[1-0]",
    "mlx5_[00-01]",
    "mlx5_1[0-3]",
    "eth[0-3]",
    "[0-3]",
    "mlx5_[0-1",
    "mlx5_0-1]",
    "mlx5_[0-1][0-1]",
    "mlx5_[a-b]",
    "mlx5_*",
    "mlx5_0:[1-2]",
    "é",
];

fn device_value(random: &mut Random) -> String {
    loop {
        let value = join_tokens(
            random,
            DEVICE_TOKENS,
            &["=", "^", " "],
            &[":1", ":1", ":2", ":", ":1:1", " "],
        );
        // Not compared: a caret behind leading commas. The model joins the expanded items to a new list, in which that
        // caret comes first; UCX takes the caret off before it expands (ucx:src/ucs/config/parser.c:829-935, 1111).
        let behind_commas =
            value.starts_with(',') && value.trim_start_matches(',').starts_with('^');
        if !behind_commas {
            return value;
        }
    }
}

const DEVICE_SCRIPT: &str = r#"
import json, sys
import ucx_ref as u
out = []
for line in sys.stdin.buffer.read().decode().splitlines():
    c = json.loads(line)
    try:
        out.append("+".join(d for d in c["devices"] if u.dev_enabled(d, c["value"], tuple(c["version"]))))
    except u.ParseError:
        out.append("parse error")
sys.stdout.write("\n".join(out) + "\n")
"#;

#[test]
fn ucx_net_devices_agrees_with_the_model() {
    let devices = [
        "mlx5_0:1",
        "mlx5_0:2",
        "mlx5_1:1",
        "mlx5_10:1",
        "mlx5_13:1",
        "mlx5_bond_0:1",
        "eth0",
        "eth3",
        "lo",
        "ib0",
        "é",
        "2",
    ];
    let mut random = Random(0x5EED_0002);
    let mut input = String::new();
    let mut ours = Vec::new();
    for _ in 0..CASES {
        let value = device_value(&mut random);
        let version = UcxVersion::new(1, u16::try_from(17 + random.below(7)).unwrap());
        writeln!(
            input,
            r#"{{"value":{},"version":[1,{}],"devices":{}}}"#,
            json(&value),
            version.minor,
            json_list(&devices),
        )
        .unwrap();
        ours.push(match DeviceList::parse(&value, version) {
            Err(_) => "parse error".to_owned(),
            Ok(list) => {
                let kept: Vec<&str> = devices
                    .into_iter()
                    .filter(|name| list.keeps(name))
                    .collect();
                kept.join("+")
            }
        });
    }
    if let Some(theirs) = model(DEVICE_SCRIPT, &input) {
        compare(&ours, &theirs, &input);
    }
}

const NCCL_TOKENS: &[&str] = &[
    "mlx5",
    "mlx5_",
    "mlx5_0",
    "mlx5_1",
    "mlx5_10",
    "mlx5_2",
    "eth0",
    "eth",
    "all",
    "MLX5_0",
    "mlx5_*",
    "mlx5_[0-1]",
    "é",
    "m",
];

fn nccl_value(random: &mut Random) -> String {
    // Ports are ASCII digits and few: how the model reads other digits and huge numbers is Python's way, not C's.
    let suffixes = [
        ":1", ":1", ":2", ":0", ":-1", ":+1", ": 1", ":1x", ":x", ":", ":1:0", ":1:0:1", "::1", ";",
    ];
    let mut value = join_tokens(random, NCCL_TOKENS, &["=", "^", " ", ":"], &suffixes);
    if random.chance(3) {
        let at = usize::from(value.starts_with('^'));
        value.insert(at, '=');
    }
    value
}

const NCCL_SCRIPT: &str = r#"
import json, sys
import nccl_ref as n
out = []
for line in sys.stdin.buffer.read().decode().splitlines():
    c = json.loads(line)
    ver = tuple(c["version"])
    hcas = [f"{d}:{p}" for d, p in c["devices"] if n.match(c["value"], d, p, ver)]
    value = n.ifname_effective(c["value"])
    ifs = [d for d, _ in c["devices"] if n.match(value, d, -1, (2, 30, 7), 16)]
    out.append("+".join(hcas) + "/" + "+".join(ifs))
sys.stdout.write("\n".join(out) + "\n")
"#;

#[test]
fn nccl_names_agree_with_the_model() {
    let devices = [
        ("mlx5_0", 1_u16),
        ("mlx5_0", 2),
        ("mlx5_1", 1),
        ("mlx5_2", 1),
        ("mlx5_10", 1),
        ("eth0", 1),
        ("é", 1),
    ];
    let listed: Vec<String> = devices
        .iter()
        .map(|(name, port)| format!("[{},{port}]", json(name)))
        .collect();
    let mut random = Random(0x5EED_0003);
    let mut input = String::new();
    let mut ours = Vec::new();
    for _ in 0..CASES {
        let value = nccl_value(&mut random);
        let version = if random.chance(2) {
            NcclVersion::new(2, 27, 7)
        } else {
            NcclVersion::new(2, 30, 7)
        };
        writeln!(
            input,
            r#"{{"value":{},"version":[{},{},{}],"devices":[{}]}}"#,
            json(&value),
            version.major,
            version.minor,
            version.patch,
            listed.join(","),
        )
        .unwrap();
        let list = NameList::parse(&value, version);
        let hcas: Vec<String> = devices
            .iter()
            .filter(|(name, port)| list.keeps(name, Some(*port)))
            .map(|(name, port)| format!("{name}:{port}"))
            .collect();
        let interfaces: Vec<&str> = devices
            .iter()
            .map(|(name, _)| *name)
            // One letter of two bytes: the model counts letters, `strlen` counts bytes.
            .filter(|name| {
                let ignored = value.chars().count() <= 1;
                ignored || nccl_socket_ifname::keeps(Some(&value), name)
            })
            .collect();
        ours.push(format!("{}/{}", hcas.join("+"), interfaces.join("+")));
    }
    if let Some(theirs) = model(NCCL_SCRIPT, &input) {
        compare(&ours, &theirs, &input);
    }
}

const NUMBER_SCRIPT: &str = r#"
import json, sys
import nccl_ref as n
out = []
for line in sys.stdin.buffer.read().decode().splitlines():
    value = json.loads(line)
    out.append(f"{n.int_param(value, 777)} {n.level(value, 'default')}")
sys.stdout.write("\n".join(out) + "\n")
"#;

#[test]
fn nccl_numbers_and_levels_agree_with_the_model() {
    let tokens = [
        "0", "1", "7", "8", "9", "f", "x", "X", "-", "+", " ", "true", "yes", "LOC", "NVL", "NVB",
        "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "sys", "NODE", "99999999", "0x", "é",
    ];
    let mut random = Random(0x5EED_0004);
    let mut input = String::new();
    let mut ours = Vec::new();
    for _ in 0..CASES {
        let value: String = (0..random.below(5)).map(|_| random.pick(&tokens)).collect();
        writeln!(input, "{}", json(&value)).unwrap();
        let number = NcclInt::parse(&value).or_default(777);
        let level = Level::parse(&value).map_or("default", Level::as_str);
        ours.push(format!("{number} {level}"));
    }
    if let Some(theirs) = model(NUMBER_SCRIPT, &input) {
        compare(&ours, &theirs, &input);
    }
}
