//! What leaders write, listed anew before this instance leads.
//!
//! Whoever led before may have written what the watches of this instance have not brought yet: they tell of every
//! change, but not when. An address that seems free may be in a status already, and a decision from what is known then
//! would give it a second owner. A list that is asked for after the Lease was taken has all that an earlier leader has
//! written. Only the kinds that carry claims to addresses are listed: of the others, what is old is repaired when what is
//! new comes in, and nobody is harmed in between.
//!
//! Watches go on meanwhile, and may tell of changes that the list is too old for. Nobody tells them twice, so that they
//! are told once more after the list: without that, who was created meanwhile would be forgotten, and who was deleted
//! would come back, until the watch itself lists anew.

use std::collections::BTreeMap;

use egret_api::Kind;
use egret_brain::Input;
use kube::Client;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use egret_daemon::watch::{ABSENT_AGAIN, Pauses};

/// Lists, once a term.
pub(super) struct Anew {
    client: Client,
    kinds: Vec<Kind>,
    /// The term for which lists were asked for last, and whether they have come.
    asked: Option<u64>,
    come: bool,
    /// Who lists; one at the most. A list for an earlier term is worth nothing.
    asking: JoinSet<Vec<Input>>,
    /// What watches have told since then: the last of each object, by kind and by namespace and name, which the list of a
    /// whole kind has not.
    meanwhile: BTreeMap<(Kind, Option<String>, String), Input>,
}

impl Anew {
    /// For a controller that watches these kinds.
    pub(super) fn new(client: Client, watched: Vec<Kind>) -> Self {
        let written = |kind: &Kind| matches!(kind, Kind::EgressIp | Kind::CloudPrivateIpConfig);
        let kinds = watched.into_iter().filter(written).collect();
        Self { client, kinds, asked: None, come: false, asking: JoinSet::new(), meanwhile: BTreeMap::new() }
    }

    /// Whether the lists of this term have come. The first question asks for them.
    pub(super) fn listed(&mut self, term: u64) -> bool {
        if self.asked != Some(term) {
            self.forget();
            self.asked = Some(term);
            self.asking.spawn(list(self.client.clone(), self.kinds.clone()));
        }
        self.come
    }

    /// What was listed counts no more, not even if nobody else leads meanwhile: a write whose end was not waited for may
    /// be stored by now.
    pub(super) fn forget(&mut self) {
        (self.asked, self.come) = (None, false);
        // Dropped, a set ends its tasks.
        self.asking = JoinSet::new();
        self.meanwhile.clear();
    }

    /// A watch has told this.
    pub(super) fn note(&mut self, input: &Input) {
        let (kind, object) = match input {
            Input::Listed { kind, .. } => (*kind, None),
            Input::Seen { kind, object } | Input::Gone { kind, object } => (*kind, Some(object)),
            _ => return,
        };
        if self.asking.is_empty() || !self.kinds.contains(&kind) {
            return;
        }
        let text = |key| object.and_then(|object| object["metadata"][key].as_str()).map(str::to_owned);
        if object.is_none() {
            self.meanwhile.retain(|(of, ..), _| *of != kind);
        }
        self.meanwhile.insert((kind, text("namespace"), text("name").unwrap_or_default()), input.clone());
    }

    /// The lists, when they come, and what has been told since they were asked for. Can be cancelled and asked again.
    pub(super) async fn next(&mut self) -> Vec<Input> {
        match self.asking.join_next().await {
            Some(Ok(mut inputs)) => {
                self.come = true;
                inputs.extend(std::mem::take(&mut self.meanwhile).into_values());
                inputs
            }
            // A mistake of ours: the loop would wait for ever.
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Some(Err(_)) | None => std::future::pending().await,
        }
    }
}

async fn list(client: Client, kinds: Vec<Kind>) -> Vec<Input> {
    let mut lists = Vec::new();
    for kind in kinds {
        if let Some(objects) = objects(&client, kind).await {
            lists.push(Input::Listed { kind, objects });
        }
    }
    lists
}

/// Tries until there is an answer: without the right to list, or without a connection, there is no leading either.
/// `None` if the kind is not installed, which to believe is left to its watch, for an empty list takes things down.
async fn objects(client: &Client, kind: Kind) -> Option<Vec<Value>> {
    let (mut pauses, mut absent) = (Pauses::new(), false);
    loop {
        match egret_daemon::list(client, kind.into()).await {
            Ok(Some(objects)) => return Some(objects),
            Ok(None) if absent => return None,
            Ok(None) => {
                absent = true;
                tokio::time::sleep(ABSENT_AGAIN).await;
            }
            Err(error) => {
                absent = false;
                tracing::warn!(kind = kind.as_str(), error = egret_daemon::chain(&error), "listing failed");
                tokio::time::sleep(pauses.next(Instant::now())).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use tokio::sync::{Mutex, mpsc};

    use super::*;

    type Answers = mpsc::UnboundedSender<(u16, Value)>;

    /// What asks an API server that answers as it is told to, and how often that was asked.
    fn anew() -> (Anew, Answers, Arc<AtomicUsize>) {
        let (tell, told) = mpsc::unbounded_channel::<(u16, Value)>();
        let (told, asked) = (Arc::new(Mutex::new(told)), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&asked);
        let answer = move |_: Request<Body>| {
            let told = Arc::clone(&told);
            count.fetch_add(1, Ordering::Relaxed);
            async move {
                let (code, body) = told.lock().await.recv().await.unwrap();
                let body = Body::from(body.to_string().into_bytes());
                Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
            }
        };
        let client = Client::new(tower::service_fn(answer), "default");
        (Anew::new(client, vec![Kind::Node, Kind::EgressIp]), tell, asked)
    }

    fn object(name: &str) -> Value {
        json!({"apiVersion": "k8s.ovn.org/v1", "kind": "EgressIP", "metadata": {"name": name}})
    }

    fn objects(names: &[&str]) -> (u16, Value) {
        let items: Vec<_> = names.iter().map(|name| object(name)).collect();
        (200, json!({"apiVersion": "k8s.ovn.org/v1", "kind": "EgressIPList", "metadata": {}, "items": items}))
    }

    fn refusal(code: u16) -> (u16, Value) {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "", "code": code});
        (code, status)
    }

    fn seen(name: &str) -> Input {
        Input::Seen { kind: Kind::EgressIp, object: object(name) }
    }

    fn gone(name: &str) -> Input {
        Input::Gone { kind: Kind::EgressIp, object: object(name) }
    }

    fn listed(names: &[&str]) -> Input {
        Input::Listed { kind: Kind::EgressIp, objects: names.iter().map(|name| object(name)).collect() }
    }

    /// The lists and what comes after them, in words.
    async fn told(anew: &mut Anew) -> Vec<String> {
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
        let words = |input: Input| match input {
            Input::Listed { objects, .. } => format!("listed {}", objects.iter().map(name).collect::<String>()),
            Input::Seen { object, .. } => format!("seen {}", name(&object)),
            Input::Gone { object, .. } => format!("gone {}", name(&object)),
            other => panic!("{other:?} is none of a list or a watch"),
        };
        anew.next().await.into_iter().map(words).collect()
    }

    #[tokio::test]
    async fn what_a_watch_tells_while_a_list_is_on_its_way_is_told_again_after_it() {
        let (mut anew, answers, _) = anew();
        anew.note(&seen("before"));
        assert!(!anew.listed(1));
        for input in [seen("b"), gone("b"), seen("c"), Input::Seen { kind: Kind::Node, object: object("n") }] {
            anew.note(&input);
        }
        answers.send(objects(&["a", "b"])).unwrap();
        assert_eq!(told(&mut anew).await, ["listed ab", "gone b", "seen c"]);
        assert!(anew.listed(1));
        anew.note(&seen("after"));
        assert!(anew.meanwhile.is_empty(), "nothing piles up when nobody waits for it");
    }

    #[tokio::test]
    async fn a_whole_kind_that_a_watch_lists_meanwhile_replaces_what_it_told_before() {
        let (mut anew, answers, _) = anew();
        anew.listed(1);
        for input in [seen("a"), listed(&["b"]), seen("c")] {
            anew.note(&input);
        }
        answers.send(objects(&[])).unwrap();
        assert_eq!(told(&mut anew).await, ["listed ", "listed b", "seen c"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_for_an_earlier_term_is_not_taken_for_one_of_this_term() {
        let (mut anew, answers, asked) = anew();
        assert!(!anew.listed(1));
        tokio::time::timeout(Duration::from_secs(1), anew.next()).await.expect_err("nothing has come");
        assert!(!anew.listed(2));
        assert_eq!(anew.asking.len(), 1, "the first is asked for no more");
        answers.send(objects(&["a"])).unwrap();
        assert_eq!(told(&mut anew).await, ["listed a"]);
        assert!(anew.listed(2));
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn whoever_leads_again_in_the_same_term_lists_again() {
        let (mut anew, answers, _) = anew();
        anew.listed(1);
        answers.send(objects(&[])).unwrap();
        anew.next().await;
        assert!(anew.listed(1));
        anew.forget();
        assert!(!anew.listed(1));
        answers.send(objects(&["a"])).unwrap();
        assert_eq!(told(&mut anew).await, ["listed a"]);
        assert!(anew.listed(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_is_said_to_be_absent_is_never_an_empty_list() {
        let (mut anew, answers, asked) = anew();
        anew.listed(1);
        answers.send(refusal(404)).unwrap();
        answers.send(objects(&["a"])).unwrap();
        assert_eq!(told(&mut anew).await, ["listed a"], "it was asked for again");
        anew.listed(2);
        answers.send(refusal(404)).unwrap();
        answers.send(refusal(404)).unwrap();
        assert!(anew.next().await.is_empty());
        assert!(anew.listed(2), "and that is no reason not to lead");
        assert_eq!(asked.load(Ordering::Relaxed), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_refuses_is_asked_less_and_less_often() {
        let (mut anew, answers, asked) = anew();
        anew.listed(1);
        for _ in 0..1000 {
            answers.send(refusal(429)).unwrap();
        }
        tokio::time::timeout(Duration::from_mins(1), anew.next()).await.expect_err("it refuses");
        let asked = asked.load(Ordering::Relaxed);
        assert!((10..30).contains(&asked), "{asked} times within a minute");
    }
}
