//! `egret controller`: the cluster manager, until it is told to stop.

mod reading;

use std::sync::Arc;

use anyhow::Context;
use egret_brain::Answer;
use egret_controller::probe::{ProbeOptions, Prober, Probes};
use egret_controller::{Admin, Config, Metrics, Shared, Surroundings, log};
use egret_core::NodeName;
use egret_daemon::admin;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use crate::args::ControllerArgs;
use crate::command::daemon;
use crate::live::connection;
use crate::{FAILURE, Output, SUCCESS, USAGE};

/// Runs the controller until it is told to stop.
pub(crate) fn run(args: &ControllerArgs) -> Output {
    let (stderr, code) = match reading::config(args) {
        Err(faults) => (format!("error: {}\n", faults.join("\nerror: ")), USAGE),
        Ok(config) => match start(args, &config) {
            Err(error) => (format!("error: {error:#}\n"), FAILURE),
            Ok(()) => (String::new(), SUCCESS),
        },
    };
    Output { stdout: String::new(), stderr, code }
}

/// Probes and the admin port must be answered while a decision is made, so there is more than one thread; more than a
/// few have nothing to do.
const THREADS: usize = 2;

fn start(args: &ControllerArgs, config: &Config) -> anyhow::Result<()> {
    log::begin(&config.log)?;
    daemon::runtime(THREADS)?.block_on(serve(args, config))
}

async fn serve(args: &ControllerArgs, config: &Config) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    daemon::stop_on_signals(&stop)?;
    let connection = connection::find(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let listener = egret_daemon::bind(&config.admin).await?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        identity = config.election.identity,
        server = %connection.config.cluster_url,
        admin = %listener.local_addr()?,
        "controller begins"
    );
    let client = egret_controller::client(connection.config)?;
    let metrics = Arc::new(Metrics::new());
    let (shared, questions) = Shared::new();
    let shared = Arc::new(shared);
    // It answers until the end, so that nobody takes a controller that stops in good order for a dead one.
    let answered = CancellationToken::new();
    let told = Arc::new(Admin { shared: shared.clone(), metrics: metrics.clone() });
    let answering = tokio::spawn(admin::serve(listener, told, answered.clone()));
    let probes = prober(config.probe.clone(), metrics.clone());
    let surroundings = Surroundings { client, metrics, shared, questions, stop: stop.clone() };
    let running = Box::pin(egret_controller::run(config, surroundings, probes));
    let ended = running.await.context("the controller cannot go on");
    answered.cancel();
    answering.await.context("the admin port failed")?.context("the admin port failed")?;
    if ended.is_ok() {
        tracing::info!("controller ends");
    }
    ended
}

fn prober(
    options: ProbeOptions,
    metrics: Arc<Metrics>,
) -> impl FnOnce(UnboundedSender<(NodeName, Answer)>) -> Box<dyn Probes> {
    move |answers| {
        let observe = move |took, answer| metrics.probed(answer, took);
        Box::new(Prober::new(options, answers, Arc::new(observe)).expect("the configuration was found to be valid"))
    }
}
