//! What a test needs beyond namespaces, and whether this machine has it.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Something that not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Network and mount namespaces, veth pairs, bridges, and NAT in nftables of both families. Every test needs these.
    Namespaces,
    /// Devices of kind `vrf`.
    Vrf,
    /// Devices of kind `vxlan`.
    Vxlan,
    /// Devices of kind `macvlan`.
    Macvlan,
    /// Devices of kind `dummy`.
    Dummy,
    /// To be root outside the namespace too.
    Root,
    /// A program on the `PATH`.
    Program(&'static str),
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Namespaces => f.write_str("unshare, ip, nft and the right to make network namespaces"),
            Need::Vrf => f.write_str("devices of kind vrf"),
            Need::Vxlan => f.write_str("devices of kind vxlan"),
            Need::Macvlan => f.write_str("devices of kind macvlan"),
            Need::Dummy => f.write_str("devices of kind dummy"),
            Need::Root => f.write_str("root"),
            Need::Program(name) => write!(f, "the program {name}"),
        }
    }
}

/// Who makes the namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// Root, who needs no user namespace.
    Root,
    /// Any user, who becomes root in a user namespace of their own.
    User,
    /// Root does it as nobody, to see what anybody can do.
    Nobody,
}

impl Way {
    /// The one that fits who we are.
    pub(crate) fn own() -> Self {
        if nix::unistd::geteuid().is_root() { Way::Root } else { Way::User }
    }

    /// A command that starts a program in new namespaces.
    pub(crate) fn command(self) -> Command {
        let words: &[&str] = match self {
            Way::Root => &["unshare", "--net", "--mount"],
            Way::User => &["unshare", "--net", "--mount", "--user", "--map-root-user"],
            Way::Nobody => &[
                "setpriv",
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "unshare",
                "--net",
                "--mount",
                "--user",
                "--map-root-user",
            ],
        };
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["--fork", "--kill-child"]).env("PATH", path());
        command
    }
}

/// Where `ip` and `nft` are is not on the path of everybody.
fn path() -> OsString {
    let mut path = env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}

impl Need {
    /// Why it is not there, if it is not, as tried out once in a namespace of its own.
    pub(crate) fn missing(self, way: Way) -> Option<String> {
        static KNOWN: Mutex<BTreeMap<(Need, Way), Option<String>>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry((self, way)).or_insert_with(|| self.try_out(way)).clone()
    }

    fn try_out(self, way: Way) -> Option<String> {
        let script = match self {
            Need::Namespaces => NAMESPACES.to_owned(),
            Need::Vrf => "ip link add name x0 type vrf table 10".to_owned(),
            Need::Vxlan => "ip link add name x0 type vxlan id 1 dstport 4790".to_owned(),
            Need::Macvlan => "ip link add name y0 type veth && ip link add name x0 link y0 type macvlan".to_owned(),
            Need::Dummy => "ip link add name x0 type dummy".to_owned(),
            Need::Root if way == Way::Root => return None,
            Need::Root => return Some(self.to_string()),
            Need::Program(name) => format!("command -v {name}"),
        };
        let output = way.command().args(["sh", "-ec", &script]).stdin(Stdio::null()).output();
        let said = match output {
            Ok(output) if output.status.success() => return None,
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        let said = said.trim_end().replace('\n', "; ");
        Some(if said.is_empty() { self.to_string() } else { format!("{self} ({said})") })
    }
}

/// A command a line: nft 1.0.6 takes no two closing braces on one.
const NAMESPACES: &str = "
    mount -t tmpfs tmpfs /run
    ip link set lo up
    ip link add name bridge0 type bridge
    ip link add name y0 type veth
    nft add table inet x
    for family in ip ip6; do
        nft add table $family x
        nft add chain $family x y '{ type nat hook postrouting priority srcnat; }'
        nft add rule $family x y masquerade
    done
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_nobody_has_is_missed_and_a_shell_is_not() {
        let way = Way::own();
        if Need::Namespaces.missing(way).is_none() {
            assert_eq!(Need::Program("sh").missing(way), None);
        }
        let missing = Need::Program("egret-has-no-such-program").missing(way).unwrap();
        assert!(missing.starts_with("the program egret-has-no-such-program"), "{missing}");
    }

    #[test]
    fn nobody_is_not_root() {
        assert!(Need::Root.missing(Way::Nobody).is_some());
        assert!(Need::Root.missing(Way::Root).is_none());
    }
}
