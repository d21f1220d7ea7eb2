// An experiment as data: recipes/experiments/NAME.toml.
//
// A recipe says what of the paper it reproduces, with the paper's figures, what is made (images with a disc,
// fine-tuned targets, explainers, maps), what is evaluated, what is drawn, and what the paper claims. Steps
// are made in that order, each in OUT/NAME/STEP. A later step names what an earlier one made as made:STEP.
//
//   title = "Refinement steps"
//   summary = "..."                       one sentence
//   reproduces = "Figure 3a"              of the paper
//   [every-train] [every-run]             what all [[train]] and [[run]] share
//   [[disc]] [[fit]] [[train]] [[maps]]   what is made
//   [[run]]                               an evaluation: rows of the table
//   [[sheet]] [[soft-masks]] [[chart]]    figures
//   [[paper]]                             the paper's figures: columns, and rows by name
//   [[claim]]                             what the paper says of them (claim.h)
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "aha/base/options.h"

namespace aha {

// Which images: `images` of the first `of`, evenly spaced, so that more images contain the range of fewer.
struct ImageChoice {
  std::string data = "cifar10:test";
  int64_t images = 100, of = 1000;
};
Fields fields(ImageChoice& choice);

// Images with a white disc at a random place in those of one class, and a list of them with the disc's mask.
struct DiscStep {
  std::string name, data = "cifar10:train";
  int64_t images = 2000, skip = 0;
  int label = 0;             // the class that gets the disc
  double radius = 0.12;      // of the shorter side
  std::string keep = "all";  // all: images of every class; class: only those with the disc by right; others:
                             // images of other classes, with a disc
};
Fields fields(DiscStep& step);

// A target that is fine-tuned; `options` are those of `aha fit`.
struct FitStep {
  std::string name, init, data;
  nlohmann::json options = nlohmann::json::object();
};

// An explainer that is trained; `options` are those of `aha train`, over those of the recipe it names.
struct TrainStep {
  std::string name, target, recipe, data = "cifar10:train";
  int64_t images = 2000;
  nlohmann::json options = nlohmann::json::object();
};

// Maps of one method for one target, of the label's class, for the method maps: of another target's run.
struct MapsStep {
  std::string name, target, explainer, method;
  ImageChoice choice;
};

// One evaluation.
struct RunStep {
  std::string name, target, explainer, encoder;
  std::string block;                 // what its rows are compared within; empty = the target
  std::string paper;                 // the part of the paper's figures that stands beside them
  std::vector<std::string> methods;  // empty = those that suit the target
  std::vector<std::string> rows;     // what they are called in the table; empty = as they are
  std::vector<std::string> metrics = {"ins-del"};
  std::vector<std::string> show;  // of them; empty = metrics with their parts
  std::string protocol = "paper", explained = "predicted";
  int timing_runs = 0;
  bool break_even = false;  // columns of maps until the training of learned methods has paid off
  ImageChoice choice;
};

// Methods side by side on a few images.
struct SheetStep {
  std::string name, target, explainer, title;
  std::vector<std::string> methods;
  std::string data = "cifar10:test", wanted = "predicted";
  std::vector<int> images = {0, 1, 2, 3};
};

// What the relaxation does to the order of regions (soft_masks_figure.h).
struct SoftMasksStep {
  std::string name, target, data = "cifar10:test";
  int image = 0, grid = 8;
  std::vector<double> taus = {0.5, 1, 2};
  double noise = 0;
  std::vector<double> shares = {0.1, 0.25, 0.5, 0.75};
};

// A metric over rows, one line for each block.
struct ChartStep {
  std::string name, title, metric, across;
  std::vector<std::string> rows;
};

// What the paper reports of one target and class.
struct PaperTable {
  std::string of, explained = "predicted";
  std::vector<std::string> columns;  // metrics
  std::map<std::string, std::vector<double>> rows;
};

struct Claim {
  std::string says, metric;
  std::string kind = "rising";    // rising, above, within, times
  std::string row;                // above, within, times: this one ...
  std::vector<std::string> rows;  // ... against each of these; "*" = every other
  double amount = 0;              // within: the largest difference; times: the least ratio
};

struct Recipe {
  std::string name, title, summary, reproduces, remark;
  std::string needs;  // what a user has to bring, where it does not come with the program
  std::vector<DiscStep> discs;
  std::vector<FitStep> fits;
  std::vector<TrainStep> trains;
  std::vector<MapsStep> maps;
  std::vector<RunStep> runs;
  std::vector<SheetStep> sheets;
  std::vector<SoftMasksStep> soft_masks;
  std::vector<ChartStep> charts;
  std::vector<PaperTable> paper;
  std::vector<Claim> claims;
};

// Unknown keys, steps of one name and names that nothing makes are input errors.
Recipe recipe_from_json(const std::string& name, const nlohmann::json& json, const std::string& where);

// In the order of recipes/experiments/ORDER, which is that of the paper.
std::vector<std::string> experiment_names();
Recipe experiment_named(const std::string& name);
// A recipe of `aha train` or `aha fit` that ships with the program.
nlohmann::json shipped_recipe(const std::string& name);

}  // namespace aha
