//! Outputs that are cut, mixed, prefixed and mutated: nothing panics, no control character is kept, and facts
//! survive what pasting does to a text.

use model::Observation;

use super::{FIXTURES, seen};

/// A small generator with a seed, so that a failure comes again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }
}

/// Whether any text that is kept, or any key, has a control character.
fn has_control(seen: &Observation) -> bool {
    fn walk(value: &serde_json::Value) -> bool {
        let bad = |text: &str| text.chars().any(|c| c.is_control() && c != '\t');
        match value {
            serde_json::Value::String(text) => bad(text),
            serde_json::Value::Array(list) => list.iter().any(walk),
            serde_json::Value::Object(map) => {
                map.iter().any(|(key, value)| bad(key) || walk(value))
            }
            _ => false,
        }
    }
    walk(&serde_json::to_value(seen).unwrap())
}

const PIECES: &[&str] = &[
    "\u{1b}[31m",
    "\u{7}",
    "\u{202e}",
    "\r",
    "\0",
    ":",
    "|",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "'",
    "\"",
    "#",
    "cfg#",
    "GPU",
    "NIC",
    "..",
    "é",
    "\u{1f600}",
    "18446744073709551616",
    "-1",
    "\t",
    "   ",
    "0x",
    "/sys/class/infiniband/",
    "$ ",
    "CA '",
    "hca_id:",
    "UCX  ",
    "\n",
];

fn mutate(text: &str, random: &mut Random) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(12) {
        let at = random.below(chars.len());
        match random.below(6) {
            0 => {
                let piece = PIECES[random.below(PIECES.len())];
                chars.splice(at..at, piece.chars());
            }
            1 => {
                let end = (at + random.below(40)).min(chars.len());
                chars.drain(at..end);
            }
            2 => chars.truncate(at),
            3 => {
                chars.drain(..at);
            }
            4 if !chars.is_empty() => {
                let other = random.below(chars.len());
                chars.swap(at, other);
            }
            _ => {
                let end = (at + random.below(200)).min(chars.len());
                let part: Vec<char> = chars[at..end].to_vec();
                let to = random.below(chars.len());
                chars.splice(to..to, part);
            }
        }
    }
    chars.into_iter().collect()
}

#[test]
fn no_mutation_breaks_a_parser() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for (name, text) in FIXTURES {
        for _ in 0..150 {
            let broken = mutate(text, &mut random);
            let seen = probe::recognise(name, &broken);
            assert!(!has_control(&seen), "{name}: {broken:?}");
        }
    }
}

#[test]
fn no_mixture_breaks_a_parser() {
    let mut random = Random(42);
    for _ in 0..150 {
        let mut text = String::new();
        for _ in 0..6 {
            let (_, part) = FIXTURES[random.below(FIXTURES.len())];
            let lines: Vec<&str> = part.lines().collect();
            let from = random.below(lines.len());
            for line in lines.iter().skip(from).take(random.below(30)) {
                text.push_str(line);
                text.push('\n');
            }
        }
        assert!(!has_control(&probe::recognise("mixed", &text)));
        let bytes: Vec<u8> = text
            .bytes()
            .map(|b| if random.below(50) == 0 { 0xff } else { b })
            .collect();
        probe::recognise_bytes("mixed", &bytes);
    }
}

/// Every line, changed.
fn each(text: &str, change: impl Fn(&str) -> String) -> String {
    text.lines().map(change).collect::<Vec<_>>().concat()
}

/// What is kept without places, which differ.
fn facts(seen: &Observation) -> serde_json::Value {
    fn strip(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(map) => {
                for key in [
                    "sources",
                    "origin",
                    "open_failures",
                    "sections",
                    "line",
                    "last_line",
                ] {
                    map.remove(key);
                }
                map.values_mut().for_each(strip);
            }
            serde_json::Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(seen).unwrap();
    strip(&mut value);
    value
}

#[test]
fn pasting_changes_no_fact() {
    for (name, text) in FIXTURES {
        let plain = facts(&seen(name));
        let crlf = each(text, |l| format!("{l}\r\n"));
        assert_eq!(
            facts(&probe::recognise(name, &crlf)),
            plain,
            "{name}: line ends"
        );
        let fenced = format!("```\n{text}\n```\n");
        assert_eq!(
            facts(&probe::recognise(name, &fenced)),
            plain,
            "{name}: fences"
        );
        let stamped = each(text, |l| format!("2026-01-02T03:04:05.678901234Z {l}\n"));
        assert_eq!(
            facts(&probe::recognise(name, &stamped)),
            plain,
            "{name}: times"
        );
        let quoted = each(text, |l| format!("> {l}\n"));
        assert_eq!(
            facts(&probe::recognise(name, &quoted)),
            plain,
            "{name}: quotes"
        );
        let coloured = each(text, |l| format!("\u{1b}[0m{l}\u{1b}[0m\n"));
        assert_eq!(
            facts(&probe::recognise(name, &coloured)),
            plain,
            "{name}: colours"
        );
        let utf16: Vec<u8> = [0xff, 0xfe]
            .into_iter()
            .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
            .collect();
        assert_eq!(
            facts(&probe::recognise_bytes(name, &utf16)),
            plain,
            "{name}: UTF-16"
        );
    }
}

#[test]
fn lines_of_two_pods_are_told_apart() {
    let (_, text) = FIXTURES.iter().find(|(n, _)| *n == "topo.txt").unwrap();
    let mixed = each(text, |l| {
        format!("[pod/a-0/main] {l}\n[pod/b-0/main] {l}\n")
    });
    let seen = probe::recognise("mixed", &mixed);
    assert_eq!(seen.topology.matrices.len(), 2);
    assert!(seen.topology.matrices.iter().all(|m| !m.cut));
}

#[test]
fn endless_logs_keep_little() {
    let line = |n: u32| {
        format!(
            "[1700000000.{n:06}] [h:1:0] ib_md.c:1 UCX  ERROR ibv_reg_mr(address=0x{n:x}, length=1, access=0xf) failed: Cannot allocate memory : Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)\n"
        )
    };
    let mut recogniser = probe::Recogniser::new("log");
    for n in 0..20_000 {
        recogniser.line(&line(n));
    }
    let seen = recogniser.finish();
    assert_eq!(seen.log.events.len(), 1);
    assert_eq!(seen.log.events[0].count, 20_000);
    let mut recogniser = probe::Recogniser::new("log");
    for n in 0..20_000 {
        recogniser.line(&format!("CA 'dev{n}'\n\tCA type: MT{n}\n"));
        recogniser.line(&format!(
            "NCCL INFO NET/IB : Unable to open device mlx{n}\n"
        ));
    }
    let seen = recogniser.finish();
    assert!(seen.rdma.devices.len() <= 4096 && seen.log.events.len() <= 4096);
    assert!(seen.log.dropped > 0);
}

#[test]
fn control_characters_within_json_are_not_kept() {
    let text = r#"{"fabric_states":[{"gpu_uuid":"GPU-1\u001b[31m\u0007","clique_id":1,"state":"Comp\rleted"}]}"#;
    let seen = probe::recognise("x", text);
    assert_eq!(seen.gpu.gpus.len(), 1);
    assert!(!has_control(&seen));
}
