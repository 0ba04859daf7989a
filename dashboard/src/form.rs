//! The form for a new run, and the estimate of its time and cost.

use crate::error::ApiError;
use hatebeam_cost::{Estimate, MAX_HOURS, Micros};
use hatebeam_proto::v1;
use hatebeam_runs::{RunSpec, seconds_of_hours};
use serde::Deserialize;
use std::sync::Arc;

/// Values in the form for a new run.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RunForm {
    /// Run specification.
    pub spec: RunSpec,
    /// Number of shards; 0 lets the coordinator choose.
    #[serde(default)]
    pub shards: u32,
    /// Depths whose wells are kept in the object store: "all", "last", or a number N for every Nth depth. An empty
    /// string means the default: all depths, or every fourth depth for more than 100 million wells.
    #[serde(default)]
    pub keep: String,
    /// Depth limit; 0 means no limit.
    #[serde(default)]
    pub max_depth: u32,
    /// Cost limit in dollars; 0 means no limit.
    #[serde(default)]
    pub max_dollars: f64,
    /// Search time limit in hours; 0 means no limit.
    #[serde(default)]
    pub max_hours: f64,
}

impl RunForm {
    /// Converts the form to a request. Returns an error if the cost or time limit is out of range. The coordinator
    /// validates the other values.
    pub(crate) fn request(&self) -> Result<v1::SubmitRequest, ApiError> {
        Ok(v1::SubmitRequest {
            spec: serde_json::to_string(&self.spec)
                .map_err(|error| ApiError::bad(error.to_string()))?,
            shards: self.shards,
            keep: self.keep.clone(),
            max_depth: self.max_depth,
            max_cost_micros: micros(self.max_dollars)?,
            max_seconds: seconds(self.max_hours)?,
            network: Vec::new(),
        })
    }
}

/// New limits for an open run. An absent limit does not change, and 0 removes a limit.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsForm {
    max_depth: Option<u32>,
    max_dollars: Option<f64>,
    max_hours: Option<f64>,
}

impl LimitsForm {
    /// Converts the form to a request. Returns an error if the cost or time limit is out of range.
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
    check_limit(dollars, Micros::MAX.dollars(), "max_dollars")?;
    Ok(Micros::from_dollars(dollars).0)
}

fn seconds(hours: f64) -> Result<u64, ApiError> {
    check_limit(hours, MAX_HOURS, "max_hours")?;
    Ok(seconds_of_hours(hours))
}

fn check_limit(value: f64, most: f64, name: &str) -> Result<(), ApiError> {
    if !(0.0..=most).contains(&value) {
        return Err(ApiError::bad(format!(
            "{name} {value} is out of range: give a number from 0 (no limit) to {most}"
        )));
    }
    Ok(())
}

/// Input for an estimate.
#[derive(Clone, Debug)]
pub struct EstimateRequest {
    /// The run to estimate.
    pub form: RunForm,
    /// Connected workers.
    pub workers: Vec<v1::WorkerStatus>,
    /// All runs, most recently submitted first.
    pub runs: Vec<v1::RunStatus>,
}

/// A function that estimates the time and cost of a run. The error is the reason why no estimate is possible.
pub type Estimator = Arc<dyn Fn(&EstimateRequest) -> Result<Estimate, String> + Send + Sync>;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn form(more: Value) -> RunForm {
        let mut form = json!({ "spec": {
            "width": 10,
            "well": { "columns": 10, "rows": 16, "clear_above_bar": false },
            "start": "empty",
            "evaluator": { "kind": "patterns", "quiescence": "off" },
        } });
        form.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(form).unwrap()
    }

    #[test]
    fn limits_are_rounded_up_to_protocol_units() {
        let request = form(json!({ "max_dollars": 0.000_000_1, "max_hours": 1.5 }))
            .request()
            .unwrap();
        assert_eq!((request.max_cost_micros, request.max_seconds), (1, 5400));
        let spec: RunSpec = serde_json::from_str(&request.spec).unwrap();
        assert_eq!(spec.width, 10);
        let request = form(json!({})).request().unwrap();
        assert_eq!((request.max_cost_micros, request.max_seconds), (0, 0));
    }

    #[test]
    fn error_for_limit_out_of_range_names_the_limit() {
        for (more, name) in [
            (json!({ "max_dollars": -1 }), "max_dollars -1"),
            (json!({ "max_dollars": 1e10 }), "max_dollars 10000000000"),
            (json!({ "max_hours": 1e300 }), "max_hours"),
            (json!({ "max_hours": 1_000_001 }), "max_hours 1000001"),
        ] {
            let error = form(more).request().unwrap_err();
            assert!(error.text.starts_with(name), "{error:?}");
        }
    }

    #[test]
    fn longest_time_limit_is_accepted_and_is_that_of_the_page() {
        let request = form(json!({ "max_hours": MAX_HOURS })).request().unwrap();
        assert_eq!(request.max_seconds, 3_600_000_000);
        let page = include_str!("../assets/fields.js");
        let constant = format!("const MAX_HOURS = {MAX_HOURS};");
        assert!(page.contains(&constant), "{constant}");
    }
}
