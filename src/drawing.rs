//! The scripts with which every page draws: plots with axes, read-outs and tables as SVG, the colours of light and dark, and
//! saving a drawing as a file. Reports contain these scripts; the live page loads them as one module.
//!
//! ```text
//!   element  elements and tables          marks  lines, bars, boxes, … as SVG     save  a drawing as SVG or PNG file
//!   scale    values to pixels, units      plot   panels, read-out, zoom, keys
//! ```
//!
//! `engine` runs these scripts without a browser. The room knows series, panels and axes, and nothing of runs, networks or HTTP.

pub(crate) mod engine;

/// Colours and the style of plots.
pub const STYLE: &str = include_str!("drawing/drawing.css");

/// The scripts, in the order in which one needs the other.
pub const SCRIPTS: [&str; 5] = [
    include_str!("drawing/element.js"),
    include_str!("drawing/scale.js"),
    include_str!("drawing/marks.js"),
    include_str!("drawing/plot.js"),
    include_str!("drawing/save.js"),
];

/// The names that the module exports.
const EXPORTS: &str = "export { Plot, SHAPES, duration, element, number, patternOf, percent, px, saveSvg, shortened, standalone, svg, \
                       table, textures };\n";

/// All scripts as one ES module.
pub fn module() -> String {
    SCRIPTS.concat() + EXPORTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_module_exports_is_defined_in_it() {
        let scripts = SCRIPTS.concat();
        let names = EXPORTS.trim_start_matches("export {").trim_end_matches(" };\n").split(',').map(str::trim);
        for name in names {
            let defined = ["function ", "class ", "const "].map(|word| format!("\n{word}{name}"));
            assert!(defined.iter().any(|line| scripts.contains(line)), "{name}");
        }
    }
}
