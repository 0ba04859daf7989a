//! Help texts of the commands for dropped pieces.

/// Help text of the command group.
pub const HELP: &str = "\
The field has 10 x 20 cells. An action is a rotation and a column; the piece then falls straight down. A game is lost
when a cell comes to rest above the top row.

Examples:
  hatebeam agents play --agent heuristic --games 1000
  hatebeam agents compare heuristic two-piece --games 10 --max-pieces 5000
  hatebeam agents placements --json < positions.jsonl";

/// Help text of the command that plays games.
pub const PLAY_HELP: &str = "\
The same seed gives the same games with any number of threads. Ctrl-C ends the series after the current games, of which the
results are shown. --csv writes one line per game: player, game, score
(rows cleared), lines, pieces, complete (stopped by --max-pieces). The confidence interval of the mean assumes normally
distributed results; up to 31 games it uses Student's t distribution. The lengths of games are close to exponentially
distributed, so use 100 games or more.

Examples:
  hatebeam agents play --agent heuristic --games 1000
  hatebeam agents play --agent bcts --games 4 --max-pieces 100000 --csv games.csv
  hatebeam agents play --agent beam --previews 3 --height 6
  hatebeam agents play --agent heuristic --pieces small";

/// Help text of the command that compares players.
pub const COMPARE_HELP: &str = "\
All agents play with the same pieces. After the table, each other agent is compared with the first one, game by game.

Examples:
  hatebeam agents compare heuristic two-piece --games 10 --max-pieces 5000
  hatebeam agents compare dellacherie bcts dt-20 --games 100 --max-pieces 10000 --json";

/// Help text of the command that selects weights.
pub const SELECT_HELP: &str = "\
Each round plays the games with the current weights, and the same games without each of the weights. It removes the
weight without which the mean is greatest, unless the 95 % confidence interval of the difference shows that the agent is
worse without it. --json prints one object per round with the name of the weight that it removes, `removed` (null in a
round that removes none), and finally an object with all removed weights and the file. --csv and --svg contain the last
round. Ctrl-C ends the selection: OUT then has the weights of the last complete round. Use many games on a low field: the
more games, the smaller the benefits that are recognized. Afterwards, `train --start OUT --weight NAME ...` tunes the
remaining weights.

Examples:
  hatebeam agents select fewer.toml --agent dt-10 --height 8 --games 1000
  hatebeam agents select fewer.toml --weights my-weights/weights.toml --height 10 --games 400";

/// Help text of the command that lists placements.
pub const PLACEMENTS_HELP: &str = "\
Reads one JSON object per line with `rows` (text of X and _, the last row is the floor), `piece` and `set` (`standard`
or `small`), and prints one object per line with `actions`. Each action is [rotation, column, [features], value]: the
rotation (0 none, 1 clockwise, 2 anticlockwise, 3 half turn), the column, the seven features of Brenman's paper, and
the value with the published weights. The value uses the features of the paper's program, two of which differ from the
paper's definitions. For an invalid line, the command prints an object with the line number and the reason,
{\"line\":3,\"error\":\"...\"}, processes the other lines, and exits with code 1.

Examples:
  echo '{\"rows\":[\"XX________\"],\"piece\":\"T\",\"set\":\"standard\"}' | hatebeam agents placements --json";

/// Help text of the command that tunes weights.
pub const TRAIN_HELP: &str = "\
The value of weights is the mean number of rows cleared in a game, with its 95 % confidence interval. All weights are
measured with the same pieces. The method `brenman`, the genetic algorithm of Brenman's paper, measures the better half of
each generation in further games and uses the mean of all of them. The folder contains

  journal.jsonl  every measured value; run the same command to resume an interrupted search
  weights.toml   the best weights, for `hatebeam agents play --weights FOLDER/weights.toml`

A search in the same folder can continue with another method, another seed or more evaluations, if the games stay the
same. The result does not depend on the number of threads. The value of the best weights is too optimistic, because
the weights were selected in these games: compare them with other weights in games with another seed.

Examples:
  hatebeam agents train my-weights --agent bcts --height 10 --games 50 --evaluations 300
  hatebeam agents train my-weights --agent bcts --height 10 --games 50 --method genetic
  hatebeam agents train my-weights --agent dt-10 --height 10 --weight holes=-10..10 --weight hole_depth
  hatebeam agents compare bcts --weights my-weights/weights.toml --height 10 --seed 2";
