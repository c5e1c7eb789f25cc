//! `egret controller` as a process: how it begins, is looked at and ends. What it does is tested elsewhere.

use std::process::{Child, Stdio};

use egret_testkit::patience::eventually;
use serde_json::Value;

use crate::support::{egret, run};
use crate::{answer, ask, settled};

#[test]
fn every_wrong_option_is_told_at_once_wherever_it_comes_from() {
    let mut command = egret([
        "controller",
        "--lease-duration=soon",
        "--egressip-node-healthcheck-port=70000",
        "--platform-type=Oracle",
        "--no-hostsubnet-nodes=a=b,,",
        "--cluster-subnets=10.128.0.0/14/23,nonsense",
        "--admin-address=9410",
        "--probe-ca=ca.pem",
        "--log-level=verbose",
    ]);
    command.env("EGRET_PROBE_TIMEOUT", "2m").env("EGRET_CORDON_EXCLUDES", "perhaps").env("EGRET_NAMESPACE", "A");
    let run = run(command);
    assert_eq!((run.code, run.stdout.as_str()), (Some(64), ""), "{run}");
    for fault in [
        "--lease-duration \"soon\": write a time as 15s, 400ms or 1m30s",
        "--probe-port \"70000\": this is no such number",
        "--platform \"Oracle\": write none or one of aws, gcp, azure, openstack",
        "--no-hostsubnet-nodes \"a=b,,\": requirement 2 is empty",
        "--cluster-subnets \"nonsense\": write a network as 10.128.0.0/14",
        "--admin-address \"9410\": write ADDRESS:PORT",
        "--probe-ca \"ca.pem\": it needs --probe-common-name",
        "--log-level \"verbose\": \"verbose\" is no level",
        "--probe-timeout 120s must be at most 60s",
        "--cordon-excludes \"perhaps\": write true or false",
        "--namespace \"A\" is no name of Kubernetes",
    ] {
        assert!(run.stderr.contains(&format!("error: {fault}")), "{fault}: {run}");
    }
    assert_eq!(run.stderr.lines().count(), 11, "and nothing else: {run}");
}

#[test]
fn without_a_cluster_it_does_not_begin() {
    let run = run(egret(["controller", "--kubeconfig", "no/such/file", "--admin-address", "127.0.0.1:0"]));
    assert_eq!(run.code, Some(1), "{run}");
    assert_eq!(run.stderr.matches("error: failed to use the kubeconfig").count(), 1, "{run}");
}

struct Controller(Child);

impl Controller {
    fn start(kubeconfig: &str, port: u16) -> Self {
        let mut command = egret(["controller", "--kubeconfig", kubeconfig, "--namespace", "default"]);
        command.env("EGRET_ADMIN_ADDRESS", format!("127.0.0.1:{port}")).env("EGRET_POD_NAME", "pod-1");
        command.env("EGRET_LOG_FORMAT", "json").env("EGRET_PROBE_TIMEOUT", "0");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().expect("the program starts"))
    }

    /// The exit code and the lines of its log.
    fn stop(mut self) -> (Option<i32>, Vec<Value>) {
        let id = self.0.id().to_string();
        assert!(std::process::Command::new("kill").args(["-s", "TERM", &id]).status().is_ok_and(|told| told.success()));
        let mut log = String::new();
        let mut stderr = self.0.stderr.take().expect("it is piped");
        std::io::Read::read_to_string(&mut stderr, &mut log).expect("the log is text");
        let lines =
            log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
        (self.0.wait().expect("it is our child").code(), lines.collect())
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What an admin endpoint answers: the status and the body; `None` if nobody listens.
async fn get(port: u16, path: &str) -> Option<(u16, String)> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

#[tokio::test]
async fn it_serves_until_it_is_told_to_stop_and_leaves_the_lease_free() {
    let (server, kubeconfig) = settled().await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound").port();
    let controller = Controller::start(&kubeconfig.display().to_string(), port);
    eventually("it to lead", async || {
        get(port, "/metrics").await.filter(|(_, text)| text.contains("egret_controller_leading 1\n"))
    })
    .await;
    assert_eq!(get(port, "/healthz").await, Some((200, "ok\n".to_owned())));
    eventually("it to be ready", async || get(port, "/readyz").await.filter(|(status, _)| *status == 200)).await;
    let (status, snapshot) = get(port, "/snapshot").await.expect("it listens");
    let snapshot: Value = serde_json::from_str(&snapshot).unwrap_or_default();
    assert_eq!((status, &snapshot["leading"], &snapshot["probing"]), (200, &true.into(), &false.into()), "{snapshot}");

    // The commands decide as this one does, and agree that nothing is left to do.
    let url = format!("http://127.0.0.1:{port}");
    eventually("every address to have a node", async || {
        let status = answer(&ask(&kubeconfig, &["status", "-o", "json", "--controller-url", &url]));
        status["addresses"].as_array()?.iter().all(|line| !line["node"].is_null()).then_some(())
    })
    .await;
    let plan = ask(&kubeconfig, &["plan", "--detailed-exitcode", "--controller-url", &url]);
    assert_eq!(plan.code, Some(0), "{plan}");
    assert!(plan.stdout.contains("does not probe"), "{plan}");

    let (code, log) = controller.stop();
    assert_eq!(code, Some(0), "{log:?}");
    let messages: Vec<&str> = log.iter().filter_map(|line| line["message"].as_str()).collect();
    assert_eq!(messages.first(), Some(&"controller begins"), "{log:?}");
    assert_eq!(messages.last(), Some(&"controller ends"), "{log:?}");
    let leases = kube::Api::<k8s_openapi::api::coordination::v1::Lease>::namespaced(server.client(), "default");
    let lease = leases.get("egret-controller").await.expect("it was there");
    let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
    assert_eq!(holder, "", "the lease is given up");
}
