//! A server in the hands of a test.

use std::fmt;
use std::path::PathBuf;

use egret_api::crd;
use kube::{Client, Config};
use thiserror::Error;

use super::admission;
use super::audit::{self, AuditError, Write};
use super::control_plane::{ControlPlane, ControlPlaneError};
use super::crds::{self, CrdError};
use super::empty::EmptyError;
use super::parts::Part;
use super::pool::{self, Permit, Slot};

/// A real API server, empty when it is taken and this test's alone until it is dropped.
///
/// Dropping it resumes what was paused and stops the controllers; an API server that was stopped is started again when
/// the server is taken the next time.
#[must_use = "dropping it gives the server back"]
pub struct Server {
    /// Absent only while it is dropped.
    slot: Option<Slot>,
    client: Client,
    audited: u64,
    // After the slot: who gets the permit must find the slot.
    _permit: Permit,
}

/// Why there is no server, or why it does not do what it was asked.
#[derive(Debug, Error)]
pub enum ServerError {
    /// A process of it does not.
    #[error(transparent)]
    ControlPlane(#[from] ControlPlaneError),
    /// It could not be emptied.
    #[error(transparent)]
    Empty(#[from] EmptyError),
    /// It does not serve a custom resource.
    #[error(transparent)]
    Crds(#[from] CrdError),
    /// It did not answer while admission policies were waited for.
    #[error("failed to wait for admission policies")]
    Admission {
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// It takes too long to use the admission policies that it stores.
    #[error("admission policies are not in effect")]
    AdmissionSlow,
}

impl Server {
    /// Waits until one is free; starts one if this process has fewer than it may have.
    ///
    /// # Errors
    ///
    /// The programs are not to be had, or do not run.
    pub async fn take() -> Result<Self, ServerError> {
        let (permit, slot) = pool::take().await?;
        // A client belongs to the runtime it was made in, and each test has its own.
        let client = client(slot.plane.config().clone())?;
        let audited = audit::length(&slot.plane.audit_log());
        tally();
        Ok(Self { slot: Some(slot), client, audited, _permit: permit })
    }

    /// A client of an administrator, whom nothing is forbidden.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client that has the rights of somebody else, such as `system:serviceaccount:NAMESPACE:NAME`, whose groups the
    /// server knows by itself.
    #[must_use]
    pub fn client_as(&self, user: &str) -> Client {
        client(self.config_as(user)).expect("it differs in a header from the one that the test was given")
    }

    /// What the administrator's client was made from.
    #[must_use]
    pub fn config(&self) -> Config {
        self.plane().config().clone()
    }

    /// The same for somebody else.
    #[must_use]
    pub fn config_as(&self, user: &str) -> Config {
        let mut config = self.config();
        config.auth_info.impersonate = Some(user.to_owned());
        config
    }

    /// A kubeconfig file of the administrator, for another process. It is gone with the server.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn kubeconfig(&self) -> Result<PathBuf, ServerError> {
        Ok(self.plane().kubeconfig(None)?)
    }

    /// The same for somebody else.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn kubeconfig_as(&self, user: &str) -> Result<PathBuf, ServerError> {
        Ok(self.plane().kubeconfig(Some(user))?)
    }

    /// Installs Egret's custom resource definitions, and waits until the server serves them.
    ///
    /// # Errors
    ///
    /// The server does not take one, or does not serve it.
    pub async fn install_crds(&self, cloud: bool) -> Result<(), ServerError> {
        for definition in crd::definitions(cloud) {
            self.install_crd(&definition).await?;
        }
        Ok(())
    }

    /// The same for any definition, which may be there already in another form.
    ///
    /// # Errors
    ///
    /// The server does not take it, or does not serve it.
    pub async fn install_crd(&self, definition: &serde_json::Value) -> Result<(), ServerError> {
        Ok(crds::install(&self.client, definition).await?)
    }

    /// Waits until the admission policies that are stored, and no others, are in effect: up to a second.
    ///
    /// # Errors
    ///
    /// The server does not answer.
    pub async fn settle_admission(&self) -> Result<(), ServerError> {
        let settled = admission::settle(&self.client).await;
        let settled = settled.map_err(|source| ServerError::Admission { source: Box::new(source) })?;
        if settled { Ok(()) } else { Err(ServerError::AdmissionSlow) }
    }

    /// Who has written what since this server was taken, refused requests included, in the order of the answers.
    ///
    /// A request is among them before its answer is complete. The server's own writes, rehearsals and reviews of access
    /// are not.
    ///
    /// # Errors
    ///
    /// The log cannot be read.
    pub fn audit(&self) -> Result<Vec<Write>, AuditError> {
        audit::since(&self.plane().audit_log(), self.audited)
    }

    /// Stops the API server as an update of it would: it finishes what it has begun, and ends its watches.
    ///
    /// # Errors
    ///
    /// It cannot be told.
    pub async fn stop_api(&self) -> Result<(), ServerError> {
        Ok(self.plane().stop_api().await?)
    }

    /// Kills the API server in the middle of whatever it does.
    pub fn kill_api(&self) {
        self.plane().kill_api();
    }

    /// Starts the API server again, at the same address, and waits until it serves.
    ///
    /// # Errors
    ///
    /// It does not.
    pub async fn start_api(&self) -> Result<(), ServerError> {
        Ok(self.plane().start_api().await?)
    }

    /// Freezes etcd: requests of the API server to it hang, as on a disk that does not answer.
    ///
    /// # Errors
    ///
    /// It cannot be.
    pub fn pause_etcd(&self) -> Result<(), ServerError> {
        Ok(self.plane().pause_etcd()?)
    }

    /// Lets etcd go on.
    ///
    /// # Errors
    ///
    /// It cannot be.
    pub fn resume_etcd(&self) -> Result<(), ServerError> {
        Ok(self.plane().resume_etcd()?)
    }

    /// Starts controllers of Kubernetes, such as `endpointslice-controller`, instead of those that run. They need
    /// seconds until they do anything; await what they do.
    ///
    /// # Errors
    ///
    /// The program is not to be had or cannot be started.
    pub async fn start_controller_manager(&self, controllers: &[&str]) -> Result<(), ServerError> {
        Ok(self.plane().start_manager(controllers, &[]).await?)
    }

    /// The same with further arguments, such as `--node-monitor-grace-period=4s`.
    ///
    /// # Errors
    ///
    /// The program is not to be had or cannot be started.
    pub async fn start_controller_manager_with(
        &self,
        controllers: &[&str],
        arguments: &[&str],
    ) -> Result<(), ServerError> {
        Ok(self.plane().start_manager(controllers, arguments).await?)
    }

    /// Stops them.
    pub fn stop_controller_manager(&self) {
        self.plane().stop_manager();
    }

    /// The file with all that a program of this server has ever said.
    #[must_use]
    pub fn log(&self, part: Part) -> PathBuf {
        self.plane().log(part)
    }

    fn plane(&self) -> &ControlPlane {
        &self.slot.as_ref().expect("it is there until it is dropped").plane
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            pool::give_back(slot);
        }
    }
}

fn client(config: Config) -> Result<Client, ControlPlaneError> {
    Client::try_from(config).map_err(|source| ControlPlaneError::Client { source })
}

/// Where it is counted that a test had a server, a line each: who requires that tests ran can see that they did.
const TALLY: &str = "EGRET_API_TALLY";

fn tally() {
    let Some(file) = std::env::var_os(TALLY) else { return };
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let opened = std::fs::File::options().create(true).append(true).open(file);
    let written = opened.and_then(|mut file| std::io::Write::write_all(&mut file, format!("ran {test}\n").as_bytes()));
    written.expect("the tally can be written");
}
