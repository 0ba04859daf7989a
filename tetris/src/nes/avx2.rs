//! Versions of functions that are compiled for processors with AVX2 and bit-counting instructions.

#![allow(unsafe_code)]

use super::best::{BestPlacements, Valued};
use super::board::Board;
use super::patterns::evaluate_portable;
use super::placements::Placements;
use crate::Piece;

/// Returns whether the processor has the instruction sets for which the functions of this module are compiled.
pub(super) fn available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
}

pub(super) fn of_each_piece(best: &mut BestPlacements, board: &Board) -> [Option<Valued>; 7] {
    assert!(available());
    // SAFETY: the assertion above checks that the processor has every instruction set for which the function is compiled.
    // The function contains only safe code.
    unsafe { of_each_piece_avx2(best, board) }
}

pub(super) fn least_values(best: &mut BestPlacements, board: &Board) -> [Option<f64>; 7] {
    assert!(available());
    // SAFETY: as in `of_each_piece`.
    unsafe { least_values_avx2(best, board) }
}

pub(super) fn candidates(
    best: &mut BestPlacements,
    board: &Board,
    piece: Piece,
    count: usize,
    values: &mut Vec<Valued>,
) {
    assert!(available());
    // SAFETY: as in `of_each_piece`.
    unsafe { candidates_avx2(best, board, piece, count, values) }
}

pub(super) fn evaluate_patterns(
    board: &Board,
    piece: Piece,
    weights: &[f32],
    placements: &mut Placements,
    values: &mut Vec<Valued>,
) {
    assert!(available());
    // SAFETY: as in `of_each_piece`.
    unsafe { evaluate_patterns_avx2(board, piece, weights, placements, values) }
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
fn of_each_piece_avx2(best: &mut BestPlacements, board: &Board) -> [Option<Valued>; 7] {
    best.of_each_piece_inline(board)
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
fn least_values_avx2(best: &mut BestPlacements, board: &Board) -> [Option<f64>; 7] {
    best.least_values_inline(board)
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
fn candidates_avx2(
    best: &mut BestPlacements,
    board: &Board,
    piece: Piece,
    count: usize,
    values: &mut Vec<Valued>,
) {
    best.candidates_inline(board, piece, count, values);
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
fn evaluate_patterns_avx2(
    board: &Board,
    piece: Piece,
    weights: &[f32],
    placements: &mut Placements,
    values: &mut Vec<Valued>,
) {
    evaluate_portable(board, piece, weights, placements, values);
}
