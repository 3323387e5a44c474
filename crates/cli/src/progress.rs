//! How far a long run has come, for a person who waits.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

/// Nothing is said before, and then so often.
const PAUSE: Duration = Duration::from_secs(2);

/// Counts what is done; says so on a terminal only, now and then.
pub(crate) struct Progress {
    all: usize,
    done: usize,
    said: Option<Instant>,
}

impl Progress {
    pub(crate) fn of(all: usize) -> Self {
        Self {
            all,
            done: 0,
            said: io::stderr().is_terminal().then(Instant::now),
        }
    }

    /// One more is done.
    pub(crate) fn step(&mut self) {
        self.done = self.done.saturating_add(1);
        if let Some(said) = &mut self.said
            && said.elapsed() >= PAUSE
        {
            *said = Instant::now();
            crate::tell(&format!(
                "looked into {} of {} containers",
                self.done, self.all
            ));
        }
    }
}
