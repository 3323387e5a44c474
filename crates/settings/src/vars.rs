//! One row of the table "what does this value do", with named columns.

use std::fmt;

use crate::nccl_ib_hca::NameList;
use crate::ucx_net_devices::DeviceList;
use crate::ucx_tls::{Build, evaluate};
use crate::version::{NcclVersion, UcxVersion};

/// A row: columns by name, in order.
pub type Row = Vec<(&'static str, String)>;

/// How an unset variable is written in the `value` column.
pub const UNSET: &str = "<unset>";

/// Why there is no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowError {
    /// The variable has no such table.
    NoTable,
    /// The build or version is not known.
    UnknownBuild,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTable => "no table for this variable",
            Self::UnknownBuild => "unknown build or version",
        })
    }
}

impl std::error::Error for RowError {}

/// The variables that have a table.
pub const TABLES: &[&str] = &["UCX_TLS", "UCX_NET_DEVICES", "NCCL_IB_HCA"];

/// What a value does: for UCX_TLS with a [`Build`] by name, for UCX_NET_DEVICES and NCCL_IB_HCA with a version.
///
/// The device tables say in `init` what is kept on a host with mlx5_0, mlx5_1, mlx5_10 (NCCL also mlx5_2), port 1 each,
/// and the interfaces eth0 and lo.
pub fn evaluate_row(name: &str, value: Option<&str>, build: &str) -> Result<Row, RowError> {
    let head = |name| {
        vec![
            ("table", String::from(name)),
            ("value", value.unwrap_or(UNSET).to_owned()),
            ("build", build.to_owned()),
        ]
    };
    match name {
        "UCX_TLS" => {
            let known = Build::named(build).ok_or(RowError::UnknownBuild)?;
            let mut row = head(name);
            row.extend(tls_columns(value, &known));
            Ok(row)
        }
        "UCX_NET_DEVICES" => {
            let version = build.parse().map_err(|_| RowError::UnknownBuild)?;
            let mut row = head(name);
            row.push(("init", net_devices_kept(value, version)));
            Ok(row)
        }
        "NCCL_IB_HCA" => {
            let version = build.parse().map_err(|_| RowError::UnknownBuild)?;
            let mut row = head(name);
            row.push(("init", hcas_kept(value, version)));
            Ok(row)
        }
        _ => Err(RowError::NoTable),
    }
}

fn tls_columns(value: Option<&str>, build: &Build) -> Row {
    let effect = evaluate(value, build, None);
    let read = effect.init.was_read();
    // Nothing can be said about capabilities if the list could not be read.
    let flag = |on: bool| {
        let word = if on { "True" } else { "False" };
        if read { word.to_owned() } else { String::new() }
    };
    vec![
        ("init", effect.init.as_str().to_owned()),
        ("detect", flag(effect.detect)),
        ("rdma", flag(effect.rdma)),
        ("ud_only", flag(effect.ud_only)),
        ("gdr", flag(effect.gdr)),
        ("nvlink", flag(effect.nvlink)),
        ("mnnvl", flag(effect.mnnvl)),
        ("tcp", flag(effect.tcp)),
        ("shm", flag(effect.shm)),
        ("inter", flag(effect.inter)),
        ("boot_missing", flag(effect.boot_missing)),
        ("warn", effect.warn.join("|")),
    ]
}

fn net_devices_kept(value: Option<&str>, version: UcxVersion) -> String {
    let Ok(list) = value
        .map(|value| DeviceList::parse(value, version))
        .transpose()
    else {
        return "parse error (init fails)".to_owned();
    };
    let keeps = |name: &str| list.as_ref().is_none_or(|list| list.keeps(name));
    let hcas = [("mlx5_0:1", "0"), ("mlx5_1:1", "1"), ("mlx5_10:1", "10")];
    let netdevs = [("eth0", "eth0"), ("lo", "lo")];
    format!(
        "{} / {}",
        join_kept(&hcas, keeps),
        join_kept(&netdevs, keeps)
    )
}

fn hcas_kept(value: Option<&str>, version: NcclVersion) -> String {
    let list = value.map(|value| NameList::parse(value, version));
    let keeps = |name: &str| list.as_ref().is_none_or(|list| list.keeps(name, Some(1)));
    let hcas = [
        ("mlx5_0", "0"),
        ("mlx5_1", "1"),
        ("mlx5_2", "2"),
        ("mlx5_10", "10"),
    ];
    if hcas.iter().all(|(name, _)| keeps(name)) {
        return "all".to_owned();
    }
    join_kept(&hcas, keeps)
}

fn join_kept(devices: &[(&str, &'static str)], keeps: impl Fn(&str) -> bool) -> String {
    let kept: Vec<&str> = devices
        .iter()
        .filter(|(name, _)| keeps(name))
        .map(|&(_, short)| short)
        .collect();
    if kept.is_empty() {
        "none".to_owned()
    } else {
        kept.join("+")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(name: &str, value: Option<&str>, build: &str, column: &str) -> String {
        evaluate_row(name, value, build)
            .unwrap()
            .into_iter()
            .find(|(key, _)| *key == column)
            .unwrap()
            .1
    }

    #[test]
    fn rows_have_named_columns() {
        let row = evaluate_row("UCX_TLS", Some("rc,rdma"), "full-1.23").unwrap();
        let keys: Vec<&str> = row.iter().map(|&(key, _)| key).collect();
        assert_eq!(
            keys,
            [
                "table",
                "value",
                "build",
                "init",
                "detect",
                "rdma",
                "ud_only",
                "gdr",
                "nvlink",
                "mnnvl",
                "tcp",
                "shm",
                "inter",
                "boot_missing",
                "warn"
            ]
        );
        assert_eq!(
            cell("UCX_TLS", Some("rc,rdma"), "full-1.23", "warn"),
            "rdma"
        );
        assert_eq!(cell("UCX_TLS", None, "full-1.23", "value"), "<unset>");
        assert_eq!(cell("UCX_TLS", Some(""), "full-1.23", "detect"), "");
        assert_eq!(
            cell("UCX_NET_DEVICES", Some("mlx5_0"), "1.21", "init"),
            "0 / none"
        );
        assert_eq!(
            cell("NCCL_IB_HCA", Some("mlx5_1"), "2.30.7", "init"),
            "1+10"
        );
    }

    #[test]
    fn no_row_for_what_has_no_table() {
        assert_eq!(evaluate_row("PATH", None, "1.21"), Err(RowError::NoTable));
        assert_eq!(
            evaluate_row("UCX_TLS", None, "1.21"),
            Err(RowError::UnknownBuild)
        );
        assert_eq!(
            evaluate_row("NCCL_IB_HCA", None, "new"),
            Err(RowError::UnknownBuild)
        );
    }
}
