//! A proxy between a client and a server, for kubeconfigs with `proxy-url`: the HTTP method CONNECT, which is all that TLS needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

const LONGEST_HEAD: usize = 16 * 1024;

/// Accepts for ever; counts the connections that it has made.
pub(crate) async fn accept(listener: TcpListener, made: Arc<AtomicUsize>) {
    loop {
        if let Ok((client, _)) = listener.accept().await {
            tokio::spawn(tunnel(client, Arc::clone(&made)));
        }
    }
}

async fn tunnel(mut client: TcpStream, made: Arc<AtomicUsize>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < LONGEST_HEAD {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.split_whitespace();
    let (Some("CONNECT"), Some(address)) = (words.next(), words.next()) else {
        return client
            .write_all(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            .await;
    };
    // Loopback only, as everything here.
    let upstream = if address.starts_with("127.0.0.1:") {
        TcpStream::connect(address).await
    } else {
        Err(std::io::Error::other("not on this machine"))
    };
    let Ok(mut upstream) = upstream else {
        return client
            .write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            .await;
    };
    made.fetch_add(1, Ordering::Relaxed);
    client
        .write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n")
        .await?;
    copy_bidirectional(&mut client, &mut upstream)
        .await
        .map(|_| ())
}
