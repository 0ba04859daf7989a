//! Statistics of game results.

/// 97.5 % quantiles of Student's t distribution with 1, 2, 3 … degrees of freedom.
const STUDENT_QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// 97.5 % quantile of the normal distribution. With more than 30 degrees of freedom, it is at most 4 % less than
/// Student's quantile.
const NORMAL_QUANTILE: f64 = 1.96;

/// Mean and median of a list of results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Number of results.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Half the width of the mean's 95 % confidence interval, or `None` for a single result, whose deviation is unknown.
    /// The interval assumes normally distributed results. Up to 31 results it uses Student's t distribution, because the
    /// deviation of few results is itself uncertain.
    pub half_width: Option<f64>,
    /// Median. For an even number of results, the mean of the two middle results.
    pub median: f64,
}

impl Statistics {
    /// Computes the statistics of a list of results. Returns `None` if the list is empty.
    pub fn of(results: impl IntoIterator<Item = f64>) -> Option<Statistics> {
        let mut sorted: Vec<f64> = results.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let count = sorted.len();
        if count == 0 {
            return None;
        }
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|result| (result - mean).powi(2)).sum();
        let variance = (count > 1).then(|| squares / (count - 1) as f64);
        Some(Statistics {
            count,
            mean,
            half_width: variance
                .map(|variance| quantile(count - 1) * (variance / count as f64).sqrt()),
            median: (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0,
        })
    }
}

/// Returns the 97.5 % quantile of the distribution of a mean's error, which is measured in estimated standard deviations.
fn quantile(degrees_of_freedom: usize) -> f64 {
    STUDENT_QUANTILES
        .get(degrees_of_freedom - 1)
        .copied()
        .unwrap_or(NORMAL_QUANTILE)
}

#[cfg(test)]
mod tests {
    use super::{Statistics, quantile};

    #[test]
    fn statistics_of_small_lists_are_exact() {
        assert_eq!(Statistics::of([]), None);
        let one = Statistics::of([3.0]).unwrap();
        assert_eq!((one.mean, one.median, one.half_width), (3.0, 3.0, None));
        let four = Statistics::of([4.0, 1.0, 2.0, 9.0]).unwrap();
        assert_eq!((four.mean, four.median), (4.0, 3.0));
        assert!((four.half_width.unwrap() - 3.182 * (38.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn quantile_falls_to_that_of_the_normal_distribution() {
        for degrees_of_freedom in 1..40 {
            assert!(quantile(degrees_of_freedom) >= quantile(degrees_of_freedom + 1));
        }
        for (count, expected) in [
            (2_u32, 12.706),
            (8, 2.365),
            (31, 2.042),
            (32, 1.96),
            (1000, 1.96),
        ] {
            let results = (0..count).map(|number| f64::from(number % 2));
            let statistics = Statistics::of(results).unwrap();
            let (mean, count) = (statistics.mean, f64::from(count));
            let variance = mean * (1.0 - mean) * count / (count - 1.0);
            let half_width = expected * (variance / count).sqrt();
            assert!(
                (statistics.half_width.unwrap() - half_width).abs() < 1e-9,
                "{count} results"
            );
        }
    }
}
