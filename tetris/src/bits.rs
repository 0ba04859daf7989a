//! Sums over the set bits of a mask.

/// For each byte value, the sum of the positions of its set bits and the number of set bits.
const BYTE_SUMS: [(u8, u8); 256] = {
    let mut sums = [(0u8, 0u8); 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                sums[byte].0 += bit as u8;
                sums[byte].1 += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    sums
};

/// Returns the sum of the positions of the set bits, and the number of set bits.
#[inline(always)]
pub(crate) fn position_sum(mut bits: u64) -> (i32, i32) {
    let (mut sum, mut count, mut base) = (0, 0, 0);
    while bits != 0 {
        let (positions, in_byte) = BYTE_SUMS[(bits & 0xff) as usize];
        sum += i32::from(positions) + base * i32::from(in_byte);
        count += i32::from(in_byte);
        base += 8;
        bits >>= 8;
    }
    (sum, count)
}

#[cfg(test)]
mod tests {
    use super::position_sum;

    #[test]
    fn position_sum_includes_every_set_bit() {
        assert_eq!(position_sum(0), (0, 0));
        assert_eq!(position_sum(1 << 63 | 1 << 9 | 1), (72, 3));
    }
}
