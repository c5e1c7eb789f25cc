//! The nftables table of ours.

mod batch;
mod elements;
mod listing;
mod memory;
mod program;

use egret_hostmodel::{Elements, TABLE, Table, add, delete};
use nix::errno::Errno;
use serde_json::Value;

use elements::Contents;
pub(crate) use memory::Memory;
pub use program::NftError;
pub(crate) use program::Program;

use crate::netlink::{Attributes, Fault, Message, Socket, Truncated};

/// Who makes and lists the table, and changes what a batch of our own does not: the program `nft`.
pub(crate) trait Nftables {
    /// Declarations and chains of the table, which is there, in nft's JSON.
    fn list(&mut self) -> Result<Value, NftError>;
    /// Carries out all the commands, or none of them.
    fn run(&mut self, commands: &str) -> Result<(), NftError>;
}

// linux/netfilter/nf_tables.h, nfnetlink.h
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFT_MSG_NEWGEN: u16 = 15;
const NFT_MSG_GETGEN: u16 = 16;
const NFTA_GEN_ID: u16 = 1;
/// `struct nfgenmsg`.
const FIXED: usize = 4;
const NFT_MSG_GETTABLE: u16 = 1;
const NFT_MSG_GETCHAIN: u16 = 4;
const NFPROTO_INET: u8 = 1;
const NFTA_TABLE_NAME: u16 = 1;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;

/// The table as nft listed it, elements left out, and the generation of the whole ruleset in which it did: every
/// transaction of anybody makes a new one.
#[derive(Debug)]
pub(crate) struct Listed {
    generation: u32,
    text: String,
}

fn generation(socket: &mut Socket) -> Result<u32, Fault> {
    let kind = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN;
    let told = socket.dump(&message(NFT_MSG_GETGEN), kind, |payload| {
        let id = Attributes::after(payload, FIXED)?.get(NFTA_GEN_ID).and_then(|id| id.try_into().ok());
        Ok::<_, Truncated>(id.map(u32::from_be_bytes))
    })?;
    told.first().copied().ok_or(Fault::Refused(Errno::ENOMSG))
}

/// A message for nftables' `inet` family.
fn message(kind: u16) -> Message {
    Message::new(NFNL_SUBSYS_NFTABLES << 8 | kind, nix::libc::NLM_F_ACK, &[NFPROTO_INET, 0, 0, 0])
}

fn exists(socket: &mut Socket, message: Message) -> Result<bool, Fault> {
    match socket.tell(message) {
        Ok(()) => Ok(true),
        Err(fault) if fault.errno() == Some(Errno::ENOENT) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Whether the table `inet egret` is there.
pub(crate) fn has_table(socket: &mut Socket) -> Result<bool, Fault> {
    exists(socket, message(NFT_MSG_GETTABLE).with_text(NFTA_TABLE_NAME, TABLE))
}

/// Whether ovnkube-node's table has that chain.
pub(crate) fn has_ovn_chain(socket: &mut Socket, chain: &str) -> Result<bool, Fault> {
    let message = message(NFT_MSG_GETCHAIN).with_text(NFTA_CHAIN_TABLE, OVN_TABLE).with_text(NFTA_CHAIN_NAME, chain);
    exists(socket, message)
}

/// ovnkube-node's table, in family `inet`.
pub(crate) const OVN_TABLE: &str = "ovn-kubernetes";

/// Puts the table in place of whatever is there, and remembers how it then looks.
pub(crate) fn replace(nft: &mut dyn Nftables, memory: &Memory, table: &Table) -> Result<(), NftError> {
    let shape = table.shape.as_ref().ok_or(NftError::Shapeless)?;
    // What is remembered is never about a table that is not there any more.
    memory.forget()?;
    let commands =
        format!("add table inet {TABLE}\ndelete table inet {TABLE}\n{}{}", shape.render(), add(&table.elements));
    nft.run(&commands)?;
    memory.keep(shape, &listing::text(&nft.list()?))
}

/// Takes the table away.
pub(crate) fn remove(nft: &mut dyn Nftables, memory: &Memory) -> Result<(), NftError> {
    memory.forget()?;
    nft.run(&format!("add table inet {TABLE}\ndelete table inet {TABLE}\n"))
}

/// Takes elements out and puts others in. If nobody else has done anything meanwhile, the table is listed as before.
pub(crate) fn change(
    nft: &mut dyn Nftables,
    socket: &mut Socket,
    listed: &mut Option<Listed>,
    (out, into): (&Elements, &Elements),
) -> Result<(), NftError> {
    let before = generation(socket).map_err(NftError::Elements)?;
    match batch::messages(out, into).map(|batch| socket.batch(batch)) {
        Some(Ok(())) => {}
        Some(Err(fault)) if fault.errno().is_none() => return Err(NftError::Elements(fault)),
        // Too much, or not as it was found; nft copes with both, and tells what it does not cope with.
        None | Some(Err(_)) => nft.run(&(delete(out) + &add(into)))?,
    }
    let after = generation(socket).map_err(NftError::Elements)?;
    if let Some(listed) = listed.as_mut().filter(|listed| listed.generation == before) {
        listed.generation = before.wrapping_add(1);
    }
    listed.take_if(|listed| listed.generation != after);
    Ok(())
}

/// The table as it is there. It is listed anew only if anybody has changed anything.
pub(crate) fn observe(
    nft: &mut dyn Nftables,
    socket: &mut Socket,
    listed: &mut Option<Listed>,
    memory: &Memory,
) -> Result<Table, NftError> {
    // Before it is listed: what changes meanwhile is of another generation.
    let generation = generation(socket).map_err(NftError::Elements)?;
    listed.take_if(|listed| listed.generation != generation);
    let text = match listed {
        Some(listed) => &listed.text,
        none => &none.insert(Listed { generation, text: listing::text(&nft.list()?) }).text,
    };
    let shape = memory.shape_of(text);
    let Contents { elements, strange } = elements::read(socket).map_err(NftError::Elements)?;
    // What cannot be said cannot be taken out either: the table is to be made anew.
    Ok(Table { shape: shape.filter(|_| !strange), elements })
}
