//! Shell prompts and the commands after them.

use crate::text::keep;

/// A command line that the text shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// As written, without the prompt. It can hold secrets (`TOKEN=… ibstat`) and is never kept.
    pub(crate) text: String,
    /// The tool that it runs.
    pub(crate) program: &'static str,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// Something filters its output.
    pub(crate) filtered: bool,
}

impl Command {
    /// The tool and its arguments, which is all that may be kept of a command line.
    pub(crate) fn shown(&self) -> String {
        let mut shown = self.program.to_owned();
        for argument in &self.arguments {
            if !argument.contains('=') && argument.len() <= 120 {
                shown.push(' ');
                shown.push_str(argument);
            }
        }
        keep(&shown)
    }

    /// Whether an argument is there.
    pub(crate) fn has(&self, argument: &str) -> bool {
        self.arguments.iter().any(|a| a == argument)
    }

    /// The value after an option.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        let at = self.arguments.iter().position(|a| a == name)?;
        self.arguments.get(at.checked_add(1)?).map(String::as_str)
    }
}

/// Programs whose output some parser reads, or whose name at least ends another output.
const PROGRAMS: &[&str] = &[
    "ibstat",
    "ibstatus",
    "ibv_devinfo",
    "ibv_devices",
    "ibdev2netdev",
    "rdma",
    "show_gids",
    "lsmod",
    "nvidia-smi",
    "dcgmi",
    "gpud",
    "ucx_info",
    "fi_info",
    "lspci",
    "ls",
    "ulimit",
    "ip",
    "dmesg",
    "uname",
    "find",
    "cat",
    "head",
    "grep",
    "ucx_perftest",
    "id",
    "hostname",
    "df",
];

/// Words that may follow a bare tool name without an option sign.
const SUBCOMMANDS: &[&str] = &[
    "link",
    "show",
    "dev",
    "system",
    "resource",
    "res",
    "statistic",
    "topo",
    "nvlink",
    "addr",
    "address",
    "a",
    "route",
    "health",
];

/// A command line after a prompt, or a bare one that is nothing else; with the host that the prompt names.
pub(crate) fn prompt(line: &str) -> Option<(Command, Option<String>)> {
    let line = line.trim();
    if line.len() > 4096 {
        return None;
    }
    if let Some((host, rest)) = after_prompt(line)
        && let Some(command) = parse(rest)
    {
        let pod = pod_of(rest).filter(|_| !rest.starts_with("docker"));
        return Some((command, pod.or(host)));
    }
    let command = parse(line)?;
    let first = line.split_whitespace().next()?;
    let wrapped = (matches!(first, "kubectl" | "oc" | "docker" | "podman" | "nerdctl")
        && line.contains(" exec "))
        || matches!(first, "srun" | "ssh");
    if wrapped {
        let host = pod_of(line);
        return Some((command, host));
    }
    let named = first.rsplit('/').next()? == command.program || first == "sudo";
    let bare = !matches!(
        command.program,
        "cat"
            | "head"
            | "grep"
            | "find"
            | "id"
            | "ls"
            | "ip"
            | "hostname"
            | "df"
            | "gpud"
            | "uname"
    ) || command.arguments.iter().any(|a| a.starts_with(['-', '/']));
    let plain = command.arguments.iter().all(|a| {
        a.starts_with('-')
            || SUBCOMMANDS.contains(&a.as_str())
            || a.starts_with('/')
            || (a.chars().any(|c| c.is_ascii_digit()) && crate::text::is_name(a))
            || matches!(a.as_str(), "p" | "r" | "w" | "n")
    });
    let closed = !line.ends_with([':', '.', ',']) || line.ends_with("...");
    (named && bare && plain && closed).then_some((command, None))
}

/// The pod of `kubectl exec -n ns POD -c main -- cmd`.
fn pod_of(line: &str) -> Option<String> {
    let (_, rest) = line.split_once(" exec ")?;
    let mut words = rest.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "--" => return None,
            "-n" | "--namespace" | "-c" | "--container" | "--context" => {
                words.next();
            }
            option if option.starts_with('-') => {}
            pod => return Some(keep(pod.rsplit('/').next().unwrap_or(pod))),
        }
    }
    None
}

/// What stands after a prompt, and the host in it.
fn after_prompt(line: &str) -> Option<(Option<String>, &str)> {
    // `$ cmd`, `# cmd`, `#cmd`, `% cmd`, `+ cmd`, `> cmd`.
    if let Some(rest) = line.strip_prefix(['$', '#', '%', '+', '>']) {
        return Some((None, rest.trim_start()));
    }
    // `(env) [user@host dir]$ cmd`, `user@host:dir# cmd`, `host$ cmd`.
    let at = line.find(['$', '#'])?;
    let (front, rest) = (line.get(..at)?, line.get(at.checked_add(1)?..)?);
    if !rest.starts_with(' ') || front.len() > 120 {
        return None;
    }
    let front = front.trim();
    let front = match front.strip_prefix('(') {
        Some(inside) => inside
            .split_once(')')
            .map_or(front, |(_, rest)| rest.trim()),
        None => front,
    };
    let front = front.trim_start_matches('[').trim_end_matches(']');
    let host = match front.split_once('@') {
        Some((_, host)) => host.split([':', ' ', '/']).next()?,
        None if front.split_whitespace().count() == 1 => front.split(':').next()?,
        None => return None,
    };
    let good = !host.is_empty()
        && host
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    good.then(|| (Some(keep(host)), rest.trim_start()))
}

fn parse(text: &str) -> Option<Command> {
    let mut words = text.split_whitespace().peekable();
    let mut program = None;
    // The tool may stand behind `sudo`, `kubectl exec … --`, `VAR=value`, `timeout 5`.
    for word in words.by_ref().take(40) {
        if matches!(word, "|" | ";" | "&&" | "||") || word.starts_with('|') {
            return None;
        }
        let word = word.trim_start_matches(['`', '"', '\'']);
        let name = word
            .trim_end_matches(['`', ';', '"', '\''])
            .rsplit('/')
            .next()?;
        if let Some(known) = PROGRAMS.iter().find(|p| **p == name) {
            // `ulimit -l 64; cmd` sets a limit for what comes after it.
            if *known == "ulimit"
                && text
                    .split_once("ulimit -")
                    .and_then(|(_, rest)| rest.split_whitespace().nth(1))
                    .is_some_and(|w| w.trim_end_matches(';').parse::<u64>().is_ok())
            {
                continue;
            }
            program = Some(*known);
            break;
        }
    }
    let program = program?;
    let mut arguments = Vec::new();
    let mut filtered = false;
    for word in words {
        if word.starts_with('|') {
            filtered = true;
            break;
        }
        if matches!(word, ";" | "&&" | "||") || word.starts_with("2>") || word.starts_with('>') {
            break;
        }
        let ends = word.ends_with(';');
        arguments.push(keep(word.trim_end_matches([';', '`'])));
        if ends || arguments.len() > 64 {
            break;
        }
    }
    Some(Command {
        text: keep(text),
        program,
        arguments,
        filtered,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a broken test should stop")]
    use super::*;

    fn read(line: &str) -> Option<(&'static str, Option<String>)> {
        prompt(line).map(|(command, host)| (command.program, host))
    }

    #[test]
    fn prompts_of_many_shells() {
        for (line, program, host) in [
            ("root@test-pod:~# ibstat mlx5_7", "ibstat", Some("test-pod")),
            ("[root@node-a ~]# ibstatus", "ibstatus", Some("node-a")),
            (
                "(base) [user@gpu-node-a ~]$ nvidia-smi topo -m",
                "nvidia-smi",
                Some("gpu-node-a"),
            ),
            ("root@node2$ rdma link", "rdma", Some("node2")),
            ("#nvidia-smi topo -m", "nvidia-smi", None),
            ("$ bash show_gids ", "show_gids", None),
            (" rdma link", "rdma", None),
            ("ibv_devinfo -d mlx5_3 -v", "ibv_devinfo", None),
            (
                "$ UCX_LOG_LEVEL=info ucx_info -d | grep Transport",
                "ucx_info",
                None,
            ),
            (
                "# kubectl exec -it pod-0 -- /usr/sbin/ibstat",
                "ibstat",
                Some("pod-0"),
            ),
        ] {
            assert_eq!(
                read(line),
                Some((program, host.map(str::to_owned))),
                "{line}"
            );
        }
    }

    #[test]
    fn prose_and_output_are_no_commands() {
        for line in [
            "ibstat shows that the port is down",
            "# Library version: 1.22.0",
            "link mlx5_0/1 state ACTIVE",
            "rdma_ucm               36864  0",
            "Output of ibstat on the node:",
            "# Memory domain: tcp",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
        assert!(prompt("$ lsmod | grep nvidia").unwrap().0.filtered);
    }

    #[test]
    fn wrappers_name_the_pod_and_assignments_are_not_shown() {
        let (command, pod) = prompt("kubectl exec -n kv decode-0 -c main -- ibstat -s").unwrap();
        assert_eq!(
            (command.shown().as_str(), pod.as_deref()),
            ("ibstat -s", Some("decode-0"))
        );
        let (command, pod) = prompt("$ HF_TOKEN=abc kubectl exec pod/x -- rdma link").unwrap();
        assert_eq!(
            (command.shown().as_str(), pod.as_deref()),
            ("rdma link", Some("x"))
        );
    }
}
