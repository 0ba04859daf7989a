//! Help of the commands for dropped pieces.

/// Help of the group of commands.
pub const HELP: &str = "\
The field has 10 x 20 cells. An action is a rotation and a column; the piece then falls straight down. A game is lost when
a cell comes to rest above the top row.

Examples:
  hatebeam agents play --agent heuristic --games 1000
  hatebeam agents compare heuristic two-piece --games 10 --max-pieces 5000
  hatebeam agents placements --json < positions.jsonl";

/// Help of the command that plays games.
pub const PLAY_HELP: &str = "\
The games of a seed do not depend on the number of threads. --csv has one line per game: player, game, score (rows
cleared), lines, pieces, complete (stopped by --max-pieces). The interval of the mean is a normal approximation; the
lengths of games are close to exponentially distributed, so use 100 games or more.

Examples:
  hatebeam agents play --agent heuristic --games 1000
  hatebeam agents play --agent bcts --games 4 --max-pieces 100000 --csv games.csv
  hatebeam agents play --agent heuristic --pieces small";

/// Help of the command that compares players.
pub const COMPARE_HELP: &str = "\
Every agent plays the same pieces. After the table, each agent is compared with the first one, game by game.

Examples:
  hatebeam agents compare heuristic two-piece --games 10 --max-pieces 5000
  hatebeam agents compare dellacherie bcts dt-20 --games 100 --max-pieces 10000 --json";

/// Help of the command that lists placements.
pub const PLACEMENTS_HELP: &str = "\
Reads one JSON object per line with `rows` (text of X and _, the last row is the floor), `piece` and `set` (`standard` or
`small`), and prints one object per line with `actions`. Each action is [rotation, column, [features], value]: rotation 0
none, 1 clockwise, 2 anticlockwise, 3 half turn; the seven features of Brenman's paper; and the value with the published
weights, whose features differ from the paper's in two slips of its program. For an invalid line, the command prints an
object with the line number and the reason, {\"line\":3,\"error\":\"...\"}, processes the other lines, and exits with code 1.

Examples:
  echo '{\"rows\":[\"XX________\"],\"piece\":\"T\",\"set\":\"standard\"}' | hatebeam agents placements --json";

/// Help of the command that tunes weights.
pub const TRAIN_HELP: &str = "\
The value of weights is the mean number of rows cleared of the games; all weights play the same pieces. The folder contains

  journal.jsonl  every value that was measured; the same command resumes an interrupted search
  weights.toml   the best weights, for `hatebeam agents play --weights FOLDER/weights.toml`

Another method, another seed or more evaluations can follow in the same folder, if the games stay the same. The result does not
depend on the number of threads. Weights that are the best of many on the same games are overrated by them: compare them with
others on games with another seed.

Examples:
  hatebeam agents train my-weights --agent bcts --height 10 --games 50 --evaluations 300
  hatebeam agents train my-weights --agent bcts --height 10 --games 50 --evaluations 600 --method genetic
  hatebeam agents compare bcts --weights my-weights/weights.toml --height 10 --seed 2";
