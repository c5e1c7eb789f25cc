//! What both ends of a health check agree on: `grpc.health.v1.Health/Check`, as far as it is needed.
//!
//! Straight on bytes, not on a gRPC library: one question and one answer, of a single field each.

/// The service that speaks for the egress addresses of a node; the name is OVN-Kubernetes'.
pub const SERVICE: &str = "Service_Egress_IP";
/// Where the question goes to.
pub const CHECK: &str = "/grpc.health.v1.Health/Check";
/// `HealthCheckResponse.ServingStatus.SERVING`.
pub const SERVING: u64 = 1;
/// `HealthCheckResponse.ServingStatus.NOT_SERVING`.
pub const NOT_SERVING: u64 = 2;

/// A field of a protobuf message: its number, and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// A number.
    Varint(u64, u64),
    /// A text, bytes or a message.
    Bytes(u64, &'a [u8]),
    /// Something that a health check has no use for.
    Other(u64),
}

/// The fields of a gRPC message that is not compressed; `None` if it is not one.
#[must_use]
pub fn fields(message: &[u8]) -> Option<Vec<Field<'_>>> {
    let (prefix, mut rest) = message.split_at_checked(5)?;
    let (compressed, length) = prefix.split_first()?;
    if *compressed != 0 || usize::try_from(u32::from_be_bytes(length.try_into().ok()?)).ok()? != rest.len() {
        return None;
    }
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        let (number, kind) = (tag >> 3, tag & 7);
        let long = match kind {
            0 => {
                fields.push(Field::Varint(number, varint(&mut rest)?));
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut rest)?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (bytes, after) = rest.split_at_checked(long)?;
        fields.push(if kind == 2 { Field::Bytes(number, bytes) } else { Field::Other(number) });
        rest = after;
    }
    Some(fields)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_told_apart_and_half_a_message_is_none() {
        let message = b"\0\0\0\0\x0d\x08\x96\x01\x12\x03abc\x1d\0\0\0\0";
        assert_eq!(fields(message), Some(vec![Field::Varint(1, 150), Field::Bytes(2, b"abc"), Field::Other(3)]));
        assert_eq!(fields(b"\0\0\0\0\0"), Some(vec![]));
        for broken in
            [&message[..8], b"\x01\0\0\0\0", b"\0\0\0\0\x02\x12\x05", b"\0\0\0\0\x01\x80", b"\0\0\0\0\x01\x0b"]
        {
            assert_eq!(fields(broken), None, "{broken:?}");
        }
    }
}
