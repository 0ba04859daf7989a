//! Wells encoded as integers. The bottom row is in the highest bits, so wells that differ only near
//! the top have nearby values.

use super::well_of;
use hatebeam_game::{Geometry, Well};

/// A well encoded as an integer.
pub(super) trait WellKey: Copy + Ord + Send + Sync + 'static {
    /// The smallest value.
    const ZERO: Self;
    /// A value that encodes no well: all bits are set.
    const NONE: Self;

    fn pack(geometry: Geometry, well: &Well) -> Self;

    fn unpack(self, geometry: Geometry) -> Well {
        well_of(geometry, self.bits())
    }

    fn bits(self) -> u128;

    fn filled(self) -> u32;

    /// Appends the difference `self - before` to `bytes`, with seven bits per byte and the lowest bits
    /// first. `before` must not be greater than `self`.
    fn write_from(self, before: Self, bytes: &mut Vec<u8>);

    /// Reads a difference at `at` and returns its sum with `before`. Returns `None` if the bytes end too
    /// early or the sum is too large.
    fn read_from(before: Self, bytes: &[u8], at: &mut usize) -> Option<Self>;
}

macro_rules! key {
    ($number:ty) => {
        impl WellKey for $number {
            const ZERO: Self = 0;
            const NONE: Self = <$number>::MAX;

            #[inline]
            fn pack(geometry: Geometry, well: &Well) -> Self {
                let mut bits: $number = 0;
                for &row in &well.rows()[..geometry.height()] {
                    bits = bits << geometry.width() | <$number>::from(row);
                }
                bits
            }

            #[inline]
            fn bits(self) -> u128 {
                u128::from(self)
            }

            #[inline]
            fn filled(self) -> u32 {
                self.count_ones()
            }

            #[inline]
            fn write_from(self, before: Self, bytes: &mut Vec<u8>) {
                let mut rest = self.wrapping_sub(before);
                while rest >= 0x80 {
                    bytes.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                bytes.push(rest as u8);
            }

            #[inline]
            fn read_from(before: Self, bytes: &[u8], at: &mut usize) -> Option<Self> {
                let mut value: $number = 0;
                let mut shift = 0;
                loop {
                    let byte = *bytes.get(*at)?;
                    *at += 1;
                    value |= <$number>::from(byte & 0x7f).checked_shl(shift)?;
                    if byte < 0x80 {
                        return before.checked_add(value);
                    }
                    shift += 7;
                }
            }
        }
    };
}

key!(u64);
key!(u128);

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<K: WellKey + std::fmt::Debug>(numbers: &[K]) {
        let (mut bytes, mut before) = (Vec::new(), K::ZERO);
        for &number in numbers {
            number.write_from(before, &mut bytes);
            before = number;
        }
        let (mut at, mut before) = (0, K::ZERO);
        for &number in numbers {
            before = K::read_from(before, &bytes, &mut at).expect("the value was written above");
            assert_eq!(before, number);
        }
        assert_eq!(
            (at, K::read_from(before, &bytes, &mut at)),
            (bytes.len(), None)
        );
    }

    #[test]
    fn differences_round_trip() {
        round_trip(&[0u64, 1, 128, 1 << 40, u64::MAX - 1, u64::MAX]);
        round_trip(&[5u128, 6, 1 << 70, (1 << 70) + 127, u128::MAX]);
        assert_eq!(u64::read_from(0, &[0xff; 20], &mut 0), None);
        assert_eq!(u64::read_from(u64::MAX, &[1], &mut 0), None);
    }

    #[test]
    fn wells_round_trip() {
        let geometry = Geometry::new(10, 7).expect("the size is supported");
        let mut rows = [0; 16];
        rows[..7].copy_from_slice(&[1, 0x3fe, 5, 0, 0x200, 7, 0x155]);
        let well = Well::from_rows(rows);
        let key = u128::pack(geometry, &well);
        assert_eq!(key.unpack(geometry), well);
        assert_eq!(key.filled(), well.filled());
    }
}
