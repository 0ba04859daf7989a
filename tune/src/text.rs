//! Help texts.

/// Help of `hatebeam tune`.
pub const HELP: &str = "\
The value of weights is the mean number of pieces of the longest games of several beams. Single games depend chaotically on
the weights, so use at least five widths. The folder contains

  journal.jsonl  every value that was measured; the same command resumes an interrupted search
  weights.toml   the best weights, for `hatebeam run --weights FOLDER/weights.toml`

Another method, another seed or more evaluations can follow in the same folder; values in the journal are not measured again.
Weights, widths and quiescence must stay the same. The result does not depend on the number of threads.

Examples:
  hatebeam tune my-weights
  hatebeam tune my-weights --method simplers --weight holes --weight score=-600..0 --evaluations 200
  hatebeam tune better --start my-weights/weights.toml --widths 2000,2800,4000 --evaluations 1000
  hatebeam run --width 10k --weights my-weights/weights.toml";
