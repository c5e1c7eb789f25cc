//! The way that a person goes with the commands that every node has: from a rule to its service, and back.
//!
//! The troubleshooting guide quotes these commands, and a test of the documentation compares them, so that nobody is sent
//! where nothing is.

/// One command, and what is seen in what it says.
pub(crate) struct Stop {
    /// As it is typed on the node.
    pub(crate) command: &'static str,
    /// What must be found there, with single spaces.
    pub(crate) shows: &'static [&'static str],
}

const fn stop(command: &'static str, shows: &'static [&'static str]) -> Stop {
    Stop { command, shows }
}

/// For the `EgressService` `default/web` with the load balancer's addresses 192.168.70.10 and `fd00:70::10`, port 8080,
/// network 1234, and the endpoint 10.244.1.11 and `fd00:10:244:1::11`, which comes in by link `v-11`.
pub(crate) const SERVICE_WALK: &[Stop] = &[
    // 1. The rules: who asks which table, and what becomes of those who find nothing there.
    stop(
        "ip rule show",
        &[
            "4996: from all fwmark 0/0x1000 goto 5002 proto 68",
            "4998: from all fwmark 0x1001/0x107f lookup 1234 proto 68",
            "5000: from 10.244.1.11 lookup 1234 proto 68",
            "5000: from 10.96.0.10 lookup 1234 proto 68",
            "5001: from all fwmark 0x1000/0x107f unreachable proto 68",
            "5002: from all nop proto 68",
        ],
    ),
    stop(
        "ip -6 rule show",
        &[
            "5000: from fd00:10:244:1::11 lookup 1234 proto 68",
            "5000: from fd00:10:96::a lookup 1234 proto 68",
            "5001: from all fwmark 0x1000/0x107f unreachable proto 68",
        ],
    ),
    // 2. The network: where the table leads, and where one packet of the endpoint goes.
    stop("ip route show table 1234", &["default via 192.168.60.200 dev eth1"]),
    stop("ip -6 route show table 1234", &["default via fd00:60::200 dev eth1"]),
    stop(
        "ip route get 172.31.0.9 from 10.244.1.11 iif v-11 mark 0x1000",
        &["172.31.0.9 from 10.244.1.11 via 192.168.60.200 dev eth1 table 1234 mark 0x1000"],
    ),
    stop(
        "ip -6 route get fd00:31::9 from fd00:10:244:1::11 iif v-11 mark 0x1000",
        &["fd00:31::9 from fd00:10:244:1::11 via fd00:60::200 dev eth1 table 1234"],
    ),
    // 3. The service: whose the address in the rule is, and with which address it leaves.
    stop("nft list set inet egret service-source-v4", &["10.244.1.11 comment \"default/web\""]),
    stop("nft list set inet egret service-source-v6", &["fd00:10:244:1::11 comment \"default/web\""]),
    stop("nft list map inet egret service-snat-v4", &["10.244.1.11 comment \"default/web\" : 192.168.70.10"]),
    stop("nft list map inet egret service-snat-v6", &["fd00:10:244:1::11 comment \"default/web\" : fd00:70::10"]),
    // 4. Replies of connections from outside: from the load balancer's address and port to a mark, from there to the rule.
    stop("nft list map inet egret reply-v4", &["192.168.70.10 . tcp . 8080 comment \"default/web\" : goto path-1"]),
    stop("nft list map inet egret reply-v6", &["fd00:70::10 . udp . 8080 comment \"default/web\" : goto path-1"]),
    stop("nft list chain inet egret path-1", &["0x00001001", "comment \"1234\""]),
    // 5. What is never touched, and what is dropped: the counters say whether anything was.
    stop("nft list set inet egret cluster-v4", &["10.244.1.0/24", "192.168.50.11"]),
    stop("nft list set inet egret refuse-v4", &["type ipv4_addr"]),
    stop(
        "nft list chain inet egret forward",
        &[
            "ip saddr @hold-v4 ct direction original ip daddr != @cluster-v4 counter packets",
            "ip saddr @refuse-v4 ct direction original ip daddr != @cluster-v4 counter packets",
        ],
    ),
    stop(
        "nft list chain inet egret stray",
        &["ip saddr @refuse-v4 counter packets", "drop comment \"of no connection\""],
    ),
    stop("nft list chain inet egret guard", &["drop comment \"wrong source\""]),
];

/// For the `EgressIP` `exit` with the addresses 192.168.60.50 and `fd00:60::50` on `eth1`, and the pod `default/a`.
/// The table is 1000 and the link's index, which `ip link show` tells; it is not the same everywhere.
pub(crate) const ADDRESS_WALK: &[Stop] = &[
    stop(
        "ip rule show",
        &[
            "5999: from all fwmark 0/0x1000 goto 6002 proto 68",
            "6000: from 10.244.1.11 lookup",
            "6001: from all fwmark 0x107e/0x107f unreachable proto 68",
            "6002: from all nop proto 68",
        ],
    ),
    stop("ip -6 rule show", &["6000: from fd00:10:244:1::11 lookup"]),
    stop("ip link show dev eth1", &["eth1"]),
    stop("ip route show table all", &["default via 192.168.60.200 dev eth1 table"]),
    stop("ip address show dev eth1", &["inet 192.168.60.50/32 scope global", "inet6 fd00:60::50/128 scope global"]),
    stop("nft list set inet egret address-source-v4", &["10.244.1.11 comment \"exit default/a\""]),
    stop(
        "nft list map inet egret address-snat-v4",
        &["10.244.1.11 . \"eth1\" comment \"exit default/a\" : 192.168.60.50"],
    ),
    stop(
        "nft list map inet egret address-snat-v6",
        &["fd00:10:244:1::11 . \"eth1\" comment \"exit default/a\" : fd00:60::50"],
    ),
];
