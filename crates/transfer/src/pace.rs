//! How fast a leg was, and whether that is plausible for the link.

use serde::Serialize;

use crate::attribution::Carrier;
use crate::record::{LegRecord, Measurement};
use crate::side::Side;

/// From this size on a rate is judged; smaller transfers are made of latency.
const JUDGED_FROM: u64 = 16 << 20;

/// How fast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pace {
    /// Median of the timed transfers.
    pub bytes_per_second: f64,
    /// The slower end's link, where it is known.
    pub link_bytes_per_second: Option<f64>,
    /// At least a quarter of the link; none where it is not judged: small transfers, unknown links, and everything but
    /// RDMA hardware.
    pub plausible: Option<bool>,
}

/// The pace of a leg that was carried by something. None where nothing was timed.
pub fn pace(measured: &Measurement, record: &LegRecord, carrier: &Carrier) -> Option<Pace> {
    let mut seconds: Vec<f64> = record
        .seconds
        .iter()
        .copied()
        .filter(|s| s.is_finite() && *s > 0.0)
        .collect();
    seconds.sort_by(f64::total_cmp);
    let median = seconds.get(seconds.len() / 2)?;
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
    let bytes_per_second = record.leg.bytes as f64 / median;
    let link = Side::ALL
        .iter()
        .map(|side| link_of(measured, *side, carrier))
        .collect::<Option<Vec<f64>>>()
        .and_then(|ends| ends.into_iter().min_by(f64::total_cmp));
    let judged = record.leg.bytes >= JUDGED_FROM
        && matches!(
            carrier,
            Carrier::Rdma {
                software: false,
                ..
            }
        );
    Some(Pace {
        bytes_per_second,
        link_bytes_per_second: link,
        plausible: link
            .filter(|_| judged)
            .map(|link| bytes_per_second >= link / 4.0),
    })
}

/// Bytes a second of the devices of the carrier at one end; of its own, where the table's are not there.
fn link_of(measured: &Measurement, side: Side, carrier: &Carrier) -> Option<f64> {
    let facts = measured.ends.of(side).facts.as_ref()?;
    match carrier {
        Carrier::Rdma { devices, .. } => {
            let rates = devices
                .iter()
                .filter_map(|device| facts.ports.get(device))
                .filter_map(|port| gigabits(&port.rate));
            let sum: f64 = rates.sum();
            (sum > 0.0).then_some(sum * 1e9 / 8.0)
        }
        Carrier::Tcp { interfaces } => {
            let sum: u64 = interfaces
                .iter()
                .filter_map(|name| facts.speeds.get(name))
                .sum();
            #[expect(clippy::cast_precision_loss, reason = "speeds are far below 2^52")]
            let speed = sum as f64;
            (sum > 0).then_some(speed * 1e6 / 8.0)
        }
        _ => None,
    }
}

/// `400 Gb/sec (4X NDR)`.
fn gigabits(rate: &str) -> Option<f64> {
    let (number, unit) = rate.split_once(' ')?;
    unit.starts_with("Gb/sec").then(|| number.parse().ok())?
}
