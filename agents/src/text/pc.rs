//! Help texts of the commands for perfect clears.

/// Help text of the command group.
pub const HELP: &str = "\
A perfect clear clears all rows of a field and leaves it empty. Pieces move as in guideline Tetris, but without gravity.

Examples:
  hatebeam pc solve SOLTZJIZLSI
  hatebeam pc chance --seen IJLOSTZ
  hatebeam pc play --games 20
  hatebeam pc follow --json < game.jsonl
  hatebeam pc table srs.table
  hatebeam pc path TJZSLI --field XXXX______/XXXX_____X/XXXX_____X/XXXXX____X
  hatebeam pc placements --json < positions.jsonl";

/// Help text of the command that solves a queue.
pub const SOLVE_HELP: &str = "\
QUEUE lists the current piece and the pieces after it. With --held, it begins with the held piece. An empty field of
four rows needs ten pieces; with hold, the search can also use an eleventh. Prints the filled field with the letter of the
piece in each cell, the moves with their keys, and a URL that shows the moves in the Fumen editor. The exit code is 1
if the queue has no perfect clear.

Keys: left, right, down (one row), soft-drop (until the piece lands), cw, ccw, 180 (turns), hard-drop, hold.

With --json, prints one object with `picture` (rows), `moves` (`piece`, `cells` as column + 10 x row, `hold`, `keys`,
`lines`) and `fumen`.

Examples:
  hatebeam pc solve SOLTZJIZLSI
  hatebeam pc solve IO --lines 3 --field XXXX__XXXX/XXXX__XXXX/____XXXXXX
  hatebeam pc solve SOLTZJIZLSI --kicks srsplus --json";

/// Help text of the command that builds a table.
pub const TABLE_HELP: &str = "\
Writes a table of all boards that can be reached from the empty field and can be cleared, and prints the number of
boards after each number of pieces. Four rows take a few minutes and 1 GB of memory. Other commands for perfect clears
are faster if --table names this file.

Examples:
  hatebeam pc table srs.table
  hatebeam pc table two.table --lines 2 --hard-drop";

/// Help text of the command that finds several perfect clears.
pub const PATH_HELP: &str = "\
Prints the perfect clears of a queue. If several perfect clears have the same filled field, prints only one of them.
With --json, prints one line per perfect clear, in the format of `hatebeam pc solve --json`. The exit code is 1 if the
queue has no perfect clear.

Examples:
  hatebeam pc path TJZSLI --field XXXX______/XXXX_____X/XXXX_____X/XXXXX____X
  hatebeam pc path SOLTZJIZLSI --limit 3";

/// Help text of the command that lists placements.
pub const PLACEMENTS_HELP: &str = "\
Reads one JSON object per line with `rows` (strings of X and _, from the top row to the lowest row), `piece`, `kicks`
(nokick, srs, srsplus, srs+180j, srs+180t, or hard for SRS with hard drops only; srs+180j and srs+180t have half turns),
`drop` (soft or hard, default soft) and `lines`. Prints one object per line with `placements`: the four cells of each
reachable placement, as column + 10 x row, where row 0 is the lowest row. With `lines`, all cells of a piece must be
in the lowest `lines` rows. For an invalid line, the command prints an object with the line number and the reason,
{\"line\":3,\"error\":\"...\"}, processes the other lines, and exits with code 1.

Examples:
  echo '{\"rows\":[],\"piece\":\"T\",\"kicks\":\"srs\",\"lines\":4}' | hatebeam pc placements --json";

/// Help text of the command that computes chances.
pub const CHANCE_HELP: &str = "\
The clairvoyant chance of a first move is the probability that a perfect clear beginning with this move exists. The
adaptive chance is the probability of success for a player who sees one more piece after each move, and who always
chooses the move with the best chance for the pieces seen so far.

Prints the best move as a picture, and all moves, best first. Cells are numbered column + 10 x row. At most six pieces
can be unknown. --best prints one move with the best adaptive chance, which is much faster if a move is certain to
succeed.

Without --seen, reads one JSON object per line with the following keys: `rows` (strings of X and _, from the top row
to the lowest row), `lines` (the number of rows to clear, default 4), `seen` (the known pieces: the held piece if there is
one, the current piece, and the next pieces), `left_in_bag` (the pieces of the current bag that follow the seen pieces,
or an empty string if a new bag follows; without this key, the first seen piece is the first piece of its bag),
`pieces_in_all` (default: one more than the field needs), `kicks` (default srs) and `drop` (soft or hard, default
soft). Prints one object per line with `best_adaptive`, `best_clairvoyant` and `moves`, best first. Each move has
`piece`, `cells`, `clairvoyant` and `adaptive`. With `\"best\":true`, prints an object with `best_adaptive`, `piece`
and `cells`. For an invalid line, the command prints an object with the line number and the reason,
{\"line\":3,\"error\":\"...\"}, processes the other lines, and exits with code 1.

Examples:
  hatebeam pc chance --seen IJLOSTZ
  hatebeam pc chance --seen OISZLSI --left JOT --best
  hatebeam pc chance --seen TI --left JLOSZ --field XXXXX____X/XXXXXX___X/XXXXXXX__X/XXXXXX___X
  echo '{\"rows\":[],\"seen\":\"IJLOSTZ\",\"left_in_bag\":\"\"}' | hatebeam pc chance --json";

/// Help text of the command that plays games.
pub const PLAY_HELP: &str = "\
Plays games with pieces from bags of seven. Every move has the best adaptive chance of the next perfect clear for the
pieces that the player sees: the held piece, the current piece and the previews. The hold slot is empty at first. A game ends
after --clears perfect clears, or when the next perfect clear is impossible. Prints the mean number of perfect clears in a
row with its 95 % confidence interval, and the share of games with --clears perfect clears. Games with the same number have
the same pieces for every number of threads. A table makes the games about twice as fast.

Examples:
  hatebeam pc play --games 20 --table srs.table
  hatebeam pc play --games 100 --seed 7 --previews 6 --csv games.csv --json";

/// Help text of the command that follows a game.
pub const FOLLOW_HELP: &str = "\
Reads the moves of a game, one JSON object per line, and prints one object per line. The first line starts the game; it has
the keys of `hatebeam pc chance --json`: `seen`, and optionally `rows`, `lines`, `left_in_bag`, `kicks`, `drop` and `best`.
Another line with `seen` starts another game. Every other line has `piece` and `cells` (column + 10 x row) of a placement, or
`reveal` (the pieces that the player sees now), or both. After a perfect clear, the game continues with an empty field of
`lines` rows, or of four rows if `lines` is odd.

Prints `rows`, `lines`, `seen`, `left_in_bag`, `clears` and `placed`, and the keys of `hatebeam pc chance --json`:
`best_adaptive`, `best_clairvoyant` and `moves`. `moves` has only the moves after which a perfect clear is still possible;
`impossible` counts the others. If all pieces are known, `solutions` has the pictures of at most ten perfect clears. If more
than six pieces are unknown, `missing` is the number of pieces to reveal. With `\"best\":true` in the first line, prints only
`best_adaptive`, and `piece` and `cells` of the best move. For an invalid line, the command prints an object with the line
number and the reason, {\"line\":3,\"error\":\"...\"}, ignores the line, and exits with code 1 at the end.

Examples:
  printf '%s\\n' '{\"seen\":\"OTISJZL\"}' '{\"piece\":\"O\",\"cells\":[0,1,10,11],\"reveal\":\"T\"}' |
    hatebeam pc follow --json";
