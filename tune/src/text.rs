//! Help texts.

/// Additional help text for `hatebeam tune`.
pub const HELP: &str = "\
The value of a set of weights is the mean number of pieces in the longest games of several beams. Small changes of the
weights can change a single game greatly, so use at least five widths. The folder contains these files:

  journal.jsonl  all measured values; to resume an interrupted search, repeat the command
  weights.toml   the best weights, for `hatebeam run --weights FOLDER/weights.toml`

You can use the same folder again with another method, another seed or more evaluations. Values in the journal are not
measured again. The tuned weights, the start weights, the widths and the quiescence must stay the same. The result does
not depend on the number of threads.

Examples:
  hatebeam tune my-weights
  hatebeam tune my-weights --method simplers --weight holes --weight score=-600..0 --evaluations 200
  hatebeam tune better --start my-weights/weights.toml --widths 2000,2800,4000 --evaluations 1000
  hatebeam run --width 10k --weights my-weights/weights.toml";
