//! A connection that remembers what was sent, and that can be spoilt at a chosen byte.

use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::record::{Sent, lock};

/// How a connection ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A TCP reset.
    Reset,
    /// The server's half is closed (FIN) without a close frame; the server goes on reading.
    HalfClose,
    /// Nothing comes any more, and nothing is closed.
    Stall,
}

#[derive(Debug, Default)]
struct State {
    /// So many bytes more, then this.
    cut: Option<(u64, Cut)>,
    /// Sent in place of the answer; the connection ends after it.
    garbage: Option<Bytes>,
    reset: bool,
    silent: bool,
    over: bool,
}

/// The handle on a connection that requests use to spoil it.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) number: u64,
    state: Mutex<State>,
    sent: Arc<Mutex<Sent>>,
    keep: usize,
}

impl Line {
    pub(crate) fn new(number: u64, keep: usize) -> Self {
        let sent = Sent {
            connection: number,
            ..Sent::default()
        };
        Self {
            number,
            state: Mutex::default(),
            sent: Arc::new(Mutex::new(sent)),
            keep,
        }
    }

    pub(crate) fn sent(&self) -> Arc<Mutex<Sent>> {
        Arc::clone(&self.sent)
    }

    pub(crate) fn cut_after(&self, bytes: u64, cut: Cut) {
        lock(&self.state).cut = Some((bytes, cut));
    }

    /// The next answer becomes these bytes.
    pub(crate) fn garble(&self, bytes: Bytes) {
        lock(&self.state).garbage = Some(bytes);
    }

    fn keep(&self, bytes: &[u8]) {
        let mut sent = lock(&self.sent);
        let room = self.keep.saturating_sub(sent.bytes.len());
        let (kept, dropped) = bytes.split_at(room.min(bytes.len()));
        sent.bytes.extend_from_slice(kept);
        sent.dropped += dropped.len() as u64;
    }
}

/// TCP, with TLS or without.
pub(crate) enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_ref().0,
        }
    }
}

/// The connection as the HTTP and WebSocket layers see it.
pub(crate) struct Tap {
    pub(crate) socket: Socket,
    pub(crate) line: Arc<Line>,
}

impl Tap {
    fn write_out(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(match &mut self.socket {
            Socket::Plain(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Socket::Tls(tls) => Pin::new(tls).poll_write(cx, bytes),
        })?;
        self.line.keep(bytes.get(..written).unwrap_or_default());
        Poll::Ready(Ok(written))
    }

    fn flush_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Socket::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }
}

fn reset_error() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the stand-in cut it")
}

impl AsyncWrite for Tap {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let line = Arc::clone(&this.line);
        let mut state = lock(&line.state);
        if state.silent {
            return Poll::Ready(Ok(bytes.len()));
        }
        if state.over {
            return Poll::Ready(Err(reset_error()));
        }
        if let Some(garbage) = state.garbage.take() {
            let written = match this.write_out(cx, &garbage) {
                Poll::Ready(written) => written?,
                Poll::Pending => {
                    state.garbage = Some(garbage);
                    return Poll::Pending;
                }
            };
            if written < garbage.len() {
                state.garbage = Some(garbage.slice(written..));
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            state.over = true;
            let _ = SockRef::from(this.socket.tcp()).shutdown(Shutdown::Write);
            return Poll::Ready(Err(reset_error()));
        }
        let Some((left, cut)) = state.cut else {
            drop(state);
            return this.write_out(cx, bytes);
        };
        let allowed = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        if allowed > 0 {
            let written = ready!(this.write_out(cx, bytes.get(..allowed).unwrap_or_default()))?;
            state.cut = Some((left.saturating_sub(written as u64), cut));
            return Poll::Ready(Ok(written));
        }
        // What TLS still holds is part of the bytes that were allowed.
        ready!(this.flush_out(cx))?;
        match cut {
            Cut::Reset => {
                state.reset = true;
                state.over = true;
                Poll::Ready(Err(reset_error()))
            }
            Cut::HalfClose => {
                let _ = SockRef::from(this.socket.tcp()).shutdown(Shutdown::Write);
                state.silent = true;
                Poll::Ready(Ok(bytes.len()))
            }
            Cut::Stall => {
                state.silent = true;
                Poll::Ready(Ok(bytes.len()))
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flush_out(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        {
            let state = lock(&self.line.state);
            if state.silent {
                // The socket stays open as long as the server does.
                return Poll::Pending;
            }
            if state.over {
                return Poll::Ready(Ok(()));
            }
        }
        match &mut self.socket {
            Socket::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Socket::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}

impl AsyncRead for Tap {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Plain(tcp) => Pin::new(tcp).poll_read(cx, buffer),
            Socket::Tls(tls) => Pin::new(tls).poll_read(cx, buffer),
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        if lock(&self.line.state).reset {
            // Closing with a linger time of zero sends RST in place of FIN.
            let _ = SockRef::from(self.socket.tcp()).set_linger(Some(Duration::ZERO));
        }
    }
}
