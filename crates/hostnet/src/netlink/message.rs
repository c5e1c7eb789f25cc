//! The bytes of a message: a header, the fixed part of its family, attributes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::libc;

/// Length, kind, flags, sequence, port.
pub(crate) const HEADER: usize = 16;

/// The two upper bits of an attribute's kind are flags.
const KIND: u16 = 0x3fff;
const NESTED: u16 = 0x8000;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// `fixed` is the part that every message of the kind has.
    pub(crate) fn new(kind: u16, flags: i32, fixed: &[u8]) -> Self {
        let flags = u16::try_from(flags | libc::NLM_F_REQUEST).expect("all flags are within 16 bits");
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend(fixed);
        Self(bytes)
    }

    /// Attributes and nothing else, to be put within something.
    pub(crate) fn bare() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Attributes as they came.
    pub(crate) fn with_all(mut self, attributes: &[u8]) -> Self {
        self.0.extend(attributes);
        self
    }

    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        let length = u16::try_from(value.len() + 4).expect("values are short");
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub(crate) fn with_u32(self, kind: u16, value: u32) -> Self {
        self.with(kind, &value.to_ne_bytes())
    }

    pub(crate) fn with_ip(self, kind: u16, ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => self.with(kind, &ip.octets()),
            IpAddr::V6(ip) => self.with(kind, &ip.octets()),
        }
    }

    /// Text as the kernel takes it, with a zero at its end.
    pub(crate) fn with_text(self, kind: u16, text: &str) -> Self {
        self.with(kind, &[text.as_bytes(), &[0]].concat())
    }

    /// Attributes within an attribute.
    pub(crate) fn with_nested(self, kind: u16, inside: impl FnOnce(Message) -> Message) -> Self {
        let inner = inside(Self::bare());
        self.with(kind | NESTED, &inner.0)
    }

    /// The message to send.
    pub(crate) fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).expect("messages are short");
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

/// Bytes that end too early: no kernel sends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of the kernel ends too early")]
pub struct Truncated;

/// The attributes of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// Those that come after `fixed` bytes.
    pub(crate) fn after(payload: &'a [u8], fixed: usize) -> Result<Self, Truncated> {
        payload.get(fixed.next_multiple_of(4)..).map(Self).ok_or(Truncated)
    }

    /// Those within an attribute.
    pub(crate) fn within(value: &'a [u8]) -> Self {
        Self(value)
    }

    /// The value of the first of that kind.
    pub(crate) fn get(self, kind: u16) -> Option<&'a [u8]> {
        self.into_iter().find(|(found, _)| *found == kind).map(|(_, value)| value)
    }

    pub(crate) fn u32(self, kind: u16) -> Option<u32> {
        u32_ne(self.get(kind)?)
    }
}

impl<'a> IntoIterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);
    type IntoIter = Walk<'a>;

    fn into_iter(self) -> Walk<'a> {
        Walk(self.0)
    }
}

/// Goes through attributes, and ends where there is no whole one left.
#[derive(Debug)]
pub(crate) struct Walk<'a>(&'a [u8]);

impl<'a> Iterator for Walk<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(u16_ne(self.0.get(..2)?)?);
        let kind = u16_ne(self.0.get(2..4)?)? & KIND;
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

pub(crate) fn u16_ne(value: &[u8]) -> Option<u16> {
    value.get(..2)?.try_into().ok().map(u16::from_ne_bytes)
}

pub(crate) fn u32_ne(value: &[u8]) -> Option<u32> {
    value.get(..4)?.try_into().ok().map(u32::from_ne_bytes)
}

/// An address of either family, told by its length.
pub(crate) fn address(value: &[u8]) -> Option<IpAddr> {
    let v4 = || <[u8; 4]>::try_from(value).map(|octets| IpAddr::V4(Ipv4Addr::from(octets))).ok();
    let v6 = || <[u8; 16]>::try_from(value).map(|octets| IpAddr::V6(Ipv6Addr::from(octets))).ok();
    v4().or_else(v6)
}

/// Text up to the zero that ends it.
pub(crate) fn text(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_come_back_as_they_were_put_in() {
        let message = Message::new(7, 0, &[1, 2, 3, 4])
            .with(5, b"abc")
            .with_text(6, "eth0")
            .with_nested(9, |inside| inside.with_u32(1, 0x0102_0304).with_ip(2, "fd00::1".parse().unwrap()));
        let bytes = message.finish(3);
        assert_eq!(u32_ne(&bytes), u32::try_from(bytes.len()).ok());
        let attributes = Attributes::after(&bytes[HEADER..], 4).unwrap();
        assert_eq!(attributes.get(5), Some(&b"abc"[..]));
        assert_eq!(attributes.get(6).map(text).as_deref(), Some("eth0"));
        let inner = Attributes::within(attributes.get(9).unwrap());
        assert_eq!(inner.u32(1), Some(0x0102_0304));
        assert_eq!(inner.get(2).and_then(address), Some("fd00::1".parse().unwrap()));
    }

    #[test]
    fn what_ends_too_early_has_no_attributes_and_harms_nobody() {
        assert_eq!(Attributes::after(&[0; 4], 12).unwrap_err(), Truncated);
        for bytes in [&[9, 0, 1, 0, 7][..], &[0, 0, 1, 0, 0, 0, 0, 0], &[3, 0, 1, 0], &[1]] {
            assert_eq!(Attributes::within(bytes).into_iter().count(), 0, "{bytes:?}");
        }
    }
}
