//! The wish to end a run early.

use std::sync::Arc;

use tokio::sync::watch;

/// Tells everything that waits to stop waiting. Copies belong together.
#[derive(Debug, Clone)]
pub struct Stop {
    sender: Arc<watch::Sender<bool>>,
}

impl Default for Stop {
    fn default() -> Self {
        Self {
            sender: Arc::new(watch::Sender::new(false)),
        }
    }
}

impl Stop {
    /// Stops.
    pub fn stop(&self) {
        self.sender.send_replace(true);
    }

    /// Whether it was.
    pub fn is_stopped(&self) -> bool {
        *self.sender.borrow()
    }

    /// Waits until it is.
    pub async fn stopped(&self) {
        let mut receiver = self.sender.subscribe();
        // The sender lives as long as this.
        let _never_closed = receiver.wait_for(|stopped| *stopped).await;
    }
}
