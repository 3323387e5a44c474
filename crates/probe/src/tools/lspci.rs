//! `lspci`, also `-n`, `-nn` and `-vv`.

use model::Observation;
use model::observation::pci::PciDevice;
use model::observation::{Completeness, Tool};

use super::Kind;
use crate::parser::{At, Parser};
use crate::text::{keep, pci_address, small, thousandths};

pub(crate) const KIND: Kind = Kind {
    tool: Tool::Lspci,
    programs: &["lspci"],
    command: |_| true,
    starts: |line, _| {
        heading(line).is_some()
            || line.trim().starts_with("LnkCap:")
            || line.trim().starts_with("LnkSta:")
    },
    open: |_| {
        Box::new(Lspci {
            address: None,
            headless: false,
        })
    },
};

/// Functions that are kept.
const MAX_FUNCTIONS: usize = 8192;

/// Key of the function whose heading is cut off.
const UNNAMED: &str = "";

struct Lspci {
    address: Option<String>,
    headless: bool,
}

/// `0001:00:00.0 3D controller [0302]: NVIDIA Corporation …`
fn heading(line: &str) -> Option<(String, &str)> {
    let (address, rest) = line.split_once(' ')?;
    let colons = address.matches(':').count();
    if line.starts_with([' ', '\t']) || !(1..=2).contains(&colons) {
        return None;
    }
    let address = pci_address(address)?;
    rest.contains(": ").then_some((address, rest.trim()))
}

/// Codes in brackets: `[0302]`, `[10de:20b2]`.
fn class_code(text: &str) -> Option<u32> {
    let (_, code) = text.trim_end().strip_suffix(']')?.rsplit_once('[')?;
    (code.len() == 4).then(|| u32::from_str_radix(code, 16).ok())?
}

fn ids(text: &str) -> Option<(u32, u32)> {
    text.split('[').skip(1).find_map(|part| {
        let inside = part.split(']').next()?;
        let (vendor, device) = inside.split_once(':')?;
        if vendor.len() != 4 || device.len() != 4 {
            return None;
        }
        Some((
            u32::from_str_radix(vendor, 16).ok()?,
            u32::from_str_radix(device, 16).ok()?,
        ))
    })
}

/// `Speed 16GT/s` in MT/s.
fn speed(text: &str) -> Option<u32> {
    u32::try_from(thousandths(text.split_once("Speed")?.1)?).ok()
}

fn width(text: &str) -> Option<u32> {
    small(text.split_once("Width x")?.1)
}

/// What stands in brackets behind a value: `(downgraded)`, `(ok)`.
fn downgraded(text: &str, key: &str) -> Option<bool> {
    let (_, rest) = text.split_once(key)?;
    let value = rest.split(',').next()?;
    let (_, note) = value.split_once('(')?;
    Some(note.starts_with("downgraded"))
}

fn function<'a>(out: &'a mut Observation, address: &str) -> Option<&'a mut PciDevice> {
    let all = &mut out.host.pci;
    if all.len() >= MAX_FUNCTIONS && !all.contains_key(address) {
        return None;
    }
    Some(all.entry(address.to_owned()).or_default())
}

impl Lspci {
    fn head(&mut self, address: String, rest: &str, at: At<'_>, out: &mut Observation) {
        let (class, name) = rest.split_once(": ").unwrap_or((rest, ""));
        if let Some(function) = function(out, &address) {
            let origin = at.origin();
            let plain = class.split('[').next().unwrap_or(class);
            if class.len() == 4 && class.chars().all(|c| c.is_ascii_hexdigit()) {
                // `-n`: codes only.
                if let Ok(code) = u32::from_str_radix(class, 16) {
                    function.class.see(code, origin.clone());
                }
                if let Some((vendor, device)) =
                    ids(&format!("[{}]", name.split(' ').next().unwrap_or_default()))
                {
                    function.vendor.see(vendor, origin.clone());
                    function.device.see(device, origin);
                }
            } else {
                function.class_name.see(keep(plain), origin.clone());
                if let Some(code) = class_code(class) {
                    function.class.see(code, origin.clone());
                }
                if let Some((vendor, device)) = ids(name) {
                    function.vendor.see(vendor, origin.clone());
                    function.device.see(device, origin.clone());
                }
                function
                    .virtual_function
                    .see(name.contains("Virtual Function"), origin.clone());
                function.name.see(keep(name), origin);
            }
        }
        self.address = Some(address);
    }
}

impl Parser for Lspci {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        if let Some((address, rest)) = heading(line) {
            self.head(address, rest, at, out);
            return true;
        }
        let text = line.trim();
        let link = text.starts_with("LnkCap:") || text.starts_with("LnkSta:");
        if self.address.is_none() && !link && !self.headless {
            return false;
        }
        if self.address.is_none() {
            self.headless = true;
        }
        let address = self.address.clone().unwrap_or_else(|| UNNAMED.to_owned());
        let indented = line.starts_with([' ', '\t']);
        let Some(function) = function(out, &address) else {
            return indented;
        };
        let origin = at.origin();
        if text.starts_with("LnkCap:") {
            if let Some(speed) = speed(text) {
                function.pcie.max_speed_mts.see(speed, origin.clone());
            }
            if let Some(width) = width(text) {
                function.pcie.max_width.see(width, origin);
            }
        } else if text.starts_with("LnkSta:") {
            if let Some(speed) = speed(text) {
                function.pcie.speed_mts.see(speed, origin.clone());
            }
            if let Some(width) = width(text) {
                function.pcie.width.see(width, origin.clone());
            }
            // Versions without notes say nothing about it.
            if let Some(down) = downgraded(text, "Speed") {
                function.pcie.speed_downgraded.see(down, origin.clone());
            }
            if let Some(down) = downgraded(text, "Width") {
                function.pcie.width_downgraded.see(down, origin);
            }
        } else if let Some(rest) = text.strip_prefix("ACSCtl:") {
            let redirects = rest.contains("ReqRedir+") || rest.contains("CmpltRedir+");
            function.acs_redirect.see(redirects, origin);
        } else if let Some(rest) = text.strip_prefix("NUMA node:") {
            if let Ok(node) = rest.trim().parse() {
                function.numa_node.see(node, origin);
            }
        } else if let Some(rest) = text.strip_prefix("Kernel driver in use:") {
            function.driver.see(keep(rest), origin);
        } else {
            return indented;
        }
        true
    }

    fn finish(&mut self, _: At<'_>, _: &mut Observation) -> Completeness {
        if self.headless {
            Completeness::Cut("the line that names the device is missing".to_owned())
        } else {
            Completeness::Whole
        }
    }
}
