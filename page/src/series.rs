//! Series of games with the same agents, summarized by means and confidence intervals.

use crate::answer::{Answer, Failure};
use crate::watch::{NesSets, PlayerStart, WatchStart, drop_agent, drop_run, nes_search};
use hatebeam_agents::drop::{Agent, DropRun};
use hatebeam_agents::nes::{Search, play};
use hatebeam_agents::{Contest, GameRecord, Series};
use hatebeam_tetris::nes::MAXOUT;
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct ManyStart {
    #[serde(flatten)]
    start: WatchStart,
    /// Maximum number of pieces in a game of dropped pieces.
    most_pieces: u64,
}

/// The agents and the source of their pieces.
enum Games {
    Drop {
        run: DropRun,
        agents: Vec<Box<dyn Agent>>,
    },
    Nes {
        sets: NesSets,
        searches: Vec<Box<dyn Search>>,
    },
}

/// A series of games. In each game, all agents get the same pieces.
pub(crate) struct Many {
    games: Games,
    contest: Contest,
}

impl Many {
    pub(crate) fn new(many: &ManyStart) -> Result<Many, Failure> {
        let start = &many.start;
        let players = &start.players;
        let (games, unit, goal) = match start.game.as_str() {
            "drop" => {
                let agents: Result<_, Failure> = players.iter().map(drop_agent).collect();
                let run = DropRun {
                    most_pieces: many.most_pieces,
                    ..drop_run(start)?
                };
                let agents = agents?;
                (Games::Drop { run, agents }, "lines", None)
            }
            "nes" => {
                let searches: Result<_, Failure> = players.iter().map(nes_search).collect();
                let sets = NesSets::new(start)?;
                let searches = searches?;
                let goal = Some(("maxout", u64::from(MAXOUT)));
                (Games::Nes { sets, searches }, "points", goal)
            }
            other => return Err(format!("unknown game {other:?}").into()),
        };
        let series = |player: &PlayerStart| Series {
            name: player.agent.clone(),
            games: Vec::new(),
            seconds: 0.0,
        };
        Ok(Many {
            games,
            contest: Contest {
                series: players.iter().map(series).collect(),
                unit,
                goal,
            },
        })
    }

    /// Plays `games` further games and returns the statistics of all games so far.
    pub(crate) fn play(&mut self, games: u32) -> Answer {
        for _ in 0..games {
            let number = self.contest.series.first().map_or(0, |one| one.games.len());
            let records = self.games.play(number as u32);
            for (series, record) in self.contest.series.iter_mut().zip(records) {
                series.games.push(record);
            }
        }
        Ok(self.contest.json()?)
    }
}

impl Games {
    /// Plays a game with each agent. `number` is the index of the game.
    fn play(&mut self, number: u32) -> Vec<GameRecord> {
        match self {
            Games::Drop { run, agents } => agents
                .iter_mut()
                .map(|agent| run.play(agent.as_mut(), number.into()).into())
                .collect(),
            Games::Nes { sets, searches } => {
                let (pieces, rules) = (sets.game(), sets.rules());
                searches
                    .iter_mut()
                    .map(|search| play(search.as_mut(), &pieces, &rules).into())
                    .collect()
            }
        }
    }
}
