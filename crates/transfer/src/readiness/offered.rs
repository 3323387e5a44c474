//! UCX's list of available transports and devices (`UCX_LOG_LEVEL=debug`, UCX 1.20 and later).
//!
//! ```text
//! | Type       | Component | Transport | Device (System device) |
//! | network    | tcp       | + tcp     | + eth0  - lo           |
//! |            | ib        | + rc_mlx5 | + mlx5_0:1 (0)         |
//! ```
//!
//! `+` is enabled and `-` switched off; an empty cell repeats the one above (UCX ucp_context.c). Rows that continue a
//! list of devices have empty cells up to the last one.

use model::observation::nixl::OfferedTransport;

/// Rows that are kept.
const MAX_ROWS: usize = 1024;

/// The last list in the text; a process prints one for each context. UCX up to 1.21 prints none: there the interfaces
/// count that it opens. `None` where neither is there.
pub(super) fn read(text: &str) -> Option<Vec<OfferedTransport>> {
    list(text).or_else(|| opened(text))
}

/// `created interface[1]=0x55b7750680e0 using tcp/eth0 on worker 0x55b77506d340` (UCX ucp_worker.c). What settings switch
/// off does not show there.
fn opened(text: &str) -> Option<Vec<OfferedTransport>> {
    let mut found: Vec<OfferedTransport> = Vec::new();
    for line in text.lines() {
        let Some((_, rest)) = line.split_once("created interface[") else {
            continue;
        };
        let Some((name, device)) = rest
            .split_once(" using ")
            .and_then(|(_, rest)| rest.split(' ').next())
            .and_then(|resource| resource.split_once('/'))
        else {
            continue;
        };
        let device = (device.to_owned(), true);
        let room = found.len() < MAX_ROWS;
        match found.iter_mut().find(|t| t.name == name) {
            Some(held) if held.devices.contains(&device) || held.devices.len() >= MAX_ROWS => {}
            Some(held) => held.devices.push(device),
            None if room => found.push(OfferedTransport {
                name: name.to_owned(),
                enabled: true,
                devices: vec![device],
                ..OfferedTransport::default()
            }),
            None => {}
        }
    }
    (!found.is_empty()).then_some(found)
}

fn list(text: &str) -> Option<Vec<OfferedTransport>> {
    let mut all: Option<Vec<OfferedTransport>> = None;
    let mut inside = false;
    for line in text.lines() {
        if line.contains("| Available Transports and Devices") {
            all = Some(Vec::new());
            inside = false;
            continue;
        }
        let Some(found) = all.as_mut() else { continue };
        let Some(row) = cells(line) else { continue };
        match row.as_slice() {
            ["Type", "Component", "Transport", ..] => inside = true,
            [one] if one.starts_with("Legend") => inside = false,
            [kind, component, name, devices] if inside => {
                take(found, kind, component, name, devices);
            }
            _ => {}
        }
    }
    all
}

/// What stands between the bars of a row.
fn cells(line: &str) -> Option<Vec<&str>> {
    let (_, row) = line.split_once('|')?;
    let row = row.trim_end().strip_suffix('|')?;
    Some(row.split('|').map(str::trim).collect())
}

/// `+ tcp` or `- tcp`.
fn marked(text: &str) -> Option<(bool, &str)> {
    match text.split_once(' ')? {
        ("+", name) => Some((true, name.trim())),
        ("-", name) => Some((false, name.trim())),
        _ => None,
    }
}

fn take(found: &mut Vec<OfferedTransport>, kind: &str, component: &str, name: &str, list: &str) {
    if let Some((enabled, name)) = marked(name)
        && found.len() < MAX_ROWS
    {
        let above = found.last();
        let or = |text: &str, held: Option<&String>| {
            if text.is_empty() {
                held.cloned().unwrap_or_default()
            } else {
                text.to_owned()
            }
        };
        found.push(OfferedTransport {
            kind: or(kind, above.map(|t| &t.kind)),
            component: or(component, above.map(|t| &t.component)),
            name: name.to_owned(),
            enabled,
            devices: Vec::new(),
        });
    }
    let Some(last) = found.last_mut() else { return };
    let mut words = list.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let on = match word {
            "+" => true,
            "-" => false,
            // The number of a system device, in parentheses.
            _ => continue,
        };
        if let Some(device) = words.peek()
            && last.devices.len() < MAX_ROWS
        {
            last.devices.push(((*device).to_owned(), on));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
[1.0] [h:1:0]   +---+
[1.0] [h:1:0]   | Available Transports and Devices (ctx: x)  |
[1.0] [h:1:0]   +---+
[1.0] [h:1:0]   | Type       | Component | Transport | Device (System device) |
[1.0] [h:1:0]   +---+
[1.0] [h:1:0]   | network    | tcp       | + tcp     | + eth0  - lo |
[1.0] [h:1:0]   |            +-----------+-----------+
[1.0] [h:1:0]   |            | ib        | - rc_verbs | - rxe0:1 (0)  - rxe1:1 |
[1.0] [h:1:0]   |            |           |           | - rxe2:1 |
[1.0] [h:1:0]   |            |           | + ud_verbs | + rxe0:1 |
[1.0] [h:1:0]   | loopback   | self      | + self    | + memory |
[1.0] [h:1:0]   | Legend: + = enabled, - = disabled |
";

    #[test]
    fn cells_that_are_empty_repeat_those_above() {
        let found = read(LIST).unwrap();
        let told: Vec<String> = found
            .iter()
            .map(|t| {
                format!(
                    "{}/{}/{} {} {:?}",
                    t.kind, t.component, t.name, t.enabled, t.devices
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                r#"network/tcp/tcp true [("eth0", true), ("lo", false)]"#,
                r#"network/ib/rc_verbs false [("rxe0:1", false), ("rxe1:1", false), ("rxe2:1", false)]"#,
                r#"network/ib/ud_verbs true [("rxe0:1", true)]"#,
                r#"loopback/self/self true [("memory", true)]"#,
            ]
        );
    }

    #[test]
    fn interfaces_that_were_opened_stand_for_the_list() {
        let found = read(
            "x UCX  DEBUG created interface[0]=0x1 using self/memory on worker 0x2\n\
             x UCX  DEBUG created interface[1]=0x1 using tcp/eth0 on worker 0x2\n\
             x UCX  DEBUG created interface[2]=0x1 using tcp/lo on worker 0x2\n\
             x UCX  DEBUG created interface[1]=0x1 using tcp/eth0 on worker 0x3\n",
        )
        .unwrap();
        let names: Vec<&str> = found.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["self", "tcp"]);
        assert_eq!(found[1].devices.len(), 2);
    }

    #[test]
    fn no_list_is_not_an_empty_one() {
        assert_eq!(read("| Type | Component | Transport | Device |\n"), None);
        let header = LIST.lines().take(5).collect::<Vec<_>>().join("\n");
        assert_eq!(read(&header), Some(Vec::new()));
    }
}
