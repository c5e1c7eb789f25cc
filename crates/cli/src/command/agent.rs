//! `egret agent`: the node daemon, until it is told to stop; or the clean-up after it.

pub(super) mod files;
pub(crate) mod reading;

use std::sync::Arc;

use anyhow::Context;
use egret_agent::{Admin, Config, Metrics, Shared, Source, health};
use egret_daemon::{admin, log};
use egret_hostnet::Kernel;
use tokio_util::sync::CancellationToken;

use crate::args::AgentArgs;
use crate::command::daemon;
use crate::live::connection;
use crate::{FAILURE, Output, SUCCESS, USAGE};

/// Runs the agent until it is told to stop.
pub(crate) fn run(args: &AgentArgs) -> Output {
    let told = |stderr, code| Output { stdout: String::new(), stderr, code };
    let config = match reading::config(args) {
        Err(faults) => return told(format!("error: {}\n", faults.join("\nerror: ")), USAGE),
        Ok(config) => config,
    };
    let ended = if args.cleanup { clean_up(&config) } else { start(args, &config).map(|()| String::new()) };
    match ended {
        Err(error) => told(format!("error: {error:#}\n"), FAILURE),
        Ok(stdout) => Output { stdout, stderr: String::new(), code: SUCCESS },
    }
}

/// The loop waits for the kernel most of the time, and the admin port must answer meanwhile.
const THREADS: usize = 2;

fn start(args: &AgentArgs, config: &Config) -> anyhow::Result<()> {
    log::begin(&config.log)?;
    daemon::runtime(THREADS)?.block_on(serve(args, config))
}

async fn serve(args: &AgentArgs, config: &Config) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    daemon::stop_on_signals(&stop)?;
    let (source, from) = source(args).await?;
    let listener = egret_daemon::bind(&config.admin).await?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        node = %config.options.node,
        from,
        admin = %listener.local_addr()?,
        "agent begins"
    );
    let (metrics, shared) = (Arc::new(Metrics::default()), Arc::new(Shared::default()));
    let answered = CancellationToken::new();
    let told = Arc::new(Admin { shared: shared.clone(), metrics: metrics.clone() });
    let answering = tokio::spawn(admin::serve(listener, told, answered.clone()));
    let (health, management) = (config.health.clone(), shared.management());
    let serving = tokio::spawn(health::serve(health, management, metrics.clone(), answered.clone()));
    let running = Box::pin(egret_agent::run(config, source, metrics, shared, stop));
    let ended = running.await.context("the agent cannot go on");
    answered.cancel();
    serving.await.context("the health service failed")?;
    answering.await.context("the admin port failed")?.context("the admin port failed")?;
    if ended.is_ok() {
        tracing::info!("agent ends; the kernel stays as it is");
    }
    ended
}

/// Where objects come from, and a name for it.
async fn source(args: &AgentArgs) -> anyhow::Result<(Source, String)> {
    if !args.filename.is_empty() {
        return Ok((Source::Told(files::follow(args.filename.clone())?), "files".to_owned()));
    }
    let cluster = &args.cluster;
    let connection = connection::find(cluster.kubeconfig.as_deref(), cluster.context.as_deref()).await?;
    let server = connection.config.cluster_url.to_string();
    Ok((Source::Cluster(egret_daemon::client(connection.config)?), server))
}

fn clean_up(config: &Config) -> anyhow::Result<String> {
    let steps = daemon::runtime(1)?.block_on(async {
        let kernel = Kernel::open(config.settings(), &config.files)?;
        egret_agent::clean_up(&kernel).await.context("failed to clean up; run it again when that is repaired")
    })?;
    Ok(match steps {
        0 => "nothing of Egret's is in this node's kernel\n".to_owned(),
        steps => format!("everything of Egret's is out of this node's kernel ({steps} steps)\n"),
    })
}
