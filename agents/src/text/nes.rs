//! Help texts of the commands for Nintendo Tetris.

/// Help text of the command group.
pub const HELP: &str = "\
Examples:
  hatebeam nes play --search bfs
  hatebeam nes compare bfs branching --games 10
  hatebeam nes placements --json < positions.jsonl
  hatebeam nes pieces --generator article --seed 205 --games 150";

/// Help text of the command that plays games.
pub const PLAY_HELP: &str = "\
A game starts at level 19 and stops when 230 rows have been cleared, or when a piece cannot spawn. `maxout` is the
percentage of games with 999,999 points or more. The highest possible score is 1,543,160. The defaults select the 150
games of the article that published these searches. In these games, `bfs` has a median of 1,066,910, a mean of
1,053,015.73 and a maxout of 81.33 %; `branching` has a median of 1,230,460, a mean of 1,193,441.87 and a maxout of
94.67 %. `learned` is not from the article; its weights were learned with `hatebeam nes learn`.

With --gravity, a piece can step left or right or turn in every other frame, from the first frame on, and falls by one row in
48 (level 0) to 1 (from level 29 on) frames; at level 19 in 2. Searches assume the current level for all pieces.

--csv writes one line per game: player, game, score, lines, pieces, complete (230 rows cleared). --svg writes a plot of
the sorted scores.

Examples:
  hatebeam nes play --search bfs
  hatebeam nes play --search branching --games 10 --widths 3/3/1
  hatebeam nes play --search learned
  hatebeam nes play --search bfs --rows 22 --generator cartridge --csv games.csv
  hatebeam nes compare bfs learned --gravity --rows 20+2";

/// Help text of the command that compares players.
pub const COMPARE_HELP: &str = "\
All searches play with the same pieces. After the table, each other search is compared with the first one, game by game.

Examples:
  hatebeam nes compare bfs branching --games 10
  hatebeam nes compare bfs learned --csv games.csv --svg scores.svg";

/// Help text of the command that lists placements.
pub const PLACEMENTS_HELP: &str = "\
Reads one JSON object per line with `rows` (text of X and _, the last row is the floor), `piece` and `field` (`20`,
`22` or `20+2` rows), and prints one object per line with `placements`. Each placement is [orientation, x, y]: the
number of clockwise turns, and the column and row of the centre. Row 0 is the highest visible row. If `features` is
true, each placement is [orientation, x, y, [features], value], with the 17 features and the value with the published
weights; lower values are better. `gravity` is the level whose gravity applies; without it, pieces do not fall by
themselves. For an invalid line, the command prints an object with the line number and the reason,
{\"line\":3,\"error\":\"...\"}, processes the other lines, and exits with code 1.

Examples:
  echo '{\"rows\":[],\"piece\":\"T\",\"field\":\"20\"}' | hatebeam nes placements --json";

/// Help text of the command that prints pieces.
pub const PIECES_HELP: &str = "\
Prints the pieces of each game as letters on one line.

`article` is the generator of the article that published the searches: two Mersenne Twisters whose state carries over
from each game to the next one. Each of its games has 1,825 pieces. `cartridge` is the generator of the game's
cartridge: a 16-bit shift register that makes one step per frame. A seed from 2 to 65535 is the initial state of the
register (35208 when the console is switched on); any other seed selects one of these states at random.

Examples:
  hatebeam nes pieces --generator article --seed 205 --games 2 --count 30
  hatebeam nes pieces --generator cartridge --seed 35208 --games 1 --frames 37 --count 40";

/// Help text of the command that tunes weights.
pub const TRAIN_HELP: &str = "\
The value of weights is the mean score of a game. All weights are measured with the same pieces. Half the width of each
weight's range is its start value times --span, and at least 1 % of the greatest start value. The folder contains

  journal.jsonl  every measured value; run the same command to resume an interrupted search
  weights.toml   the best weights, for `hatebeam nes play --weights FOLDER/weights.toml`

A search in the same folder can continue with another method, another seed or more evaluations, if the games stay the
same. The result does not depend on the number of threads. The value of the best weights is too optimistic, because
the weights were selected in these games: compare them with other weights in games with another seed.

Examples:
  hatebeam nes train my-weights --games 30 --evaluations 300
  hatebeam nes train my-weights --games 30 --evaluations 600 --method swarm --population 24
  hatebeam nes train my-weights --search branching --widths 2/2/1 --games 16 --seed 7
  hatebeam nes compare bfs --weights my-weights/weights.toml";

/// Help text of the command that learns weights.
pub const LEARN_HELP: &str = "\
The search `learned` estimates the points of the rest of a game from patterns of the board. Learning plays games with
the weights learned so far; after each move it corrects the estimate for the board before the move. The folder contains

  learning.bin  the state of learning; run the same command to resume, or to add games
  patterns.bin  the weights, for `hatebeam nes play --weights FOLDER/patterns.bin`
  lock          empty; prevents two processes from using the folder at the same time

The first two are written every 500 games. The result depends only on the seed and the numbers of games. The defaults give the
weights of the program, in about nine minutes of one core.

Examples:
  hatebeam nes learn my-patterns
  hatebeam nes compare learned --weights my-patterns/patterns.bin --seed 7 --games 50";
