//! `dposlab figures`: the figures of a report as SVG files.

use super::{Failure, output};
use crate::report::figures::{FigureLook, FigureSet, FiguresError, draw, page_of, write};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Write every figure of a report as an SVG file, for a paper or a slide.
///
/// FOLDER is what `run --out`, `sweep --out` or `explain --out` left, or a page of its own such as why.html. Each figure is the one that
/// the page's button "SVG" saves, drawn by the same code without a browser. A file needs nothing beside itself: browsers, Inkscape and
/// rsvg-convert show it alike. Its type is Arial, or another one of the same widths such as Liberation Sans.
///
/// Files are named by their titles: chain-and-forks.svg. The same report gives the same bytes. A file that this command wrote is
/// written again; any other file in the way is refused, also one that was edited since.
///
/// Exit code 0: written; 1: a file cannot be written; 2: FOLDER holds no report of this version, or an option is wrong.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FigureFiles {
    /// The folder of a run, sweep or explanation, or the page itself.
    #[arg(value_name = "FOLDER")]
    report: PathBuf,
    /// The folder for the files, which is made; by default `figures` beside the page.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The colours: on white, or on a dark card.
    #[arg(long, value_enum, default_value_t = Theme::Light)]
    theme: Theme,
    /// The width of each file in pixels, as on the page in a wide window if not given: 1258, or 614 for half of a row. Type keeps
    /// its size of 12 px. The round ring always has 544.
    #[arg(long, value_name = "PX", value_parser = clap::value_parser!(u16).range(200..=4000))]
    width: Option<u16>,
    /// The metric that the plots "Distribution", "Mean", "Difference" and "By ..." of a sweep show, such as agreement_mean; may be given again.
    /// The one that the page opens with, if not given. --list names all.
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    /// Print the names, sizes and titles of the files, and a sweep's metrics, and write nothing.
    #[arg(long)]
    list: bool,
    /// Print one JSON object: `figures` (`file`, `title`, `width`, `height`), `metrics` to choose from, and `folder`, null with --list.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  dposlab run scenarios/heal.toml --out out/heal
  dposlab figures out/heal                                     out/heal/figures/chain-and-forks.svg and the others
  dposlab figures out/heal --width 560 --out paper/figures     for a column of a paper
  dposlab figures out/heal --theme dark --out slides
  dposlab figures out/many --list                              the files that it would write, and the metrics of a sweep
  dposlab figures out/many --metric agreement_mean --metric rollbacks
  rsvg-convert --format pdf out/heal/figures/agreement.svg --output agreement.pdf";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Theme {
    Light,
    Dark,
}

impl FigureFiles {
    /// Draws the figures, and writes or lists them.
    ///
    /// # Errors
    /// There is no such report, it cannot be drawn, or a file is in the way or cannot be written.
    pub fn run(self) -> Result<(), Failure> {
        let page = page_of(&self.report).map_err(failure)?;
        let look = FigureLook { is_dark: self.theme == Theme::Dark, width: self.width, metrics: self.metrics.clone() };
        let drawn = draw(&page, &look).map_err(failure)?;
        let beside = page.parent().unwrap_or(Path::new("")).join("figures");
        let folder = (!self.list).then(|| self.out.clone().unwrap_or(beside));
        if let Some(folder) = &folder {
            write(&drawn.figures, folder).map_err(failure)?;
        }
        self.print(&drawn, folder.as_deref());
        Ok(())
    }

    fn print(&self, drawn: &FigureSet, folder: Option<&Path>) {
        if self.json {
            let folder = folder.map(|folder| folder.display().to_string());
            let printed = json!({ "figures": drawn.figures, "metrics": drawn.metrics, "folder": folder });
            return output::line(&printed.to_string());
        }
        for figure in &drawn.figures {
            let file = folder.map_or(PathBuf::new(), Path::to_path_buf).join(&figure.file);
            output::line(&format!("{}  {}x{}  {}", file.display(), figure.width, figure.height, figure.title));
        }
        if self.list && !drawn.metrics.is_empty() {
            output::line(&format!("metrics: {}", drawn.metrics.join(", ")));
        }
        if drawn.figures.is_empty() {
            output::line("the page has no figure");
        }
    }
}

fn failure(why: FiguresError) -> Failure {
    match why.is_bad_input() {
        true => Failure::usage(why),
        false => Failure::broken(why),
    }
}
