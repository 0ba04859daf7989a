//! Statistics of game results.

/// Mean, median and extremes of a list of results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Number of results.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Half the width of the mean's 95 % confidence interval (normal approximation), or `None` for a single result, whose
    /// deviation is unknown.
    pub half_width: Option<f64>,
    /// Median. For an even number of results, the mean of the two middle results.
    pub median: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
}

impl Statistics {
    /// Computes the statistics of a list of results. Returns `None` if the list is empty.
    pub fn of(results: impl IntoIterator<Item = f64>) -> Option<Statistics> {
        let mut sorted: Vec<f64> = results.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let count = sorted.len();
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|result| (result - mean).powi(2)).sum();
        let variance = (count > 1).then(|| squares / (count - 1) as f64);
        Some(Statistics {
            count,
            mean,
            half_width: variance.map(|variance| 1.96 * (variance / count as f64).sqrt()),
            median: (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0,
            min,
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Statistics;

    #[test]
    fn statistics_of_small_lists_are_exact() {
        assert_eq!(Statistics::of([]), None);
        let one = Statistics::of([3.0]).unwrap();
        assert_eq!((one.mean, one.median, one.half_width), (3.0, 3.0, None));
        let four = Statistics::of([4.0, 1.0, 2.0, 9.0]).unwrap();
        assert_eq!(
            (four.mean, four.median, four.min, four.max),
            (4.0, 3.0, 1.0, 9.0)
        );
        assert!((four.half_width.unwrap() - 1.96 * (38.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12);
    }
}
