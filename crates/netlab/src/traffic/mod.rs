//! Questions from clients and answers that say who answers and which source they saw.
//!
//! A question is `egret:CLIENT NUMBER`, the answer `SERVER SOURCE` and the question. Over TCP each is a line. The kernel
//! answers an echo request itself; who was asked has a raw socket that tells us the same.

pub(crate) mod ask;
pub(crate) mod echo;
pub(crate) mod flow;
mod link;
mod pace;
pub(crate) mod reply;
pub(crate) mod respond;
pub(crate) mod stray;
pub(crate) mod wire;

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use pace::Pacer;

/// The port that everything in the lab answers on, over TCP and UDP.
pub const PORT: u16 = 8080;

/// What a question begins with.
const MAGIC: &str = "egret:";

/// Longer than any question or answer.
const LONGEST: usize = 512;

/// A number that no other question of this lab has.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn question(client: &str, number: u64) -> String {
    format!("{MAGIC}{client} {number}")
}

/// Who asked, and the number, from a question or from the answer to it.
fn asked(text: &[u8]) -> Option<(&str, u64)> {
    let start = text.windows(MAGIC.len()).position(|window| window == MAGIC.as_bytes())?;
    let rest = str::from_utf8(text.get(start + MAGIC.len()..)?).ok()?;
    let (client, number) = rest.lines().next()?.split_once(' ')?;
    Some((client, number.trim_end().parse().ok()?))
}

/// What an answer says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told<'a> {
    server: &'a str,
    source: IpAddr,
    number: u64,
}

fn told(text: &[u8]) -> Option<Told<'_>> {
    let mut words = str::from_utf8(text).ok()?.splitn(3, ' ');
    let (server, source) = (words.next()?, words.next()?);
    let (_, number) = asked(words.next()?.as_bytes())?;
    Some(Told { server, source: source.parse().ok()?, number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_found_in_itself_and_in_its_answer() {
        let question = question("web", 7);
        assert_eq!(asked(question.as_bytes()), Some(("web", 7)));
        let answer = format!("ext fd00::1 {question}\n");
        assert_eq!(asked(answer.as_bytes()), Some(("web", 7)));
        let source = "fd00::1".parse().unwrap();
        assert_eq!(told(answer.as_bytes()), Some(Told { server: "ext", source, number: 7 }));
    }

    #[test]
    fn noise_is_neither() {
        for noise in ["", "egret:", "egret:web", "egret:web x", "ext nowhere egret:web 1"] {
            assert_eq!(told(noise.as_bytes()), None, "{noise}");
        }
        assert_eq!(asked(b"\x00\xffegret:web 12"), Some(("web", 12)), "after a header");
        assert_eq!(asked(b"egret:web \xff"), None);
    }
}
