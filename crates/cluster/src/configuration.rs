//! Which cluster is meant and how to get in: kubeconfig files as kubectl reads them, else the service account of a pod.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use model::pod::{Fault, FaultKind};

use crate::access::Access;
use crate::{native_errors, proxy};

/// The largest kubeconfig that is read.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// The configuration for a client.
pub(crate) async fn of(access: &Access) -> Result<Config, Fault> {
    let explicit = access.kubeconfig.clone();
    // A file may be a pipe that nobody writes to.
    let reading = tokio::task::spawn_blocking(move || read(explicit.as_deref()));
    let patience = access.patience();
    let read = match tokio::time::timeout(patience, reading).await {
        Ok(Ok(read)) => read?,
        Ok(Err(_)) => return Err(broken("the kubeconfig cannot be read")),
        Err(_) => {
            return Err(broken(format!(
                "the kubeconfig could not be read in {} s",
                patience.as_secs()
            )));
        }
    };
    // Inside a pod there is usually no file, and a service account instead.
    let Some(kubeconfig) = read else {
        // Who names a context does not mean the cluster that this happens to run in.
        return match &access.context {
            None => of_pod().ok_or_else(no_configuration)?,
            Some(context) => Err(Fault::new(
                FaultKind::UnknownContext,
                format!("no context is called '{context}': {} is there", neither()),
            )),
        };
    };
    if kubeconfig.contexts.is_empty() && access.context.is_none() && access.kubeconfig.is_none() {
        return of_pod().ok_or_else(|| {
            let mut fault = no_configuration();
            if let Some(files) = named_by_variable() {
                fault.detail = format!("$KUBECONFIG ({files}) has no context");
            }
            fault
        })?;
    }
    let options = KubeConfigOptions {
        context: access.context.clone(),
        ..KubeConfigOptions::default()
    };
    let known: Vec<String> = kubeconfig.contexts.iter().map(|c| c.name.clone()).collect();
    let own_proxy = proxy_of(&kubeconfig, access.context.as_deref());
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| {
            let mut fault = native_errors::of_configuration(&error);
            if fault.kind == FaultKind::UnknownContext && !known.is_empty() {
                fault.detail = format!("{}; there are: {}", fault.detail, listed(&known));
            }
            fault
        })?;
    config.proxy_url = match own_proxy {
        Some(url) => Some(
            proxy::address(&url)
                .ok_or_else(|| broken("the proxy-url of the cluster is not one"))?,
        ),
        None => of_environment(&config)?,
    };
    Ok(config)
}

/// The service account of the pod that this runs in.
fn of_pod() -> Option<Result<Config, Fault>> {
    let mut config = Config::incluster().ok()?;
    Some(of_environment(&config).map(|proxy| {
        config.proxy_url = proxy;
        config
    }))
}

fn of_environment(config: &Config) -> Result<Option<http::Uri>, Fault> {
    proxy::for_server(&config.cluster_url, |name| std::env::var(name).ok()).map_err(broken)
}

fn broken(what: impl Into<String>) -> Fault {
    Fault::new(FaultKind::BrokenKubeconfig, what)
}

/// The first of many names.
fn listed(names: &[String]) -> String {
    const MOST: usize = 12;
    let shown = names.get(..MOST.min(names.len())).unwrap_or(names);
    match names.len().saturating_sub(MOST) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// `proxy-url` of the cluster that the context names. NO_PROXY does not count for it (client-go tools/clientcmd,
/// client_config.go).
fn proxy_of(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let context = context.or(kubeconfig.current_context.as_deref())?;
    let named = kubeconfig.contexts.iter().find(|c| c.name == context)?;
    let cluster = &named.context.as_ref()?.cluster;
    let found = kubeconfig.clusters.iter().find(|c| &c.name == cluster)?;
    let url = found.cluster.as_ref()?.proxy_url.clone()?;
    (!url.is_empty()).then_some(url)
}

fn home() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    Some(Path::new(&home).join(".kube").join("config"))
}

fn named_by_variable() -> Option<String> {
    let value = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty())?;
    Some(value.to_string_lossy().into_owned())
}

/// No kubeconfig, in words.
fn neither() -> String {
    named_by_variable().map_or_else(
        || {
            let home = home().map_or_else(
                || "~/.kube/config".to_owned(),
                |path| path.display().to_string(),
            );
            format!("neither $KUBECONFIG, nor {home}")
        },
        |files| format!("nothing that $KUBECONFIG names ({files})"),
    )
}

fn no_configuration() -> Fault {
    Fault::new(
        FaultKind::NoKubeconfig,
        format!("{}, nor a service account of a pod is there", neither()),
    )
}

/// The files together; `None` where there is none. One that was named has to be there; of a list those that are there
/// count (client-go tools/clientcmd, loader.go `Load`).
fn read(explicit: Option<&Path>) -> Result<Option<Kubeconfig>, Fault> {
    if let Some(path) = explicit {
        return one(path)?.map(Some).ok_or_else(|| {
            Fault::new(
                FaultKind::NoKubeconfig,
                format!("{}: there is no such file", path.display()),
            )
        });
    }
    let list = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let mut paths: Vec<PathBuf> = std::env::split_paths(&list)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    if paths.is_empty() {
        paths.extend(home());
    }
    let mut all: Option<Kubeconfig> = None;
    for path in paths {
        let Some(next) = one(&path)? else { continue };
        all = Some(match all {
            None => next,
            Some(before) => before
                .merge(next)
                .map_err(|error| native_errors::of_configuration(&error))?,
        });
    }
    Ok(all)
}

/// One file; `None` where it is not there.
fn one(path: &Path) -> Result<Option<Kubeconfig>, Fault> {
    let told = |error: std::io::Error| broken(format!("{}: {error}", path.display()));
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(told(error)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut bytes).map_err(told)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| broken(format!("{}: it is no UTF-8 text", path.display())))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.trim().is_empty() {
        return Ok(Some(Kubeconfig::default()));
    }
    let mut kubeconfig = Kubeconfig::from_yaml(text)
        .map_err(|error| native_errors::of_configuration(&error))
        .map_err(|mut fault| {
            fault.detail = format!("{}: {}", path.display(), fault.detail);
            fault
        })?;
    if let Some(directory) = path.parent() {
        from(directory, &mut kubeconfig);
    }
    Ok(Some(kubeconfig))
}

/// Paths in a kubeconfig are as seen from where it lies; a program's only where it has a separator (client-go
/// tools/clientcmd, loader.go `GetAuthInfoFileReferences`).
fn from(directory: &Path, kubeconfig: &mut Kubeconfig) {
    let absolute = |path: &mut Option<String>| {
        if let Some(text) = path
            && !text.is_empty()
            && Path::new(text.as_str()).is_relative()
            && let Some(joined) = directory.join(text.as_str()).to_str()
        {
            joined.clone_into(text);
        }
    };
    for cluster in kubeconfig
        .clusters
        .iter_mut()
        .filter_map(|c| c.cluster.as_mut())
    {
        absolute(&mut cluster.certificate_authority);
    }
    for user in kubeconfig
        .auth_infos
        .iter_mut()
        .filter_map(|u| u.auth_info.as_mut())
    {
        absolute(&mut user.client_certificate);
        absolute(&mut user.client_key);
        absolute(&mut user.token_file);
        if let Some(exec) = &mut user.exec
            && exec
                .command
                .as_ref()
                .is_some_and(|c| c.contains(std::path::MAIN_SEPARATOR))
        {
            absolute(&mut exec.command);
        }
    }
}
