//! The forward emulator. For a given well, it finds the piece that HATETRIS Mild gives and the
//! wells that the player can produce with this piece (the children).
//!
//! The fast algorithm is in `core`, `landings` and `clears`. It is compiled once per SIMD level, and
//! the level is chosen at run time. It supports widths 5 to 15 and wells that have no empty row below
//! the top of the stack. All wells that occur in a game satisfy the second condition. The slow
//! [oracle](crate::reference) handles all other wells.

pub(crate) mod backward;
mod children;
mod clears;
mod core;
mod landings;
mod simd;
pub(crate) mod tables;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

pub use children::Children;

use self::backward::{Search, collect};
use self::clears::{clears, first_clear};
use self::core::{children, expand, piece};
use self::simd::Portable;
use self::tables::Tables;
use crate::piece::Piece;
use crate::reference::{Parent, Reference};
use crate::rules::Rules;
use crate::well::{Geometry, MAX_HEIGHT, ROWS_ABOVE_BAR, Well};
use std::fmt;
use std::sync::Arc;

/// The instruction set that the emulator uses. Every level produces the same wells in the same
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SimdLevel {
    /// Plain 64-bit code, for any processor.
    Portable,
    /// AVX2, BMI1, BMI2, LZCNT and POPCNT (Haswell, Zen 1 and later).
    Avx2,
    /// AVX-512 F, BW, DQ and VL (Skylake server processors and later).
    Avx512,
    /// AVX-512 with VBMI2 (Ice Lake, Zen 4 and later).
    Avx512Vbmi2,
}

impl SimdLevel {
    /// All levels, starting with the portable one.
    pub const ALL: [SimdLevel; 4] = [
        SimdLevel::Portable,
        SimdLevel::Avx2,
        SimdLevel::Avx512,
        SimdLevel::Avx512Vbmi2,
    ];

    /// Returns the name of the level.
    pub const fn name(self) -> &'static str {
        match self {
            SimdLevel::Portable => "portable",
            SimdLevel::Avx2 => "avx2",
            SimdLevel::Avx512 => "avx512",
            SimdLevel::Avx512Vbmi2 => "avx512-vbmi2",
        }
    }

    /// Returns the levels that this processor supports, starting with the portable one.
    pub fn available() -> impl Iterator<Item = SimdLevel> {
        SimdLevel::ALL
            .into_iter()
            .filter(|&level| Backend::detect(level).is_some())
    }
}

impl fmt::Display for SimdLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A SIMD level that the processor supports, with the proof of this support.
#[derive(Clone, Copy, Debug)]
enum Backend {
    Portable(Portable),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512<false>),
    #[cfg(target_arch = "x86_64")]
    Avx512Vbmi2(avx512::Avx512<true>),
}

impl Backend {
    #[cfg(target_arch = "x86_64")]
    fn detect(level: SimdLevel) -> Option<Backend> {
        match level {
            SimdLevel::Portable => Some(Backend::Portable(Portable)),
            SimdLevel::Avx2 => avx2::Avx2::detect().map(Backend::Avx2),
            SimdLevel::Avx512 => avx512::Avx512::detect().map(Backend::Avx512),
            SimdLevel::Avx512Vbmi2 => avx512::Avx512::detect().map(Backend::Avx512Vbmi2),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detect(level: SimdLevel) -> Option<Backend> {
        (level == SimdLevel::Portable).then_some(Backend::Portable(Portable))
    }

    fn level(self) -> SimdLevel {
        match self {
            Backend::Portable(_) => SimdLevel::Portable,
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2(_) => SimdLevel::Avx2,
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512(_) => SimdLevel::Avx512,
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512Vbmi2(_) => SimdLevel::Avx512Vbmi2,
        }
    }
}

/// Calls a function that is generic over `Simd`. Uses the version that is compiled for the backend's
/// instruction set.
macro_rules! with_backend {
    ($backend:expr, $function:ident($($name:ident: $type:ty),*) -> $result:ty) => {
        match $backend {
            Backend::Portable(simd) => $function(simd, $($name),*),
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2(simd) => {
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn compiled(simd: avx2::Avx2, $($name: $type),*) -> $result {
                    $function(simd, $($name),*)
                }
                // SAFETY: `simd` can only be created if the processor supports these instructions.
                #[allow(unsafe_code)]
                unsafe { compiled(simd, $($name),*) }
            }
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512(simd) => {
                #[target_feature(
                    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt"
                )]
                fn compiled(simd: avx512::Avx512<false>, $($name: $type),*) -> $result {
                    $function(simd, $($name),*)
                }
                // SAFETY: `simd` can only be created if the processor supports these instructions.
                #[allow(unsafe_code)]
                unsafe { compiled(simd, $($name),*) }
            }
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512Vbmi2(simd) => {
                #[target_feature(
                    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,avx2,bmi1,bmi2,lzcnt,popcnt"
                )]
                fn compiled(simd: avx512::Avx512<true>, $($name: $type),*) -> $result {
                    $function(simd, $($name),*)
                }
                // SAFETY: `simd` can only be created if the processor supports these instructions.
                #[allow(unsafe_code)]
                unsafe { compiled(simd, $($name),*) }
            }
        }
    };
}

/// The pieces that can clear lines in a well. Each field has one bit per piece, in the order of
/// [`Piece::ALL`]. S is bit 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clears {
    /// Pieces that the player can lock in a position that clears a line.
    pub pieces: u8,
    /// Pieces that the player can lock in a position that clears two or more lines.
    pub several: u8,
}

impl Clears {
    /// Returns all values with valid fields: each set of pieces with each of its subsets for `several`.
    pub fn all() -> impl Iterator<Item = Clears> {
        let sets = 0..1u8 << Piece::ALL.len();
        sets.clone().flat_map(move |pieces| {
            let subsets = sets.clone().filter(move |several| several & !pieces == 0);
            subsets.map(move |several| Clears { pieces, several })
        })
    }

    /// Returns the first piece that can clear a line but cannot clear two or more at once.
    #[inline]
    pub fn single(self) -> Option<Piece> {
        let single = self.pieces & !self.several;
        (single != 0).then(|| Piece::ALL[single.trailing_zeros() as usize])
    }

    /// Returns the first piece that cannot clear two or more lines at once, or `None` if this piece
    /// cannot clear any line. The result is S or `None` in nearly all wells.
    #[inline]
    pub fn first(self) -> Option<Piece> {
        let first = self.several.trailing_ones() as usize;
        self.single().filter(|piece| piece.index() == first)
    }
}

/// A request for the wells that result when one of the pieces in [`Clears`] clears lines.
pub struct Follow<'a> {
    /// Chooses the piece, or returns `None` for no piece. The chosen piece must be able to clear a line
    /// but not two or more at once, like the results of [`Clears::single`] and [`Clears::first`].
    pub choose: fn(Clears) -> Option<Piece>,
    /// The buffer for the wells. It is unchanged if no piece is chosen.
    pub children: &'a mut Children,
}

impl Follow<'_> {
    fn reborrow(&mut self) -> Follow<'_> {
        Follow {
            choose: self.choose,
            children: self.children,
        }
    }
}

/// The emulator for one geometry. Cloning it is cheap, because clones share their tables.
///
/// The emulator chooses pieces like HATETRIS Mild, whose choice depends only on the well. For enemies
/// that remember earlier wells, see [`EnemyState`](crate::EnemyState).
#[derive(Clone)]
pub struct Emulator {
    reference: Reference,
    backend: Backend,
    /// The lookup tables, or `None` if the fast algorithm does not support the width.
    tables: Option<Arc<Tables>>,
    rules: Rules,
    geometry: Geometry,
}

impl Emulator {
    /// Creates the fastest emulator that this processor supports.
    pub fn new(geometry: Geometry, rules: Rules) -> Emulator {
        let level = SimdLevel::available().last().unwrap_or(SimdLevel::Portable);
        Emulator::with_level(geometry, rules, level).expect("the level is available")
    }

    /// Creates an emulator with this SIMD level, or returns `None` if the processor does not
    /// support it.
    pub fn with_level(geometry: Geometry, rules: Rules, level: SimdLevel) -> Option<Emulator> {
        Some(Emulator {
            reference: Reference::new(geometry, rules),
            backend: Backend::detect(level)?,
            tables: Tables::new(geometry, rules).map(Arc::new),
            rules,
            geometry,
        })
    }

    /// Returns the geometry of the wells.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Returns the rules of the game.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// Returns the SIMD level in use.
    pub fn level(&self) -> SimdLevel {
        self.backend.level()
    }

    pub(crate) fn tables(&self) -> Option<&Tables> {
        self.tables.as_deref()
    }

    /// Returns the piece that HATETRIS Mild gives. The best position in which the player can lock a
    /// piece is the one that leaves the lowest stack. Mild gives the piece whose best position
    /// leaves the highest stack. Ties go to the first piece in the order S Z O I L J T.
    #[inline]
    pub fn piece(&self, well: &Well) -> Piece {
        let fast = self.tables.as_deref().and_then(|tables| {
            with_backend!(self.backend, piece(tables: &Tables, well: &Well) -> Option<Piece>)
        });
        fast.unwrap_or_else(|| self.reference.piece(well))
    }

    /// Returns the piece that HATETRIS Mild gives. Replaces the contents of `out` with the wells that
    /// this piece can produce.
    #[inline]
    pub fn expand(&self, well: &Well, out: &mut Children) -> Piece {
        let fast = self.tables.as_deref().and_then(|tables| {
            let out = &mut *out;
            with_backend!(
                self.backend,
                expand(tables: &Tables, well: &Well, out: &mut Children) -> Option<Piece>
            )
        });
        if let Some(piece) = fast {
            self.judge_above_bar(well, out);
            return piece;
        }
        let piece = self.reference.piece(well);
        self.children_by_reference(well, piece, out);
        piece
    }

    /// Replaces the contents of `out` with the wells that `piece` can produce from `well`.
    #[inline]
    pub fn children(&self, well: &Well, piece: Piece, out: &mut Children) {
        let fast = self.tables.as_deref().is_some_and(|tables| {
            let out = &mut *out;
            with_backend!(
                self.backend,
                children(tables: &Tables, well: &Well, piece: Piece, out: &mut Children) -> bool
            )
        });
        if fast {
            self.judge_above_bar(well, out);
        } else {
            self.children_by_reference(well, piece, out);
        }
    }

    /// Returns the pieces that can clear lines.
    ///
    /// `lowest` is the index of a row (0 is the bottom row). The caller must know that no piece can reach
    /// a cell below this row. The value 0 is always correct, and a greater value saves time. If `follow`
    /// is given and its `choose` returns a piece, the contents of `follow.children` are replaced with the
    /// distinct wells that result when this piece clears a line.
    #[inline]
    pub fn clears(&self, well: &Well, lowest: usize, mut follow: Option<Follow<'_>>) -> Clears {
        let fast = self
            .tables
            .as_deref()
            .filter(|_| !self.rules.clear_above_bar)
            .and_then(|tables| {
                let follow = follow.as_mut().map(Follow::reborrow);
                with_backend!(
                    self.backend,
                    clears(
                        tables: &Tables, well: &Well, lowest: usize, follow: Option<Follow<'_>>
                    ) -> Option<Clears>
                )
            });
        fast.unwrap_or_else(|| self.clears_by_reference(well, follow))
    }

    /// Returns [`Clears::first`] of the pieces that can clear lines. If it is a piece, replaces the contents of
    /// `children` with the distinct wells that result when this piece clears a line. This takes less time than
    /// [`Emulator::clears`], because it looks only at S in nearly all wells. For `lowest`, see there.
    #[inline]
    pub fn first_clear(
        &self,
        well: &Well,
        lowest: usize,
        children: &mut Children,
    ) -> Option<Piece> {
        let fast = self
            .tables
            .as_deref()
            .filter(|_| !self.rules.clear_above_bar)
            .and_then(|tables| {
                let children = &mut *children;
                with_backend!(
                    self.backend,
                    first_clear(
                        tables: &Tables, well: &Well, lowest: usize, children: &mut Children
                    ) -> Option<Option<Piece>>
                )
            });
        fast.unwrap_or_else(|| {
            let choose = Clears::first;
            self.clears_by_reference(well, Some(Follow { choose, children }))
                .first()
        })
    }

    #[cold]
    fn clears_by_reference(&self, well: &Well, follow: Option<Follow<'_>>) -> Clears {
        let mut clears = Clears::default();
        for piece in Piece::ALL {
            self.reference.for_each_lock(well, piece, |_, lock| {
                clears.pieces |= u8::from(lock.lines > 0) << piece.index();
                clears.several |= u8::from(lock.lines > 1) << piece.index();
            });
        }
        if let Some(follow) = follow
            && let Some(piece) = (follow.choose)(clears)
        {
            follow.children.clear();
            for (well, lines) in self.reference.expand(well, piece).children {
                if lines > 0 {
                    follow.children.push(well, lines);
                }
            }
        }
        clears
    }

    /// Returns the highest rating that the player can reach with each piece, in the order of
    /// [`Piece::ALL`]. The rating of a lock is [`Board::rating`](crate::Board::rating) after the lock.
    /// HATETRIS Mild gives the piece with the lowest of these values.
    pub fn ratings(&self, well: &Well) -> [u8; 7] {
        let fast = self
            .tables
            .as_deref()
            .and_then(|tables| landings::ratings(Portable, tables, well));
        fast.unwrap_or_else(|| Piece::ALL.map(|piece| self.reference.rating(well, piece)))
    }

    pub(crate) fn reference(&self) -> &Reference {
        &self.reference
    }

    /// Returns whether [`Emulator::collect_parents`] supports this well: the well must fit into sixteen
    /// rows even with four restored rows.
    pub(crate) fn handles_parents_of(&self, well: &Well) -> bool {
        !self.rules.clear_above_bar
            || self.geometry.height() + ROWS_ABOVE_BAR <= MAX_HEIGHT
            || well.stack_height() + 4 <= self.geometry.height()
    }

    /// Appends candidate parents of `well` to `out` (see [`crate::Backward`]). Set `worst_piece` if
    /// the enemy gives the piece that is worst for the player. The search then omits some
    /// candidates in which a different piece would be worse.
    pub(crate) fn collect_parents(
        &self,
        back: &backward::Tables,
        well: &Well,
        worst_piece: bool,
        out: &mut Vec<Parent>,
    ) {
        let Some(forward) = self.tables() else { return };
        // A piece that extends above the bar clears lines only if `clear_above_bar` is set.
        let above = if self.rules.clear_above_bar {
            ROWS_ABOVE_BAR
        } else {
            0
        };
        let limit = (self.geometry.height() + above).min(MAX_HEIGHT);
        let search = &Search {
            forward,
            back,
            well,
            limit,
            worst_piece,
        };
        with_backend!(
            self.backend,
            collect(search: &Search<'_>, out: &mut Vec<Parent>) -> ()
        );
    }

    #[cold]
    fn children_by_reference(&self, well: &Well, piece: Piece, out: &mut Children) {
        out.clear();
        let outcome = self.reference.expand(well, piece);
        for (well, lines) in outcome.children {
            out.push(well, lines);
        }
        out.can_die = outcome.can_die;
    }

    /// Removes children in which the game is over. This is necessary only if lines clear above the
    /// bar: under these rules, a game is over only if cells are above the bar after full rows are
    /// removed.
    #[inline(always)]
    fn judge_above_bar(&self, well: &Well, out: &mut Children) {
        let height = self.geometry.height();
        if self.rules.clear_above_bar && well.stack_height() + ROWS_ABOVE_BAR > height {
            let drawn = out.len();
            out.retain(|child| child.rows()[height] == 0);
            out.can_die = out.len() < drawn;
        }
    }
}

impl fmt::Debug for Emulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulator")
            .field("geometry", &self.geometry)
            .field("rules", &self.rules)
            .field("level", &self.level())
            .finish_non_exhaustive()
    }
}
