//! The loop: whatever happens, in Kubernetes or in the kernel, leads to a pass.

use std::sync::Arc;
use std::time::Duration;

use egret_daemon::watch::Change;
use egret_hostnet::{Kernel, OpenError};
use futures::StreamExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::pass::Passes;
use crate::rights::Said;
use crate::watches::{Source, Told, Watches};
use crate::{Config, Kind, Metrics, Objects, Shared};

/// The loop shows that it lives this often.
const BEAT: Duration = Duration::from_secs(1);
/// After a pass that failed: first this, doubled each time up to the longest.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(5);
/// Between two passes that only the kernel asks for: a node on which links come and go all the time is not looked at
/// all the time, and what somebody changes is healed within a second all the same.
const KERNEL_PAUSE: Duration = Duration::from_millis(200);

/// Why the agent cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The kernel cannot be spoken to.
    #[error("failed to open the kernel")]
    Open(#[from] OpenError),
    /// The watches have ended.
    #[error("the watches ended by themselves")]
    Watches,
    /// The kernel says nothing any more.
    #[error("the kernel's notifications ended by themselves")]
    Notifications,
}

/// Keeps this node's kernel as it should be until told to stop. It leaves everything as it is then: who restarts an agent
/// changes nothing, and who wants it gone cleans up.
///
/// # Errors
/// Why it cannot go on.
pub async fn run(
    config: &Config,
    source: Source,
    metrics: Arc<Metrics>,
    shared: Arc<Shared>,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let kernel = Kernel::open(config.settings(), &config.files)?;
    let mut notifications = Box::pin(kernel.changes());
    let (watches, mut changes) = Watches::new(source, Arc::clone(&metrics));
    let mut agent = Agent {
        config,
        passes: Passes::new(kernel, watches.client().cloned(), config.options.clone()),
        watches,
        objects: Objects::default(),
        metrics,
        shared,
        ready: false,
        due: None,
        passed: Instant::now(),
        retry: FIRST_RETRY,
    };
    agent.follow();
    loop {
        agent.shared.beat();
        let wake = agent.due.unwrap_or_else(|| Instant::now() + BEAT).min(Instant::now() + BEAT);
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            change = changes.recv() => {
                if agent.take(change.ok_or(RunError::Watches)?) {
                    agent.is_due(config.coalesce);
                }
            }
            notified = notifications.next() => {
                notified.ok_or(RunError::Notifications)?;
                let rested = agent.passed.elapsed();
                agent.is_due(KERNEL_PAUSE.saturating_sub(rested).max(config.coalesce));
            }
            said = agent.passes.doubted() => match said {
                Said::Own(ip) => agent.passes.defend(ip).await,
                Said::Changed => agent.is_due(Duration::ZERO),
            },
            () = tokio::time::sleep_until(wake) => {}
        }
        while let Ok(change) = changes.try_recv() {
            if agent.take(change) {
                agent.is_due(config.coalesce);
            }
        }
        if agent.due.is_some_and(|due| due <= Instant::now()) {
            agent.pass().await;
        }
    }
}

struct Agent<'a> {
    config: &'a Config,
    watches: Watches,
    objects: Objects,
    passes: Passes,
    metrics: Arc<Metrics>,
    shared: Arc<Shared>,
    /// The desired state has been read once. Before that nothing is touched, and after it nothing is un-read.
    ready: bool,
    due: Option<Instant>,
    passed: Instant,
    retry: Duration,
}

impl Agent<'_> {
    /// Whether it is anything new to this node.
    fn take(&mut self, (kind, change): Told) -> bool {
        let news = match change {
            Change::Listed(objects) => self.objects.listed(kind, &objects),
            Change::Seen(object) => self.objects.seen(kind, &object),
            Change::Gone(object) => self.objects.gone(kind, &object),
        };
        // What else is watched depends on these three only.
        if !self.ready || matches!(kind, Kind::EgressIp | Kind::EgressService | Kind::Node) {
            let listed = self.follow();
            self.ready = self.ready || listed;
        }
        if kind == Kind::Node {
            self.shared.is_probed_at(self.objects.management_addresses(&self.config.options.node));
        }
        news
    }

    fn follow(&mut self) -> bool {
        let options = &self.config.options;
        self.watches.follow(&mut self.objects, &options.node, options.datapath)
    }

    /// A pass is due in so long at the latest.
    fn is_due(&mut self, pause: Duration) {
        let due = Instant::now() + pause;
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    async fn pass(&mut self) {
        if !self.ready {
            self.due = None;
            return;
        }
        let began = Instant::now();
        let failed = match self.passes.pass(&self.objects).await {
            Ok(passed) => {
                let failed = passed.failure.is_some();
                if let Some(error) = &passed.failure {
                    tracing::warn!(error = egret_daemon::chain(error), "a pass over the kernel failed");
                } else if passed.steps > 0 {
                    tracing::info!(steps = passed.steps, healed = passed.healed, "the kernel is as it should be");
                }
                self.metrics.passed(began.elapsed(), passed.steps, failed, passed.healed);
                self.metrics.shows(passed.view.sources.len(), &passed.view.reports);
                self.tell(&passed.view);
                self.shared.show(passed.view);
                failed
            }
            Err(error) => {
                tracing::warn!(error = egret_daemon::chain(&error), "failed to observe the kernel");
                self.metrics.passed(began.elapsed(), 0, true, false);
                true
            }
        };
        self.passed = Instant::now();
        let pause = if failed { self.retry } else { self.config.verify };
        self.retry = if failed { (self.retry * 2).min(LONGEST_RETRY) } else { FIRST_RETRY };
        let due = self.passed + pause;
        self.due = Some(self.passes.due().map_or(due, |contested| contested.min(due)));
    }

    /// Says what is new of the objects.
    fn tell(&self, view: &crate::View) {
        let before = self.shared.view();
        let known = |report| before.as_ref().is_some_and(|before| before.reports.contains(report));
        for report in view.reports.iter().filter(|report| !known(report)) {
            let object = report.about.to_string();
            if report.finding.is_fine() {
                tracing::info!(object, finding = %report.finding, "on this node");
            } else {
                tracing::warn!(object, finding = %report.finding, "on this node");
            }
        }
    }
}
