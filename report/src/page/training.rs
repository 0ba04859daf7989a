//! An HTML page about the training of a network.

use super::{Curves, document, escaped};
use std::fmt::Write as _;

/// Returns the HTML page about a training: a sentence, named facts, and plots.
pub fn training_page(lead: &str, facts: &[(&str, String)], plots: &[Curves]) -> String {
    let mut body = String::from("<h1>Training of a network</h1>\n");
    let _ = writeln!(body, "<p class=\"lead\">{}</p>", escaped(lead));
    body.push_str("<table class=\"facts\">\n");
    for (name, value) in facts {
        let (name, value) = (escaped(name), escaped(value));
        let _ = writeln!(body, "<tr><th>{name}</th><td>{value}</td></tr>");
    }
    body.push_str("</table>\n<h2>By generation</h2>\n<div class=\"plots\">\n");
    for plot in plots {
        plot.draw(&mut body, 1.0, "generation");
    }
    body.push_str("</div>\n");
    document("Training", &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Curve;

    #[test]
    fn plot_contains_the_ends_of_its_axis_and_the_positions_of_each_curve() {
        let curve = |name, points: &[(f64, f64)]| Curve {
            name,
            points: points.to_vec(),
        };
        let curves = Curves {
            title: "Examination",
            unit: "lines",
            curves: vec![
                curve("own", &[(5.0, 20.0), (10.0, 30.0)]),
                curve("others", &[(5.0, 10.0), (10.0, 15.0), (15.0, 20.0)]),
                curve("none", &[]),
            ],
        };
        let page = training_page("lead", &[], &[curves]);
        for attributes in [
            // The axis begins before the first point and ends with the longest curve.
            "data-axis=\"generation\" data-low=\"1\" data-high=\"15\"",
            "data-name=\"own\" data-values=\"5:20,10:30\"",
            "data-name=\"others\" data-values=\"5:10,10:15,15:20\"",
            "data-name=\"none\" data-values=\"\"",
        ] {
            assert!(page.contains(attributes), "{attributes} in {page}");
        }
    }
}
