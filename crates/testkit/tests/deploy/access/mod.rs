//! The rights of the controller and of the agents: enough for everything that they do, and not one verb more.
//!
//! The controller is run as its service account through a short life: it takes the lease, assigns, repairs a mark, moves,
//! elects a host, labels a node, tells what is wrong, and gives the lease up. With what is shipped nothing is denied to it.
//! Then each verb is taken away in turn, and each time it is denied just that. The same is done for an agent, in a network of its own.

mod agent;
mod life;
mod objects;
mod rights;
mod tap;

use crate::access::agent::AgentLife;
use crate::access::life::{Life, Platform};
use crate::access::rights::{ACCOUNT, AGENT, Right, rights};
use crate::access::tap::Listing;
use crate::manifests::rendered;
use crate::none;

#[tokio::test]
async fn on_bare_metal_the_base_is_enough() {
    let life = Life::with(&rendered("base", &[]), Platform::BareMetal).await;
    assert_eq!(life.lived(Listing::Streamed).await, Ok(()));
}

#[tokio::test]
async fn where_lists_are_not_streamed_the_base_is_enough() {
    let life = Life::with(&rendered("base", &[]), Platform::BareMetal).await;
    assert_eq!(life.lived(Listing::Plain).await, Ok(()));
}

#[tokio::test]
async fn on_a_cloud_the_component_is_enough() {
    let life = Life::with(&rendered("base", &["cloud"]), Platform::Cloud).await;
    assert_eq!(life.lived(Listing::Streamed).await, Ok(()));
}

#[tokio::test]
async fn every_verb_is_needed() {
    let manifests = rendered("base", &["cloud"]);
    let rights = rights(&manifests, ACCOUNT);
    assert!(rights.len() > 15, "{rights:?}");
    let mut complaints = Vec::new();
    for right in &rights {
        if let Some(complaint) = superfluous(&manifests, right).await {
            complaints.push(complaint);
        }
    }
    none(&complaints);
}

/// What is wrong if the controller lives as well without this right.
async fn superfluous(manifests: &crate::manifests::Manifests, right: &Right) -> Option<String> {
    let platform = if right.role == "egret-controller-cloud" { Platform::Cloud } else { Platform::BareMetal };
    // A list is only asked for where it cannot be streamed; a watch that streams needs no other verb.
    let listing = if right.verb == "list" { Listing::Plain } else { Listing::Streamed };
    let life = Life::with(&right.taken_from(manifests), platform).await;
    match life.lived(listing).await {
        Ok(()) => Some(format!("nothing needs {right}")),
        Err(denied) if right.covers(&denied) => None,
        Err(denied) => Some(format!("without {right} this is denied: {denied}")),
    }
}

#[tokio::test]
async fn an_agent_has_enough_whether_lists_are_streamed_or_not() {
    if !agent::possible() {
        return;
    }
    for listing in [Listing::Streamed, Listing::Plain] {
        let life = AgentLife::with(&rendered("base", &[])).await;
        assert_eq!(life.lived(listing).await, Ok(()), "{listing:?}");
    }
}

#[tokio::test]
async fn an_agent_needs_every_verb() {
    if !agent::possible() {
        return;
    }
    let manifests = rendered("base", &[]);
    let rights = rights(&manifests, AGENT);
    assert!(rights.len() > 15, "{rights:?}");
    let mut complaints = Vec::new();
    for right in &rights {
        let listing = if right.verb == "list" { Listing::Plain } else { Listing::Streamed };
        let life = AgentLife::with(&right.taken_from(&manifests)).await;
        match life.lived(listing).await {
            Ok(()) => complaints.push(format!("nothing needs {right}")),
            Err(denied) if right.covers(&denied) => {}
            Err(denied) => complaints.push(format!("without {right} this is denied: {denied}")),
        }
    }
    none(&complaints);
}
