//! Arguments about the transfers between two pods.

use std::time::Duration;

use clap::Args;

use super::duration;

/// Arguments about what moves between two pods.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Between two pods")]
pub struct TransferArgs {
    /// The pod at the other end
    #[arg(long, value_name = "POD", requires = "pod")]
    pub peer: Option<String>,
    /// Its container; that of --container without it
    #[arg(long, value_name = "CONTAINER", requires = "peer")]
    pub peer_container: Option<String>,
    /// Its namespace; that of --namespace without it
    #[arg(long, value_name = "NAMESPACE", requires = "peer")]
    pub peer_namespace: Option<String>,
    /// Measure a real transfer between --pod and --peer with their own NIXL and their engines' settings, and tell what
    /// carried it. It moves some hundred MiB and takes 64 MiB of memory in each; --timeout bounds all of it
    #[arg(long, requires_all = ["pod", "peer"])]
    pub transfer: bool,
    /// Move so many bytes a second at most, on average (500M, 2G)
    #[arg(long, value_name = "BYTES", requires = "transfer", value_parser = bytes)]
    pub rate: Option<u64>,
    /// Transfer blocks of so many bytes at most (64M without it); below 16M no rate is judged
    #[arg(long, value_name = "BYTES", requires = "transfer", value_parser = block)]
    pub largest: Option<u64>,
    /// Print what would run where, and run nothing in a worker
    #[arg(long, conflicts_with = "from")]
    pub dry_run: bool,
    /// Make a NIXL agent, and transfer, also in a pod that does not look like a prefill or decode worker
    #[arg(long, conflicts_with = "from")]
    pub force: bool,
    /// Look at the counters of interfaces and RDMA ports before and after so long, while real requests run; --timeout bounds
    /// all of it
    #[arg(long, value_name = "TIME", requires = "pod", conflicts_with = "transfer", value_parser = duration)]
    pub observe: Option<Duration>,
}

/// `500M`, `2G`, or bytes; units of 1000, as rates have.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    number(text, 1000).and_then(|rate| {
        if rate < 1_000_000 {
            return Err(format!(
                "'{text}' is less than 1M, with which nothing comes to its end"
            ));
        }
        Ok(rate)
    })
}

/// `64M`, or bytes; units of 1024, as memory has.
pub(super) fn block(text: &str) -> Result<u64, String> {
    number(text, 1024).and_then(|block| {
        if (64 << 10..=64 << 20).contains(&block) {
            Ok(block)
        } else {
            Err(format!("'{text}' is not between 64K and 64M"))
        }
    })
}

fn number(text: &str, unit: u64) -> Result<u64, String> {
    let odd = || format!("'{text}' is no number of bytes; expected one like 500M or 2G");
    let (digits, power) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (text.get(..at), 1),
        Some((at, 'M')) => (text.get(..at), 2),
        Some((at, 'G')) => (text.get(..at), 3),
        _ => (Some(text), 0),
    };
    let number: u64 = digits.unwrap_or_default().parse().map_err(|_| odd())?;
    unit.checked_pow(power)
        .and_then(|factor| number.checked_mul(factor))
        .ok_or_else(odd)
}
