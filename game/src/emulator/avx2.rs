//! SIMD operations with AVX2: seven words in two registers. A *word* is a set of positions of one piece
//! (see [`super::tables`]), and a *landing* is a position in which the piece can be locked.
#![allow(unsafe_code)]

use super::children::{CAPACITY, Children};
use super::simd::{Drawing, Simd, WORD, remove_full_rows};
use super::tables::{Seven, Shape};
use crate::well::Well;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// A proof that the processor supports AVX2, BMI1, BMI2, LZCNT and POPCNT.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Returns the proof, or `None` if the processor does not support these instructions.
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt"))
        .then_some(Avx2(()))
    }
}

// SAFETY, for every block in this impl: `self` exists only if `detect` found the instructions, and
// memory is accessed only through references of the right size.
impl Simd for Avx2 {
    type Words = [__m256i; 2];

    #[inline(always)]
    fn filled_rows(self, well: &Well) -> u32 {
        // SAFETY: as above. `Well` has a size and alignment of 32 bytes.
        unsafe {
            let rows = _mm256_load_si256(well.rows().as_ptr().cast());
            let empty = _mm256_cmpeq_epi16(rows, _mm256_setzero_si256());
            // Reduce two bits per row to one.
            _pext_u32(!_mm256_movemask_epi8(empty) as u32, 0x5555_5555)
        }
    }

    #[inline(always)]
    fn load(self, words: &Seven) -> [__m256i; 2] {
        let at: *const __m256i = words.0.as_ptr().cast();
        // SAFETY: as above. `Seven` has a size and alignment of 64 bytes.
        unsafe { [_mm256_load_si256(at), _mm256_load_si256(at.add(1))] }
    }

    #[inline(always)]
    fn store(self, words: [__m256i; 2]) -> Seven {
        let mut seven = Seven::ZERO;
        let at: *mut __m256i = seven.0.as_mut_ptr().cast();
        // SAFETY: as above. `Seven` has a size and alignment of 64 bytes.
        unsafe {
            _mm256_store_si256(at, words[0]);
            _mm256_store_si256(at.add(1), words[1]);
        }
        seven
    }

    #[inline(always)]
    fn or(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: as above.
        unsafe { [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])] }
    }

    #[inline(always)]
    fn and(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: as above.
        unsafe { [_mm256_and_si256(a[0], b[0]), _mm256_and_si256(a[1], b[1])] }
    }

    #[inline(always)]
    fn and_not(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: as above.
        unsafe {
            [
                _mm256_andnot_si256(a[0], b[0]),
                _mm256_andnot_si256(a[1], b[1]),
            ]
        }
    }

    #[inline(always)]
    fn spread(self, words: [__m256i; 2]) -> [__m256i; 2] {
        [spread(self, words[0]), spread(self, words[1])]
    }

    #[inline(always)]
    fn equal(self, a: [__m256i; 2], b: [__m256i; 2]) -> bool {
        // SAFETY: as above.
        unsafe {
            let differ =
                _mm256_or_si256(_mm256_xor_si256(a[0], b[0]), _mm256_xor_si256(a[1], b[1]));
            _mm256_testz_si256(differ, differ) == 1
        }
    }

    #[inline(always)]
    fn non_zero(self, words: [__m256i; 2]) -> u8 {
        non_zero(self, words[0]) | non_zero(self, words[1]) << 4
    }

    #[inline(always)]
    fn draw(self, job: &Drawing<'_>, children: &mut Children) -> bool {
        let mut list = [MaybeUninit::uninit(); CAPACITY + WORD];
        let list = list_landings(job, &mut list);
        // SAFETY: as above. The list comes from `list_landings`.
        unsafe { draw_list(job, list, children) }
    }
}

/// Implements [`Simd::spread`] for four words.
#[inline(always)]
fn spread(_: Avx2, words: __m256i) -> __m256i {
    // SAFETY: the first argument proves that the processor supports the instructions.
    unsafe {
        let sides = _mm256_or_si256(_mm256_slli_epi16::<1>(words), _mm256_srli_epi16::<1>(words));
        // Rotate each 64-bit word by 16 bits: bytes 6 and 7 come first.
        let turn = _mm256_setr_epi8(
            6, 7, 0, 1, 2, 3, 4, 5, 14, 15, 8, 9, 10, 11, 12, 13, //
            6, 7, 0, 1, 2, 3, 4, 5, 14, 15, 8, 9, 10, 11, 12, 13,
        );
        _mm256_or_si256(
            _mm256_or_si256(words, sides),
            _mm256_shuffle_epi8(words, turn),
        )
    }
}

/// Implements [`Simd::non_zero`] for four words.
#[inline(always)]
fn non_zero(_: Avx2, words: __m256i) -> u8 {
    // SAFETY: the first argument proves that the processor supports the instructions.
    unsafe {
        let zero = _mm256_cmpeq_epi64(words, _mm256_setzero_si256());
        !_mm256_movemask_pd(_mm256_castsi256_pd(zero)) as u8 & 15
    }
}

/// Buffer for a list of landings. It is uninitialised, because clearing it would cost more than
/// filling it.
pub(super) type List = [MaybeUninit<u16>; CAPACITY + WORD];

/// Returns at most [`CAPACITY`] byte offsets into `job.shapes`, one per landing. The sixteen rows of a
/// landing's shape begin at its offset.
#[inline(always)]
pub(super) fn list_landings<'a>(job: &Drawing<'_>, list: &'a mut List) -> &'a [u16] {
    job.check();
    let mut count = 0;
    for (level, &word) in job.landings[..job.levels].iter().enumerate() {
        // The offset within a shape.
        let slide = job.first_row(level) * size_of::<u16>();
        // Write four entries at a time, because this causes fewer unpredictable branches than
        // writing one at a time. The next level overwrites the excess entries. The excess entries of
        // the last level are past the end of the returned list.
        let mut left = word;
        let end = count + word.count_ones() as usize;
        loop {
            for entry in &mut list[count..count + 4] {
                let bit = left.trailing_zeros() as usize;
                entry.write((bit * size_of::<Shape>() + slide) as u16);
                left &= left.wrapping_sub(1);
            }
            count += 4;
            if left == 0 {
                break;
            }
        }
        count = end;
    }
    // SAFETY: the first `count` entries were written.
    unsafe { written(list, count.min(CAPACITY)) }
}

/// Returns the first `count` entries of `list`.
///
/// # Safety
/// These entries must have been written.
#[inline(always)]
pub(super) unsafe fn written(list: &List, count: usize) -> &[u16] {
    // SAFETY: the caller wrote the entries, and `MaybeUninit<u16>` has the layout of `u16`.
    unsafe { std::slice::from_raw_parts(list.as_ptr().cast(), count) }
}

/// Places the piece in the well at each listed landing and writes the results to `children`.
/// Returns whether any line was cleared.
///
/// # Safety
/// The processor must support AVX2. Each entry of `list` must be a byte offset into `job.shapes` at
/// which sixteen rows of one shape can be read.
#[inline(always)]
pub(super) unsafe fn draw_list(job: &Drawing<'_>, list: &[u16], children: &mut Children) -> bool {
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
            let full = _mm256_movemask_epi8(_mm256_cmpeq_epi16(rows, full_row));
            _mm256_store_si256((child as *mut Well).cast(), rows);
            *lines = (full.count_ones() / 2) as u8;
            any |= full;
            if full != 0 {
                let mut rows = *child.rows();
                remove_full_rows(&mut rows, job.full_row);
                *child = Well::from_rows(rows);
            }
        }
    }
    children.len = list.len();
    any != 0
}
