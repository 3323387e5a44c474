//! One request: who asks, for what, whether it is allowed, what goes wrong, and the answer.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT,
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::fault::{ExecFault, What};
use crate::hub::{Caller, Hub};
use crate::objects::Ask;
use crate::record::lock;
use crate::status::{Refusal, RefusalBody, Wanted};
use crate::tap::Line;
use crate::target::Target;
use crate::{discovery, exec, logs, record, review, table};

pub(crate) type Body = Full<Bytes>;

const LARGEST_BODY: usize = 4 << 20;

pub(crate) fn respond_empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = status;
    response
}

pub(crate) fn respond(
    code: u16,
    content_type: &'static str,
    bytes: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(Full::new(bytes.into()));
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn json_answer(code: u16, value: &Value) -> Response<Body> {
    respond(code, "application/json", format!("{value}\n"))
}

fn refuse(refusal: Refusal) -> Response<Body> {
    let mut response = match refusal.body {
        RefusalBody::Status(value) => json_answer(refusal.code, &value),
        RefusalBody::Text(text) => respond(refusal.code, "text/plain; charset=utf-8", text),
    };
    if let Some(seconds) = refusal.retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Answers one request, and records it.
pub(crate) async fn serve(
    hub: Arc<Hub>,
    line: Arc<Line>,
    certified: Option<String>,
    request: Request<Incoming>,
) -> Response<Body> {
    let header = |name: HeaderName| {
        let value = request.headers().get(name).and_then(|v| v.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let query: Vec<(String, String)> =
        form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes())
            .into_owned()
            .collect();
    let impersonated = header(HeaderName::from_static("impersonate-user"));
    let number = hub.journal.request(record::Request {
        at: hub.journal.now(),
        connection: line.number,
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
        query: query.clone(),
        impersonated: (!impersonated.is_empty()).then(|| impersonated.clone()),
        agent: header(USER_AGENT),
        ..record::Request::default()
    });
    let token = header(AUTHORIZATION);
    let token = token.strip_prefix("Bearer ").map(str::to_owned);
    let job = Job {
        hub: &hub,
        line: &line,
        number,
        query,
    };
    let answer = job.run(request, token, certified, &impersonated).await;
    let response = answer.unwrap_or_else(refuse);
    let status = response.status().as_u16();
    hub.journal
        .amend_request(number, |r| r.status = Some(status));
    response
}

struct Job<'a> {
    hub: &'a Arc<Hub>,
    line: &'a Arc<Line>,
    number: usize,
    query: Vec<(String, String)>,
}

impl Job<'_> {
    async fn run(
        &self,
        mut request: Request<Incoming>,
        token: Option<String>,
        certified: Option<String>,
        impersonated: &str,
    ) -> Result<Response<Body>, Refusal> {
        let path = request.uri().path().to_owned();
        let target = Target::parse(&path, self.query.clone());
        let watches = matches!(self.query.iter().find(|(k, _)| k == "watch"), Some((_, v)) if v == "true" || v == "1");
        let verb = match (request.method(), &target) {
            (&Method::GET, Some(t)) if t.name.is_empty() && watches => "watch",
            (&Method::GET, Some(t)) if t.name.is_empty() => "list",
            (&Method::GET | &Method::HEAD, _) => "get",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, _) => "delete",
            _ => "unknown",
        };
        let caller = self.caller(token, certified, impersonated);
        let name = caller.as_ref().map_or("", |caller| &caller.name);
        self.hub
            .journal
            .amend_request(self.number, |r| name.clone_into(&mut r.user));

        let nothing = Target::default();
        let wanted = target.as_ref().unwrap_or(&nothing).wanted();
        let in_exec = self.faults(verb, &wanted, target.as_ref(), name).await?;
        let caller = caller?;

        let Some(target) = target else {
            return self.paths(&path, &request, &caller);
        };
        self.authorize(verb, &target, &caller)?;
        match (verb, target.plural.as_str(), target.subresource.as_str()) {
            ("get" | "create", "pods", "exec") if target.group.is_empty() => exec::answer(
                self.hub,
                self.line,
                &caller.name,
                &target,
                &mut request,
                in_exec,
            ),
            ("get", "pods", "log") if target.group.is_empty() => logs::answer(self.hub, &target),
            ("create", plural @ ("selfsubjectaccessreviews" | "selfsubjectrulesreviews"), "") => {
                let body = self.body(request).await;
                let answer = review::answer(&lock(&self.hub.world), plural, &body, &caller);
                Ok(json_answer(201, &answer))
            }
            ("list" | "get", _, "") => self.read(&target, &request),
            _ => {
                self.body(request).await;
                Err(Refusal::method_not_allowed())
            }
        }
    }

    fn caller(
        &self,
        token: Option<String>,
        certified: Option<String>,
        impersonated: &str,
    ) -> Result<Caller, Refusal> {
        let caller = match (token, certified) {
            (Some(token), _) => self
                .hub
                .user_of_token(&token)
                .ok_or_else(Refusal::unauthorized)?,
            (None, Some(user)) => self.hub.user(&user),
            (None, None) if self.hub.secure => self.hub.user("system:anonymous"),
            // kubectl sends no credentials over plain HTTP: whoever comes is the scenario's first user.
            (None, None) => {
                let first = lock(&self.hub.users).first().map(|user| user.name.clone());
                self.hub.user(&first.unwrap_or_default())
            }
        };
        if impersonated.is_empty() {
            return Ok(caller);
        }
        let users = Wanted {
            group: "",
            plural: "users",
            subresource: "",
            namespace: "",
            name: impersonated,
        };
        if !caller.rights.permits("impersonate", &users) {
            return Err(Refusal::forbidden(&caller.name, "impersonate", &users));
        }
        Ok(self.hub.user(impersonated))
    }

    /// Lets what was ordered go wrong. What is left is for the session of an exec.
    async fn faults(
        &self,
        verb: &str,
        wanted: &Wanted<'_>,
        target: Option<&Target>,
        user: &str,
    ) -> Result<Vec<ExecFault>, Refusal> {
        let container = target.map_or_else(String::new, |target| self.container(target));
        let mut in_exec = Vec::new();
        for what in self.hub.struck(verb, wanted, &container) {
            match what {
                What::Nothing => {}
                What::Status(code, retry_after) => {
                    let refusal = Refusal::of_code(code, verb, wanted, user);
                    let retry_after = retry_after.or(refusal.retry_after);
                    return Err(Refusal {
                        retry_after,
                        ..refusal
                    });
                }
                What::Refuse(refusal) => return Err(refusal),
                What::Slow(time) => sleep(time).await,
                What::Hang => std::future::pending().await,
                What::Cut(bytes, cut) => self.line.cut_after(bytes, cut),
                What::Garbage(bytes) => self.line.garble(bytes),
                What::Exec(fault) => in_exec.push(fault),
            }
        }
        Ok(in_exec)
    }

    /// The container that a request is about, as far as that can be known.
    fn container(&self, target: &Target) -> String {
        let asked = target.parameter("container");
        let world = lock(&self.hub.world);
        let pod = world.pod(&target.namespace, &target.name);
        pod.and_then(|pod| exec::container_of(pod, asked).ok())
            .or(asked.map(str::to_owned))
            .unwrap_or_default()
    }

    fn authorize(&self, verb: &str, target: &Target, caller: &Caller) -> Result<(), Refusal> {
        let wanted = target.wanted();
        // system:basic-user lets everybody ask for their own rights.
        let about_oneself = target.group == "authorization.k8s.io";
        let anonymous = caller.name == "system:anonymous";
        if !(caller.rights.permits(verb, &wanted) || about_oneself && !anonymous) {
            return Err(Refusal::forbidden(&caller.name, verb, &wanted));
        }
        // AuthorizePodWebsocketUpgradeCreatePermission, on since 1.35.
        let exec = target.plural == "pods" && target.subresource == "exec";
        if exec
            && verb == "get"
            && self.hub.minor >= 35
            && !caller.rights.permits("create", &wanted)
        {
            return Err(Refusal::forbidden(&caller.name, "create", &wanted));
        }
        Ok(())
    }

    async fn body(&self, request: Request<Incoming>) -> Bytes {
        let body = Limited::new(request.into_body(), LARGEST_BODY)
            .collect()
            .await;
        let bytes = body
            .map(http_body_util::Collected::to_bytes)
            .unwrap_or_default();
        self.hub
            .journal
            .amend_request(self.number, |r| r.body = bytes.to_vec());
        bytes
    }

    /// Everything that is not a resource.
    fn paths(
        &self,
        path: &str,
        request: &Request<Incoming>,
        caller: &Caller,
    ) -> Result<Response<Body>, Refusal> {
        let accept = request
            .headers()
            .get(ACCEPT)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default();
        let world = lock(&self.hub.world);
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let public = matches!(
            parts.as_slice(),
            ["version" | "healthz" | "livez" | "readyz"]
        );
        if caller.name == "system:anonymous" && !public {
            return Err(Refusal::forbidden_path(&caller.name, path));
        }
        let value = match parts.as_slice() {
            ["version"] => Some(version(self.hub.minor)),
            ["healthz" | "livez" | "readyz"] => {
                return Ok(respond(200, "text/plain; charset=utf-8", "ok"));
            }
            [root @ ("api" | "apis")] if discovery::wants_aggregated(accept) => {
                let value = discovery::aggregated(&world, *root == "api");
                return Ok(respond(200, discovery::AGGREGATED, value.to_string()));
            }
            ["api"] => Some(discovery::core_versions()),
            ["apis"] => Some(discovery::group_list(&world)),
            ["api", version] => discovery::resources(&world, "", version),
            ["apis", group] => discovery::group(&world, group),
            ["apis", group, version] => discovery::resources(&world, group, version),
            _ => None,
        };
        value
            .map(|value| json_answer(200, &value))
            .ok_or_else(Refusal::no_such_path)
    }

    fn read(
        &self,
        target: &Target,
        request: &Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let world = lock(&self.hub.world);
        let kind = world
            .kind(&target.group, &target.version, &target.plural)
            .ok_or_else(Refusal::no_such_path)?;
        let accept = request
            .headers()
            .get(ACCEPT)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default();
        let value = if target.name.is_empty() {
            let parameter = |name: &str| target.parameter(name).unwrap_or_default().to_owned();
            let ask = Ask {
                labels: parameter("labelSelector"),
                fields: parameter("fieldSelector"),
                limit: parameter("limit").parse().ok().filter(|&limit| limit > 0),
                from: Some(parameter("continue")).filter(|token| !token.is_empty()),
            };
            world.list(kind, &target.namespace, &ask)?
        } else {
            world
                .get(kind, &target.namespace, &target.name)
                .cloned()
                .ok_or_else(|| Refusal::not_found(&target.plural, &target.group, &target.name))?
        };
        let value = if table::wanted(accept) && target.plural == "pods" {
            table::of_pods(&value)
        } else {
            value
        };
        Ok(json_answer(200, &value))
    }
}

fn version(minor: u32) -> Value {
    json!({
        "major": "1",
        "minor": minor.to_string(),
        "gitVersion": format!("v1.{minor}.4"),
        "gitCommit": "0000000000000000000000000000000000000000",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.23.8",
        "compiler": "gc",
        "platform": "linux/amd64",
    })
}
