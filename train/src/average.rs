//! The mean of the networks of several generations. The mean is stronger than most of these networks. A generation is
//! one round of training: it runs beam searches and then trains the network on their wells.

use crate::model::{LANES, ROWS};
use crate::recipe::Publish;
use hatebeam_search::NetworkWeights;

/// Sum of the weights of all networks added so far.
#[derive(Clone, PartialEq)]
pub(crate) struct Average {
    /// Element-wise sums: first the biases, then the output weights, then the rows.
    pub(crate) sums: Vec<i32>,
}

impl Publish {
    /// Returns the number of networks in the mean after `generation`.
    fn count(&self, generation: u32) -> u32 {
        match generation.checked_sub(self.from) {
            Some(later) => later / self.every + 1,
            None => 0,
        }
    }

    fn includes(&self, generation: u32) -> bool {
        self.count(generation) > self.count(generation - 1)
    }
}

impl Average {
    pub(crate) fn new() -> Average {
        Average {
            sums: vec![0; ROWS * LANES],
        }
    }

    /// Adds the network of `generation` if `publish` includes that generation.
    pub(crate) fn add(&mut self, generation: u32, publish: &Publish, network: &NetworkWeights) {
        if !publish.includes(generation) {
            return;
        }
        let all = network
            .bias
            .iter()
            .chain(&network.output)
            .chain(&network.rows);
        for (sum, &weight) in self.sums.iter_mut().zip(all) {
            *sum = sum.saturating_add(i32::from(weight));
        }
    }

    /// Returns the mean after `generation`, or a copy of `player`, the network that scores wells in beams, if no network
    /// has been added yet.
    pub(crate) fn network(
        &self,
        generation: u32,
        publish: &Publish,
        player: &NetworkWeights,
    ) -> NetworkWeights {
        let count = i64::from(publish.count(generation));
        if count == 0 {
            return player.clone();
        }
        // Round to the nearest integer. Halves round up. Only the sums in a forged checkpoint have a mean out of range.
        let limit = i64::from(i16::MAX);
        let mean = |sum: &i32| {
            let mean = (2 * i64::from(*sum) + count).div_euclid(2 * count);
            mean.clamp(-limit, limit) as i16
        };
        let mut weights = self.sums.iter().map(mean);
        NetworkWeights {
            lanes: LANES,
            bias: weights.by_ref().take(LANES).collect(),
            output: weights.by_ref().take(LANES).collect(),
            rows: weights.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a network whose weights are all equal.
    fn constant(weight: i16) -> NetworkWeights {
        NetworkWeights {
            lanes: LANES,
            bias: vec![weight; LANES],
            output: vec![weight; LANES],
            rows: vec![weight; (ROWS - 2) * LANES],
        }
    }

    #[test]
    fn mean_includes_every_second_generation() {
        let publish = Publish { from: 2, every: 2 };
        let mut average = Average::new();
        let mut means = Vec::new();
        for (generation, weight) in (1..).zip([5, 10, 100, -21, 100, -30]) {
            average.add(generation, &publish, &constant(weight));
            let mean = average.network(generation, &publish, &constant(weight));
            means.push(mean.rows[7]);
        }
        // The fourth mean is (10 - 21) / 2 = -5.5, which rounds up to -5.
        assert_eq!(means, [5, 10, 10, -5, -5, -14]);
    }

    #[test]
    fn forged_sums_give_the_nearest_weights() {
        let publish = Publish { from: 1, every: 1 };
        let mut average = Average::new();
        average.sums[..4].copy_from_slice(&[i32::MAX, i32::MIN, 40_000, -65_536]);
        let mut player = average.network(1, &publish, &constant(0));
        assert_eq!(player.bias[..4], [32_767, -32_767, 32_767, -32_767]);
        player.bias[1] = -1;
        average.add(1, &publish, &player);
        assert_eq!(average.sums[..2], [i32::MAX, i32::MIN]);
    }
}
