//! NVLink joins the GPUs.
//!
//! Two sources say so: the state of each link (`nvidia-smi nvlink -s`, `dcgmi nvlink`) and the cells between GPUs of
//! `nvidia-smi topo -m`. How many links are right depends on the board, so a GPU is held against the others: one that
//! has no NVLink, or fewer than the rest, has lost them. On PCIe cards NVLink is an optional bridge, and none at all
//! is normal. `topo -mp` never prints NVLink. A row that is missing is unknown.

use std::collections::{BTreeMap, BTreeSet};

use model::Reason;
use model::observation::gpu::{Gpu, LinkState};
use model::observation::topology::{Level, Matrix, MatrixKind};

use super::words::{Board, board_of, count, label, listed};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/nvlink";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "NVLink joins the GPUs",
    source: include_str!("nvlink.rs"),
    causes: &[INACTIVE, ALL_INACTIVE, OFF],
    notes: &[NO_NVLINK],
    run: Run::Place(run),
};

const INACTIVE: Cause = Cause {
    id: "nvlink-inactive",
    what: "NVLinks of a GPU are down",
    why: "KV between GPUs of the node is slower, or takes another way; collectives as well",
    fix: "look for Xid 74, 145 and 149 in the kernel log, reset the GPU or the node; a link that stays down is hardware",
    quiet_if: "PCIe cards without a bridge; links that the tool calls disabled or not supported",
    source: "nvidia-smi nvlink -s, dcgmi nvlink --link-status",
};

const ALL_INACTIVE: Cause = Cause {
    id: "nvlink-all-inactive-message",
    what: "the driver says that all NVLinks of a GPU are inactive, and prints none of them",
    why: "this GPU reaches the others over PCIe only; on machines with NVSwitch peer access and collectives fail",
    fix: "check the fabric manager and the kernel log (Xid 145, 149), reset the GPU or the node",
    quiet_if: "PCIe cards without a bridge: the same text is normal there",
    source: "NVML: Unable to retrieve NVLink information as all links are inActive",
};

const OFF: Cause = Cause {
    id: "topo-gpu-off-nvlink",
    what: "one GPU has no NVLink to any other while the others are joined",
    why: "KV and collectives of this GPU go over PCIe, and the slowest GPU sets the pace of all",
    fix: "nvidia-smi nvlink -s and the kernel log of that GPU; reset it, or have it repaired",
    quiet_if: "topo -mp; MIG; PCIe cards that bridges join in pairs",
    source: "nvidia-smi topo -m",
};

const NO_NVLINK: Cause = Cause {
    id: "nvlink-empty-output",
    what: "the GPU has no NVLink",
    why: "a GPU without NVLink: GPUs of one node reach each other over PCIe",
    fix: "none",
    quiet_if: "always: A10, L4, L40S and other PCIe cards",
    source: "nvidia-smi nvlink -s prints nothing, or Not Supported",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    links(view, findings);
    for matrix in &view.seen.topology.matrices {
        cells(matrix, view, findings);
    }
    if !view.facts.saved
        && findings.results().iter().all(|r| r.name != NAME)
        && !view.seen.gpu.gpus.is_empty()
    {
        let missing = model::observation::Missing {
            reason: Reason::NoTool,
            why: "nvidia-smi shows it, and it could not be run here".into(),
        };
        findings.push(Finding::lacking(NAME, &missing, "NVLink"));
    }
}

/// Some GPU is known to sit on a board where all are joined, or switches are there.
fn linked_machine(view: &NodeView<'_>) -> bool {
    let gpu = &view.seen.gpu;
    gpu.nvswitches.value().is_some_and(|n| *n > 0)
        || gpu.gpus.iter().any(|g| board_of(g) == Board::Linked)
}

/// The board of a GPU: by its name, else by that of the others.
fn board_here(gpu: &Gpu, view: &NodeView<'_>) -> Board {
    match board_of(gpu) {
        Board::Unknown if linked_machine(view) => Board::Linked,
        other => other,
    }
}

/// A model with its active and its inactive links.
type Lost<'v> = (&'v str, Vec<u32>, Vec<u32>);

fn links(view: &NodeView<'_>, findings: &mut Findings) {
    let gpus = &view.seen.gpu.gpus;
    // GPUs by what is said about them, so that eight alike are one line.
    let mut up: BTreeMap<(usize, u64), Vec<&Gpu>> = BTreeMap::new();
    let mut none: Vec<&Gpu> = Vec::new();
    let mut lost: BTreeMap<Lost<'_>, Vec<&Gpu>> = BTreeMap::new();
    let most = gpus.iter().map(|g| active(g).len()).max().unwrap_or(0);
    for gpu in gpus {
        let on = active(gpu);
        let down = of_state(gpu, LinkState::Down);
        if gpu.all_links_inactive.value() == Some(&true) && on.is_empty() {
            all_inactive(gpu, most > 0, view, findings);
        } else if !down.is_empty() {
            let name = gpu.name.value().map_or("", String::as_str);
            lost.entry((name, on, down)).or_default().push(gpu);
        } else if !on.is_empty() {
            let speed = gpu
                .links
                .values()
                .find_map(|l| l.mb_per_s.value().copied())
                .unwrap_or(0);
            up.entry((on.len(), speed)).or_default().push(gpu);
        } else if !gpu.links.is_empty() || gpu.nvlink_message.is_seen() {
            none.push(gpu);
        }
    }
    for ((_, on, down), alike) in &lost {
        inactive(alike, on, down, view, findings);
    }
    for ((links, speed), alike) in &up {
        let labels: Vec<String> = alike.iter().map(|g| label(g)).collect();
        let gpu = listed(&labels);
        let fact = alike.first().and_then(|g| g.links.values().next());
        let fewer =
            *links < most && alike.first().map(|g| board_here(g, view)) != Some(Board::Loose);
        let finding = if fewer {
            Finding::warn(
                NAME,
                &INACTIVE,
                format!(
                    "{gpu}: {} active, where others have {most}",
                    count(*links, "NVLink")
                ),
            )
        } else {
            let rate = if *speed > 0 {
                format!(", {}.{:03} GB/s each way", speed / 1000, speed % 1000)
            } else {
                String::new()
            };
            Finding::ok(
                NAME,
                format!("{gpu}: {} active{rate}", count(*links, "NVLink")),
            )
        };
        findings.push(match fact {
            Some(link) => finding.seen(&link.state, "active"),
            None => finding,
        });
    }
    if !none.is_empty() {
        let labels: Vec<String> = none.iter().map(|g| label(g)).collect();
        let finding = Finding::ok(NAME, format!("{}: no NVLink on this GPU", listed(&labels)))
            .told(&NO_NVLINK);
        findings.push(match none.first() {
            Some(first) => finding.seen(&first.nvlink_message, "not supported"),
            None => finding,
        });
    }
}

fn of_state(gpu: &Gpu, state: LinkState) -> Vec<u32> {
    gpu.links
        .iter()
        .filter(|(_, l)| l.state.value() == Some(&state))
        .map(|(n, _)| *n)
        .collect()
}

fn active(gpu: &Gpu) -> Vec<u32> {
    of_state(gpu, LinkState::Up)
}

fn name_of(gpu: &Gpu) -> String {
    match gpu.name.value() {
        Some(name) => format!("{} ({name})", label(gpu)),
        None => label(gpu),
    }
}

fn all_inactive(gpu: &Gpu, others_up: bool, view: &NodeView<'_>, findings: &mut Findings) {
    let who = name_of(gpu);
    let board = board_here(gpu, view);
    let finding = if board == Board::Linked || others_up {
        Finding::fail(
            NAME,
            &ALL_INACTIVE,
            format!("{who}: all NVLinks are inactive"),
        )
    } else if board == Board::Loose {
        Finding::ok(
            NAME,
            format!("{who}: all NVLinks are inactive, which is normal for a card without a bridge"),
        )
    } else {
        Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!("{who}: all NVLinks are inactive: a fault on SXM boards, normal on a card without a bridge; the board is not shown"),
        )
        .required()
    };
    findings.push(
        finding
            .device(label(gpu))
            .seen(&gpu.all_links_inactive, "all inactive"),
    );
}

/// GPUs of one model that say the same.
fn inactive(
    alike: &[&Gpu],
    on: &[u32],
    down: &[u32],
    view: &NodeView<'_>,
    findings: &mut Findings,
) {
    let Some(gpu) = alike.first() else { return };
    let labels: Vec<String> = alike.iter().map(|g| label(g)).collect();
    let device = listed(&labels);
    let who = match gpu.name.value() {
        Some(name) => format!("{device} ({name})"),
        None => device.clone(),
    };
    let all = on.len().saturating_add(down.len());
    let what = if on.is_empty() {
        format!("{who}: all {all} NVLinks are down (inactive)")
    } else {
        let numbers: Vec<String> = down.iter().map(ToString::to_string).collect();
        format!(
            "{who}: {} of {all} NVLinks inactive ({})",
            down.len(),
            numbers.join(", ")
        )
    };
    let finding = match board_here(gpu, view) {
        Board::Linked => Finding::fail(NAME, &INACTIVE, what),
        Board::Loose if on.is_empty() => Finding::ok(
            NAME,
            format!("{what}, which is normal for a card without a bridge"),
        ),
        Board::Loose => Finding::ok(
            NAME,
            format!("{what}; a card uses as many as its bridge joins"),
        ),
        Board::Unknown => Finding::warn(NAME, &INACTIVE, what).note(
            "a fault on SXM boards; normal on PCIe cards without a bridge; the board is not shown",
        ),
    };
    let fact = down.first().and_then(|n| gpu.links.get(n));
    findings.push(match fact {
        Some(link) => finding.device(device).seen(&link.state, "inactive"),
        None => finding,
    });
}

/// What a row says about NVLink to other GPUs.
struct Row<'m> {
    gpu: &'m str,
    /// NVLinks to each GPU that it has some to.
    links: Vec<u32>,
    /// Levels to the others.
    other: Vec<&'m Level>,
    /// It reaches to the last GPU.
    whole: bool,
}

fn rows(matrix: &Matrix) -> Vec<Row<'_>> {
    let gpus = matrix.gpus.len();
    matrix
        .gpu_rows
        .iter()
        .map(|row| {
            let cells = row.cells.get(..gpus).unwrap_or(&row.cells);
            Row {
                gpu: &row.label,
                links: cells
                    .iter()
                    .filter_map(|c| match c {
                        Level::NvLink(n) => Some(*n),
                        _ => None,
                    })
                    .collect(),
                other: cells
                    .iter()
                    .filter(|c| !matches!(c, Level::NvLink(_) | Level::Itself))
                    .collect(),
                whole: row.cells.len() >= gpus,
            }
        })
        .collect()
}

fn cells(matrix: &Matrix, view: &NodeView<'_>, findings: &mut Findings) {
    let at = [matrix.origin.clone()];
    if !matrix.header {
        let mut numbers: Vec<String> = matrix
            .gpu_rows
            .iter()
            .flat_map(|r| &r.cells)
            .filter(|c| matches!(c, Level::NvLink(_)))
            .map(Level::word)
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let shown = if numbers.is_empty() {
            "no NVLink".to_owned()
        } else {
            numbers.join(", ")
        };
        let labels: Vec<&str> = matrix.gpu_rows.iter().map(|r| r.label.as_str()).collect();
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!("the rows of {} show {shown}; the header with the column titles is missing, so nothing more can be told", listed(&labels)),
            )
            .read_at(&at, "no header"),
        );
        return;
    }
    let rows = rows(matrix);
    if matrix.gpus.len() < 2 || rows.is_empty() {
        return;
    }
    if rows.iter().all(|r| r.links.is_empty()) {
        findings.push(without(matrix, &rows, view).read_at(&at, "between GPUs"));
        return;
    }
    let mig = mig(view);
    let mesh = rows.iter().any(|r| r.links.len() >= 2);
    let off: Vec<&Row<'_>> = rows
        .iter()
        .filter(|r| r.whole && r.links.is_empty())
        .collect();
    let best = rows
        .iter()
        .flat_map(|r| r.links.iter())
        .max()
        .copied()
        .unwrap_or(0);
    let mut fault = false;
    if !off.is_empty() && mesh {
        fault = true;
        let labels: Vec<&str> = off.iter().map(|r| r.gpu).collect();
        let words: BTreeSet<String> = off
            .iter()
            .flat_map(|r| &r.other)
            .map(|l| l.word())
            .collect();
        let words: Vec<String> = words.into_iter().collect();
        let what = format!(
            "{} has no NVLink to any other GPU ({}), the others have {}",
            listed(&labels),
            words.join(", "),
            counts(&rows)
        );
        findings.push(
            if mig {
                Finding::skipped(
                    NAME,
                    Reason::NotApplicable,
                    format!("{what}: normal with MIG, which is in use here"),
                )
            } else {
                Finding::fail(NAME, &OFF, what).device(listed(&labels))
            }
            .read_at(&at, "between GPUs"),
        );
    }
    // Every GPU's best partner has as many links as any other pair; a GPU below that has lost some.
    let below: Vec<&Row<'_>> = rows
        .iter()
        .filter(|r| mesh && !r.links.is_empty() && r.links.iter().max().is_some_and(|n| *n < best))
        .collect();
    if !below.is_empty() && below.len() < rows.len().saturating_sub(off.len()).saturating_sub(1) {
        fault = true;
        let labels: Vec<&str> = below.iter().map(|r| r.gpu).collect();
        let most = below
            .iter()
            .filter_map(|r| r.links.iter().max())
            .max()
            .copied()
            .unwrap_or(0);
        findings.push(
            Finding::warn(
                NAME,
                &INACTIVE,
                format!(
                    "{} reaches the others at NV{most}, the others each other at NV{best}",
                    listed(&labels)
                ),
            )
            .device(listed(&labels))
            .read_at(&at, "between GPUs"),
        );
    }
    if !fault && let Some(what) = odd_pair(matrix, &rows) {
        fault = true;
        findings.push(Finding::warn(NAME, &INACTIVE, what).read_at(&at, "between GPUs"));
    }
    if fault {
        return;
    }
    let missing: Vec<&str> = matrix.missing_rows().collect();
    let all_joined = rows.iter().all(|r| r.other.is_empty());
    let what = if all_joined {
        if matrix.gpus.len() == 2 {
            format!("{} between both GPUs", counts(&rows))
        } else {
            format!("{} between all {} GPUs", counts(&rows), matrix.gpus.len())
        }
    } else if mesh {
        format!("{} between GPUs, not every pair directly", counts(&rows))
    } else {
        format!(
            "{} between pairs of GPUs (bridges), PCIe between the others",
            counts(&rows)
        )
    };
    let finding = if missing.is_empty() && rows.iter().all(|r| r.whole) {
        Finding::ok(NAME, what)
    } else {
        let there: Vec<&str> = rows.iter().map(|r| r.gpu).collect();
        Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!(
                "the rows of {} show {}; those of {} are missing, so these GPUs are unknown",
                listed(&there),
                counts(&rows),
                if missing.is_empty() {
                    "the last".to_owned()
                } else {
                    listed(&missing)
                }
            ),
        )
    };
    findings.push(finding.read_at(&at, "between GPUs"));
}

/// Two GPUs that count the links between them differently, or one pair with fewer than all others have.
fn odd_pair(matrix: &Matrix, rows: &[Row<'_>]) -> Option<String> {
    let mut pairs: Vec<(&str, &str, u32)> = Vec::new();
    for (at, gpu) in matrix.gpus.iter().enumerate() {
        for other in matrix.gpus.iter().skip(at.saturating_add(1)) {
            let (Some(Level::NvLink(there)), Some(Level::NvLink(back))) =
                (matrix.between(gpu, other), matrix.between(other, gpu))
            else {
                continue;
            };
            if there != back {
                let (from, to, few, many) = if there < back {
                    (gpu, other, there, back)
                } else {
                    (other, gpu, back, there)
                };
                return Some(format!(
                    "{from} has NV{few} to {to}, and {to} NV{many} to {from}: links between them are lost"
                ));
            }
            pairs.push((gpu, other, *there));
        }
    }
    // Where links run directly from GPU to GPU, pairs have one or two of them by design.
    let best = pairs.iter().map(|(_, _, n)| *n).max()?;
    let fewer: Vec<_> = pairs.iter().filter(|(_, _, n)| *n < best).collect();
    let joined = rows.iter().all(|r| r.whole && r.other.is_empty());
    match fewer.as_slice() {
        [(gpu, other, n)] if joined && pairs.len() >= 6 => Some(format!(
            "{gpu} and {other} reach each other at NV{n}, all others at NV{best}"
        )),
        _ => None,
    }
}

/// `NV18`, or `NV1, NV2`.
fn counts(rows: &[Row<'_>]) -> String {
    let numbers: BTreeSet<u32> = rows.iter().flat_map(|r| r.links.iter().copied()).collect();
    let words: Vec<String> = numbers.iter().map(|n| format!("NV{n}")).collect();
    words.join(", ")
}

fn mig(view: &NodeView<'_>) -> bool {
    view.seen
        .gpu
        .gpus
        .iter()
        .any(|g| g.mig.value().is_some_and(|m| !m.is_empty()))
}

/// Every GPU is known to be a card of its own.
fn all_loose(view: &NodeView<'_>) -> bool {
    let gpus = &view.seen.gpu.gpus;
    !gpus.is_empty() && gpus.iter().all(|g| board_of(g) == Board::Loose)
}

/// No cell shows NVLink.
fn without(matrix: &Matrix, rows: &[Row<'_>], view: &NodeView<'_>) -> Finding {
    let levels: BTreeSet<&Level> = rows.iter().flat_map(|r| r.other.iter().copied()).collect();
    let levels: Vec<String> = levels.into_iter().map(Level::word).collect();
    let levels = levels.join(", ");
    let missing = matrix.missing_rows().next().is_some();
    match matrix.kind {
        MatrixKind::PcieOnly => Finding::skipped(
            NAME,
            Reason::NotApplicable,
            format!("topo -mp shows PCIe paths only ({levels} between GPUs): nothing about NVLink; topo -m shows it"),
        ),
        MatrixKind::WithNvLink if missing || mig(view) => Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!(
                "no NVLink in the rows that are there ({levels}): {}",
                if missing { "others are missing" } else { "normal with MIG, which is in use here" }
            ),
        ),
        MatrixKind::WithNvLink if linked_machine(view) => Finding::fail(
            NAME,
            &INACTIVE,
            format!("no GPU has NVLink to another ({levels}), on a board that joins all by NVLink"),
        ),
        MatrixKind::WithNvLink if all_loose(view) => Finding::ok(
            NAME,
            format!("no NVLink between the {} GPUs ({levels}): PCIe cards", matrix.gpus.len()),
        ),
        MatrixKind::WithNvLink => Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!(
                "no NVLink between the {} GPUs ({levels}): normal for PCIe cards, a fault on SXM boards, and the GPUs' names are not shown",
                matrix.gpus.len()
            ),
        )
        .fix("nvidia-smi -L names the GPUs, nvidia-smi nvlink -s shows their links"),
        MatrixKind::Unknown => Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!(
                "no NVLink between {} ({levels}); PCIe cards and topo -mp print the same, so this says nothing yet",
                if missing { "the GPUs whose rows are there".to_owned() } else { format!("the {} GPUs", matrix.gpus.len()) }
            ),
        )
        .fix("nvidia-smi nvlink -s shows the links of each GPU"),
    }
}
