//! The channel protocols, frame by frame, and kube against the stand-in.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    reason = "a broken test should stop, and a skipped one says so"
)]

mod faults;
mod frames;
mod kube_client;
mod loss;
mod many;

use std::future::Future;

use futures_util::{SinkExt as _, StreamExt as _};
use stand_in::StandIn;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Response};
use tokio_tungstenite::tungstenite::{Error, Message};

type Socket = WebSocketStream<TcpStream>;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// Opens an exec with this subprotocol.
async fn open(
    api: &StandIn,
    pod: &str,
    protocol: &str,
    query: &str,
) -> Result<(Socket, Response<Option<Vec<u8>>>), Error> {
    let address = api.url().strip_prefix("http://").unwrap().to_owned();
    let tcp = TcpStream::connect(&address).await.unwrap();
    let url = format!("ws://{address}/api/v1/namespaces/default/pods/{pod}/exec?{query}");
    let mut request = url.into_client_request().unwrap();
    request.headers_mut().insert(
        "sec-websocket-protocol",
        HeaderValue::from_str(protocol).unwrap(),
    );
    tokio_tungstenite::client_async(request, tcp).await
}

/// All that comes until the connection ends: channels with their bytes, and how it ended.
async fn all(socket: &mut Socket) -> (Vec<(u8, Vec<u8>)>, String) {
    let mut frames = Vec::new();
    loop {
        match socket.next().await {
            Some(Ok(Message::Binary(bytes))) => frames.push((bytes[0], bytes[1..].to_vec())),
            Some(Ok(Message::Close(frame))) => {
                let end = format!("close {:?}", frame.map(|f| u16::from(f.code)));
                let _ = socket.close(None).await;
                return (frames, end);
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return (frames, error.to_string()),
            None => return (frames, "end".to_owned()),
        }
    }
}

fn channel(frames: &[(u8, Vec<u8>)], number: u8) -> String {
    let bytes: Vec<u8> = frames
        .iter()
        .filter(|(c, _)| *c == number)
        .flat_map(|(_, b)| b.clone())
        .collect();
    String::from_utf8(bytes).unwrap()
}

async fn send(socket: &mut Socket, bytes: &[u8]) {
    socket.send(Message::binary(bytes.to_vec())).await.unwrap();
}
