//! TCP sockets of the engine: `/proc/PID/net/tcp` beside the inodes of its open files.
//!
//! Addresses are in the byte order of the machine, word by word (Linux, net/ipv4/tcp_ipv4.c get_tcp4_sock). Machines of
//! the other order are not told apart: none that has an RDMA card or a GPU of interest has it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use model::Reason;
use model::observation::process::{Connection, Listener};
use model::observation::{Fact, Observation};

use super::facts::{Facts, origin};

/// An engine has one to each peer and rail; a broken one may have any number.
const MAX_CONNECTIONS: usize = 1024;

struct Socket {
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
    listens: bool,
    inode: u64,
}

pub(super) fn read(facts: &Facts<'_>, seen: &mut Observation) {
    let files = facts.listed("sockets");
    let Some(first) = files.first() else {
        return;
    };
    let read: Vec<Socket> = files
        .iter()
        .flat_map(|path| facts.lines(path))
        .filter_map(|line| socket(line))
        .collect();
    let pids: Vec<u32> = seen.process.processes.keys().copied().collect();
    let owned: BTreeMap<u32, BTreeSet<u64>> = pids
        .iter()
        .map(|pid| {
            let lists = facts.listed(&format!("sockets-of:{pid}")).iter();
            let inodes = lists
                .flat_map(|list| list.split_whitespace())
                .filter_map(|inode| inode.parse().ok());
            (*pid, inodes.collect())
        })
        .collect();
    let owner = |inode: u64| {
        owned
            .iter()
            .find(|(_, inodes)| inodes.contains(&inode))
            .map(|(pid, _)| *pid)
    };
    let mut listening: Vec<Listener> = read
        .iter()
        .filter(|socket| socket.listens)
        .map(|socket| Listener {
            address: socket.local.0,
            port: socket.local.1,
            process: owner(socket.inode),
        })
        .collect();
    listening.sort();
    listening.dedup();
    seen.process.listening = if files.iter().any(|path| facts.is_cut(path)) {
        Fact::missing(
            Reason::NotVisible,
            format!("{first} has more lines than are read"),
        )
    } else {
        Fact::seen(listening, origin(first))
    };
    for (pid, process) in &mut seen.process.processes {
        let Some(inodes) = owned.get(pid).filter(|inodes| !inodes.is_empty()) else {
            continue;
        };
        let others: Vec<Connection> = read
            .iter()
            .filter(|socket| {
                !socket.listens
                    && inodes.contains(&socket.inode)
                    && !socket.remote.0.is_loopback()
                    && socket.remote.0 != socket.local.0
            })
            .map(|socket| Connection {
                local: socket.local,
                remote: socket.remote,
            })
            .collect();
        let count = u32::try_from(others.len()).unwrap_or(u32::MAX);
        process.tcp_connections = Fact::seen(count, origin(first));
        let kept = others.into_iter().take(MAX_CONNECTIONS).collect();
        process.connections = Fact::seen(kept, origin(first));
    }
}

/// `0100007F:15E0 00000000:0000 0A 12345`.
fn socket(line: &str) -> Option<Socket> {
    let mut words = line.split_whitespace();
    let (local, remote) = (address(words.next()?)?, address(words.next()?)?);
    let state = words.next()?;
    Some(Socket {
        local,
        remote,
        listens: state == "0A",
        inode: words.next()?.parse().ok()?,
    })
}

fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    if host.len() != 8 && host.len() != 32 {
        return None;
    }
    let words: Option<Vec<u32>> = host
        .as_bytes()
        .chunks(8)
        .map(|word| u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok())
        .collect();
    let bytes: Vec<u8> = words?.iter().flat_map(|word| word.to_le_bytes()).collect();
    let host = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => IpAddr::V4(Ipv4Addr::from(four)),
        Err(_) => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?)),
    };
    Some((host.to_canonical(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_kernel() {
        let (host, port) = address("0100007F:15E0").unwrap();
        assert_eq!((host.to_string().as_str(), port), ("127.0.0.1", 5600));
        let (host, _) = address("0000000000000000FFFF00000200000A:0050").unwrap();
        assert_eq!(host.to_string(), "10.0.0.2");
        let (host, _) = address("00000000000000000000000001000000:0050").unwrap();
        assert_eq!(host.to_string(), "::1");
        for odd in ["", "0100007F", "01:0050", "zzzzzzzz:0050"] {
            assert!(address(odd).is_none(), "{odd}");
        }
    }
}
