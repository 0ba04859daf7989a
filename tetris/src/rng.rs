//! Random number generators: xoshiro256++ for new games, and the Mersenne Twister, with which a published search for
//! Nintendo Tetris generated the pieces of its games.

/// A small, fast generator (xoshiro256++). The same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Rng {
        let mut mixer = seed;
        Rng {
            state: std::array::from_fn(|_| split_mix(&mut mixer)),
        }
    }

    /// Creates the generator for stream `number` of a seed. Games with separate streams give the same results in any
    /// order and on any number of threads.
    pub fn stream(seed: u64, number: u64) -> Rng {
        let mut mixer = seed;
        let first = split_mix(&mut mixer);
        Rng::new(first ^ number.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// Returns 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a uniformly distributed number below `bound`, without bias.
    ///
    /// # Panics
    /// Panics if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "bound must be positive");
        let bound = bound as u64;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            // Rejecting products whose low half is below 2^64 mod `bound` makes the result uniform.
            if product as u64 >= bound.wrapping_neg() % bound {
                return (product >> 64) as usize;
            }
        }
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The Mersenne Twister MT19937 with 32-bit output.
#[derive(Clone, Debug)]
pub struct Mt19937 {
    state: Box<[u32; 624]>,
    next: usize,
}

impl Mt19937 {
    /// Creates a generator from a seed.
    pub fn new(seed: u32) -> Mt19937 {
        let mut state = Box::new([0u32; 624]);
        state[0] = seed;
        for i in 1..624 {
            let previous = state[i - 1] ^ (state[i - 1] >> 30);
            state[i] = previous.wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Mt19937 { state, next: 624 }
    }

    /// Returns 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.next == 624 {
            self.refill();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// Returns a number below `bound`, computed with the method of Boost's `uniform_int`. `bound` must be at least 2.
    /// The method divides the range of 32-bit numbers into `bound` equal parts, and draws again if a number is beyond
    /// the last part.
    pub fn boost_below(&mut self, bound: u32) -> u32 {
        let part = (1u64 << 32) / u64::from(bound);
        loop {
            let result = u64::from(self.next_u32()) / part;
            if result < u64::from(bound) {
                return result as u32;
            }
        }
    }

    fn refill(&mut self) {
        for i in 0..624 {
            let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % 624] & 0x7fff_ffff);
            let twist = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + 397) % 624] ^ (y >> 1) ^ twist;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mersenne_twister_matches_cpp_standard() {
        // The C++ standard specifies the 10,000th number for the default seed.
        let mut generator = Mt19937::new(5489);
        let last = (0..10_000).map(|_| generator.next_u32()).last();
        assert_eq!(last, Some(4_123_659_995));
    }

    #[test]
    fn below_is_uniform() {
        let mut rng = Rng::new(1);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[rng.below(7)] += 1;
        }
        assert!(
            counts.iter().all(|count| count.abs_diff(10_000) < 500),
            "{counts:?}"
        );
    }
}
