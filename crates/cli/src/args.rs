//! The command line.

mod agent;
mod controller;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use egret_core::{IpNet, Selector};

pub use self::agent::{AgentArgs, AgentClusterArgs, HealthArgs, KernelArgs, NumbersArgs};
pub use self::controller::{ControllerArgs, ElectionArgs, PaceArgs, ProbeArgs};
use crate::selector_text;

/// Which node holds which egress IP, why, and what would change if.
#[derive(Debug, Parser)]
#[command(name = "egret", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "\
plan, explain, status and audit look at the cluster of the current kubeconfig context, and ask its
controller which nodes answer. They also read files: a must-gather folder, or what this writes:
  kubectl get nodes,egressips,egressservices,services,endpointslices -A -o yaml > cluster.yaml
(on a cloud add cloudprivateipconfigs; leave out kinds that are not installed). They never write.

Exit codes: 0 success, 1 error or faulty input (what could be read is shown all the same), 64 usage.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// When to colour the output.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: Colour,
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what a change would move, before making it.
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(PlanArgs),
    /// Show why an address or a service is where it is, and why not elsewhere.
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
    /// Show every address, every service and every node, what is unassigned first.
    #[command(after_help = STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Check the invariants of what is recorded; exit 1 if one is broken.
    #[command(after_help = AUDIT_EXAMPLES)]
    Audit(Box<AuditArgs>),
    /// Run the cluster manager: keep every address and every service on a node that can host it.
    #[command(after_help = CONTROLLER_NOTES)]
    Controller(Box<ControllerArgs>),
    /// Run the node daemon: keep this node's kernel as EgressServices and EgressIPs want it.
    #[command(after_help = AGENT_NOTES)]
    Agent(Box<AgentArgs>),
    /// Print the custom resource definitions.
    #[command(after_help = CRDS_EXAMPLES)]
    Crds(CrdsArgs),
    /// Print the completion script of a shell.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

const PLAN_EXAMPLES: &str = "\
Examples:
  egret plan --drain worker-1 --context prod                    on the live cluster
  egret plan cluster.yaml                                       what the controller would do now
  egret plan cluster.yaml --drain worker-1 --drain worker-2     one maintenance window: each address moves once
  egret plan cluster.yaml --apply new-egressip.yaml -o markdown for the change ticket
  egret plan must-gather/ --label node/worker-3 egress-pool=a   what a relabel would move
  kubectl get nodes,egressips -o yaml | egret plan - --not-ready worker-1 --detailed-exitcode

Exit codes: 0 success (with --detailed-exitcode: nothing moves), 1 error or faulty input, 2 with --detailed-exitcode:
something moves, 64 usage.";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  egret explain egressip/tenant-a                               on the live cluster
  egret explain egressip/tenant-a cluster.yaml                  every address of the object
  egret explain egressip/tenant-a --ip 192.0.2.10 cluster.yaml  one address
  egret explain egressservice/shop/web cluster.yaml             why the service is hosted there
  egret explain node/worker-1 cluster.yaml                      what the node holds and could hold";

const STATUS_EXAMPLES: &str = "\
Examples:
  egret status --watch
  egret status cluster.yaml
  egret status must-gather/ -o json | jq '.addresses[] | select(.node == null)'";

const AUDIT_EXAMPLES: &str = "\
Examples:
  egret audit --context prod
  egret audit cluster.yaml
  egret audit cluster.yaml --assume-unreachable worker-7 -o json
  egret audit --node                        on a node: its kernel against what it should hold
  egret audit --node --repair";

const AGENT_NOTES: &str = "\
Examples:
  egret agent --node worker-1             in the node's own network namespace, with CAP_NET_ADMIN, CAP_NET_RAW and nft
  egret agent --cleanup                   takes everything of Egret's out of the kernel again
  egret agent -f objects.yaml --node n1   with objects from files, where there is no Kubernetes

It touches nothing before it has read what this node should do, and leaves everything as it is when it ends.

Exit codes: 0 told to stop, or cleaned up; 1 cannot go on; 64 an option is wrong (all of them are told at once).";

const CONTROLLER_NOTES: &str = "\
Examples:
  egret controller --kubeconfig admin.conf --namespace egret-system    outside of the cluster, for a try
  egret controller --probe-port 9107 --log-format json                 where ovnkube-node serves its health
  EGRET_PLATFORM=aws egret controller                                  on a cloud

Times are written as 15s, 400ms or 1m30s; a bare number counts seconds. It stops in good order on SIGTERM or SIGINT: no
new writes, those under way end, the lease is given up.

Exit codes: 0 stopped when told to, 1 it could not begin or go on, 64 an option is wrong (all of them are told at once).";

const CRDS_EXAMPLES: &str = "\
Examples:
  egret crds | kubectl apply -f -
  egret crds --all > crds.yaml";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  egret completions bash > /etc/bash_completion.d/egret
  egret completions zsh > \"${fpath[1]}/_egret\"";

/// What is read, and what it does not tell.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// Files, folders (a must-gather, for example) or - for standard input; YAML or JSON. Without any the cluster of the
    /// current kubeconfig context is read.
    #[arg(value_name = "SOURCE")]
    pub sources: Vec<OsString>,
    /// Which cluster, when no source is given.
    #[command(flatten)]
    pub live: LiveArgs,
    /// A node that does not answer probes; a dump cannot tell, so every other Ready node is taken to answer.
    #[arg(
        long,
        value_name = "NODE",
        value_delimiter = ',',
        help_heading = "What a dump does not tell, and the controller does"
    )]
    pub assume_unreachable: Vec<String>,
    /// Where the cluster runs; auto: on a cloud if a node has the cloud's annotation.
    #[arg(
        long,
        value_enum,
        default_value_t,
        ignore_case = true,
        help_heading = "What a dump does not tell, and the controller does"
    )]
    pub platform: PlatformArg,
    /// Nodes without an OVN host subnet (hybrid overlay), as ovnkube's option of that name; they are ignored.
    #[arg(long, value_name = "SELECTOR", value_parser = selector_text::parse, help_heading = "What a dump does not tell, and the controller does")]
    pub no_hostsubnet_nodes: Option<Selector>,
    /// Networks of pods, where the nodes' own pod subnets do not tell them all (an endpoint outside is host-networked).
    #[arg(
        long,
        value_name = "CIDR",
        value_delimiter = ',',
        help_heading = "What a dump does not tell, and the controller does"
    )]
    pub cluster_subnets: Vec<IpNet>,
    /// A cordoned node hosts nothing, as with the controller's option of that name.
    #[arg(long, help_heading = "What a dump does not tell, and the controller does")]
    pub cordon_excludes: bool,
}

/// Which cluster, and where its controller is.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "The live cluster (without SOURCE)")]
pub struct LiveArgs {
    /// The kubeconfig to use [default: KUBECONFIG, ~/.kube/config, or the pod's service account].
    #[arg(long, value_name = "FILE", conflicts_with = "sources")]
    pub kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: its current one].
    #[arg(long, value_name = "NAME", conflicts_with = "sources")]
    pub context: Option<String>,
    /// The namespace of the controller, whose Lease names the pod to ask for what it knows.
    // What the environment says of a live cluster is no contradiction to a file, so these two exclude nothing.
    #[arg(long, env = "EGRET_CONTROLLER_NAMESPACE", default_value = "egret-system", value_name = "NAME")]
    pub controller_namespace: String,
    /// Ask the controller at its admin address directly, not through the API server.
    #[arg(long, env = "EGRET_CONTROLLER_URL", value_name = "http://HOST:PORT")]
    pub controller_url: Option<String>,
}

/// `--platform`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PlatformArg {
    /// As the nodes' annotations say.
    #[default]
    Auto,
    /// Bare metal: secondary host networks count, capacity is unlimited.
    None,
    /// Amazon Web Services.
    Aws,
    /// Google Cloud.
    Gcp,
    /// Microsoft Azure.
    Azure,
    /// OpenStack with its cloud-network-config-controller.
    Openstack,
}

/// How the answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for people.
    #[default]
    Table,
    /// JSON; its fields are stable.
    Json,
    /// The same as YAML.
    Yaml,
}

/// How a plan is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// Tables for people.
    #[default]
    Table,
    /// JSON; its fields are stable.
    Json,
    /// The same as YAML.
    Yaml,
    /// Markdown, for a change ticket.
    Markdown,
}

/// Arguments of the commands that only read.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// What is read.
    #[command(flatten)]
    pub input: InputArgs,
    /// How the answer is written.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// What is read, and how it is written.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Look at the kernel of the node that this runs on instead, and tell what differs from what it should hold; NAME if the
    /// node is not called as the host is.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", help_heading = "On a node")]
    pub node: Option<String>,
    /// Make the kernel as it should be.
    #[arg(long, requires = "node", help_heading = "On a node")]
    pub repair: bool,
    /// What is this node's.
    #[command(flatten, next_help_heading = "On a node")]
    pub kernel: KernelArgs,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// What is read, and how it is written.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Stay, and show it anew whenever it changes; ends with Ctrl-C.
    #[arg(short, long, conflicts_with = "sources")]
    pub watch: bool,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// egressip/NAME, egressservice/NAMESPACE/NAME or node/NAME.
    #[arg(value_name = "OBJECT")]
    pub object: String,
    /// Only this address of the EgressIP.
    #[arg(long, value_name = "ADDRESS")]
    pub ip: Option<String>,
    /// What is read.
    #[command(flatten)]
    pub input: InputArgs,
    /// How the answer is written.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// What is read.
    #[command(flatten)]
    pub input: InputArgs,
    /// The changes, which together make one new state.
    #[command(flatten)]
    pub changes: ChangeArgs,
    /// How the answer is written.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: PlanFormat,
    /// Exit 2 if something moves.
    #[arg(long)]
    pub detailed_exitcode: bool,
}

/// Changes; each may be given several times.
#[derive(Debug, Args)]
#[command(next_help_heading = "Changes (each may be given several times; together they make one new state)")]
pub struct ChangeArgs {
    /// Create or replace the objects in a file or folder, as `kubectl apply` would.
    #[arg(long, value_name = "FILE")]
    pub apply: Vec<OsString>,
    /// Delete an object: KIND/NAME or KIND/NAMESPACE/NAME.
    #[arg(long, value_name = "OBJECT", value_delimiter = ',')]
    pub delete: Vec<String>,
    /// Set (k=v) or remove (k-) a label of a node.
    #[arg(long, num_args = 2, value_names = ["node/NAME", "LABEL"], action = ArgAction::Append)]
    pub label: Vec<String>,
    /// As if the node were in no object's pool any more.
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    pub drain: Vec<String>,
    /// The node is not Ready any more.
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    pub not_ready: Vec<String>,
    /// The node does not answer probes any more.
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    pub unreachable: Vec<String>,
}

impl ChangeArgs {
    /// Whether no change is asked for.
    #[must_use]
    pub fn is_none(&self) -> bool {
        let lists = [&self.delete, &self.label, &self.drain, &self.not_ready, &self.unreachable];
        self.apply.is_empty() && lists.into_iter().all(Vec::is_empty)
    }
}

/// Arguments of `crds`.
#[derive(Debug, Args)]
pub struct CrdsArgs {
    /// Also the one that a cloud's own controller brings, cut down to what Egret reads: for tests.
    #[arg(long)]
    pub all: bool,
}
