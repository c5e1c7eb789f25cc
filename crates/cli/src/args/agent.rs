//! The arguments of `egret agent`; texts, as those of the controller are.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `agent`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Node")]
pub struct AgentArgs {
    /// The name of this node in Kubernetes [default: `NODE_NAME`, or the host's name].
    #[arg(long, env = "EGRET_NODE", value_name = "NAME")]
    pub node: Option<String>,
    /// What is this node's.
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// Read the objects from these files instead of a cluster, and again whenever they change: YAML or JSON, files or folders.
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    pub filename: Vec<PathBuf>,
    /// Take everything of Egret's out of this node's kernel, and end. Works without Kubernetes.
    #[arg(long)]
    pub cleanup: bool,
    /// How often the kernel is looked at though nothing was told.
    #[arg(long, env = "EGRET_VERIFY", default_value = "1m", value_name = "TIME")]
    pub verify: String,
    /// Changes that come this close together are acted on together.
    #[arg(long, env = "EGRET_COALESCE", default_value = "5ms", value_name = "TIME")]
    pub coalesce: String,
    /// The node's health service.
    #[command(flatten)]
    pub health: HealthArgs,
    /// Where Kubernetes is.
    #[command(flatten)]
    pub cluster: AgentClusterArgs,
    /// Where the admin endpoints (/metrics, /healthz, /readyz, /snapshot) are: ADDRESS:PORT, or :PORT on all addresses.
    #[arg(
        long,
        env = "EGRET_ADMIN_ADDRESS",
        default_value = ":9411",
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

/// What is this node's, for whoever looks at its kernel.
#[derive(Debug, Args)]
pub struct KernelArgs {
    /// Who brings packets to this node's kernel: ovn, direct (any other network plugin), or auto: ovn where the node carries
    /// OVN-Kubernetes' annotations.
    #[arg(long, env = "EGRET_DATAPATH", default_value = "auto", value_name = "auto|ovn|direct")]
    pub datapath: String,
    /// More networks inside the cluster, to which no packet is ever led another way; CIDRs, with commas.
    #[arg(long, env = "EGRET_CLUSTER_NETWORKS", default_value = "", value_name = "CIDRS")]
    pub cluster_networks: String,
    /// The folder that remembers what kernel parameters were; it must not survive a restart of the machine.
    #[arg(long, env = "EGRET_STATE_FOLDER", default_value = "/run/egret", value_name = "FOLDER")]
    pub state_folder: PathBuf,
    /// Where routing tables have their names; files, and folders with *.conf files [default: those of iproute2].
    #[arg(long, env = "EGRET_TABLE_NAMES", value_name = "PATH", value_delimiter = ',')]
    pub table_names: Vec<PathBuf>,
    /// Where kernel parameters are; in a container the host's net folder must be below it, and writable.
    #[arg(long, env = "EGRET_PROC_SYS", default_value = "/proc/sys", value_name = "FOLDER")]
    pub proc_sys: PathBuf,
    /// The numbers to use.
    #[command(flatten)]
    pub numbers: NumbersArgs,
}

/// Where Kubernetes is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub struct AgentClusterArgs {
    /// The kubeconfig to use [default: KUBECONFIG, ~/.kube/config, or the pod's service account].
    #[arg(long, env = "EGRET_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: its current one].
    #[arg(long, env = "EGRET_CONTEXT", value_name = "NAME")]
    pub context: Option<String>,
}

/// The gRPC health service of the node (`Service_Egress_IP`), for a controller with --probe-port.
#[derive(Debug, Args)]
#[command(next_help_heading = "Health service")]
pub struct HealthArgs {
    /// Its port, 9107 by convention; 0: none. Only where ovnkube-node has none, for it ends when its port is taken.
    #[arg(long, env = "EGRET_HEALTH_PORT", default_value = "0", value_name = "PORT")]
    pub health_port: String,
    /// Where it listens, with commas [default: the management addresses of the node].
    #[arg(long, env = "EGRET_HEALTH_ADDRESSES", default_value = "", value_name = "ADDRESSES")]
    pub health_addresses: String,
    /// Its certificate; with --health-key it speaks TLS. Replaced files are read again.
    #[arg(long, env = "EGRET_HEALTH_CERT", value_name = "FILE")]
    pub health_cert: Option<PathBuf>,
    /// The key of its certificate.
    #[arg(long, env = "EGRET_HEALTH_KEY", value_name = "FILE")]
    pub health_key: Option<PathBuf>,
    /// While this file exists the node says that it does not serve, and its addresses move away.
    #[arg(long, env = "EGRET_DRAIN_FILE", default_value = "/run/egret/drain", value_name = "FILE")]
    pub drain_file: PathBuf,
}

/// The numbers that are Egret's in the kernel.
#[derive(Debug, Args)]
#[command(next_help_heading = "Numbers in the kernel")]
pub struct NumbersArgs {
    /// `ip rule` priority of EgressServices; four below and two above it are used, too.
    #[arg(long, env = "EGRET_SERVICE_PRIORITY", default_value = "5000", value_name = "NUMBER")]
    pub service_priority: String,
    /// `ip rule` priority of EgressIPs; one below and two above it are used, too.
    #[arg(long, env = "EGRET_ADDRESS_PRIORITY", default_value = "6000", value_name = "NUMBER")]
    pub address_priority: String,
    /// `ip rule` priority of what VRFs must find in the main table; before the kernel's l3mdev rule.
    #[arg(long, env = "EGRET_VRF_PRIORITY", default_value = "998", value_name = "NUMBER")]
    pub vrf_priority: String,
    /// Routing table of an EgressService's plain interface: this plus its index.
    #[arg(long, env = "EGRET_SERVICE_TABLES", default_value = "680000", value_name = "NUMBER")]
    pub service_tables: String,
    /// Routing table of an EgressIP's interface: this plus its index.
    #[arg(long, env = "EGRET_ADDRESS_TABLES", default_value = "1000", value_name = "NUMBER")]
    pub address_tables: String,
    /// The bit on every packet that is Egret's business; decimal or 0x.
    #[arg(long, env = "EGRET_MARK_FLAG", default_value = "0x1000", value_name = "NUMBER")]
    pub mark_flag: String,
    /// The lowest of the seven bits that tell such packets apart.
    #[arg(long, env = "EGRET_MARK_SHIFT", default_value = "0", value_name = "NUMBER")]
    pub mark_shift: String,
    /// `proto` of rules and routes.
    #[arg(long, env = "EGRET_PROTOCOL", default_value = "68", value_name = "NUMBER")]
    pub protocol: String,
    /// `proto` of egress addresses.
    #[arg(long, env = "EGRET_ADDRESS_PROTOCOL", default_value = "85", value_name = "NUMBER")]
    pub address_protocol: String,
}
