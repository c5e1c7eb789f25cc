//! One of several instances leads; whoever cannot renew stops before another one begins.

use std::time::Duration;

use egret_controller::lease::{ACCEPT_MASS_SILENCE, Candidate, Right, Standing, Terms};
use egret_testkit::patience::{PATIENCE, eventually};
use egret_testkit::server::Server;
use egret_testkit::server::hand::{delete, get, merge};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::admin;

/// Short, so that the tests are; the proportions are those of the real ones.
const TERMS: Terms =
    Terms { duration: Duration::from_secs(4), deadline: Duration::from_secs(2), retry: Duration::from_millis(300) };

fn lease() -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "egret", "namespace": "default"}})
}

/// An instance in the election.
struct Instance {
    standing: watch::Receiver<Standing>,
    stop: CancellationToken,
    task: JoinHandle<Candidate>,
}

impl Instance {
    fn start(client: Client, identity: &str) -> Self {
        let (mut candidate, standing) = Candidate::new(client, "default", "egret", identity.to_owned(), TERMS);
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        let task = tokio::spawn(async move {
            candidate.run(&stopping).await;
            candidate
        });
        Self { standing, stop, task }
    }

    fn right(&self) -> Option<Right> {
        self.standing.borrow().right_now()
    }

    async fn leads(&mut self) -> Right {
        let leads = self.standing.wait_for(|standing| standing.right_now().is_some());
        timeout(PATIENCE, leads).await.expect("it leads").unwrap().right.unwrap()
    }

    async fn leads_no_more(&self) {
        eventually("it to lead no more", async || self.right().is_none().then_some(())).await;
    }

    async fn end(self) -> Candidate {
        self.stop.cancel();
        self.task.await.unwrap()
    }
}

async fn holder(client: &Client) -> Option<String> {
    let lease = get(client, &lease()).await?;
    Some(lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn one_leads_and_what_it_gives_up_the_other_has_at_once() {
    let server = Server::take().await.unwrap();
    let client = admin(&server);
    let mut a = Instance::start(client.clone(), "a");
    let first = a.leads().await;
    let mut b = Instance::start(client.clone(), "b");
    // It goes on leading for longer than one right lasts.
    tokio::time::sleep_until(first.until).await;
    let later = a.right().expect("it has renewed");
    assert_eq!(later.term, first.term);
    assert!(b.right().is_none());

    let released = Instant::now();
    a.end().await.release().await.unwrap();
    b.leads().await;
    assert!(released.elapsed() < TERMS.duration / 2, "{:?}", released.elapsed());
    assert_eq!(holder(&client).await.as_deref(), Some("b"));
    assert_eq!(get(&client, &lease()).await.unwrap()["spec"]["leaseTransitions"], 1);
}

/// An instance on a thread that can be frozen, as a process is by SIGSTOP.
fn freezable(
    client: kube::Config,
) -> (watch::Receiver<Standing>, mpsc::UnboundedSender<std::sync::mpsc::Receiver<()>>) {
    let (freeze, mut freezes) = mpsc::unbounded_channel::<std::sync::mpsc::Receiver<()>>();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let client = egret_controller::client(client).unwrap();
            let (mut candidate, standing) = Candidate::new(client, "default", "egret", "frozen".to_owned(), TERMS);
            tell.send(standing).unwrap();
            tokio::spawn(async move { candidate.run(&CancellationToken::new()).await });
            while let Some(thaw) = freezes.recv().await {
                // Nothing else on this thread goes on.
                let _ = thaw.recv();
            }
        });
    });
    (told.recv().unwrap(), freeze)
}

#[tokio::test]
async fn a_frozen_leader_has_no_right_when_the_other_gets_one_nor_when_it_thaws() {
    let server = Server::take().await.unwrap();
    let client = admin(&server);
    let (mut frozen, freeze) = freezable(server.config());
    timeout(PATIENCE, frozen.wait_for(|standing| standing.right_now().is_some())).await.unwrap().unwrap();
    let mut other = Instance::start(client.clone(), "other");

    let (thaw, ice) = std::sync::mpsc::channel();
    freeze.send(ice).unwrap();
    let began = other.leads().await.until - TERMS.deadline;
    let last = frozen.borrow().right.expect("it led");
    assert!(last.until <= began, "the first right ends before the second begins");
    assert_eq!(frozen.borrow().right_now(), None);

    thaw.send(()).unwrap();
    // It finds out by itself, and the lease stays where it is.
    timeout(PATIENCE, frozen.wait_for(|standing| standing.right.is_none())).await.unwrap().unwrap();
    assert_eq!(holder(&client).await.as_deref(), Some("other"));
    assert!(other.right().is_some());
}

#[tokio::test]
async fn a_stolen_lease_is_noticed_and_taken_back_when_the_thief_does_not_renew() {
    let server = Server::take().await.unwrap();
    let client = admin(&server);
    let mut a = Instance::start(client.clone(), "a");
    let first = a.leads().await;
    let stolen = Instant::now();
    merge(&client, &lease(), json!({"spec": {"holderIdentity": "thief", "leaseTransitions": 7}})).await;
    a.leads_no_more().await;
    assert!(stolen.elapsed() < TERMS.deadline, "before its right would have ended: {:?}", stolen.elapsed());
    let again = a.leads().await;
    assert!(stolen.elapsed() >= TERMS.duration, "{:?}", stolen.elapsed());
    assert_ne!(again.term, first.term);
    assert_eq!(get(&client, &lease()).await.unwrap()["spec"]["leaseTransitions"], 8);
}

#[tokio::test]
async fn a_deleted_lease_is_made_again_by_its_holder_and_not_by_who_waits() {
    let server = Server::take().await.unwrap();
    let client = admin(&server);
    let mut a = Instance::start(client.clone(), "a");
    a.leads().await;
    let b = Instance::start(client.clone(), "b");
    tokio::time::sleep(TERMS.retry * 3).await;
    delete(&client, &lease()).await;
    let again = eventually("the lease to be made again", async || holder(&client).await).await;
    assert_eq!(again, "a");
    a.leads().await;
    assert!(b.right().is_none());
}

#[tokio::test]
async fn what_an_operator_puts_on_the_lease_is_read_and_outlives_renewals() {
    let server = Server::take().await.unwrap();
    let client = admin(&server);
    let mut a = Instance::start(client.clone(), "a");
    a.leads().await;
    let annotations = json!({ACCEPT_MASS_SILENCE: "3", "example.com/mine": "x"});
    let annotated = merge(&client, &lease(), json!({"metadata": {"annotations": annotations}})).await;
    let read = a.standing.wait_for(|standing| standing.silence_accepted == Some(3));
    timeout(PATIENCE, read).await.expect("it is read").unwrap();
    assert!(a.right().is_some(), "and the leader goes on");
    let renewed = eventually("a renewal", async || {
        let stored = get(&client, &lease()).await.unwrap();
        (stored["spec"]["renewTime"] != annotated["spec"]["renewTime"]).then_some(stored)
    });
    assert_eq!(renewed.await["metadata"]["annotations"], annotations);
}

#[tokio::test]
async fn without_an_api_server_the_right_ends_by_itself_and_comes_back_with_it() {
    let server = Server::take().await.unwrap();
    let client = admin(&server);
    let mut a = Instance::start(client.clone(), "a");
    a.leads().await;
    server.pause_etcd().unwrap();
    let paused = Instant::now();
    a.leads_no_more().await;
    assert!(paused.elapsed() <= TERMS.deadline + Duration::from_millis(500), "{:?}", paused.elapsed());
    server.resume_etcd().unwrap();
    a.leads().await;
    server.kill_api();
    a.leads_no_more().await;
    server.start_api().await.unwrap();
    a.leads().await;
}

#[tokio::test]
async fn nobody_leads_who_may_not_write_the_lease() {
    let server = Server::take().await.unwrap();
    let nobody = egret_controller::client(server.config_as("nobody")).unwrap();
    let (done, over) = oneshot::channel::<()>();
    let a = Instance::start(nobody, "a");
    tokio::time::sleep(TERMS.retry * 2).await;
    assert!(a.right().is_none());
    drop(done);
    let _ = over.await;
    a.end().await.release().await.unwrap();
    assert_eq!(holder(&admin(&server)).await, None);
}
