//! How GPUs are named in sentences, and what a GPU's name says about its board.

use model::observation::gpu::Gpu;

/// What a GPU's name says about NVLink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Board {
    /// SXM and NVL72 boards: every GPU is joined to the others by NVLink, and a link that is down is a fault.
    Linked,
    /// PCIe cards and single-GPU systems: no NVLink, or an optional bridge.
    Loose,
    /// The name is not known, or says nothing.
    Unknown,
}

/// Words of a name: `NVIDIA A100-SXM4-80GB` has `A100`, `SXM4`.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty())
}

fn has(name: &str, any: &[&str]) -> bool {
    words(name).any(|w| any.iter().any(|a| w.eq_ignore_ascii_case(a)))
}

/// The board by its name. Words are compared whole: GH200 is not H200.
pub(crate) fn board(name: &str) -> Board {
    if has(
        name,
        &[
            "PCIe", "PCI", "NVL", "GH200", "GB10", "GeForce", "RTX", "TITAN",
        ],
    ) {
        return Board::Loose;
    }
    if words(name).any(|w| w.len() == 4 && w.to_ascii_uppercase().starts_with("SXM"))
        || has(
            name,
            &[
                "GB200", "GB300", "B100", "B200", "B300", "H100", "H200", "H800", "H20",
            ],
        )
    {
        return Board::Linked;
    }
    if has(
        name,
        &[
            "L2", "L4", "L20", "L40", "L40S", "A2", "A10", "A10G", "A16", "A30", "A40", "T4", "P4",
            "P40",
        ],
    ) {
        return Board::Loose;
    }
    Board::Unknown
}

/// Multi-node NVLink systems, by whole words.
pub(crate) fn is_mnnvl(name: &str) -> bool {
    has(name, &["GB200", "GB300"])
}

/// Grace CPUs: GPU memory is a NUMA node, and PCIe distances mean little.
pub(crate) fn is_grace(name: &str) -> bool {
    has(name, &["GB200", "GB300", "GH200", "GB10"])
}

/// Consumer cards, which offer no GPUDirect RDMA.
pub(crate) fn is_geforce(name: &str) -> bool {
    has(name, &["GeForce", "TITAN"])
}

/// DGX Spark and its kin.
pub(crate) fn is_spark(name: &str) -> bool {
    has(name, &["GB10"])
}

/// `GPU3`, else its UUID or address.
pub(crate) fn label(gpu: &Gpu) -> String {
    if let Some(index) = gpu.index.value() {
        return format!("GPU{index}");
    }
    gpu.uuid
        .value()
        .or(gpu.pci.value())
        .cloned()
        .unwrap_or_else(|| "the GPU".to_owned())
}

/// The board of one GPU.
pub(crate) fn board_of(gpu: &Gpu) -> Board {
    gpu.name.value().map_or(Board::Unknown, |n| board(n))
}

/// Names in a row: `GPU0 to GPU7`, `GPU0, GPU2`.
pub(crate) fn listed<S: AsRef<str>>(names: &[S]) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut run: Vec<&str> = Vec::new();
    for name in names.iter().map(AsRef::as_ref) {
        if let Some(last) = run.last()
            && !follows(last, name)
        {
            close(&mut run, &mut out);
        }
        run.push(name);
    }
    close(&mut run, &mut out);
    out.join(", ")
}

fn close(run: &mut Vec<&str>, out: &mut Vec<String>) {
    match run.as_slice() {
        [first, _, .., last] => out.push(format!("{first} to {last}")),
        few => out.extend(few.iter().map(|n| (*n).to_owned())),
    }
    run.clear();
}

/// `GPU3` follows `GPU2`.
fn follows(before: &str, name: &str) -> bool {
    let split = |text: &str| {
        let end = text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (head, digits) = text.split_at_checked(end)?;
        Some((head.to_owned(), digits.parse::<u32>().ok()?))
    };
    match (split(before), split(name)) {
        (Some((a, n)), Some((b, m))) => a == b && n.checked_add(1) == Some(m),
        _ => false,
    }
}

/// `1 GPU`, `8 GPUs`.
pub(crate) fn count(n: usize, one: &str) -> String {
    if n == 1 {
        format!("1 {one}")
    } else if let Some(stem) = one.strip_suffix('y') {
        format!("{n} {stem}ies")
    } else if one.ends_with("ch") {
        format!("{n} {one}es")
    } else {
        format!("{n} {one}s")
    }
}

#[cfg(test)]
mod tests {
    use super::{Board, board, count, listed};

    #[test]
    fn boards_are_told_by_whole_words() {
        for name in [
            "NVIDIA H100 80GB HBM3",
            "NVIDIA A100-SXM4-80GB",
            "Tesla V100-SXM2-32GB",
            "NVIDIA B200",
            "NVIDIA GB200",
            "NVIDIA H20",
        ] {
            assert_eq!(board(name), Board::Linked, "{name}");
        }
        for name in [
            "NVIDIA H100 PCIe",
            "NVIDIA H100 NVL",
            "NVIDIA GH200 480GB",
            "NVIDIA L40S",
            "NVIDIA A10",
            "NVIDIA A100 80GB PCIe",
            "Tesla T4",
        ] {
            assert_eq!(board(name), Board::Loose, "{name}");
        }
        assert_eq!(board("Graphics Device"), Board::Unknown);
    }

    #[test]
    fn names_in_a_row_are_short() {
        assert_eq!(listed(&["GPU0", "GPU1", "GPU2", "GPU3"]), "GPU0 to GPU3");
        assert_eq!(listed(&["GPU0", "GPU1"]), "GPU0, GPU1");
        assert_eq!(
            listed(&["GPU0", "GPU2", "GPU3", "GPU4"]),
            "GPU0, GPU2 to GPU4"
        );
        assert_eq!(count(2, "switch"), "2 switches");
    }
}
