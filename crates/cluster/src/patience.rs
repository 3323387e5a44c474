//! Asking again where that may help: the server is busy, or was restarted.

use std::time::Duration;

use model::pod::{Fault, FaultKind};

use crate::door::{Refusal, Waiting};
use crate::stop::Stop;

/// How often something is asked in all.
const TRIES: u32 = 4;
/// The first wait where the server names none; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(400);
/// The longest that is waited for a server that names a time.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// Asks, and asks again.
pub(crate) async fn patiently<'a, T>(
    stop: &Stop,
    ask: impl FnMut() -> Waiting<'a, Result<T, Refusal>>,
) -> Result<T, Refusal> {
    patiently_told(stop, &mut None, ask).await
}

/// The same; what is refused on the way is told to whoever may not wait for the end.
pub(crate) async fn patiently_told<'a, T>(
    stop: &Stop,
    told: &mut Option<Fault>,
    mut ask: impl FnMut() -> Waiting<'a, Result<T, Refusal>>,
) -> Result<T, Refusal> {
    let mut wait = FIRST_WAIT;
    let mut tries = 1;
    loop {
        let answer = tokio::select! {
            answer = ask() => answer,
            // Whoever ends a run waits for no server.
            () = stop.stopped() => return Err(Refusal::new(
                FaultKind::Interrupted,
                "the run was ended first",
            )),
        };
        let refusal = match answer {
            Ok(answer) => return Ok(answer),
            Err(refusal) => refusal,
        };
        if !refusal.may_pass || tries >= TRIES || stop.is_stopped() {
            return Err(refusal);
        }
        *told = Some(refusal.fault.clone());
        let named = refusal.retry_after.map(|named| named.min(LONGEST_WAIT));
        let pause = spread(named.unwrap_or(wait));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.stopped() => return Err(refusal),
        }
        wait = wait.saturating_mul(2);
        tries += 1;
    }
}

/// Somewhat longer, so that those that were refused together do not come back together.
fn spread(pause: Duration) -> Duration {
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |now| now.subsec_nanos());
    pause + pause.mul_f64(f64::from(nanos % 1000) / 4000.0)
}
