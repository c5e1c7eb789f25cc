//! A client that asks again and again.

use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Told;
use super::reply::Silence;
use crate::until::patient;

/// What a flow consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Datagrams from one socket.
    Udp,
    /// One connection. What is not answered is asked again by TCP itself.
    Tcp,
    /// A socket, and so a source port, for every datagram.
    UdpEach,
    /// A connection for every question.
    TcpEach,
}

/// A flow that goes on until it is stopped or dropped.
#[derive(Debug)]
#[must_use = "it ends when this is dropped"]
pub struct Flow {
    pub(crate) progress: Arc<Progress>,
    pub(crate) end: Option<End>,
}

/// Tells the pacer that nobody wants a flow any more.
pub(crate) struct End(pub(crate) Box<dyn FnOnce() + Send>);

/// What a flow has met so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Questions asked.
    pub asked: u64,
    /// Questions answered.
    pub answered: u64,
    /// Who answered and which source they saw, each time that was another one than before, since the start of the flow.
    pub changes: Vec<Change>,
    /// The longest time without an answer: before the first, between two, and, once the flow has stopped, after the last.
    pub longest_gap: Duration,
    /// The last error that the socket met, and how many there were.
    pub error: Option<Silence>,
    /// How many errors there were.
    pub errors: u64,
}

/// Another server or another source than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Since the start of the flow.
    pub after: Duration,
    /// Who answers from here on.
    pub server: String,
    /// The source that they see.
    pub source: IpAddr,
}

impl Report {
    /// The sources seen, in order, without the times.
    #[must_use]
    pub fn sources(&self) -> Vec<IpAddr> {
        let mut sources: Vec<IpAddr> = self.changes.iter().map(|change| change.source).collect();
        sources.dedup();
        sources
    }

    /// How many were not answered (yet).
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.asked.saturating_sub(self.answered)
    }
}

impl Flow {
    /// So far.
    #[must_use]
    pub fn report(&self) -> Report {
        self.progress.state().report.clone()
    }

    /// Waits until so many more questions have been answered than now. Whether they were in time.
    #[must_use]
    pub fn answers(&self, more: u64, limit: Duration) -> bool {
        let state = self.progress.state();
        let wanted = state.report.answered + more;
        self.progress.wait(state, limit, |state| state.report.answered >= wanted)
    }

    /// Waits until the server sees this source. Whether it did in time.
    #[must_use]
    pub fn source_becomes(&self, source: IpAddr, limit: Duration) -> bool {
        let state = self.progress.state();
        self.progress.wait(state, limit, |state| state.report.changes.last().is_some_and(|last| last.source == source))
    }

    /// Asks nothing more, waits a little for the last answers, and tells.
    #[must_use]
    pub fn stop(mut self) -> Report {
        self.progress.state().stopping = true;
        let state = self.progress.state();
        let _ = self.progress.wait(state, patient(LAST_ANSWERS), |state| state.report.answered >= state.report.asked);
        self.end();
        let mut state = self.progress.state();
        let gap = state.last.elapsed();
        // An answer that is late by no more than the pace is no gap.
        if state.report.unanswered() > 0 && gap > LAST {
            state.report.longest_gap = state.report.longest_gap.max(gap);
        }
        state.report.clone()
    }

    fn end(&mut self) {
        if let Some(End(end)) = self.end.take() {
            end();
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.end();
    }
}

/// How long the last answers of a flow are waited for.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// A gap at the end that is no longer is none.
const LAST: Duration = Duration::from_millis(200);

/// What the pacer writes and the flow reads.
#[derive(Debug)]
pub(crate) struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
pub(crate) struct State {
    report: Report,
    start: Instant,
    last: Instant,
    stopping: bool,
}

impl Progress {
    pub(crate) fn new() -> Arc<Self> {
        let now = Instant::now();
        let state = State { report: Report::default(), start: now, last: now, stopping: false };
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, state: MutexGuard<'_, State>, limit: Duration, met: impl Fn(&State) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(state, limit, |state| !met(state));
        met(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Whether another question may be asked; then it counts as asked.
    pub(crate) fn ask(&self) -> bool {
        let mut state = self.state();
        if !state.stopping {
            state.report.asked += 1;
        }
        !state.stopping
    }

    pub(crate) fn answered(&self, told: &Told<'_>) {
        let mut state = self.state();
        let now = Instant::now();
        state.report.answered += 1;
        state.report.longest_gap = state.report.longest_gap.max(now - state.last);
        state.last = now;
        let same = |last: &Change| last.source == told.source && last.server == told.server;
        if !state.report.changes.last().is_some_and(same) {
            let change = Change { after: now - state.start, server: told.server.to_owned(), source: told.source };
            state.report.changes.push(change);
        }
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn failed(&self, silence: Silence) {
        let mut state = self.state();
        state.report.errors += 1;
        state.report.error = Some(silence);
    }
}

impl std::fmt::Debug for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("End")
    }
}
