//! Mutated inputs for the short tests of the properties. The fuzz targets do not need this module, because the fuzzer
//! mutates inputs.

/// Maximum length of a damaged input in bytes, unless its seed is longer.
const MAX_BYTES: usize = 4096;

/// A random number generator (SplitMix64) with a seed, which makes tests repeatable.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Damages an input: flips bits, removes or inserts bytes, repeats the end of the input, or truncates it.
fn damage(random: &mut Random, input: &mut Vec<u8>) {
    let most = input.len().max(MAX_BYTES);
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        match random.below(5) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => drop(input.remove(at)),
            2 => input.insert(at, random.next() as u8),
            3 => input.truncate(at),
            _ => input.extend_from_within(at..),
        }
    }
    input.truncate(most);
}

/// Runs `property` on the seeds, on `runs` damaged copies of them, and on as many inputs of random bytes.
pub(crate) fn run(property: fn(&[u8]), seeds: &[Vec<u8>], runs: usize) {
    let mut random = Random(42);
    seeds.iter().for_each(|seed| property(seed));
    for _ in 0..runs {
        let mut input = seeds[random.below(seeds.len())].clone();
        damage(&mut random, &mut input);
        property(&input);
        let noise: Vec<u8> = (0..random.below(64)).map(|_| random.next() as u8).collect();
        property(&noise);
    }
}

/// Returns the seed of a property whose first byte selects, for example, a parser.
#[allow(dead_code)] // some properties have no such byte
pub(crate) fn seed(first: u8, rest: impl AsRef<[u8]>) -> Vec<u8> {
    [&[first], rest.as_ref()].concat()
}
