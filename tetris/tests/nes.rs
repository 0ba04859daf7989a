//! Tests of Nintendo Tetris. They compare it with test vectors and, on random boards, with a slow search that moves
//! pieces cell by cell.

#![allow(clippy::unwrap_used)]

mod common;

use common::{list, numbers, random_rows, rows, vectors};
use hatebeam_tetris::nes::{
    ARTICLE_GAME_LENGTH, ArticleSets, BestPlacements, Board, CARTRIDGE_ORDER, Cartridge, FEATURES,
    Features, MAXOUT, Placement, Placements, Rows, Score, Transitions, Valued, WEIGHTS_BFS,
    Weights, first_transition, frames_per_row, level_at, orientations, points, shape,
};
use hatebeam_tetris::{Piece, Rng};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

#[test]
fn placements_match_test_vectors() {
    let vectors = vectors("nes_placements");
    let mut finder = Placements::new();
    let mut lists = 0;
    for board in list(&vectors["boards"]) {
        for (letter, by_rows) in board["pieces"].as_object().unwrap() {
            let piece: Piece = letter.parse().unwrap();
            for (key, rule) in [
                ("20", Rows::Twenty),
                ("22", Rows::TwentyTwo),
                ("nes", Rows::TwentyPlusTwo),
            ] {
                let expected = match by_rows[key].as_str() {
                    Some("as 20") => &by_rows["20"],
                    _ => &by_rows[key],
                };
                let expected: BTreeSet<Vec<i64>> = list(expected).iter().map(numbers).collect();
                let board = Board::parse(rule, &rows(&board["rows"])).unwrap();
                let found: BTreeSet<Vec<i64>> = finder
                    .find(&board, piece)
                    .iter()
                    .map(|&placement| with_cells(piece, placement))
                    .collect();
                assert_eq!(found, expected, "{piece} {rule}\n{board}");
                lists += 1;
            }
        }
    }
    assert_eq!(lists, 315);
}

fn with_cells(piece: Piece, placement: Placement) -> Vec<i64> {
    let mut cells: Vec<i64> = shape(piece, placement.orientation)
        .iter()
        .map(|&(dx, dy)| i64::from(placement.y + dy) * 10 + i64::from(placement.x + dx))
        .collect();
    cells.sort_unstable();
    let mut all = vec![
        i64::from(placement.orientation),
        i64::from(placement.x),
        i64::from(placement.y),
    ];
    all.append(&mut cells);
    all
}

#[test]
fn features_and_values_match_test_vectors() {
    let vectors = vectors("nes_features");
    let weights = list(&vectors["weights_bfs"]).iter();
    assert!(
        weights
            .map(|weight| weight.as_f64().unwrap())
            .eq(WEIGHTS_BFS)
    );
    let mut moves = 0;
    for entry in list(&vectors["boards"]) {
        let board = Board::parse(Rows::Twenty, &rows(&entry["rows"])).unwrap();
        let of_board = Features::of_board(&board).0;
        let expected = numbers(&entry["board_features_2_to_16"]);
        assert_eq!(
            of_board[2..]
                .iter()
                .map(|&f| i64::from(f))
                .collect::<Vec<_>>(),
            expected,
            "{board}"
        );
        for entry in list(&entry["moves"]) {
            let piece: Piece = entry["piece"].as_str().unwrap().parse().unwrap();
            let state = numbers(&entry["state"]);
            let placement = Placement {
                orientation: state[0] as u8,
                x: state[1] as i8,
                y: state[2] as i8,
            };
            let locked = board.lock(piece, placement);
            assert_eq!(u64::from(locked.lines), entry["lines"].as_u64().unwrap());
            assert_eq!(
                locked.board,
                Board::parse(Rows::Twenty, &rows(&entry["after"])).unwrap()
            );
            let features = Features::of(&board, piece, placement);
            assert_eq!(
                features.0.map(i64::from).to_vec(),
                numbers(&entry["features"])
            );
            assert_eq!(
                features.value(&WEIGHTS_BFS),
                entry["value"].as_f64().unwrap()
            );
            moves += 1;
        }
    }
    assert_eq!(moves, 14 * 21);
}

/// State of the cartridge's register when the console is switched on.
const POWER_ON: u16 = 0x8988;
/// Number of steps after which the register returns to its state at power on.
const PERIOD: u32 = 32_767;

#[test]
fn cartridge_generator_matches_test_vectors() {
    let vectors = vectors("nes_generator");
    let text = |key: &str| Piece::parse_sequence(vectors[key].as_str().unwrap()).unwrap();
    assert_eq!(text("order"), CARTRIDGE_ORDER);
    let mut generator = Cartridge::new(POWER_ON, 0, Piece::T);
    let registers: Vec<i64> = (0..16)
        .map(|_| {
            generator.step();
            i64::from(generator.register())
        })
        .collect();
    assert_eq!(registers, numbers(&vectors["lfsr_after_0x8988"]));
    let mut rng = Rng::new(0);
    let mut draw = |count: usize, frames: u32| {
        Cartridge::new(POWER_ON, 0, Piece::T).game(count, Some(frames), &mut rng)
    };
    assert_eq!(draw(40, 37), text("every_37_frames"));
    assert_eq!(draw(60, 0), text("no_frames"));
    for last in &CARTRIDGE_ORDER {
        for next in &CARTRIDGE_ORDER {
            let expected = &vectors["transition_64ths"][last.to_string()][next.to_string()];
            let probability = Transitions::CARTRIDGE.probability(*last, *next);
            assert_eq!(Some(64.0 * probability), expected.as_f64());
        }
    }
}

#[test]
fn register_returns_to_first_state_after_period() {
    let mut generator = Cartridge::new(POWER_ON, 0, Piece::T);
    let first = (1..).find(|_| {
        generator.step();
        generator.register() == POWER_ON
    });
    assert_eq!(first, Some(PERIOD));
}

#[test]
fn transition_table_matches_cartridge_generator() {
    // Draw once with each combination of a state of the register and a number of pieces modulo 8. The table assumes
    // that all combinations are equally likely.
    for last in &CARTRIDGE_ORDER {
        let mut counts: HashMap<Piece, u32> = HashMap::new();
        for register in 0..=u16::MAX {
            for count in 0..8 {
                *counts
                    .entry(Cartridge::new(register, count, *last).draw())
                    .or_default() += 1;
            }
        }
        for next in &CARTRIDGE_ORDER {
            let count = counts.get(next).copied().unwrap_or(0);
            let probability = Transitions::CARTRIDGE.probability(*last, *next);
            assert_eq!(
                f64::from(count),
                probability * 8.0 * 65_536.0,
                "{last}{next}"
            );
        }
    }
}

#[test]
fn published_piece_sets_match_test_vectors() {
    let vectors = vectors("nes_generator");
    let mut sets = ArticleSets::new(205);
    let (first, second) = (sets.game(), sets.game());
    assert_eq!(first.len(), ARTICLE_GAME_LENGTH);
    for (game, key) in [(first, "seed_205_game_0"), (second, "seed_205_game_1")] {
        let expected = Piece::parse_sequence(vectors[key].as_str().unwrap()).unwrap();
        assert_eq!(game[..expected.len()], expected);
    }
    let sum: f64 = Piece::ALL
        .iter()
        .map(|&next| Transitions::ARTICLE.probability(Piece::S, next))
        .sum();
    assert!((sum - 1.0).abs() < 1e-12);
}

#[test]
fn scores_and_levels_match_test_vectors() {
    let vectors = vectors("nes_scoring");
    for (lines, base) in numbers(&vectors["points_times_level_plus_1"])
        .into_iter()
        .enumerate()
    {
        assert_eq!(i64::from(points(lines as u8, 0)), base);
    }
    for (start, lines) in vectors["first_transition"].as_object().unwrap() {
        assert_eq!(
            u64::from(first_transition(start.parse().unwrap())),
            lines.as_u64().unwrap()
        );
    }
    for entry in list(&vectors["level_at"]) {
        let entry = numbers(entry);
        assert_eq!(
            i64::from(level_at(entry[0] as u32, entry[1] as u32)),
            entry[2],
            "{entry:?}"
        );
    }
    let mut score = Score::new(19);
    for entry in list(&vectors["tetris_by_tetris_from_19"]) {
        score.add(4);
        let found = [score.lines, score.level, score.points].map(i64::from);
        assert_eq!(found.to_vec(), numbers(entry));
    }
    assert_eq!(score.points, 1_542_000);
    assert_eq!(u64::from(MAXOUT), vectors["maxout"].as_u64().unwrap());
}

/// Returns the highest possible score of a game that stops when at least 230 rows have been cleared. Computes the score
/// by dynamic programming over the number of rows cleared.
fn best_score(start_level: u32) -> u32 {
    let mut best = vec![0; 235];
    for lines in (0..230usize).rev() {
        best[lines] = (1..=4u8)
            .map(|clear| {
                let after = lines + usize::from(clear);
                points(clear, level_at(start_level, after as u32)) + best[after]
            })
            .max()
            .unwrap();
    }
    best[0]
}

#[test]
fn highest_possible_scores_from_levels_18_and_19_are_correct() {
    assert_eq!(best_score(19), 1_543_160);
    assert_eq!(best_score(18), 1_504_760);
}

#[test]
fn frames_per_row_depend_on_level() {
    let table = [0, 1, 8, 9, 10, 12, 13, 15, 16, 18, 19, 28, 29, 40].map(frames_per_row);
    assert_eq!(table, [48, 43, 8, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1]);
}

fn random_board(rule: Rows, rng: &mut Rng) -> Board {
    let dense = 1 + rng.below(9);
    let most = if rng.below(4) == 0 { rule.kept() } else { 17 };
    let count = rng.below(most + 1);
    Board::parse(rule, &random_rows(count, 10, dense, rng)).unwrap()
}

/// Spawn position of every piece.
const SPAWN: Placement = Placement {
    orientation: 0,
    x: 5,
    y: 0,
};

/// Returns whether all cells of a piece are inside the board and empty.
fn fits(board: &Board, piece: Piece, p: Placement) -> bool {
    let above = board.rule_set().above() as i8;
    shape(piece, p.orientation).iter().all(|&(dx, dy)| {
        let (x, y) = (p.x + dx, p.y + dy);
        (0..10).contains(&x) && (-above..20).contains(&y) && !board.is_filled(x as usize, y)
    })
}

/// Returns the positions to the left and to the right, and after a turn in each direction.
fn key_moves(piece: Piece, p: Placement) -> [Placement; 4] {
    let turns = orientations(piece).len() as u8;
    let turned = |by| Placement {
        orientation: (p.orientation + by) % turns,
        ..p
    };
    [
        Placement { x: p.x - 1, ..p },
        Placement { x: p.x + 1, ..p },
        turned(1),
        turned(turns - 1),
    ]
}

/// Follows a falling piece frame by frame with every choice of keys. Checks each move cell by cell.
fn slow_falls(board: &Board, piece: Piece, level: u32) -> BTreeSet<Placement> {
    let mut at = BTreeSet::from([SPAWN]);
    at.retain(|&p| fits(board, piece, p));
    let mut rests = BTreeSet::new();
    for frame in 0.. {
        if at.is_empty() {
            break;
        }
        if frame % 2 == 0 {
            let moves = at.iter().flat_map(|&p| key_moves(piece, p));
            let moves: Vec<Placement> = moves.filter(|&p| fits(board, piece, p)).collect();
            at.extend(moves);
        }
        if frame % frames_per_row(level) + 1 == frames_per_row(level) {
            let (fallen, locked): (BTreeSet<_>, BTreeSet<_>) = at
                .into_iter()
                .map(|p| Placement { y: p.y + 1, ..p })
                .partition(|&p| fits(board, piece, p));
            rests.extend(locked.into_iter().map(|p| Placement { y: p.y - 1, ..p }));
            at = fallen;
        }
    }
    rests
}

/// Finds placements with a search over single positions that checks each move cell by cell.
fn slow_placements(board: &Board, piece: Piece) -> BTreeSet<Placement> {
    let fits = |p: Placement| fits(board, piece, p);
    let mut open: Vec<Placement> = Some(SPAWN).filter(|&p| fits(p)).into_iter().collect();
    let mut seen: BTreeSet<Placement> = open.iter().copied().collect();
    let mut rests = BTreeSet::new();
    while let Some(p) = open.pop() {
        let down = Placement { y: p.y + 1, ..p };
        let moves = key_moves(piece, p).into_iter().chain([down]);
        for next in moves {
            if fits(next) && seen.insert(next) {
                open.push(next);
            }
        }
        if !fits(down) {
            rests.insert(p);
        }
    }
    rests
}

/// Computes the features cell by cell from their definitions.
fn slow_features(board: &Board, lines: u8, lock_height: i32) -> [i32; 17] {
    let rows = board.rule_set().kept() as i32;
    let first = 20 - rows; // the highest row in which locked cells stay
    let filled = |x: i32, row: i32| board.is_filled(x as usize, (row + first) as i8);
    let top: Vec<i32> = (0..10)
        .map(|x| (0..rows).find(|&r| filled(x, r)).unwrap_or(rows))
        .collect();
    let height: Vec<i32> = top.iter().map(|top| rows - top).collect();
    let pile = *height.iter().max().unwrap();
    let mut f = [0; 17];
    (f[0], f[1], f[7]) = (i32::from(lines), lock_height, rows);
    for x in 0..10usize {
        let near = |x: i32| {
            if (0..10).contains(&x) {
                height[x as usize]
            } else {
                height[x.clamp(0, 9) as usize] + 30
            }
        };
        let depth = (near(x as i32 - 1).min(near(x as i32 + 1)) - height[x]).max(0);
        f[2] += depth;
        f[3] += i32::from(depth >= 3);
        for row in 1..rows {
            if !filled(x as i32, row) && filled(x as i32, row - 1) {
                f[4] += 1;
                f[5] += row + 1;
                f[6] += row - top[x];
                f[7] = f[7].min(row - top[x]);
                f[8] = f[8].max(row - top[x]);
            }
            f[9] += i32::from(row > top[x] && filled(x as i32, row) != filled(x as i32, row - 1));
        }
        f[11] += height[x];
        f[14] += (0..rows).filter(|&row| filled(x as i32, row)).count() as i32;
        f[15] += (0..rows)
            .filter(|&row| filled(x as i32, row))
            .map(|row| rows - row)
            .sum::<i32>();
        f[16] += if x > 0 {
            (height[x] - height[x - 1]).abs()
        } else {
            0
        };
    }
    for row in rows - pile..rows {
        let cell = |x: i32| !(0..10).contains(&x) || filled(x, row);
        f[10] += (0..=10).filter(|&x| cell(x) != cell(x - 1)).count() as i32;
    }
    f[12] = pile;
    f[13] = pile - height.iter().min().unwrap();
    f
}

/// Other published weights, whose training used only the best third of the games.
static WEIGHTS_BFS33: LazyLock<Weights> = LazyLock::new(|| {
    let weights = &vectors("nes_features")["weights_bfs33"];
    std::array::from_fn(|at| weights[at].as_f64().unwrap())
});

/// Returns weights of several kinds: published, random of any size, and some that cannot be estimated.
fn varied_weights(rng: &mut Rng) -> [Weights; 3] {
    let scale = 10f64.powi(rng.below(9) as i32 - 4);
    let random = WEIGHTS_BFS.map(|_| scale * (rng.below(2001) as f64 - 1000.0));
    let unusual = match rng.below(4) {
        0 => [0.0; FEATURES],
        1 => [1e-310; FEATURES],
        2 => [1e200; FEATURES],
        _ => *WEIGHTS_BFS33,
    };
    let mut all = [WEIGHTS_BFS, random, unusual];
    all.rotate_left(rng.below(3));
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn placements_equal_placements_of_slow_search(seed: u64) {
        let mut rng = Rng::new(seed);
        let mut finder = Placements::new();
        for rule in Rows::ALL {
            let board = random_board(rule, &mut rng);
            for piece in Piece::ALL {
                let found: BTreeSet<Placement> = finder.find(&board, piece).iter().copied().collect();
                prop_assert_eq!(&found, &slow_placements(&board, piece), "{} {}\n{}", piece, rule, board);
                prop_assert_eq!(board.spawns(piece), !found.is_empty());
            }
        }
    }

    #[test]
    fn placements_with_gravity_equal_those_of_slow_simulation(seed: u64) {
        let mut rng = Rng::new(seed);
        let mut finder = Placements::new();
        for rule in Rows::ALL {
            let board = random_board(rule, &mut rng);
            for level in [0, 9, 12, 15, 18, 19, 29] {
                let falling = board.with_gravity(level);
                for piece in Piece::ALL {
                    let found: BTreeSet<Placement> = finder.find(&falling, piece).iter().copied().collect();
                    prop_assert_eq!(&found, &slow_falls(&board, piece, level), "{} {} {}\n{}", piece, rule, level, board);
                    let all = slow_placements(&board, piece);
                    prop_assert!(found.is_subset(&all));
                    prop_assert_eq!(found.is_empty(), all.is_empty());
                }
            }
        }
    }

    #[test]
    fn best_placements_are_those_of_exhaustive_search(seed: u64) {
        let mut rng = Rng::new(seed);
        let mut finder = Placements::new();
        let mut found = Vec::new();
        for (rule, weights) in Rows::ALL.into_iter().zip(varied_weights(&mut rng)) {
            let board = random_board(rule, &mut rng);
            let mut best = BestPlacements::new(rule, weights);
            let of_each_piece = best.of_each_piece(&board);
            let least_values = best.least_values(&board);
            for piece in Piece::ALL {
                let value = |&placement: &Placement| Valued {
                    placement,
                    value: Features::of(&board, piece, placement).value(&weights),
                };
                let mut all: Vec<Valued> = finder.find(&board, piece).iter().map(value).collect();
                all.sort_by(|a, b| a.value.total_cmp(&b.value).then(a.placement.cmp(&b.placement)));
                let index = piece.index();
                prop_assert_eq!(of_each_piece[index], all.first().copied(), "{:?}\n{}", weights, board);
                let difference = all.first().map(|least| least_values[index].unwrap() - least.value);
                let error = best.error().unwrap_or(0.0);
                prop_assert!(difference.unwrap_or(0.0).abs() <= error, "{difference:?} {error}");
                prop_assert_eq!(all.is_empty(), least_values[index].is_none());
                for count in [1, 3, 5] {
                    best.candidates(&board, piece, count, &mut found);
                    for valued in &found {
                        prop_assert!(all.contains(valued));
                    }
                    for valued in all.iter().take(count) {
                        prop_assert!(found.contains(valued), "{:?} of {:?}", valued, found);
                    }
                }
            }
        }
    }

    #[test]
    fn features_equal_features_computed_cell_by_cell(seed: u64) {
        let mut rng = Rng::new(seed);
        let mut finder = Placements::new();
        for rule in Rows::ALL {
            let board = random_board(rule, &mut rng);
            for piece in Piece::ALL {
                for &placement in finder.find(&board, piece) {
                    let locked = board.lock(piece, placement);
                    let lowest = shape(piece, placement.orientation).iter().map(|c| c.1).max().unwrap();
                    let lock_height = 19 - i32::from(placement.y + lowest);
                    let expected = slow_features(&locked.board, locked.lines, lock_height);
                    prop_assert_eq!(Features::of(&board, piece, placement).0, expected);
                }
            }
        }
    }
}

#[test]
fn invalid_boards_and_pieces_are_errors() {
    assert!("21".parse::<Rows>().is_err());
    assert!(Board::parse(Rows::Twenty, &["_________"]).is_err());
    assert!(Board::parse(Rows::Twenty, &["_________?"]).is_err());
    assert!(Board::parse(Rows::TwentyPlusTwo, &vec!["__________"; 21]).is_err());
    assert!(Board::parse(Rows::TwentyTwo, &vec!["__________"; 22]).is_ok());
    assert!("Q".parse::<Piece>().is_err());
    assert!("".parse::<Piece>().is_err());
    assert!(Piece::parse_sequence("IJX").is_err());
}
