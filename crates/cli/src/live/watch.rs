//! `egret status --watch`: the status, shown anew whenever it changes.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use egret_api::{Inserted, Kind, Manifests, ObjectKey};
use egret_brain::Input;
use egret_controller::Metrics;
use egret_daemon::watch::WAITING;
use http::Request;
use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout, timeout_at};

use super::screen::{Picture, Screen};
use super::{Live, leader, listing, reach, runtime};
use crate::args::{Format, StatusArgs};
use crate::cluster::Cluster;
use crate::command::status;
use crate::input::Silent;
use crate::report::{Style, wrap};

/// Changes that come this close together are shown together: nobody reads faster.
const TOGETHER: Duration = Duration::from_millis(200);
/// How often the controller is asked for what no watch tells, and the API server whether it is still there.
const ASK: Duration = Duration::from_secs(2);

/// Shows the status until Ctrl-C.
///
/// # Errors
/// If the cluster cannot be read at the start, or nobody reads what is shown. What fails later is shown, and goes on.
pub(crate) fn run(args: &StatusArgs, style: Style) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let (client, live) = reach(&args.read.input.live, &Silent).await?;
        let (sender, changes) = mpsc::channel(WAITING);
        let mut watching = JoinSet::new();
        for kind in Kind::ALL {
            watching
                .spawn(egret_controller::watch(client.clone(), kind, sender.clone(), Arc::new(Metrics::new())).run());
        }
        Viewer { args, client, live, silence: None, screen: Screen::new(style) }.follow(changes).await
    })
}

struct Viewer<'a> {
    args: &'a StatusArgs,
    client: Client,
    live: Live,
    /// Why the API server does not answer, if it does not.
    silence: Option<String>,
    screen: Screen,
}

impl Viewer<'_> {
    async fn follow(mut self, mut changes: mpsc::Receiver<Input>) -> anyhow::Result<()> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut resized = signal(SignalKind::window_change())?;
        let mut ask = interval(ASK);
        ask.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ask.tick().await;
        loop {
            self.show()?;
            tokio::select! {
                _ = interrupt.recv() => return Ok(()),
                _ = terminate.recv() => return Ok(()),
                _ = resized.recv() => self.screen.forget(),
                Some(change) = changes.recv() => {
                    let until = Instant::now() + TOGETHER;
                    self.take(change);
                    while let Ok(Some(change)) = timeout_at(until, changes.recv()).await {
                        self.take(change);
                    }
                }
                _ = ask.tick() => self.ask().await,
            }
        }
    }

    fn take(&mut self, change: Input) {
        let manifests = &mut self.live.manifests;
        match change {
            Input::Listed { kind, objects } => {
                let gone: Vec<ObjectKey> = manifests.keys().filter(|key| key.kind == kind).cloned().collect();
                for key in gone {
                    manifests.remove(&key);
                }
                // A kind that is not installed is listed too, as one without objects.
                if !objects.is_empty() {
                    self.live.absent.remove(&kind);
                }
                listing::insert(manifests, objects);
            }
            Input::Seen { kind, object } => {
                self.live.absent.remove(&kind);
                listing::insert(manifests, vec![object]);
            }
            Input::Gone { object, .. } => {
                if let Ok(Inserted::Known(key)) = Manifests::default().insert(object) {
                    manifests.remove(&key);
                }
            }
            // No watch says anything else.
            Input::Probed { .. } | Input::Written { .. } | Input::Leading(_) | Input::SilenceAccepted(_) => {}
        }
    }

    /// Watches try again without a word; somebody who looks must know that what is shown is old.
    async fn ask(&mut self) {
        let there = async {
            let request = Request::get("/api/v1/nodes?limit=1").body(Vec::new())?;
            anyhow::Ok(self.client.request_text(request).await.map_err(|error| listing::in_words(Kind::Node, &error)))
        };
        let live_args = &self.args.read.input.live;
        let (there, known) = tokio::join!(timeout(ASK, there), leader::ask(&self.client, live_args));
        self.silence = match there {
            Ok(Ok(Ok(_))) => None,
            Ok(Ok(Err(why))) => Some(why),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the API server does not answer".to_owned()),
        };
        // A controller behind an API server that does not answer has not changed its mind.
        if self.silence.is_none() {
            self.live.known = known;
        }
    }

    fn show(&mut self) -> anyhow::Result<()> {
        let cluster = Cluster::from_live(&self.args.read.input, self.live.clone())?;
        let mut text = String::new();
        let bare = self.args.read.output != Format::Table;
        if !bare {
            let notes = self.silence.iter().map(|why| format!("what follows is old: {why}"));
            for note in notes.chain(cluster.told_briefly()) {
                for line in wrap(&format!("note: {note}"), self.screen.style().width) {
                    let _ = writeln!(text, "{line}");
                }
            }
            if !text.is_empty() {
                text.push('\n');
            }
        }
        text.push_str(&status::run(&cluster, &self.args.read, self.screen.style())?.text);
        let title = format!("{}, {}; Ctrl-C ends", self.live.name, now());
        Ok(self.screen.show(&Picture { title, text, bare })?)
    }
}

fn now() -> String {
    k8s_openapi::jiff::Timestamp::now().strftime("%F %T UTC").to_string()
}
