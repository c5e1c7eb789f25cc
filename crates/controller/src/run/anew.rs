//! What leaders write, listed anew before this instance leads.
//!
//! Whoever led before may have written what the watches of this instance have not brought yet: they tell of every
//! change, but not when. An address that seems free may be in a status already, and a decision from what is known then
//! would give it a second owner. A list that is asked for after the Lease was taken has all that an earlier leader has
//! written. Only the kinds that carry claims to addresses are listed: of the others, what is old is repaired when what is
//! new comes in, and nobody is harmed in between.

use std::time::Duration;

use egret_api::Kind;
use egret_brain::Input;
use kube::Client;
use tokio::sync::mpsc;

/// Between two tries to list a kind.
const AGAIN: Duration = Duration::from_millis(200);

/// Lists of all these kinds, with the term that they were asked for in.
pub(super) type Lists = (u64, Vec<Input>);

/// Asks for lists, once a term.
pub(super) struct Anew {
    client: Client,
    kinds: Vec<Kind>,
    lists: mpsc::UnboundedSender<Lists>,
    /// The term for which lists were asked for last, and the one for which they have come.
    asked: Option<u64>,
    come: Option<u64>,
}

impl Anew {
    /// For a controller that watches these kinds, and where the lists come out.
    pub(super) fn new(client: Client, watched: Vec<Kind>) -> (Self, mpsc::UnboundedReceiver<Lists>) {
        let (lists, come) = mpsc::unbounded_channel();
        let written = |kind: &Kind| matches!(kind, Kind::EgressIp | Kind::CloudPrivateIpConfig);
        let kinds = watched.into_iter().filter(written).collect();
        (Self { client, kinds, lists, asked: None, come: None }, come)
    }

    /// Whether the lists of this term have come. The first question asks for them.
    pub(super) fn listed(&mut self, term: u64) -> bool {
        if self.asked.replace(term) != Some(term) {
            tokio::spawn(list(self.client.clone(), self.kinds.clone(), term, self.lists.clone()));
        }
        self.come == Some(term)
    }

    /// The lists of this term have come.
    pub(super) fn come(&mut self, term: u64) {
        self.come = Some(term);
    }
}

async fn list(client: Client, kinds: Vec<Kind>, term: u64, to: mpsc::UnboundedSender<Lists>) {
    let mut lists = Vec::new();
    for kind in kinds {
        // Without the right, or without a connection, there is no leading either.
        let objects = loop {
            match crate::list::list(&client, kind).await {
                Ok(objects) => break objects.unwrap_or_default(),
                Err(error) => {
                    tracing::warn!(kind = kind.as_str(), error = crate::chain(&error), "listing failed");
                    tokio::time::sleep(AGAIN).await;
                }
            }
            if to.is_closed() {
                return;
            }
        };
        lists.push(Input::Listed { kind, objects });
    }
    // The loop may have ended.
    let _ = to.send((term, lists));
}
