//! Where the output of a command goes: to the client, and into the record.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;

use super::session::{STDERR, STDOUT, Streams};
use crate::hub::Hub;
use crate::tap::{Cut, Line};

/// Where output goes.
#[derive(Clone)]
pub(super) struct Outlet {
    pub(super) hub: Arc<Hub>,
    pub(super) line: Arc<Line>,
    pub(super) number: usize,
    pub(super) streams: Streams,
    pub(super) out: mpsc::Sender<Message>,
    /// Bytes of output that may still be sent before the connection is cut, and how it is cut.
    pub(super) cut: Option<(u64, Cut)>,
    pub(super) lost: watch::Receiver<bool>,
}

impl Outlet {
    /// Sends a piece of output. False when the client is gone.
    pub(super) async fn emit(&mut self, channel: u8, piece: Bytes) -> bool {
        let wanted = match channel {
            STDOUT => self.streams.stdout,
            STDERR => self.streams.stderr,
            _ => true,
        };
        if *self.lost.borrow() {
            return false;
        }
        if !wanted {
            return true;
        }
        let mut piece = piece;
        if let Some((left, cut)) = &mut self.cut {
            let length = piece.len() as u64;
            if length > *left {
                piece.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                let cut = *cut;
                self.send(channel, piece).await;
                // What was queued before goes out first.
                while self.out.capacity() < self.out.max_capacity() && !*self.lost.borrow() {
                    sleep(Duration::from_millis(1)).await;
                }
                sleep(Duration::from_millis(5)).await;
                self.line.cut_after(0, cut);
                let _ = self.out.send(Message::Ping(Bytes::new())).await;
                let _ = self.lost.wait_for(|lost| *lost).await;
                return false;
            }
            *left -= length;
        }
        self.send(channel, piece).await
    }

    pub(super) async fn send(&self, channel: u8, piece: Bytes) -> bool {
        let mut framed = BytesMut::with_capacity(piece.len() + 1);
        framed.put_u8(channel);
        framed.put_slice(&piece);
        let sent = self
            .out
            .send(Message::Binary(framed.freeze()))
            .await
            .is_ok();
        if sent {
            self.hub
                .journal
                .amend_exec(self.number, |exec| match channel {
                    STDOUT => exec.stdout.0.push(piece),
                    STDERR => exec.stderr.0.push(piece),
                    _ => {}
                });
        }
        sent
    }
}
