//! Ctrl-C, SIGTERM and a closed terminal (SIGHUP) while other programs run: the first one stops them and ends the run with what is there, a
//! second one ends it at once.
//!
//! Where no other program was started the system's own way is quick enough and stays in force.

#[cfg(unix)]
mod unix {
    use std::sync::atomic::{AtomicI32, Ordering};
    use std::sync::{Mutex, Once, mpsc};
    use std::thread;

    use rustix::process::{Pid, Signal, kill_process_group};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    /// The first signal; 0 before it.
    static SIGNAL: AtomicI32 = AtomicI32::new(0);

    /// Process groups of programs that run, and what ends them.
    static RUNNING: Mutex<Vec<(Pid, Signal)>> = Mutex::new(Vec::new());

    /// What else is to be told of the first one.
    static TOLD: Mutex<Vec<Box<dyn Fn() + Send>>> = Mutex::new(Vec::new());

    static WATCH: Once = Once::new();

    /// What to do at the first signal, beside stopping programs.
    pub(crate) fn tell(what: impl Fn() + Send + 'static) {
        if let Ok(mut told) = TOLD.lock() {
            told.push(Box::new(what));
        }
        if signal().is_some() {
            tell_all();
        }
    }

    fn tell_all() {
        if let Ok(told) = TOLD.lock() {
            for what in told.iter() {
                what();
            }
        }
    }

    /// From here on signals are waited for.
    pub(crate) fn watch() {
        WATCH.call_once(|| {
            let (ready, is_ready) = mpsc::channel();
            let watcher = thread::Builder::new().spawn(move || {
                let heeded = [SIGHUP, SIGINT, SIGTERM]
                    .into_iter()
                    .filter(|s| !is_ignored(*s));
                let mut signals = Signals::new(heeded);
                let _nobody_waits = ready.send(());
                for signal in signals.iter_mut().flat_map(Signals::forever) {
                    if SIGNAL.swap(signal, Ordering::SeqCst) != 0 {
                        stop_all();
                        cluster::end_programs();
                        let _ends_here = emulate_default_handler(signal);
                    }
                    stop_all();
                    tell_all();
                }
            });
            // Where no thread can be had the system's own way stays in force.
            if watcher.is_ok() {
                let _registered = is_ready.recv();
            }
        });
    }

    /// Who starts a program under `nohup`, or in the background of a script, wants it to go on.
    fn is_ignored(signal: i32) -> bool {
        let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
            return false;
        };
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))
            .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
        let bit = u32::try_from(signal.saturating_sub(1)).ok();
        mask.zip(bit)
            .and_then(|(mask, bit)| mask.checked_shr(bit))
            .is_some_and(|rest| rest & 1 == 1)
    }

    fn stop_all() {
        if let Ok(running) = RUNNING.lock() {
            for (group, signal) in running.iter() {
                let _nothing_left = kill_process_group(*group, *signal);
            }
        }
    }

    /// The signal that ends this run, if there was one.
    pub(crate) fn signal() -> Option<u8> {
        u8::try_from(SIGNAL.load(Ordering::SeqCst))
            .ok()
            .filter(|s| *s != 0)
    }

    /// A program runs, as long as this is kept.
    pub(crate) struct Running(Option<Pid>);

    impl Running {
        pub(crate) fn new(group: u32, ends: Signal) -> Self {
            let group = i32::try_from(group).ok().and_then(Pid::from_raw);
            if let (Some(group), Ok(mut running)) = (group, RUNNING.lock()) {
                running.push((group, ends));
            }
            // One that came between the last look and this one has found nothing to stop.
            if signal().is_some() {
                stop_all();
            }
            Self(group)
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            if let (Some(group), Ok(mut running)) = (self.0, RUNNING.lock()) {
                running.retain(|(other, _)| *other != group);
            }
        }
    }
}

#[cfg(unix)]
pub(crate) use unix::{Running, signal, tell, watch};

/// The signal that ends this run: here the system ends it.
#[cfg(not(unix))]
pub(crate) fn signal() -> Option<u8> {
    None
}

#[cfg(not(unix))]
pub(crate) fn watch() {}

#[cfg(not(unix))]
pub(crate) fn tell(_what: impl Fn() + Send + 'static) {}
