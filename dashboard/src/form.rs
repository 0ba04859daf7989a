//! What a person wants searched, and what that would take.

use crate::error::ApiError;
use hatebeam_proto::v1;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// More than this is no limit.
const MAX_DOLLARS: f64 = 1e9;
/// A hundred years.
const MAX_HOURS: f64 = 876_000.0;

/// A run to be submitted, as the form has it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RunForm {
    /// The run specification, as a run's own `spec` has it.
    pub spec: Value,
    /// Shards; 0 leaves it to the coordinator.
    #[serde(default)]
    pub shards: u32,
    /// Which wells stay in the object store: "all", "last" or a number. Empty means all.
    #[serde(default)]
    pub keep: String,
    /// The depth to stop at; 0 means none.
    #[serde(default)]
    pub max_depth: u32,
    /// Dollars it may cost at most; 0 means that there is no limit.
    #[serde(default)]
    pub max_dollars: f64,
    /// Hours it may be searched at most; 0 means that there is no limit.
    #[serde(default)]
    pub max_hours: f64,
}

impl RunForm {
    /// As the coordinator is told. What is in it is checked there.
    pub(crate) fn request(&self) -> Result<v1::SubmitRequest, ApiError> {
        Ok(v1::SubmitRequest {
            spec: self.spec.to_string(),
            shards: self.shards,
            keep: self.keep.clone(),
            max_depth: self.max_depth,
            max_cost_micros: micros(self.max_dollars)?,
            max_seconds: seconds(self.max_hours)?,
        })
    }
}

/// Other limits for a run that is open; those that are absent stay as they are, and 0 means that there is none.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsForm {
    max_depth: Option<u32>,
    max_dollars: Option<f64>,
    max_hours: Option<f64>,
}

impl LimitsForm {
    /// As the coordinator is told.
    pub(crate) fn request(&self, run: String) -> Result<v1::LimitRequest, ApiError> {
        Ok(v1::LimitRequest {
            run,
            max_depth: self.max_depth,
            max_cost_micros: self.max_dollars.map(micros).transpose()?,
            max_seconds: self.max_hours.map(seconds).transpose()?,
        })
    }
}

fn micros(dollars: f64) -> Result<u64, ApiError> {
    limit(dollars, MAX_DOLLARS, 1e6, "max_dollars")
}

fn seconds(hours: f64) -> Result<u64, ApiError> {
    limit(hours, MAX_HOURS, 3600.0, "max_hours")
}

/// Rounded up: what is less than the least there is still is a limit.
fn limit(value: f64, most: f64, unit: f64, name: &str) -> Result<u64, ApiError> {
    if !(0.0..=most).contains(&value) {
        return Err(ApiError::bad(format!(
            "{name} {value} is out of range: give 0 to {most}, 0 for no limit"
        )));
    }
    Ok((value * unit).ceil() as u64)
}

/// What a run would take is asked with what is known now.
#[derive(Clone, Debug)]
pub struct EstimateRequest {
    /// What is to be searched.
    pub form: RunForm,
    /// The workers that attend.
    pub workers: Vec<v1::WorkerStatus>,
    /// All runs, the last submitted first.
    pub runs: Vec<v1::RunStatus>,
}

/// What a run would take, from the least that is likely to the most.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
pub struct Estimate {
    /// Depths.
    pub depths: [u32; 2],
    /// Seconds of searching.
    pub seconds: [f64; 2],
    /// Dollars, machines and the object store together; absent if prices are not known.
    pub dollars: Option<[f64; 2]>,
    /// Dollars that the workers cost in an hour; absent if prices are not known.
    pub dollars_per_hour: Option<f64>,
    /// Bytes in the object store at the end.
    pub stored_bytes: f64,
    /// Dollars that they cost in a month.
    pub storage_dollars_per_month: f64,
    /// Workers it was reckoned with.
    pub workers: u32,
    /// By what it is cut_verdict, in words.
    pub judged_by: String,
    /// What should be known besides, such as that it does not fit.
    pub warnings: Vec<String>,
}

/// Says what a run would take, or why that cannot be said.
pub type Estimator = Arc<dyn Fn(&EstimateRequest) -> Result<Estimate, String> + Send + Sync>;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form(more: Value) -> RunForm {
        let mut form = json!({ "spec": { "width": 10 } });
        form.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(form).unwrap()
    }

    #[test]
    fn limits_are_rounded_up() {
        let request = form(json!({ "max_dollars": 0.000_000_1, "max_hours": 1.5 }))
            .request()
            .unwrap();
        assert_eq!((request.max_cost_micros, request.max_seconds), (1, 5400));
        assert_eq!(request.spec, "{\"width\":10}");
        let request = form(json!({})).request().unwrap();
        assert_eq!((request.max_cost_micros, request.max_seconds), (0, 0));
    }

    #[test]
    fn limits_out_of_range_are_refused_by_name() {
        for (more, name) in [
            (json!({ "max_dollars": -1 }), "max_dollars -1"),
            (json!({ "max_dollars": 1e10 }), "max_dollars 10000000000"),
            (json!({ "max_hours": 1e300 }), "max_hours"),
        ] {
            let error = form(more).request().unwrap_err();
            assert!(error.text.starts_with(name), "{error:?}");
        }
    }
}
