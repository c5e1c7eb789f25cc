//! From the texts of the command line and the environment to values, with everything that is wrong at once.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use egret_core::IpNet;
use egret_daemon::Listen;
use egret_daemon::log::{LogFilter, LogFormat, LogOptions};

/// An option that does not say what it should.
#[derive(Debug)]
struct OptionFault {
    option: &'static str,
    text: String,
    why: String,
}

impl fmt::Display for OptionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { option, text, why } = self;
        write!(f, "{option} {text:?}: {why}")
    }
}

/// What has been read, and what could not be.
#[derive(Default)]
pub(super) struct Reading {
    faults: Vec<OptionFault>,
}

impl Reading {
    /// What was read, or everything that is wrong, each in one line; `faults` are those of the whole.
    pub(super) fn end<C>(self, config: C, faults: &[impl fmt::Display]) -> Result<C, Vec<String>> {
        let mut told: Vec<String> = self.faults.iter().map(ToString::to_string).collect();
        // In place of what could not be read stands a default, and what that one breaks is nobody's fault.
        let unread = |text: &str| self.faults.iter().any(|fault| text.contains(fault.option));
        told.extend(faults.iter().map(ToString::to_string).filter(|text| !unread(text)));
        if told.is_empty() { Ok(config) } else { Err(told) }
    }

    /// An option says what it should not.
    pub(super) fn is_wrong(&mut self, option: &'static str, text: &str, why: &str) {
        self.faults.push(OptionFault { option, text: text.to_owned(), why: why.to_owned() });
    }

    /// How logs are written.
    pub(super) fn log(&mut self, format: &str, level: &str) -> LogOptions {
        LogOptions {
            format: self.take("--log-format", format, log_format).unwrap_or_default(),
            filter: self.take("--log-level", level, LogFilter::parse).unwrap_or_default(),
        }
    }

    /// Several values with commas between them.
    pub(super) fn list<T, E: fmt::Display>(
        &mut self,
        option: &'static str,
        text: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
        texts.filter_map(|text| self.take(option, text, &read)).collect()
    }

    /// One value.
    pub(super) fn take<T, E: fmt::Display>(
        &mut self,
        option: &'static str,
        text: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let fault = |why: E| OptionFault { option, text: text.to_owned(), why: why.to_string() };
        read(text).map_err(|why| self.faults.push(fault(why))).ok()
    }

    /// A number.
    pub(super) fn number<T: FromStr<Err = std::num::ParseIntError>>(
        &mut self,
        option: &'static str,
        text: &str,
    ) -> Option<T> {
        self.take(option, text, |text| text.trim().parse().map_err(|error| format!("this is no such number: {error}")))
    }

    /// Leaves `place` as it is if the text is no time.
    pub(super) fn time(&mut self, option: &'static str, text: &str, place: &mut Duration) {
        if let Some(time) = self.take(option, text, time) {
            *place = time;
        }
    }
}

/// `15s`, `400ms`, `1m30s` as Go writes it; a bare number counts seconds, as OVN-Kubernetes' options do.
fn time(text: &str) -> Result<Duration, &'static str> {
    const WHAT: &str = "write a time as 15s, 400ms or 1m30s; a bare number counts seconds";
    let mut rest = text.trim();
    if let Ok(seconds) = rest.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| WHAT);
    }
    let (mut time, mut some) = (Duration::ZERO, false);
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(WHAT)?;
        let (digits, tail) = rest.split_at(number);
        let unit = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            "us" | "µs" => 0.000_001,
            _ => return Err(WHAT),
        };
        let count: f64 = digits.parse().map_err(|_| WHAT)?;
        let part = Duration::try_from_secs_f64(count * seconds).map_err(|_| WHAT)?;
        time = time.checked_add(part).ok_or(WHAT)?;
        (rest, some) = (tail, true);
    }
    if some { Ok(time) } else { Err(WHAT) }
}

/// `ADDRESS:PORT`, `[ADDRESS]:PORT` or `:PORT`.
pub(super) fn listen(text: &str) -> Result<Listen, &'static str> {
    const WHAT: &str = "write ADDRESS:PORT, [ADDRESS]:PORT for IPv6, or :PORT for all addresses";
    if let Some(port) = text.strip_prefix(':') {
        return Ok(Listen { address: None, port: port.parse().map_err(|_| WHAT)? });
    }
    let address: SocketAddr = text.parse().map_err(|_| WHAT)?;
    Ok(Listen { address: Some(address.ip()), port: address.port() })
}

fn log_format(text: &str) -> Result<LogFormat, &'static str> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("write text or json"),
    }
}

/// `true` or `false`, in the words that people use.
pub(super) fn truth(text: &str) -> Result<bool, &'static str> {
    match text.to_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" | "" => Ok(false),
        _ => Err("write true or false"),
    }
}

/// A network; OVN-Kubernetes' option of that name may add the length of the nodes' own subnets.
pub(super) fn subnet(text: &str) -> Result<IpNet, &'static str> {
    const WHAT: &str = "write a network as 10.128.0.0/14, or 10.128.0.0/14/23 with the length of a node's own";
    let network = match text.rsplit_once('/') {
        Some((network, length)) if network.contains('/') => {
            length.parse::<u8>().map_err(|_| WHAT)?;
            network
        }
        _ => text,
    };
    network.parse::<IpNet>().map(|network| network.trunc()).map_err(|_| WHAT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_writes_them_and_bare_numbers_count_seconds() {
        for (text, expected) in [
            ("15s", Duration::from_secs(15)),
            ("400ms", Duration::from_millis(400)),
            ("1m30s", Duration::from_secs(90)),
            ("1.5s", Duration::from_millis(1500)),
            ("1", Duration::from_secs(1)),
            ("0", Duration::ZERO),
            ("0s", Duration::ZERO),
            (" 2h ", Duration::from_hours(2)),
        ] {
            assert_eq!(time(text), Ok(expected), "{text}");
        }
        for text in ["", "s", "5x", "1s5", "-1", "-1s", "1e400", "inf", "NaN", "99999999999999999999h"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_port_alone_listens_everywhere_and_an_address_where_it_says() {
        assert_eq!(listen(":9410"), Ok(Listen { address: None, port: 9410 }));
        let all_of_ipv4 = Listen { address: Some(std::net::Ipv4Addr::UNSPECIFIED.into()), port: 9410 };
        assert_eq!(listen("0.0.0.0:9410"), Ok(all_of_ipv4));
        let local = Listen { address: Some(std::net::Ipv6Addr::LOCALHOST.into()), port: 1 };
        assert_eq!(listen("[::1]:1"), Ok(local));
        for text in ["", "9410", ":", ":x", ":65536", "localhost:1", "::1:1:"] {
            assert!(listen(text).is_err(), "{text}");
        }
    }

    #[test]
    fn networks_may_have_the_length_of_a_nodes_own() {
        let network = |text: &str| subnet(text).map(|network| network.to_string());
        assert_eq!(network("10.128.0.0/14/23").as_deref(), Ok("10.128.0.0/14"));
        assert_eq!(network("10.128.0.1/14").as_deref(), Ok("10.128.0.0/14"));
        assert_eq!(network("fd01::/48/64").as_deref(), Ok("fd01::/48"));
        for text in ["", "10.128.0.0", "10.128.0.0/14/x", "10.128.0.0/14/23/1", "a/14"] {
            assert!(subnet(text).is_err(), "{text}");
        }
    }
}
