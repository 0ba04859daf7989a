//! Computes the value of a well from its active features. For the formula, see [`super`].

use super::inputs::{Described, Input, Surrounding, clears_features};
use super::{BLOCK, Block, MAX_BLOCKS, Network, WEIGHT_ONE};
use hatebeam_game::{Clears, SimdLevel};

/// Number of sums in a [`Memory`]. With 16 lanes, the sums take 256 KiB, which fits into most L2 caches.
const MEMORY: usize = 1 << 13;

/// A cache of sums of weights. A [`Surrounding`] (a row with the two rows above it) determines most features of the
/// row. The cache contains the sum of the weights of these features. The wells of a beam have most of their rows in
/// common: of the 13 sums for a child in a beam of 100,000 wells, 2 are not in the cache.
pub(crate) struct Memory {
    /// The surrounding in each slot, with the highest bit set. An empty slot contains 0.
    keys: Box<[u32]>,
    /// The blocks of the sum in each slot, and then the blocks of a sum of zero.
    sums: Box<[Block]>,
}

impl Memory {
    pub(crate) fn new(network: &Network) -> Memory {
        Memory {
            keys: vec![0; MEMORY].into(),
            sums: vec![Block::ZERO; (MEMORY + 1) * network.blocks].into(),
        }
    }

    /// Returns the key of a surrounding, and its slot.
    #[inline(always)]
    fn place(surrounding: Surrounding) -> (u32, usize) {
        let key = surrounding.0 | 1 << 31;
        let at = key.wrapping_mul(0x9e37_79b1) >> (32 - MEMORY.ilog2());
        (key, at as usize)
    }

    /// Returns the sum for a surrounding and true, or zeros and false if it is not in the cache.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn get<const BLOCKS: usize>(&self, surrounding: Surrounding) -> (&[Block; BLOCKS], bool) {
        let (key, at) = Memory::place(surrounding);
        let is_hit = self.keys[at] == key;
        let at = std::hint::select_unpredictable(is_hit, at, MEMORY);
        (&self.sums.as_chunks::<BLOCKS>().0[at], is_hit)
    }

    /// Returns the sum for a surrounding. If it is not in the cache, calls `calculate` to replace a sum.
    #[inline(always)]
    fn sum<const BLOCKS: usize>(
        &mut self,
        surrounding: Surrounding,
        calculate: impl FnOnce(&mut [Block; BLOCKS]),
    ) -> &[Block; BLOCKS] {
        let (key, at) = Memory::place(surrounding);
        let sum = &mut self.sums.as_chunks_mut::<BLOCKS>().0[at];
        if self.keys[at] != key {
            self.keys[at] = key;
            calculate(sum);
        }
        sum
    }
}

#[inline(always)]
fn add<const BLOCKS: usize>(sum: &mut [Block; BLOCKS], row: &[Block; BLOCKS]) {
    for (sum, row) in sum.iter_mut().zip(row) {
        for (sum, &weight) in sum.0.iter_mut().zip(&row.0) {
            *sum = sum.wrapping_add(weight);
        }
    }
}

/// Returns the limit for the absolute value of each lane of the sum. The limit is a weight of 1, except that lane 0 is
/// not clamped to ±1: its limit is the maximum of `i16`.
const fn limits() -> [Block; MAX_BLOCKS] {
    let mut limits = [Block([WEIGHT_ONE; BLOCK]); MAX_BLOCKS];
    limits[0].0[0] = i16::MAX;
    limits
}
static LIMITS: [Block; MAX_BLOCKS] = limits();

/// Adds the weights of a well's features to `sum`, without SIMD instructions or the cache.
#[cfg(target_arch = "x86_64")]
fn add_all<const BLOCKS: usize>(
    network: &Network,
    well: &Described<'_>,
    sum: &mut [Block; BLOCKS],
) {
    well.inputs(|input| match input {
        Input::Feature(feature) => add(sum, network.row(feature)),
        Input::Surrounding(surrounding) => {
            surrounding.features(|feature| add(sum, network.row(feature)));
        }
    });
}

/// Replaces `sum` with the sum of the bias and the weights of a well's features, except those of the pieces that can
/// clear lines. Returns an upper bound of [`value`] for any such pieces.
#[inline]
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(super) fn begin<const BLOCKS: usize>(
    level: SimdLevel,
    network: &Network,
    memory: &mut Memory,
    well: &Described<'_>,
    sum: &mut [Block; BLOCKS],
) -> i32 {
    sum.copy_from_slice(&network.bias[..BLOCKS]);
    match level {
        // Without the cache, it is the oracle of the other code.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Portable => add_all(network, well, sum),
        // The 16 lanes of the built-in networks fill an AVX2 register. Only 32 lanes could gain from AVX-512.
        // SAFETY: the level comes from an emulator, so the processor supports it. `Evaluator::new`
        // asserts this. AVX-512 includes AVX2.
        #[cfg(target_arch = "x86_64")]
        _ => return unsafe { x86::begin(network, memory, well, sum) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => well.inputs(|input| match input {
            Input::Feature(feature) => add(sum, network.row(feature)),
            Input::Surrounding(surrounding) => {
                let row = memory.sum(surrounding, |sum| {
                    *sum = [Block::ZERO; BLOCKS];
                    surrounding.features(|feature| add(sum, network.row(feature)));
                });
                add(sum, row);
            }
        }),
    }
    match &network.clears_range {
        Some(range) => range.upper_bound(network, sum),
        None => i32::MAX,
    }
}

/// Returns the weighted sum of the clamped lanes.
#[inline(always)]
fn clamped_value<const BLOCKS: usize>(network: &Network, sum: &[Block; BLOCKS]) -> i32 {
    let mut value = 0;
    for ((sum, output), limit) in sum.iter().zip(&network.output).zip(&LIMITS) {
        for lane in 0..BLOCK {
            let clamped = sum.0[lane].clamp(-limit.0[lane], limit.0[lane]);
            value += i32::from(clamped) * i32::from(output.0[lane]);
        }
    }
    value
}

/// Returns the value of a well. `sum` contains the sum of the weights of its other features.
#[inline]
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(super) fn value<const BLOCKS: usize>(
    level: SimdLevel,
    network: &Network,
    mut sum: [Block; BLOCKS],
    clears: Clears,
) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if level != SimdLevel::Portable {
        // SAFETY: as in `begin`.
        return unsafe { x86::value(network, &sum, clears) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = level;
    for feature in clears_features(clears) {
        add(&mut sum, network.row(feature));
    }
    clamped_value(network, &sum)
}

/// For each lane, the sums of weights with which the pieces that can clear lines raise and lower the value most.
///
/// The maximum of 32 such bounds, each for a part of the pieces, would reject more wells, but takes 32 times the additions.
/// In beams of `network` with 30,000 wells, 30 % of the children would pass instead of 51 %. In beams of `relay` with 3,000
/// wells, 24 % would instead of 26 %.
pub(super) struct ClearsRange {
    best: [Block; MAX_BLOCKS],
    worst: [Block; MAX_BLOCKS],
}

impl ClearsRange {
    /// Returns `None` if a sum does not fit into 16 bits, which is possible only if weights are much larger than useful.
    pub(super) fn new(network: &Network) -> Option<ClearsRange> {
        let mut range = ClearsRange {
            best: [Block::ZERO; MAX_BLOCKS],
            worst: [Block::ZERO; MAX_BLOCKS],
        };
        let rows: Vec<[&[Block]; 2]> = Clears::all()
            .map(|clears| clears_features(clears).map(|feature| network.blocks_of(feature)))
            .collect();
        for lane in 0..network.lanes() {
            let (block, lane) = (lane / BLOCK, lane % BLOCK);
            let weight = |row: &&[Block]| i32::from(row[block].0[lane]);
            let sums = rows.iter().map(|rows| rows.iter().map(weight).sum::<i32>());
            let least = sums.clone().min()?.try_into().ok()?;
            let most = sums.max()?.try_into().ok()?;
            let raises = network.output[block].0[lane] >= 0;
            range.best[block].0[lane] = if raises { most } else { least };
            range.worst[block].0[lane] = if raises { least } else { most };
        }
        Some(range)
    }

    /// Returns an upper bound of [`value`] for any pieces that can clear lines.
    fn upper_bound<const BLOCKS: usize>(&self, network: &Network, sum: &[Block; BLOCKS]) -> i32 {
        let mut highest = *sum;
        let mut wraps = 0;
        for (highest, (best, worst)) in highest.iter_mut().zip(self.best.iter().zip(&self.worst)) {
            for lane in 0..BLOCK {
                let (sum, best, worst) = (highest.0[lane], best.0[lane], worst.0[lane]);
                highest.0[lane] = sum.wrapping_add(best);
                wraps |= sum.wrapping_add(best) ^ sum.saturating_add(best);
                wraps |= sum.wrapping_add(worst) ^ sum.saturating_add(worst);
            }
        }
        // A lane that wraps around can have any value.
        if wraps != 0 {
            return i32::MAX;
        }
        clamped_value(network, &highest)
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use super::{
        Block, ClearsRange, Described, Input, LIMITS, Memory, Network, Surrounding, clears_features,
    };
    use hatebeam_game::{Clears, MAX_HEIGHT};
    use std::arch::x86_64::*;

    // SAFETY, for every unsafe block in this module: memory is accessed only through references to `Block`s, which
    // are 32 bytes long and aligned to 32 bytes. The callers ensure that the processor supports the instructions.

    #[inline(always)]
    unsafe fn load(block: &Block) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_load_si256(block.0.as_ptr().cast()) }
    }

    /// Replaces `sum` with the sum of the weights of the features that a surrounding determines.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    #[inline(never)]
    unsafe fn calculate<const BLOCKS: usize>(
        network: &Network,
        surrounding: Surrounding,
        sum: &mut [Block; BLOCKS],
    ) {
        // SAFETY: as above.
        unsafe {
            let mut sums = [_mm256_setzero_si256(); BLOCKS];
            surrounding.features(|feature| {
                for (sums, row) in sums.iter_mut().zip(network.row::<BLOCKS>(feature)) {
                    *sums = _mm256_add_epi16(*sums, load(row));
                }
            });
            for (sums, sum) in sums.iter().zip(sum) {
                _mm256_store_si256(sum.0.as_mut_ptr().cast(), *sums);
            }
        }
    }

    /// Like [`super::clamped_value`].
    #[inline(always)]
    unsafe fn clamped_value<const BLOCKS: usize>(
        network: &Network,
        sums: [__m256i; BLOCKS],
    ) -> i32 {
        // SAFETY: as above.
        unsafe {
            let mut value = _mm256_setzero_si256();
            for ((sum, output), limit) in sums.into_iter().zip(&network.output).zip(&LIMITS) {
                let limit = load(limit);
                let least = _mm256_sub_epi16(_mm256_setzero_si256(), limit);
                let clamped = _mm256_max_epi16(least, _mm256_min_epi16(sum, limit));
                value = _mm256_add_epi32(value, _mm256_madd_epi16(clamped, load(output)));
            }
            let half = _mm_add_epi32(
                _mm256_castsi256_si128(value),
                _mm256_extracti128_si256::<1>(value),
            );
            let quarter = _mm_add_epi32(half, _mm_shuffle_epi32::<0b01_00_11_10>(half));
            let all = _mm_add_epi32(quarter, _mm_shuffle_epi32::<0b10_11_00_01>(quarter));
            _mm_cvtsi128_si32(all)
        }
    }

    /// Like [`ClearsRange::upper_bound`].
    #[inline(always)]
    unsafe fn upper_bound<const BLOCKS: usize>(
        range: &ClearsRange,
        network: &Network,
        mut sums: [__m256i; BLOCKS],
    ) -> i32 {
        // SAFETY: as above.
        unsafe {
            let mut wraps = _mm256_setzero_si256();
            for (sum, (best, worst)) in sums.iter_mut().zip(range.best.iter().zip(&range.worst)) {
                let (best, worst) = (load(best), load(worst));
                let (highest, lowest) =
                    (_mm256_add_epi16(*sum, best), _mm256_add_epi16(*sum, worst));
                let differ = |exact, saturated| _mm256_xor_si256(exact, saturated);
                let above = differ(highest, _mm256_adds_epi16(*sum, best));
                let below = differ(lowest, _mm256_adds_epi16(*sum, worst));
                wraps = _mm256_or_si256(wraps, _mm256_or_si256(above, below));
                *sum = highest;
            }
            if _mm256_testz_si256(wraps, wraps) == 0 {
                return i32::MAX;
            }
            clamped_value(network, sums)
        }
    }

    /// Like [`super::value`].
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn value<const BLOCKS: usize>(
        network: &Network,
        sum: &[Block; BLOCKS],
        clears: Clears,
    ) -> i32 {
        // SAFETY: as above.
        unsafe {
            let mut sums = [_mm256_setzero_si256(); BLOCKS];
            let [pieces, several] = clears_features(clears).map(|at| network.row::<BLOCKS>(at));
            for (sums, (sum, (pieces, several))) in sums
                .iter_mut()
                .zip(sum.iter().zip(pieces.iter().zip(several)))
            {
                let more = _mm256_add_epi16(load(pieces), load(several));
                *sums = _mm256_add_epi16(load(sum), more);
            }
            clamped_value(network, sums)
        }
    }

    /// Like [`super::begin`], but adds to `sum`, which contains the bias.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn begin<const BLOCKS: usize>(
        network: &Network,
        memory: &mut Memory,
        well: &Described<'_>,
        sum: &mut [Block; BLOCKS],
    ) -> i32 {
        // SAFETY: as above.
        unsafe {
            let mut sums = [_mm256_setzero_si256(); BLOCKS];
            for (sums, sum) in sums.iter_mut().zip(sum.iter()) {
                *sums = load(sum);
            }
            // Sums that are not in the cache are added at the end. A branch for each row would be mispredicted twice a
            // well.
            let (mut misses, mut missed) = ([Surrounding::default(); MAX_HEIGHT], 0);
            well.inputs(|input| {
                let row = match input {
                    Input::Feature(feature) => network.row::<BLOCKS>(feature),
                    Input::Surrounding(surrounding) => {
                        let (row, is_hit) = memory.get::<BLOCKS>(surrounding);
                        misses[missed % MAX_HEIGHT] = surrounding;
                        missed += usize::from(!is_hit);
                        row
                    }
                };
                for (sums, row) in sums.iter_mut().zip(row) {
                    *sums = _mm256_add_epi16(*sums, load(row));
                }
            });
            for &surrounding in &misses[..missed] {
                let row =
                    memory.sum::<BLOCKS>(surrounding, |sum| calculate(network, surrounding, sum));
                for (sums, row) in sums.iter_mut().zip(row) {
                    *sums = _mm256_add_epi16(*sums, load(row));
                }
            }
            for (sums, sum) in sums.iter().zip(sum) {
                _mm256_store_si256(sum.0.as_mut_ptr().cast(), *sums);
            }
            match &network.clears_range {
                Some(range) => upper_bound(range, network, sums),
                None => i32::MAX,
            }
        }
    }
}
