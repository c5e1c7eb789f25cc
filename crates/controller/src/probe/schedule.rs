//! When probes begin, and when the attempts within one probe do.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Within one probe every address is tried so often. Twice, because the kernel repeats a lost SYN only after a second,
/// which is the whole time that a probe has by default: without a second attempt one lost packet would move addresses.
const ROUNDS: u32 = 2;

/// How fast probes may follow each other: per node, and in all.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    /// Between the beginnings of any two probes.
    spacing: Duration,
    targets: AtomicUsize,
    /// When the next probe may begin.
    free: Mutex<Option<Instant>>,
}

impl Pace {
    /// At least `interval` between the end of a node's probe and its next, and never more than `most_per_second` in all.
    pub(super) fn new(interval: Duration, most_per_second: u32) -> Self {
        let spacing = Duration::from_secs(1) / most_per_second.max(1);
        Self { interval, spacing, targets: AtomicUsize::new(0), free: Mutex::new(None) }
    }

    /// From now on so many nodes are probed.
    pub(super) fn share_among(&self, targets: usize) {
        self.targets.store(targets, Ordering::Relaxed);
    }

    /// The time between the end of a node's probe and its next one. It grows with the number of targets, so that a probe
    /// does not have to stand in line for its turn: a newly targeted node then finds no line either.
    pub(super) fn gap(&self) -> Duration {
        let targets = u32::try_from(self.targets.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        self.interval.max(self.spacing.saturating_mul(targets))
    }

    /// Takes the next turn. Evenly spaced turns also keep a thousand TLS handshakes at the start from happening at once:
    /// together they would take longer than the probes may.
    pub(super) fn turn(&self, now: Instant) -> Instant {
        // A number and no invariant: after a panic elsewhere it is as good as before.
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = free.map_or(now, |free| free.max(now));
        *free = Some(turn + self.spacing);
        turn
    }
}

/// An attempt of a probe: an address, and how long after the beginning of the probe it is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    /// Since the beginning of the probe.
    pub(super) after: Duration,
    /// What to connect to.
    pub(super) address: IpAddr,
}

/// The attempts of a probe that has the time from `from` to `total` left: every address in turn, evenly spaced. An attempt
/// is not given up when the next one begins, so what is slow keeps the whole rest, and what is black-holed takes nothing
/// from the others.
pub(super) fn attempts(addresses: &[IpAddr], from: Duration, total: Duration) -> VecDeque<Attempt> {
    let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX).saturating_mul(ROUNDS);
    let share = total.saturating_sub(from).checked_div(count).unwrap_or_default();
    (0..count).zip(addresses.iter().cycle()).map(|(i, &address)| Attempt { after: from + share * i, address }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_gap_is_the_interval_until_there_are_too_many_targets() {
        let pace = Pace::new(ms(400), 1500);
        let gaps = [0, 1, 600, 1200, 5000].map(|targets| {
            pace.share_among(targets);
            pace.gap().as_millis()
        });
        assert_eq!(gaps, [400, 400, 400, 799, 3333]);
    }

    #[test]
    fn a_limit_of_zero_is_one_a_second() {
        let pace = Pace::new(ms(400), 0);
        pace.share_among(3);
        assert_eq!(pace.gap(), 3 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn turns_are_spaced_and_unused_ones_are_not_saved_up() {
        let pace = Pace::new(ms(400), 100);
        let start = Instant::now();
        let turns = |now: Instant| [(); 3].map(|()| (pace.turn(now) - start).as_millis());
        assert_eq!(turns(start), [0, 10, 20]);
        assert_eq!(turns(start + ms(5)), [30, 40, 50]);
        assert_eq!(turns(start + SECOND), [1000, 1010, 1020]);
    }

    /// Every node for itself, as the prober does it: never more than the limit in any second, and nobody starves.
    #[tokio::test(start_paused = true)]
    async fn two_thousand_nodes_share_fifteen_hundred_probes_a_second() {
        let pace = std::sync::Arc::new(Pace::new(ms(400), 1500));
        pace.share_among(2000);
        let began = std::sync::Arc::new(Mutex::new(Vec::new()));
        let nodes: Vec<_> = (0..2000)
            .map(|node| {
                let (pace, began) = (pace.clone(), began.clone());
                tokio::spawn(async move {
                    loop {
                        tokio::time::sleep_until(pace.turn(Instant::now())).await;
                        began.lock().unwrap().push((Instant::now(), node));
                        tokio::time::sleep(pace.gap()).await;
                    }
                })
            })
            .collect();
        tokio::time::sleep(10 * SECOND).await;
        nodes.iter().for_each(tokio::task::JoinHandle::abort);
        let began = began.lock().unwrap();
        for window in began.windows(1510) {
            assert!(window[1509].0 - window[0].0 >= SECOND, "more than 1510 within a second");
        }
        assert!(began.len() > 13_000, "only {} in ten seconds", began.len());
        let mut times = vec![0; 2000];
        began.iter().for_each(|&(_, node): &(_, usize)| times[node] += 1);
        assert!(times.iter().all(|&times| times >= 5), "every node is probed every {:?}", pace.gap());
    }

    #[test]
    fn addresses_take_turns_and_share_the_time() {
        let [v4, v6]: [IpAddr; 2] = ["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        let plan = |addresses: &[IpAddr], from| {
            let plan = attempts(addresses, from, SECOND);
            plan.into_iter().map(|attempt| (attempt.after.as_millis(), attempt.address)).collect::<Vec<_>>()
        };
        assert_eq!(plan(&[v4], Duration::ZERO), [(0, v4), (500, v4)]);
        assert_eq!(plan(&[v4, v6], Duration::ZERO), [(0, v4), (250, v6), (500, v4), (750, v6)]);
        assert_eq!(plan(&[v4, v6], ms(500)), [(500, v4), (625, v6), (750, v4), (875, v6)]);
        assert_eq!(plan(&[], Duration::ZERO), []);
    }
}
