//! The listening socket, TLS, and one task for each connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::api;
use crate::hub::Hub;
use crate::record::lock;
use crate::tap::{Line, Socket, Tap};

pub(crate) async fn accept(listener: TcpListener, hub: Arc<Hub>, tls: Option<TlsAcceptor>) {
    let count = AtomicU64::new(0);
    loop {
        let Ok((tcp, _)) = listener.accept().await else {
            continue;
        };
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        tokio::spawn(connection(tcp, number, Arc::clone(&hub), tls.clone()));
    }
}

async fn connection(tcp: TcpStream, number: u64, hub: Arc<Hub>, tls: Option<TlsAcceptor>) {
    let _ = tcp.set_nodelay(true);
    let mut user = None;
    let socket = match tls {
        None => Socket::Plain(tcp),
        Some(acceptor) => {
            // A client that does not trust the certificate ends here.
            let Ok(stream) = acceptor.accept(tcp).await else {
                return;
            };
            let certificates = stream.get_ref().1.peer_certificates();
            user = certificates
                .and_then(|chain| chain.first())
                .and_then(|certificate| hub.user_of_certificate(certificate))
                .map(|caller| caller.name);
            Socket::Tls(Box::new(stream))
        }
    };
    let line = Arc::new(Line::new(number, hub.keep));
    lock(&hub.journal.sent).push(line.sent());
    let tap = Tap {
        socket,
        line: Arc::clone(&line),
    };
    let service = service_fn(move |request| {
        let (hub, line, user) = (Arc::clone(&hub), Arc::clone(&line), user.clone());
        async move { Ok::<_, Infallible>(api::serve(hub, line, user, request).await) }
    });
    let _ = http1::Builder::new()
        .half_close(true)
        .serve_connection(TokioIo::new(tap), service)
        .with_upgrades()
        .await;
}
