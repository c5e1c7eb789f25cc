//! The arguments of `egret controller`.
//!
//! Values are texts here, and read all together in `command/controller`: clap stops at the first that is wrong, and
//! whoever repairs a Deployment wants to know all of them at once.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `controller`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ControllerArgs {
    /// The kubeconfig to use [default: KUBECONFIG, ~/.kube/config, or the pod's service account].
    #[arg(long, env = "EGRET_KUBECONFIG", visible_alias = "k8s-kubeconfig", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: its current one].
    #[arg(long, env = "EGRET_CONTEXT", value_name = "NAME")]
    pub context: Option<String>,
    /// Where the cluster runs: none, aws, gcp, azure or openstack; vsphere and such count as none.
    #[arg(
        long,
        env = "EGRET_PLATFORM",
        visible_alias = "platform-type",
        default_value = "none",
        value_name = "PLATFORM"
    )]
    pub platform: String,
    /// Nodes without an OVN host subnet (hybrid overlay); they are ignored.
    #[arg(long, env = "EGRET_NO_HOSTSUBNET_NODES", value_name = "SELECTOR")]
    pub no_hostsubnet_nodes: Option<String>,
    /// Networks of pods, where the nodes' own pod subnets do not tell them all; CIDR or CIDR/HOST-LENGTH, with commas.
    #[arg(long, env = "EGRET_CLUSTER_SUBNETS", value_name = "CIDRS")]
    pub cluster_subnets: Option<String>,
    /// A cordoned node hosts nothing; without it a cordon moves nothing.
    #[arg(
        long,
        env = "EGRET_CORDON_EXCLUDES",
        default_value = "false",
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        value_name = "true|false"
    )]
    pub cordon_excludes: String,
    /// Who of several controllers writes.
    #[command(flatten)]
    pub election: ElectionArgs,
    /// How nodes are probed.
    #[command(flatten)]
    pub probe: ProbeArgs,
    /// Waits and limits.
    #[command(flatten)]
    pub pace: PaceArgs,
    /// Where the admin endpoints (/metrics, /healthz, /readyz, /snapshot) are: ADDRESS:PORT, or :PORT on all addresses.
    #[arg(
        long,
        env = "EGRET_ADMIN_ADDRESS",
        visible_alias = "metrics-bind-address",
        default_value = ":9410",
        value_name = "ADDRESS",
        help_heading = "Operation"
    )]
    pub admin_address: String,
    /// How log lines are written: text or json.
    #[arg(long, env = "EGRET_LOG_FORMAT", default_value = "text", value_name = "FORMAT", help_heading = "Operation")]
    pub log_format: String,
    /// What is logged: error, warn, info, debug, trace or off; also by module (info,kube=warn).
    #[arg(long, env = "EGRET_LOG_LEVEL", default_value = "info", value_name = "FILTER", help_heading = "Operation")]
    pub log_level: String,
}

/// Who of several controllers writes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Leader election")]
pub struct ElectionArgs {
    /// The namespace of the Lease.
    #[arg(long, env = "EGRET_NAMESPACE", default_value = "egret-system", value_name = "NAME")]
    pub namespace: String,
    /// The name of the Lease.
    #[arg(long, env = "EGRET_LEASE_NAME", default_value = "egret-controller", value_name = "NAME")]
    pub lease_name: String,
    /// The name of this pod; the commands find the leader by it [default: HOSTNAME, which is the pod's name in a pod].
    #[arg(long, env = "EGRET_POD_NAME", value_name = "NAME")]
    pub pod_name: Option<String>,
    /// Others take over when the Lease was not renewed for so long.
    #[arg(
        long,
        env = "EGRET_LEASE_DURATION",
        visible_alias = "cluster-manager-ha-election-lease-duration",
        default_value = "15s",
        value_name = "TIME"
    )]
    pub lease_duration: String,
    /// The leader that could not renew for so long stops writing.
    #[arg(
        long,
        env = "EGRET_RENEW_DEADLINE",
        visible_alias = "cluster-manager-ha-election-renew-deadline",
        default_value = "10s",
        value_name = "TIME"
    )]
    pub renew_deadline: String,
    /// Between two tries.
    #[arg(
        long,
        env = "EGRET_RETRY_PERIOD",
        visible_alias = "cluster-manager-ha-election-retry-period",
        default_value = "2s",
        value_name = "TIME"
    )]
    pub retry_period: String,
}

/// How nodes are probed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Probing")]
pub struct ProbeArgs {
    /// A node that does not answer within this time is unreachable; 0 turns probing off.
    #[arg(
        long,
        env = "EGRET_PROBE_TIMEOUT",
        visible_alias = "egressip-reachability-total-timeout",
        default_value = "1s",
        value_name = "TIME"
    )]
    pub probe_timeout: String,
    /// The port of the nodes' gRPC health service, 9107 by convention; 0 probes TCP port 9 instead.
    #[arg(
        long,
        env = "EGRET_PROBE_PORT",
        visible_alias = "egressip-node-healthcheck-port",
        default_value = "0",
        value_name = "PORT"
    )]
    pub probe_port: String,
    /// From an answer to the next probe of the node.
    #[arg(long, env = "EGRET_PROBE_INTERVAL", default_value = "400ms", value_name = "TIME")]
    pub probe_interval: String,
    /// Never more probes a second in all; the interval is stretched for it.
    #[arg(long, env = "EGRET_MOST_PROBES_PER_SECOND", default_value = "1500", value_name = "COUNT")]
    pub most_probes_per_second: String,
    /// The certificate authority of the nodes' health service; with --probe-common-name it is spoken to with TLS.
    #[arg(long, env = "EGRET_PROBE_CA", visible_alias = "nb-client-cacert", value_name = "FILE")]
    pub probe_ca: Option<PathBuf>,
    /// The name in the certificate of the nodes' health service.
    #[arg(long, env = "EGRET_PROBE_COMMON_NAME", visible_alias = "nb-cert-common-name", value_name = "NAME")]
    pub probe_common_name: Option<String>,
    /// Our own certificate.
    #[arg(long, env = "EGRET_PROBE_CERT", visible_alias = "nb-client-cert", value_name = "FILE")]
    pub probe_cert: Option<PathBuf>,
    /// The key of our own certificate.
    #[arg(long, env = "EGRET_PROBE_KEY", visible_alias = "nb-client-privkey", value_name = "FILE")]
    pub probe_key: Option<PathBuf>,
    /// Nothing moves for silence while more than this share of the nodes that answered in the last minute is silent.
    #[arg(long, env = "EGRET_MASS_SILENCE_PERCENT", default_value = "55", value_name = "PERCENT")]
    pub mass_silence_percent: String,
    /// Below so many nodes that answered in the last minute silence is believed.
    #[arg(long, env = "EGRET_MASS_SILENCE_LEAST", default_value = "5", value_name = "COUNT")]
    pub mass_silence_least: String,
}

/// Waits and limits.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pace")]
pub struct PaceArgs {
    /// So many writes are under way at most.
    #[arg(long, env = "EGRET_WRITES_AT_ONCE", default_value = "32", value_name = "COUNT")]
    pub writes_at_once: String,
    /// Changes that come this close together are decided on together.
    #[arg(long, env = "EGRET_COALESCE", default_value = "5ms", value_name = "TIME")]
    pub coalesce: String,
    /// A node is left out so long after the cloud refused an address on it; it doubles with every refusal.
    #[arg(long, env = "EGRET_COOL_DOWN", default_value = "30s", value_name = "TIME")]
    pub cool_down: String,
    /// But never longer than this.
    #[arg(long, env = "EGRET_LONGEST_COOL_DOWN", default_value = "10m", value_name = "TIME")]
    pub longest_cool_down: String,
    /// How often it is tried again whether what the API server pruned or denied is taken now.
    #[arg(long, env = "EGRET_RETRIAL", default_value = "1m", value_name = "TIME")]
    pub retrial: String,
}
