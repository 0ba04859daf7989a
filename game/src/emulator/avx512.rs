//! SIMD operations with AVX-512: seven words in one register. A *word* is a set of positions of one
//! piece (see [`super::tables`]), and a *landing* is a position in which the piece can be locked.
//!
//! Skylake and similar processors support instructions on 8-bit and 16-bit lanes (BW) but cannot
//! compress 16-bit lanes. Ice Lake, Zen 4 and later processors can (VBMI2). With VBMI2, one compression
//! of a well's rows removes the full rows. Another compression converts a word of landings to a list, so
//! no loop over bits is needed.
#![allow(unsafe_code)]

use super::avx2::{Avx2, List, draw_list, list_landings, written};
use super::children::{CAPACITY, Children};
use super::simd::WORD;
use super::simd::{Drawing, Simd};
use super::tables::{SHAPE_ROWS, Seven, Shape};
use crate::well::Well;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// A proof that the processor supports AVX-512 F, BW, DQ and VL, and everything that [`Avx2`]
/// proves. If the parameter `VBMI2` is true, it also proves support for VBMI2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512<const VBMI2: bool>(());

impl<const VBMI2: bool> Avx512<VBMI2> {
    /// Returns the proof, or `None` if the processor does not support these instructions.
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && Avx2::detect().is_some()
            && (!VBMI2 || is_x86_feature_detected!("avx512vbmi2")))
        .then_some(Avx512(()))
    }
}

// SAFETY, for every block in this impl: `self` exists only if `detect` found the instructions, and
// memory is accessed only through references of the right size.
impl<const VBMI2: bool> Simd for Avx512<VBMI2> {
    type Words = __m512i;

    #[inline(always)]
    fn filled_rows(self, well: &Well) -> u32 {
        // SAFETY: as above. `Well` has a size and alignment of 32 bytes.
        unsafe {
            let rows = _mm256_load_si256(well.rows().as_ptr().cast());
            u32::from(_mm256_test_epi16_mask(rows, rows))
        }
    }

    #[inline(always)]
    fn load(self, words: &Seven) -> __m512i {
        // SAFETY: as above. `Seven` has a size and alignment of 64 bytes.
        unsafe { _mm512_load_si512(words.0.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, words: __m512i) -> Seven {
        let mut seven = Seven::ZERO;
        // SAFETY: as above. `Seven` has a size and alignment of 64 bytes.
        unsafe { _mm512_store_si512(seven.0.as_mut_ptr().cast(), words) };
        seven
    }

    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_or_si512(a, b) }
    }

    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_and_si512(a, b) }
    }

    #[inline(always)]
    fn and_not(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_andnot_si512(a, b) }
    }

    #[inline(always)]
    fn spread(self, words: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe {
            let sides =
                _mm512_or_si512(_mm512_slli_epi16::<1>(words), _mm512_srli_epi16::<1>(words));
            _mm512_or_si512(_mm512_or_si512(words, sides), _mm512_rol_epi64::<16>(words))
        }
    }

    #[inline(always)]
    fn equal(self, a: __m512i, b: __m512i) -> bool {
        // SAFETY: as above.
        unsafe { _mm512_cmpneq_epi64_mask(a, b) == 0 }
    }

    #[inline(always)]
    fn non_zero(self, words: __m512i) -> u8 {
        // SAFETY: as above.
        unsafe { _mm512_test_epi64_mask(words, words) }
    }

    #[inline(always)]
    fn draw(self, job: &Drawing<'_>, children: &mut Children) -> bool {
        let mut list = [MaybeUninit::uninit(); CAPACITY + WORD];
        if VBMI2 {
            // SAFETY: as above, and the processor supports VBMI2. The list comes from
            // `compress_landings`.
            unsafe {
                let list = compress_landings(job, &mut list);
                draw_compressing(job, list, children)
            }
        } else {
            let list = list_landings(job, &mut list);
            // SAFETY: `detect` checked AVX2, and the list comes from `list_landings`.
            unsafe { draw_list(job, list, children) }
        }
    }
}

/// Like [`list_landings`], but without a loop over bits.
///
/// # Safety
/// The processor must support AVX-512 BW and VBMI2.
#[inline(always)]
unsafe fn compress_landings<'a>(job: &Drawing<'_>, list: &'a mut List) -> &'a [u16] {
    const OFFSETS: [u16; 64] = {
        let mut offsets = [0; 64];
        let mut bit = 0;
        while bit < 64 {
            offsets[bit] = (bit * size_of::<Shape>()) as u16;
            bit += 1;
        }
        offsets
    };
    job.check();
    let mut count = 0;
    for (level, &word) in job.landings[..job.levels].iter().enumerate() {
        let slide = job.first_row(level) * size_of::<u16>();
        let (low, high) = (word as u32, (word >> 32) as u32);
        if count > CAPACITY {
            break; // unreachable: a piece has fewer landings
        }
        // SAFETY: the processor supports the instructions. The first store writes 32 lanes starting
        // at `count`, which is at most CAPACITY. The second starts at most 32 lanes later. The list
        // has CAPACITY + WORD lanes, and WORD is 64.
        unsafe {
            let slide = _mm512_set1_epi16(slide as i16);
            let offsets = _mm512_loadu_si512(OFFSETS.as_ptr().cast());
            let lanes = _mm512_maskz_compress_epi16(low, _mm512_add_epi16(offsets, slide));
            _mm512_storeu_si512(list.as_mut_ptr().add(count).cast(), lanes);
            count += low.count_ones() as usize;
            let offsets = _mm512_loadu_si512(OFFSETS.as_ptr().add(32).cast());
            let lanes = _mm512_maskz_compress_epi16(high, _mm512_add_epi16(offsets, slide));
            _mm512_storeu_si512(list.as_mut_ptr().add(count).cast(), lanes);
            count += high.count_ones() as usize;
        }
    }
    // SAFETY: the first `count` entries were written.
    unsafe { written(list, count.min(CAPACITY)) }
}

/// Places the piece in the well at each listed landing and writes the results to `children`.
/// Returns whether any line was cleared.
///
/// # Safety
/// The processor must support AVX-512 BW, VL and VBMI2. Each entry of `list` must be a byte offset
/// into `job.shapes` at which sixteen rows of one shape can be read.
#[inline(always)]
unsafe fn draw_compressing(job: &Drawing<'_>, list: &[u16], children: &mut Children) -> bool {
    let shapes = job.shapes.as_ptr().cast::<u8>();
    let mut any = 0;
    // SAFETY: the processor supports the instructions. `Well` has a size and alignment of 32 bytes.
    // The caller guarantees that the shapes can be read at the offsets.
    unsafe {
        let full_row = _mm256_set1_epi16(job.full_row as i16);
        let well = _mm256_load_si256(job.well.rows().as_ptr().cast());
        let out = children.wells.iter_mut().zip(children.lines.iter_mut());
        for (&offset, (child, lines)) in list.iter().zip(out) {
            let shape = _mm256_loadu_si256(shapes.add(usize::from(offset)).cast());
            let rows = _mm256_or_si256(well, shape);
            let full = _mm256_cmpeq_epi16_mask(rows, full_row);
            let rows = _mm256_maskz_compress_epi16(!full, rows);
            _mm256_store_si256((child as *mut Well).cast(), rows);
            *lines = full.count_ones() as u8;
            any |= full;
        }
    }
    children.len = list.len();
    any != 0
}

const _: () = assert!(size_of::<Shape>() == SHAPE_ROWS * 2 && size_of::<Well>() == 32);
