//! Attempts that overlap: the first answer ends them all.

use std::collections::VecDeque;
use std::net::IpAddr;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, sleep_until};

use super::schedule::Attempt;

/// How an attempt ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended<S> {
    /// The node itself said whether it is well; `session` is what it said it over.
    Answered {
        /// Whether it is well.
        well: bool,
        /// To be kept for the next probe.
        session: S,
    },
    /// Nobody listens at this address: asking it again within the same probe is no use.
    Refused,
    /// Anything else, which may go better next time.
    Failed,
}

/// An attempt under way.
pub(super) type Running<'a, S> = BoxFuture<'a, (IpAddr, Ended<S>)>;

/// The first answer of what is `running` already and of what is `planned`, or `None` once all of it has failed. What has
/// no answer is waited for: the caller limits the time.
pub(super) async fn first_answer<'a, S>(
    begin: Instant,
    running: Option<Running<'a, S>>,
    mut planned: VecDeque<Attempt>,
    attempt: impl Fn(IpAddr) -> Running<'a, S>,
) -> Option<(IpAddr, bool, S)> {
    let mut running: FuturesUnordered<Running<'a, S>> = running.into_iter().collect();
    loop {
        let next = planned.front().map(|next| begin + next.after);
        tokio::select! {
            Some((address, ended)) = running.next() => match ended {
                Ended::Answered { well, session } => return Some((address, well, session)),
                Ended::Refused => {
                    planned.retain(|other| other.address != address);
                    // That took no time, so the next address need not wait for its share to begin.
                    planned.iter_mut().take(1).for_each(|next| next.after = begin.elapsed());
                }
                Ended::Failed => {}
            },
            () = sleep_until(next.unwrap_or(begin)), if next.is_some() => {
                running.extend(planned.pop_front().map(|next| attempt(next.address)));
            }
            else => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::super::schedule::attempts;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    /// What each address does, and after how many milliseconds. `None`: nothing, ever.
    type Peer = fn(IpAddr) -> Option<(u64, Ended<()>)>;

    /// The result, when it was there, and the attempts that were made.
    async fn play(addresses: &[IpAddr], peer: Peer) -> (Option<(IpAddr, bool)>, u128, Vec<(u128, IpAddr)>) {
        let begin = Instant::now();
        let made = Mutex::new(Vec::new());
        let answer = first_answer(begin, None, attempts(addresses, Duration::ZERO, SECOND), |address| {
            made.lock().unwrap().push((begin.elapsed().as_millis(), address));
            Box::pin(async move {
                let Some((after, ended)) = peer(address) else { std::future::pending().await };
                tokio::time::sleep(Duration::from_millis(after)).await;
                (address, ended)
            })
        });
        let answer = tokio::time::timeout(SECOND, answer).await.unwrap_or(None);
        let made = made.lock().unwrap().clone();
        (answer.map(|(address, well, ())| (address, well)), begin.elapsed().as_millis(), made)
    }

    const WELL: Ended<()> = Ended::Answered { well: true, session: () };
    const ILL: Ended<()> = Ended::Answered { well: false, session: () };

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_final_also_when_it_is_no() {
        assert_eq!(play(&[A, B], |_| Some((3, WELL))).await, (Some((A, true)), 3, vec![(0, A)]));
        assert_eq!(play(&[A, B], |_| Some((3, ILL))).await, (Some((A, false)), 3, vec![(0, A)]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_black_holed_first_address_leaves_time_for_the_second() {
        let played = play(&[A, B], |address| (address == B).then_some((400, WELL))).await;
        assert_eq!(played, (Some((B, true)), 650, vec![(0, A), (250, B), (500, A)]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_counts_although_another_attempt_has_begun() {
        assert_eq!(play(&[A], |_| Some((900, WELL))).await, (Some((A, true)), 900, vec![(0, A), (500, A)]));
    }

    #[tokio::test(start_paused = true)]
    async fn refused_addresses_are_asked_once_and_nothing_is_waited_for() {
        let played = play(&[A, B], |_| Some((1, Ended::Refused))).await;
        assert_eq!(played, (None, 2, vec![(0, A), (1, B)]));
        assert_eq!(play(&[A], |_| Some((1, Ended::Refused))).await, (None, 1, vec![(0, A)]));
    }

    #[tokio::test(start_paused = true)]
    async fn what_failed_is_tried_again_within_the_same_time() {
        let played = play(&[A], |_| Some((1, Ended::Failed))).await;
        assert_eq!(played, (None, 501, vec![(0, A), (500, A)]));
        assert_eq!(play(&[], |_| None).await, (None, 0, vec![]));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_already_running_still_counts() {
        let begin = Instant::now();
        let kept: Running<'_, ()> = Box::pin(async {
            tokio::time::sleep(Duration::from_millis(600)).await;
            (A, WELL)
        });
        let plan = attempts(&[A], SECOND / 2, SECOND);
        let answer = first_answer(begin, Some(kept), plan, |_| Box::pin(std::future::pending())).await;
        assert_eq!((answer, begin.elapsed().as_millis()), (Some((A, true, ())), 600));
    }
}
