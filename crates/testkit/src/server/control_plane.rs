//! One etcd, one API server before it, and the controllers if somebody asks for them.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use egret_netlab::{Process, Signal};
use kube::config::KubeconfigError;
use kube::{Client, Config};
use thiserror::Error;

use super::audit;
use super::credentials::{Credentials, config};
use super::folder::Folder;
use super::parts::{Part, PartsError};
use super::port;
use super::store::Store;
use super::wait::until;

/// Both are up in three seconds on an idle machine of two cores; a busy one is given much longer.
const START_LIMIT: Duration = Duration::from_secs(90);

/// After that, what was asked to end is made to.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// How often another port is tried if somebody was faster.
const PORTS: usize = 5;

/// What the API server says when its port is taken.
const PORT_TAKEN: &str = "address already in use";

/// How much of a log an error shows.
const TOLD_LINES: usize = 15;

/// Why a control plane does not do what it was asked.
#[derive(Debug, Error)]
pub enum ControlPlaneError {
    /// A program is not to be had.
    #[error("failed to find {}", part.name())]
    Parts {
        /// The program.
        part: Part,
        /// Why.
        #[source]
        source: PartsError,
    },
    /// Its files could not be written.
    #[error("failed to write the files of a test server")]
    Files {
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A program could not be started, or not be sent a signal.
    #[error("failed to start, stop or pause {}", part.name())]
    Process {
        /// The program.
        part: Part,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A program has ended by itself.
    #[error("{} has ended; its last words:\n{log}", part.name())]
    Ended {
        /// The program.
        part: Part,
        /// The end of its log.
        log: String,
    },
    /// It runs, but does not serve.
    #[error("the API server was not ready in time; its last words:\n{log}")]
    NotReady {
        /// The end of its log.
        log: String,
    },
    /// Somebody listens on every port.
    #[error("no port is free")]
    NoPort,
    /// The kubeconfig that was just written cannot be read.
    #[error("failed to read the kubeconfig of a test server")]
    Kubeconfig {
        /// Why.
        #[from]
        source: KubeconfigError,
    },
    /// No client can be made from it.
    #[error("failed to make a client of a test server")]
    Client {
        /// Why.
        #[source]
        source: kube::Error,
    },
}

/// Where the API server is reached, and the addresses that it gives to services.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) address: Ipv4Addr,
    pub(crate) services: &'static str,
}

impl Place {
    /// For this machine only.
    const LOCAL: Place = Place { address: Ipv4Addr::LOCALHOST, services: "10.96.0.0/16" };
}

#[derive(Debug)]
struct Processes {
    manager: Option<Process>,
    api: Option<Process>,
    etcd: Process,
}

/// A running control plane. Its processes and its folder are gone when it is dropped.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    // Before the folder, so that nobody writes there when it is removed.
    processes: Mutex<Processes>,
    place: Place,
    port: u16,
    /// Known when the server has made its certificate, and never absent outside [`ControlPlane::start`].
    config: Option<Config>,
    credentials: Credentials,
    folder: Folder,
}

impl ControlPlane {
    /// A new one, ready to serve this machine.
    pub(crate) async fn start() -> Result<Self, ControlPlaneError> {
        Self::start_at(Place::LOCAL).await
    }

    /// A new one, ready to serve.
    pub(crate) async fn start_at(at: Place) -> Result<Self, ControlPlaneError> {
        let etcd = find(Part::Etcd).await?;
        find(Part::ApiServer).await?;
        let folder = Folder::new().map_err(|source| ControlPlaneError::Files { source })?;
        let credentials = Credentials::new(&folder).map_err(|source| ControlPlaneError::Files { source })?;
        fs::write(folder.join("audit-policy.yaml"), audit::POLICY)
            .map_err(|source| ControlPlaneError::Files { source })?;
        let etcd = start(Part::Etcd, &etcd, etcd_arguments(&folder), &folder)?;
        let mut plane = Self {
            processes: Mutex::new(Processes { manager: None, api: None, etcd }),
            place: at,
            port: 0,
            config: None,
            credentials,
            folder,
        };
        plane.first_api().await?;
        Ok(plane)
    }

    /// The administrator's.
    pub(crate) fn config(&self) -> &Config {
        self.config.as_ref().expect("known since the start")
    }

    /// A file for the administrator or somebody that it impersonates.
    pub(crate) fn kubeconfig(&self, user: Option<&str>) -> Result<PathBuf, ControlPlaneError> {
        let written = self.credentials.write_kubeconfig((self.place.address, self.port).into(), user);
        written.map_err(|source| ControlPlaneError::Files { source })
    }

    pub(crate) fn store(&self) -> Store {
        Store::new(self.folder.join("etcd.sock"))
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    /// What a part has said so far.
    pub(crate) fn log(&self, part: Part) -> PathBuf {
        log(&self.folder, part)
    }

    /// Does nothing if it runs. Waits until it serves.
    pub(crate) async fn start_api(&self) -> Result<(), ControlPlaneError> {
        let program = find(Part::ApiServer).await?;
        {
            let mut processes = self.processes();
            if processes.api.is_none() {
                processes.api = Some(start(Part::ApiServer, &program, self.api_arguments(), &self.folder)?);
            }
        }
        self.ready(self.config()).await
    }

    /// Lets it finish what it has begun, and waits for that.
    pub(crate) async fn stop_api(&self) -> Result<(), ControlPlaneError> {
        let Some(mut api) = self.processes().api.take() else { return Ok(()) };
        let failed = |source| ControlPlaneError::Process { part: Part::ApiServer, source };
        api.signal(Signal::SIGTERM).map_err(failed)?;
        until(STOP_LIMIT, async || api.ended()).await.map_err(failed)?;
        Ok(())
    }

    /// In the middle of whatever it does.
    pub(crate) fn kill_api(&self) {
        drop(self.processes().api.take());
    }

    /// Freezes the store: the API server can neither read from it nor write to it, and nothing tells it why.
    pub(crate) fn pause_etcd(&self) -> Result<(), ControlPlaneError> {
        self.signal_etcd(Signal::SIGSTOP)
    }

    pub(crate) fn resume_etcd(&self) -> Result<(), ControlPlaneError> {
        self.signal_etcd(Signal::SIGCONT)
    }

    /// Starts the controllers with these names, instead of those that run.
    pub(crate) async fn start_manager(
        &self,
        controllers: &[&str],
        arguments: &[&str],
    ) -> Result<(), ControlPlaneError> {
        let program = find(Part::ControllerManager).await?;
        let mut all = vec![
            format!("--kubeconfig={}", self.kubeconfig(None)?.display()),
            format!("--controllers={}", controllers.join(",")),
            "--leader-elect=false".to_owned(),
            // It would serve its metrics.
            "--secure-port=0".to_owned(),
        ];
        all.extend(arguments.iter().map(|&argument| argument.to_owned()));
        // The old one first: two would do everything twice.
        self.stop_manager();
        self.processes().manager = Some(start(Part::ControllerManager, &program, all, &self.folder)?);
        Ok(())
    }

    pub(crate) fn stop_manager(&self) {
        drop(self.processes().manager.take());
    }

    fn processes(&self) -> MutexGuard<'_, Processes> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal_etcd(&self, signal: Signal) -> Result<(), ControlPlaneError> {
        let sent = self.processes().etcd.signal(signal);
        sent.map_err(|source| ControlPlaneError::Process { part: Part::Etcd, source })
    }

    /// Finds a port, and learns the certificate that the server makes for itself.
    async fn first_api(&mut self) -> Result<(), ControlPlaneError> {
        let program = find(Part::ApiServer).await?;
        let mut tries = 0;
        loop {
            tries += 1;
            self.port = port::free().ok_or(ControlPlaneError::NoPort)?;
            let api = start(Part::ApiServer, &program, self.api_arguments(), &self.folder)?;
            self.processes().api = Some(api);
            match self.first_ready().await {
                Err(ControlPlaneError::Ended { part: Part::ApiServer, log })
                    if log.contains(PORT_TAKEN) && tries < PORTS => {}
                Err(error) => return Err(error),
                Ok(config) => {
                    self.config = Some(config);
                    return Ok(());
                }
            }
        }
    }

    async fn first_ready(&self) -> Result<Config, ControlPlaneError> {
        let key = self.credentials.certificates().join("apiserver.key");
        // The key is written after the certificate, and neither is there at once.
        let there = until(START_LIMIT, async || {
            self.all_run()?;
            Ok::<_, ControlPlaneError>(fs::metadata(&key).is_ok_and(|file| file.len() > 0).then_some(()))
        });
        there.await?.ok_or_else(|| self.not_ready())?;
        let config = config(&self.kubeconfig(None)?).await?;
        self.ready(&config).await?;
        Ok(config)
    }

    async fn ready(&self, config: &Config) -> Result<(), ControlPlaneError> {
        let mut config = config.clone();
        config.default_retry = false;
        let client = Client::try_from(config).map_err(|source| ControlPlaneError::Client { source })?;
        let ready = until(START_LIMIT, async || {
            self.all_run()?;
            let request = http::Request::get("/readyz").body(Vec::new()).expect("a legal request");
            Ok::<_, ControlPlaneError>(client.request_text(request).await.is_ok().then_some(()))
        });
        ready.await?.ok_or_else(|| self.not_ready())
    }

    /// There is no use in waiting for what has ended.
    fn all_run(&self) -> Result<(), ControlPlaneError> {
        let mut processes = self.processes();
        let Processes { etcd, api, .. } = &mut *processes;
        for (part, process) in [(Part::Etcd, Some(etcd)), (Part::ApiServer, api.as_mut())] {
            let ended = process.map_or(Ok(None), Process::ended);
            if ended.map_err(|source| ControlPlaneError::Process { part, source })?.is_some() {
                return Err(ControlPlaneError::Ended { part, log: last_words(&self.log(part)) });
            }
        }
        Ok(())
    }

    fn not_ready(&self) -> ControlPlaneError {
        ControlPlaneError::NotReady { log: last_words(&self.log(Part::ApiServer)) }
    }

    fn api_arguments(&self) -> Vec<String> {
        let file = |name: &str| self.folder.join(name).display().to_string();
        // The key that it makes for its certificate signs tokens as well: it is there before it is read.
        let key = self.credentials.certificates().join("apiserver.key").display().to_string();
        vec![
            format!("--etcd-servers=unix://{}", file("etcd.sock")),
            format!("--cert-dir={}", self.credentials.certificates().display()),
            format!("--token-auth-file={}", self.credentials.token_file().display()),
            format!("--secure-port={}", self.port),
            format!("--bind-address={}", self.place.address),
            format!("--advertise-address={}", self.place.address),
            "--authorization-mode=RBAC".to_owned(),
            // It waits for a controller that makes a service account for each namespace.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={key}"),
            format!("--service-account-signing-key-file={key}"),
            format!("--service-cluster-ip-range={}", self.place.services),
            // Endpoints must not be on the loopback, and there are no pods that would miss them.
            "--endpoint-reconciler-type=none".to_owned(),
            // Else it waits a minute for clients that watch.
            "--shutdown-watch-termination-grace-period=1s".to_owned(),
            format!("--audit-policy-file={}", file("audit-policy.yaml")),
            format!("--audit-log-path={}", file("audit.log")),
            // Never rotated: what is read is always all of it.
            "--audit-log-maxsize=100000".to_owned(),
        ]
    }
}

fn etcd_arguments(folder: &Folder) -> Vec<String> {
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        // Sockets in the folder cannot be taken by anybody else. What is advertised is never used, and etcd refuses a
        // socket there.
        format!("--listen-client-urls=unix://{}", folder.join("etcd.sock").display()),
        "--advertise-client-urls=http://127.0.0.1:0".to_owned(),
        "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
        // Nothing has to survive a power cut.
        "--unsafe-no-fsync".to_owned(),
        // Emptying makes all its changes at once; what came with the server stays, and is about 300 keys.
        "--max-txn-ops=100000".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

async fn find(part: Part) -> Result<PathBuf, ControlPlaneError> {
    let found = tokio::task::spawn_blocking(move || part.find()).await.expect("finding does not panic");
    found.map_err(|source| ControlPlaneError::Parts { part, source })
}

fn start(part: Part, program: &Path, arguments: Vec<String>, folder: &Folder) -> Result<Process, ControlPlaneError> {
    let mut command = Command::new(program);
    command.args(arguments);
    Process::start(&command, &log(folder, part)).map_err(|source| ControlPlaneError::Process { part, source })
}

fn log(folder: &Folder, part: Part) -> PathBuf {
    folder.join(&format!("{}.log", part.name()))
}

fn last_words(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TOLD_LINES)..].join("\n")
}
