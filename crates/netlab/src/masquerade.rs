//! What a CNI plugin does for pods that leave the cluster: they get the node's address.

use crate::address::{self, Family, Network};
use crate::error::LabError;
use crate::lab::Node;

/// Adds the chain to a node.
pub(crate) fn add(node: &Node, all: &[Node]) -> Result<(), LabError> {
    let table = Family::BOTH.map(|family| table(family, node, all)).concat();
    node.host.nft(&table)
}

fn table(family: Family, node: &Node, all: &[Node]) -> String {
    let nft = family.nft();
    let kind = match family {
        Family::V4 => "ipv4_addr",
        Family::V6 => "ipv6_addr",
    };
    let pods = address::pod_subnet(family, node.number);
    format!(
        "table {nft} cni {{
  set cluster {{
    type {kind}
    flags interval
    elements = {{ {} }}
  }}
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    {nft} saddr {pods} {nft} daddr != @cluster masquerade
  }}
}}\n",
        cluster(family, all).join(", ")
    )
}

/// Where pods keep their address: to pods, services, nodes, and to groups.
fn cluster(family: Family, all: &[Node]) -> Vec<String> {
    let groups = match family {
        Family::V4 => "224.0.0.0/4",
        Family::V6 => "ff00::/8",
    };
    let mut cluster = [address::pods(family), address::services(family), groups].map(str::to_owned).to_vec();
    for node in all {
        for network in [Network::Red, Network::Blue] {
            if network == Network::Red || node.blue {
                cluster.push(network.address(family, address::node_host(node.number)).to_string());
            }
        }
    }
    cluster
}
