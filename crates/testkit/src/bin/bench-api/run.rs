//! One run: every figure, one after the other, in one life of the controller.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, OBJECTS};
use crate::controller::Controller;
use crate::figure::{Figures, Unit};
use crate::namespace;
use crate::sight::Sight;

/// Until a controller leads.
const START: Duration = Duration::from_mins(1);

/// How long the CPU time is counted of a controller that has only to probe.
const QUIET: Duration = Duration::from_secs(5);

struct Run {
    cluster: Cluster,
    controller: Controller,
    sight: Sight,
    figures: Figures,
}

pub(crate) async fn run(egret: &Path) -> anyhow::Result<Figures> {
    let cluster = Cluster::new().await?;
    let folder = tempfile::tempdir()?;
    let controller = Controller::start(egret, &cluster.kubeconfig()?, folder.path())?;
    let sight = Sight::begin(cluster.egress_ips());
    let mut run = Run { cluster, controller, sight, figures: Figures::default() };
    run.wait_for_leader().await?;
    run.assign().await?;
    run.move_from_not_ready().await?;
    run.only_probe("CPU in a second of probing 500 nodes").await?;
    run.move_from_silent().await?;
    run.only_probe("  the same when 41 of them are silent").await?;
    let memory = kilobytes_as_megabytes(run.controller.peak_memory()?);
    run.figures.add("peak memory", Unit::Megabytes, memory, 60.0, Some(174.0));
    Ok(run.figures)
}

impl Run {
    async fn wait_for_leader(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        while !self.cluster.is_led().await? {
            self.controller.check()?;
            anyhow::ensure!(began.elapsed() < START, "the controller does not come to lead");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    async fn assign(&mut self) -> anyhow::Result<()> {
        self.cluster.create_objects().await?;
        let created = Instant::now();
        let assigned = self.sight.assigned(OBJECTS, &[]).await?;
        let cpu = self.controller.cpu()?;
        let writes = per_object(self.cluster.writes_to_objects()?);
        self.figures.time("last object created to last assigned", assigned - created, 1.0, 17.8);
        self.figures.add("writes per object", Unit::Writes, writes, 1.0, None);
        self.figures.time("CPU from start to last assigned", cpu, 2.0, 11.0);
        Ok(())
    }

    /// Judged is the time since the last node was stored, as with objects. The time since the first request has the
    /// requests in it, which compete with the moves for the API server.
    async fn move_from_not_ready(&mut self) -> anyhow::Result<()> {
        for (what, count, target, theirs) in
            [("1 node NotReady to all moved", 1, 0.1, 0.25), ("50 nodes NotReady to all moved", 50, 0.5, 7.0)]
        {
            let nodes = self.sight.hosts(count);
            let began = Instant::now();
            self.cluster.set_ready(&nodes, false).await?;
            let stored = Instant::now();
            let moved = self.sight.assigned(OBJECTS, &nodes).await?;
            self.figures.time(what, moved - stored, target, theirs);
            self.figures.note("  the same from the first request", Unit::Seconds, (moved - began).as_secs_f64());
            self.cluster.set_ready(&nodes, true).await?;
        }
        Ok(())
    }

    /// From before the first packet is dropped to the last status.
    async fn move_from_silent(&mut self) -> anyhow::Result<()> {
        for (what, count, target, theirs) in [
            ("1 node silent to all moved", 1, 1.5, 2.0),
            ("10 nodes silent to all moved", 10, 1.5, 16.1),
            ("30 nodes silent to all moved", 30, 1.5, 33.7),
        ] {
            let nodes = self.sight.hosts(count);
            let addresses = self.cluster.probed(&nodes);
            let began = Instant::now();
            namespace::silence(&addresses)?;
            let moved = self.sight.assigned(OBJECTS, &nodes).await?;
            self.figures.time(what, moved - began, target, theirs);
        }
        Ok(())
    }

    async fn only_probe(&mut self, what: &'static str) -> anyhow::Result<()> {
        let (began, before) = (Instant::now(), self.controller.cpu()?);
        tokio::time::sleep(QUIET).await;
        let used = self.controller.cpu()?.saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64();
        self.figures.note(what, Unit::Seconds, used);
        Ok(())
    }
}

// Both are far from where anything would be lost.
#[allow(clippy::cast_precision_loss)]
fn per_object(count: usize) -> f64 {
    count as f64 / OBJECTS as f64
}

#[allow(clippy::cast_precision_loss)]
fn kilobytes_as_megabytes(kilobytes: u64) -> f64 {
    kilobytes as f64 / 1_000.0
}
