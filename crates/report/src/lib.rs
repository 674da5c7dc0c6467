//! Reports: results as Markdown and one self-contained HTML file. Pure: equal results produce equal bytes.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod export;
pub mod accept;
mod admitted;
mod analysis;
mod bottleneck;
mod content;
mod costs;
mod document;
pub mod family;
mod html;
mod knowledge;
pub mod low_parallelism;
mod markdown;
mod model;
mod origin;
mod overview;
mod pareto;
pub mod portfolio;
mod plots;
mod roofline;
pub mod svg;
mod winners;

pub use admitted::{admitted, admitted_by};
pub use model::{Change, Input, KernelFacts, Peer, Subject, WinnerProfile};
pub use overview::us;

use document::Block;

/// The files of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// `report.md`; refers to the plots.
    pub markdown: String,
    /// `report.html`; embeds the plots.
    pub html: String,
    /// `plots/NAME.svg`: names and texts.
    pub plots: Vec<(String, String)>,
}

/// Writes a report.
#[must_use]
pub fn write(input: &Input) -> Files {
    let blocks = content::document(input);
    let mut plots = Vec::new();
    collect(&blocks, &mut plots);
    Files {
        markdown: markdown::write(&blocks),
        html: html::write("Tuning report", &blocks),
        plots,
    }
}

fn collect(blocks: &[Block], plots: &mut Vec<(String, String)>) {
    for block in blocks {
        match block {
            Block::Plot { name, svg, .. } => {
                plots.push((name.clone(), svg::standalone(svg, html::SVG_STYLE)));
            }
            Block::Folded { blocks, .. } => collect(blocks, plots),
            _ => {}
        }
    }
}
