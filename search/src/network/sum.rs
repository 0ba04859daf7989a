//! Computes the value of a well from its active features. For the formula, see [`super`].

use super::inputs::Surrounding;
use super::{Active, BLOCK, Block, MAX_BLOCKS, Network, WEIGHT_ONE};
use hatebeam_game::SimdLevel;

/// Number of sums in a [`Memory`]. With 16 lanes, the sums take 256 KiB, which fits into most L2 caches.
const MEMORY: usize = 1 << 13;

/// A cache of sums of weights. A [`Surrounding`] (a row with the two rows above it) determines most features of the
/// row. The cache contains the sum of the weights of these features. The wells of a beam have most of their rows in
/// common, so nearly all sums are found in the cache.
pub(crate) struct Memory {
    /// The surrounding in each slot, with the highest bit set. An empty slot contains 0.
    keys: Box<[u32]>,
    /// The blocks of the sum in each slot.
    sums: Box<[Block]>,
}

impl Memory {
    pub(crate) fn new(network: &Network) -> Memory {
        Memory {
            keys: vec![0; MEMORY].into(),
            sums: vec![Block::ZERO; MEMORY * network.blocks].into(),
        }
    }

    /// Returns the sum for a surrounding. `network` must be the network that was passed to [`Memory::new`].
    #[inline(always)]
    fn sum<const BLOCKS: usize>(
        &mut self,
        network: &Network,
        surrounding: Surrounding,
    ) -> &[Block; BLOCKS] {
        let key = surrounding.0 | 1 << 31;
        let at = (key.wrapping_mul(0x9e37_79b1) >> (32 - MEMORY.ilog2())) as usize;
        let sum = &mut self.sums.as_chunks_mut::<BLOCKS>().0[at];
        if self.keys[at] != key {
            self.keys[at] = key;
            calculate(network, surrounding, sum);
        }
        sum
    }
}

/// Adds up the weights of the features that a surrounding determines.
#[cold]
#[inline(never)]
fn calculate<const BLOCKS: usize>(
    network: &Network,
    surrounding: Surrounding,
    sum: &mut [Block; BLOCKS],
) {
    *sum = [Block::ZERO; BLOCKS];
    surrounding.features(|feature| add(sum, network.row(feature)));
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

/// Computes the value without SIMD instructions or the cache.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(super) fn portable<const BLOCKS: usize>(network: &Network, active: &Active) -> i32 {
    let mut sum = [Block::ZERO; BLOCKS];
    sum.copy_from_slice(&network.bias[..BLOCKS]);
    for &feature in active.features() {
        add(&mut sum, network.row(feature));
    }
    for surrounding in active.surroundings() {
        surrounding.features(|feature| add(&mut sum, network.row(feature)));
    }
    clamped_value(network, &sum)
}

/// Computes the value without SIMD instructions, but with the cache.
#[cfg(not(target_arch = "x86_64"))]
fn remembered<const BLOCKS: usize>(network: &Network, memory: &mut Memory, active: &Active) -> i32 {
    let mut sum = [Block::ZERO; BLOCKS];
    sum.copy_from_slice(&network.bias[..BLOCKS]);
    for &feature in active.features() {
        add(&mut sum, network.row(feature));
    }
    for &surrounding in active.surroundings() {
        add(&mut sum, memory.sum::<BLOCKS>(network, surrounding));
    }
    clamped_value(network, &sum)
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

#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) fn value<const BLOCKS: usize>(
    _: SimdLevel,
    network: &Network,
    memory: &mut Memory,
    active: &Active,
) -> i32 {
    remembered::<BLOCKS>(network, memory, active)
}

/// Returns the value of a well with these active features.
#[cfg(target_arch = "x86_64")]
#[inline]
#[allow(unsafe_code)]
pub(super) fn value<const BLOCKS: usize>(
    level: SimdLevel,
    network: &Network,
    memory: &mut Memory,
    active: &Active,
) -> i32 {
    match level {
        SimdLevel::Portable => portable::<BLOCKS>(network, active),
        // SAFETY: the level comes from an emulator, so the processor supports it. `Evaluator::new`
        // asserts this.
        SimdLevel::Avx2 => unsafe { x86::avx2::<BLOCKS>(network, memory, active) },
        SimdLevel::Avx512 | SimdLevel::Avx512Vbmi2 => {
            if BLOCKS == 2 {
                // SAFETY: as above.
                unsafe { x86::avx512(network, memory, active) }
            } else {
                // One block fills only half of an AVX-512 register.
                // SAFETY: as above, and AVX-512 includes AVX2.
                unsafe { x86::avx2::<BLOCKS>(network, memory, active) }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use super::{Active, Block, LIMITS, Memory, Network};
    use std::arch::x86_64::*;

    // SAFETY, for every unsafe block in this module: memory is accessed only through references to `Block`s, which
    // are 32 bytes long and aligned to 32 bytes. The callers ensure that the processor supports the instructions.

    #[inline(always)]
    unsafe fn load(block: &Block) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_load_si256(block.0.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn avx2<const BLOCKS: usize>(
        network: &Network,
        memory: &mut Memory,
        active: &Active,
    ) -> i32 {
        // SAFETY: as above.
        unsafe {
            let mut sum = [_mm256_setzero_si256(); BLOCKS];
            for (sum, bias) in sum.iter_mut().zip(&network.bias) {
                *sum = load(bias);
            }
            for &feature in active.features() {
                for (sum, row) in sum.iter_mut().zip(network.row::<BLOCKS>(feature)) {
                    *sum = _mm256_add_epi16(*sum, load(row));
                }
            }
            for &surrounding in active.surroundings() {
                let row = memory.sum::<BLOCKS>(network, surrounding);
                for (sum, row) in sum.iter_mut().zip(row) {
                    *sum = _mm256_add_epi16(*sum, load(row));
                }
            }
            let mut value = _mm256_setzero_si256();
            for ((sum, output), limit) in sum.iter().zip(&network.output).zip(&LIMITS) {
                let limit = load(limit);
                let least = _mm256_sub_epi16(_mm256_setzero_si256(), limit);
                let clamped = _mm256_max_epi16(least, _mm256_min_epi16(*sum, limit));
                value = _mm256_add_epi32(value, _mm256_madd_epi16(clamped, load(output)));
            }
            let half = _mm_add_epi32(
                _mm256_castsi256_si128(value),
                _mm256_extracti128_si256::<1>(value),
            );
            let half = _mm_add_epi32(half, _mm_shuffle_epi32::<0b01_00_11_10>(half));
            let half = _mm_add_epi32(half, _mm_shuffle_epi32::<0b10_11_00_01>(half));
            _mm_cvtsi128_si32(half)
        }
    }

    #[inline(always)]
    unsafe fn load_two(blocks: &[Block; 2]) -> __m512i {
        // SAFETY: as above. Two blocks are 64 bytes long, and the load requires no alignment.
        unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
    pub(super) unsafe fn avx512(network: &Network, memory: &mut Memory, active: &Active) -> i32 {
        // SAFETY: as above.
        unsafe {
            let mut sum = load_two(&network.bias);
            for &feature in active.features() {
                sum = _mm512_add_epi16(sum, load_two(network.row(feature)));
            }
            for &surrounding in active.surroundings() {
                sum = _mm512_add_epi16(sum, load_two(memory.sum(network, surrounding)));
            }
            let limit = load_two(&LIMITS);
            let least = _mm512_sub_epi16(_mm512_setzero_si512(), limit);
            let clamped = _mm512_max_epi16(least, _mm512_min_epi16(sum, limit));
            _mm512_reduce_add_epi32(_mm512_madd_epi16(clamped, load_two(&network.output)))
        }
    }
}
