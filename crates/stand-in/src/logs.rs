//! Logs of containers.

use bytes::Bytes;
use http::Response;
use serde_json::Value;

use crate::api::{Body, respond};
use crate::exec::container_of;
use crate::hub::Hub;
use crate::record::lock;
use crate::status::Refusal;
use crate::target::Target;

/// Answers `pods/NAME/log`. Texts: `pkg/kubelet/kubelet_pods.go`, `validateContainerLogStatus`.
pub(crate) fn answer(hub: &Hub, target: &Target) -> Result<Response<Body>, Refusal> {
    let pod = lock(&hub.world)
        .pod(&target.namespace, &target.name)
        .cloned();
    let pod = pod.ok_or_else(|| Refusal::not_found("pods", "", &target.name))?;
    let name = container_of(&pod, target.parameter("container"))?;
    if pod.pointer("/spec/nodeName").is_none() {
        // The API server has nowhere to ask, and answers with nothing.
        return Ok(respond(200, "text/plain", Bytes::new()));
    }
    let status = pod
        .pointer("/status/containerStatuses")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|status| status.get("name").and_then(Value::as_str) == Some(name.as_str()));
    let subject = format!("container \"{name}\" in pod \"{}\"", target.name);
    let restarts = status
        .and_then(|s| s.get("restartCount"))
        .and_then(Value::as_u64)
        .unwrap_or(0);
    if matches!(target.parameter("previous"), Some("true" | "1")) && restarts == 0 {
        let text = format!("previous terminated {subject} not found");
        return Err(Refusal::bad_request(&text));
    }
    let waiting = status
        .and_then(|s| s.pointer("/state/waiting/reason"))
        .and_then(Value::as_str);
    if let (Some(reason), 0) = (waiting, restarts) {
        let what = match reason {
            "ImagePullBackOff" => {
                "is waiting to start: trying and failing to pull image".to_owned()
            }
            reason => format!("is waiting to start: {reason}"),
        };
        return Err(Refusal::bad_request(&format!("{subject} {what}")));
    }
    let place = (target.namespace.clone(), target.name.clone(), name);
    let log = lock(&hub.containers)
        .get(&place)
        .map(|c| c.log.clone())
        .unwrap_or_default();
    let mut bytes: &[u8] = &log;
    if let Some(lines) = target
        .parameter("tailLines")
        .and_then(|n| n.parse::<usize>().ok())
    {
        bytes = last_lines(bytes, lines);
    }
    if let Some(limit) = target
        .parameter("limitBytes")
        .and_then(|n| n.parse::<usize>().ok())
    {
        bytes = bytes.get(..limit).unwrap_or(bytes);
    }
    Ok(respond(200, "text/plain", Bytes::copy_from_slice(bytes)))
}

fn last_lines(bytes: &[u8], lines: usize) -> &[u8] {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if lines == 0 {
        return &[];
    }
    let cut = body
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, byte)| **byte == b'\n')
        .nth(lines - 1)
        .map_or(0, |(at, _)| at + 1);
    bytes.get(cut..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::last_lines;

    #[test]
    fn the_last_lines_with_and_without_a_last_line_end() {
        assert_eq!(last_lines(b"a\nb\nc\n", 2), b"b\nc\n");
        assert_eq!(last_lines(b"a\nb\nc", 1), b"c");
        assert_eq!(last_lines(b"a\nb\n", 9), b"a\nb\n");
        assert_eq!(last_lines(b"a\nb\n", 0), b"");
        assert_eq!(last_lines(b"", 3), b"");
    }
}
