//! The proxy of the environment, as kubectl takes it (golang.org/x/net/http/httpproxy, config.go `FromEnvironment`): by
//! the scheme of the API server, never for this machine, and not for what NO_PROXY names. kube holds NO_PROXY against the
//! proxy's own address (kube-client src/config/file_loader.rs `proxy_url`), so it is worked out here.

use std::net::IpAddr;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;

/// What the environment says, by a variable's name; an empty value says nothing.
pub(crate) trait Environment: Fn(&str) -> Option<String> {}
impl<F: Fn(&str) -> Option<String>> Environment for F {}

/// The proxy for an API server; `Err` where the environment names one that is no address.
pub(crate) fn for_server(
    server: &Uri,
    environment: impl Environment,
) -> Result<Option<Uri>, &'static str> {
    let variable = |upper: &str, lower: &str| {
        [upper, lower]
            .into_iter()
            .find_map(|name| environment(name).filter(|value| !value.trim().is_empty()))
    };
    let is_https = server.scheme_str() == Some("https");
    let (proxy, odd) = if is_https {
        (
            variable("HTTPS_PROXY", "https_proxy"),
            "HTTPS_PROXY is not the address of a proxy",
        )
    } else {
        (
            variable("HTTP_PROXY", "http_proxy"),
            "HTTP_PROXY is not the address of a proxy",
        )
    };
    let Some(proxy) = proxy else { return Ok(None) };
    let host = server.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_here = bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if is_here {
        return Ok(None);
    }
    let port = server.port_u16().unwrap_or(if is_https { 443 } else { 80 });
    let Some(no) = without_ports(&variable("NO_PROXY", "no_proxy").unwrap_or_default(), port)
    else {
        return Ok(None);
    };
    // Which one does not matter to the rules.
    let rules = Matcher::builder().all("http://proxy").no(no).build();
    if rules.intercept(server).is_none() {
        return Ok(None);
    }
    address(proxy.trim()).map(Some).ok_or(odd)
}

/// The entries of NO_PROXY that count for this port, without it; `None` where one of them stands for everything.
fn without_ports(entries: &str, port: u16) -> Option<String> {
    let mut kept = Vec::new();
    for entry in entries.split(',').map(str::trim) {
        if entry == "*" {
            return None;
        }
        match entry.rsplit_once(':') {
            // An IPv6 address has more of them.
            Some((host, of)) if !host.contains(':') || host.ends_with(']') => {
                if of.parse() == Ok(port) {
                    kept.push(host.trim_start_matches('[').trim_end_matches(']'));
                }
            }
            _ => kept.push(entry),
        }
    }
    Some(kept.join(","))
}

/// An address of a proxy; without a scheme it is an HTTP one.
pub(crate) fn address(text: &str) -> Option<Uri> {
    let with_scheme = if text.contains("://") {
        text.to_owned()
    } else {
        format!("http://{text}")
    };
    let uri: Uri = with_scheme.parse().ok()?;
    uri.host().is_some().then_some(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(server: &str, variables: &[(&str, &str)]) -> Result<Option<String>, &'static str> {
        let server: Uri = server.parse().unwrap();
        let found = for_server(&server, |name| {
            variables
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, value)| (*value).to_owned())
        });
        found.map(|uri| uri.map(|uri| uri.to_string()))
    }

    #[test]
    fn the_scheme_decides_which_variable_counts() {
        let both = [("HTTPS_PROXY", "http://s:1"), ("HTTP_PROXY", "http://h:1")];
        assert_eq!(
            of("https://api.example:6443", &both),
            Ok(Some("http://s:1/".to_owned()))
        );
        assert_eq!(
            of("http://api.example:8080", &both),
            Ok(Some("http://h:1/".to_owned()))
        );
        assert_eq!(
            of("https://api.example", &[("HTTP_PROXY", "http://h:1")]),
            Ok(None)
        );
        assert_eq!(
            of("https://api.example", &[("https_proxy", "proxy:3128")]),
            Ok(Some("http://proxy:3128/".to_owned()))
        );
        assert_eq!(of("https://api.example", &[]), Ok(None));
        assert!(of("https://api.example", &[("HTTPS_PROXY", "http://")]).is_err());
    }

    #[test]
    fn what_needs_no_proxy_gets_none() {
        let with = |server: &str, no: &str| {
            of(
                server,
                &[("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", no)],
            )
            .map(|proxy| proxy.is_some())
        };
        for (server, no) in [
            ("https://10.0.3.7:6443", "10.0.0.0/8"),
            ("https://10.0.3.7:6443", "10.0.3.7"),
            ("https://api.corp.example", ".corp.example"),
            ("https://api.corp.example", "corp.example, other"),
            ("https://api.corp.example", "*"),
            ("https://10.0.3.7:6443", "a.example, *"),
            ("https://10.0.3.7:6443", "10.0.3.7:6443"),
            ("https://[fd00::7]:6443", "fd00::/8"),
            ("https://[fd00::7]:6443", "[fd00::7]:6443"),
            // Never through a proxy, whatever is said.
            ("https://127.0.0.1:6443", ""),
            ("https://[::1]:6443", ""),
            ("https://localhost:6443", ""),
        ] {
            assert_eq!(with(server, no), Ok(false), "{server} {no}");
        }
        for (server, no) in [
            ("https://10.0.3.7:6443", "192.168.0.0/16"),
            // The proxy's own name says nothing about the server.
            ("https://10.0.3.7:6443", "proxy"),
            ("https://notcorp.example", "corp.example"),
            ("https://api.example", ""),
            ("https://10.0.3.7:6443", "10.0.3.7:443"),
        ] {
            assert_eq!(with(server, no), Ok(true), "{server} {no}");
        }
    }
}
