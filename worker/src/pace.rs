//! Where a run may end, judged by its last depths.

use hatebeam_store::DepthRecord;
use std::collections::VecDeque;

/// How fast a run goes at present.
#[derive(Clone, Debug)]
pub struct Pace {
    width: u64,
    max_depth: Option<u32>,
    /// Depth, wells and seconds of the last depths.
    recent: VecDeque<(u32, u64, f64)>,
}

/// Where a run may end: of each the least and the most that is likely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Projection {
    /// The last depth.
    pub depths: (u32, u32),
    /// Seconds from now on.
    pub seconds: (f64, f64),
    /// What this is judged by, in words.
    pub judged_by: &'static str,
}

/// Pieces of the games that beams of a thousand to five million wells found, from thinnest to widest: 110 to 283,
/// some twenty more for ten times the width. A game's length is a chaotic function of the width, and weights
/// matter more.
fn usual_depths(width: u64) -> (u32, u32) {
    let decades = (width.max(1) as f64).log10();
    let usual = 85.0 + 23.0 * decades;
    ((usual * 0.7) as u32, (usual * 1.4) as u32)
}

impl Pace {
    /// Depths by which the end is judged.
    pub const DEPTHS: usize = 6;

    /// Of a run of this width, to be stopped at this depth if there is one.
    pub fn new(width: u64, max_depth: Option<u32>) -> Pace {
        Pace {
            width,
            max_depth,
            recent: VecDeque::with_capacity(Pace::DEPTHS),
        }
    }

    /// Takes note of the next depth.
    pub fn add(&mut self, record: &DepthRecord) {
        if self.recent.len() == Pace::DEPTHS {
            self.recent.pop_front();
        }
        let seconds = record.seconds.max(0.0);
        self.recent.push_back((record.depth, record.count, seconds));
    }

    /// Where the run may end; none before enough depths are known.
    pub fn projection(&self) -> Option<Projection> {
        let (&(from, first, _), &(depth, last, _)) = (self.recent.front()?, self.recent.back()?);
        if self.recent.len() < Pace::DEPTHS {
            return None;
        }
        let seconds: f64 = self.recent.iter().map(|(_, _, seconds)| seconds).sum();
        let each = seconds / self.recent.len() as f64;
        let mut pairs = self.recent.iter().zip(self.recent.iter().skip(1));
        let shrinks = last < self.width && pairs.all(|(one, next)| next.1 < one.1);
        let capped = |depths: u32| self.max_depth.map_or(depths, |max| depths.min(max));
        if shrinks {
            let rate = (first as f64 / last.max(1) as f64).ln() / f64::from(depth - from);
            let left = ((last as f64).ln() / rate).ceil().clamp(1.0, 1e6);
            let ends = |left: f64| capped(depth.saturating_add(left.ceil() as u32)).max(depth);
            // What shrinks by the same part each depth takes, all told, half as much.
            let takes = |end: u32| each * f64::from(end - depth) / 2.0;
            let (low, high) = (ends(left / 2.0), ends(left * 2.0));
            return Some(Projection {
                depths: (low, high),
                seconds: (takes(low), takes(high)),
                judged_by: "the wells get fewer from depth to depth",
            });
        }
        let (low, high) = usual_depths(self.width);
        // Nothing tells where a beam that is still full ends, when it has come so far already.
        let (low, high) = (capped(low.max(depth)), capped(high.max(depth + depth / 4)));
        let judged_by = match self.max_depth {
            Some(max) if max <= low => "the depth to stop at",
            _ => "the games that beams of such a width found, two fifths more or less",
        };
        let takes = |end: u32| each * f64::from(end.saturating_sub(depth));
        Some(Projection {
            depths: (low.max(depth), high.max(depth)),
            seconds: (takes(low), takes(high)),
            judged_by,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(width: u64, max_depth: Option<u32>, from: u32, counts: &[u64]) -> Option<Projection> {
        let mut pace = Pace::new(width, max_depth);
        for (n, count) in counts.iter().enumerate() {
            pace.add(&DepthRecord {
                depth: from + n as u32,
                count: *count,
                digest: String::new(),
                best_score: 0,
                median_score: 0,
                worst_score: 0,
                best_game_score: 0,
                best_well: String::new(),
                children: 0,
                seconds: 2.0,
                bytes: 0,
                kept: true,
            });
        }
        pace.projection()
    }

    #[test]
    fn it_says_what_it_can_and_how_sure_it_is() {
        assert_eq!(pace(1000, None, 1, &[1, 17, 100]), None);
        let full = [1_000_000; 8];
        // Beams of a million wells found games of 223 pieces.
        let usual = pace(1_000_000, None, 50, &full).unwrap();
        assert!(usual.depths.0 < 223 && usual.depths.1 > 223, "{usual:?}");
        assert_eq!(usual.seconds.0, 2.0 * f64::from(usual.depths.0 - 57));
        let stopped = pace(1_000_000, Some(100), 50, &full).unwrap();
        assert_eq!(stopped.depths, (100, 100));
        assert_eq!(stopped.seconds, (86.0, 86.0));
        assert_eq!(stopped.judged_by, "the depth to stop at");
        // Longer than usual, and still full.
        let late = pace(1_000_000, None, 900, &full).unwrap();
        assert!(late.depths.0 == 907 && late.depths.1 > 907);
        // By half each depth: 10 more, give or take.
        let fewer = pace(
            100_000,
            None,
            150,
            &[65536, 32768, 16384, 8192, 4096, 2048, 1024],
        )
        .unwrap();
        assert!(fewer.depths.0 <= 166 && fewer.depths.1 >= 166, "{fewer:?}");
        assert!(fewer.depths.0 > 156 && fewer.depths.1 < 180, "{fewer:?}");
        let one = pace(100_000, None, 150, &[6, 5, 4, 3, 2, 1]).unwrap();
        assert!(one.depths.0 >= 155);
    }
}
