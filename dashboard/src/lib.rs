//! The coordinator in a browser: runs, cost, plots, workers, replays.
