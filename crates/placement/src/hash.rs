//! The stable hash that spreads ties (rules C2 and S6), and whatever else is to be spread without chance.
//!
//! It must give the same number on every machine and in every release, so it is written out here instead of taken from
//! a hasher that promises neither: FNV-1a over the bytes, then the finaliser of splitmix64 to spread near-equal names.

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// The hash of a text or of an address' bytes.
#[must_use]
pub fn stable(bytes: &[u8]) -> u64 {
    bytes.iter().fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}

/// The hash of a pair, from the hashes of both.
#[must_use]
pub fn pair(left: u64, right: u64) -> u64 {
    let mut x = left.rotate_left(32) ^ right;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_never_changes() {
        // A change of these numbers moves ties in every cluster on upgrade.
        assert_eq!(stable(b"worker-1"), 0x2491_3ec5_9027_ebed);
        assert_eq!(pair(1, 2), 0xf2c6_924e_7dfe_d23e);
    }
}
