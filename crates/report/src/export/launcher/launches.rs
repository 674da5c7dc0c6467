//! Launches of a launcher: the kernels of each configuration, and the calls.

use super::Launcher;
use std::fmt::Write as _;
use tuner_core::escape::CLiteral;
use tuner_space::Launch;

impl Launcher<'_> {
    /// Writes the kernels of each configuration; empty for a launch that it never performs, whose kernel
    /// the source may lack.
    pub(super) fn kernel_table(&self, text: &mut String) {
        let lists = (0..self.codes.len()).map(|index| {
            let kernels = self.kernels(index).into_iter();
            let kernels =
                kernels.map(|kernel| format!("{}, ", CLiteral::new(kernel.unwrap_or_default())));
            kernels.collect::<String>()
        });
        let lists: Vec<String> = lists.collect();
        for (index, kernels) in lists.iter().enumerate() {
            let _ = writeln!(
                text,
                "static const char *const kernels_{index}[] = {{{kernels}nullptr}};"
            );
        }
        let all: String = (0..lists.len())
            .map(|index| format!("kernels_{index}, "))
            .collect();
        let _ = writeln!(
            text,
            "static const char *const *const all_kernels[] = {{{all}}};"
        );
    }

    /// Writes the launches: all are checked before the first one starts.
    pub(super) fn launches(&self, text: &mut String, sizes: &str) {
        // An omitted launch has no extents. A rejected one has some and must be reported.
        let out = |name: &str| {
            format!("!Made_{name}.runs && !Made_{name}.block[0] && !Made_{name}.grid[0]")
        };
        let _ = writeln!(
            text,
            "  const Code *code = nullptr;\n\
             \x20 status = loaded(code, chosen, all_macros[chosen]({sizes}), source, all_options[chosen], all_kernels[chosen], images, image_count, device, context);\n\
             \x20 if (status != fine) return status;"
        );
        let has_clusters = self.plan.has_clusters();
        let function = |launch: &Launch| match launch.cluster.is_some() && has_clusters {
            true => "launch_clusters",
            false => "launch",
        };
        let launches = &self.source.spec.launches;
        for (at, (name, launch)) in self.plan.launches.iter().zip(launches).enumerate() {
            let values: Vec<String> = launch
                .args
                .iter()
                .filter_map(|at| self.arguments.get(*at))
                .map(|parameter| match parameter.size {
                    true => format!("(void *)&Value_{}", parameter.name),
                    false => format!("(void *)&{}", parameter.name),
                })
                .collect();
            let _ = writeln!(
                text,
                "  void *Values_{at}[] = {{{}}};\n\
                 \x20 if (!({}) && !Made_{name}.runs) return {function}(*code, {at}, kernels[{at}], Made_{name}, {cooperative}, stream, Values_{at});",
                if values.is_empty() {
                    "nullptr".to_owned()
                } else {
                    values.join(", ")
                },
                out(name),
                function = function(launch),
                cooperative = launch.cooperative,
            );
        }
        for (at, (name, launch)) in self.plan.launches.iter().zip(launches).enumerate() {
            let _ = writeln!(
                text,
                "  if (Made_{name}.runs && (status = {}(*code, {at}, kernels[{at}], Made_{name}, {}, stream, Values_{at})) != fine) return status;",
                function(launch),
                launch.cooperative,
            );
        }
        let _ = writeln!(
            text,
            "  last_chosen() = chosen;\n  message() = note;\n  return fine;\n}}"
        );
    }
}
