#![doc = include_str!("../README.md")]

mod backward;
mod emulator;
mod enemy;
mod game;
mod path;
mod piece;
pub mod reference;
mod replay;
mod rules;
mod verdict;
mod well;

pub use backward::{Backward, Offer};
pub use emulator::{Children, Clears, Emulator, Follow, SimdLevel};
pub use enemy::{Enemy, EnemyState, UnknownEnemy, piece_with_fewest_loops};
pub use game::{Game, Pressed, Record, Turn, better_enemy, play};
pub use path::{PathError, PathFinder, replay_of_wells};
pub use piece::{Cells, Piece};
pub use reference::Parent;
pub use replay::{Encoding, ReplayError, UnknownEncoding, decode, encode};
pub use rules::{Board, Key, Lock, Placement, Position, Rules};
pub use verdict::ReplayFault;
pub use well::{
    Geometry, GeometryError, MAX_HEIGHT, MAX_WIDTH, PackedWell, ROWS_ABOVE_BAR, Well, WellError,
};
