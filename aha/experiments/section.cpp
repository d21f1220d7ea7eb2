#include "aha/experiments/section.h"

#include <cmath>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/experiments/claim.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

std::string number_cell(double value) {
  if (std::isnan(value)) return "";
  if (std::isinf(value)) return "never";
  return std::abs(value) >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.4f}", value);
}

std::string seconds_cell(double seconds) {
  if (std::isnan(seconds)) return "";
  return seconds < 1 ? fmt::format("{:.1f} ms", 1000 * seconds) : fmt::format("{:.2f} s", seconds);
}

std::string cell(const Recipe& recipe, const OutcomeRow& row, const std::string& column) {
  const auto found = row.found.find(column);
  std::string text;
  if (found != row.found.end()) {
    const Interval& v = found->second.value;
    text = number_cell(v.mean);
    if (v.high > v.low) text += fmt::format(" ± {:.4f}", (v.high - v.low) / 2);
  }
  if (const double paper = paper_figure(recipe, row, column); !std::isnan(paper))
    text += fmt::format("{}*{}*", text.empty() ? "" : "<br>", number_cell(paper));
  return text;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string place_of(const Verdict& v, bool classes) {
  return classes ? fmt::format("{} ({})", v.block, v.explained) : v.block;
}

std::string claims_markdown(const Recipe& recipe, const Outcome& outcome) {
  bool classes = false;
  for (const auto& row : outcome.rows) classes = classes || row.explained != "predicted";
  std::string out;
  for (const auto& claim : recipe.claims) {
    const auto all = verdicts(claim, outcome);
    out += fmt::format("- {} ", claim.says);
    if (all.empty()) out += "Not measured here.";
    for (const bool holds : {true, false}) {
      std::string places;
      for (const auto& v : all)
        if (v.holds == holds)
          places += fmt::format("{}{}: {}{}", places.empty() ? "" : "; ", place_of(v, classes), v.figures,
                                v.separable ? "" : ", not separable");
      if (!places.empty()) out += fmt::format("**{}** ({}). ", holds ? "Agrees" : "Does not agree", places);
    }
    while (out.ends_with(' ')) out.pop_back();
    out += "\n";
  }
  return out;
}

}  // namespace

double paper_figure(const Recipe& recipe, const OutcomeRow& row, const std::string& column) {
  for (const auto& table : recipe.paper) {
    if (table.of != row.paper || table.explained != row.explained || !table.rows.contains(row.row)) continue;
    for (size_t i = 0; i < table.columns.size(); ++i)
      if (table.columns[i] == column) return table.rows.at(row.row)[i];
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::string outcome_markdown(const Recipe& recipe, const Outcome& outcome) {
  if (outcome.rows.empty()) return "";
  bool passes = false, seconds = false, classes = false;
  for (const auto& row : outcome.rows) {
    passes = passes || !row.passes.empty();
    seconds = seconds || !std::isnan(row.seconds);
    classes = classes || row.explained != "predicted";
  }
  std::string head = "| of |", line = "| --- |";
  const auto column = [&](const std::string& title, bool number = true) {
    head += " " + title + " |";
    line += number ? " ---: |" : " --- |";
  };
  if (classes) column("class", false);
  column("row", false);
  for (const auto& c : outcome.columns) column(c.name + (c.better > 0 ? " ↑" : c.better < 0 ? " ↓" : ""));
  if (passes) column("passes");
  if (seconds) column("time");
  column("images");
  std::string out = head + "\n" + line + "\n";
  for (const auto& row : outcome.rows) {
    out += fmt::format("| {} |", row.block);
    if (classes) out += fmt::format(" {} |", row.explained);
    out += fmt::format(" {} |", row.row);
    for (const auto& c : outcome.columns) out += fmt::format(" {} |", cell(recipe, row, c.name));
    if (passes) out += fmt::format(" {} |", row.passes);
    if (seconds) out += fmt::format(" {} |", seconds_cell(row.seconds));
    out += fmt::format(" {} |\n", row.images);
  }
  return out;
}

std::string outcome_csv(const Recipe& recipe, const Outcome& outcome) {
  const auto text = [](double v) { return std::isnan(v) ? "" : fmt::format("{}", v); };
  std::string out = "block,class,row,column,mean,low,high,images,seconds,paper\n";
  for (const auto& row : outcome.rows)
    for (const auto& [column, found] : row.found)
      out += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", csv_cell(row.block), row.explained,
                         csv_cell(row.row), csv_cell(column), text(found.value.mean), text(found.value.low),
                         text(found.value.high), row.images, text(row.seconds),
                         text(paper_figure(recipe, row, column)));
  return out;
}

std::string section_markdown(const Recipe& recipe, const Outcome& outcome) {
  std::string out =
      fmt::format("## {}\n\n`aha experiment {}`. {}\n", recipe.title, recipe.name, recipe.summary);
  if (!recipe.reproduces.empty()) out += fmt::format("\nOf the paper: {}\n", recipe.reproduces);
  if (!outcome.facts.empty()) out += fmt::format("\nHere: {}\n", fmt::join(outcome.facts, " "));
  if (!recipe.remark.empty()) out += fmt::format("\n{}\n", recipe.remark);
  if (!outcome.rows.empty()) {
    out += "\n" + outcome_markdown(recipe, outcome);
    if (!recipe.paper.empty())
      out += "\nIn italics: the paper's figure of that row, for its own target and images.\n";
  }
  for (const auto& figure : outcome.figures) out += fmt::format("\n![{}]({})\n", figure.title, figure.file);
  if (!recipe.claims.empty())
    out += "\nWhat the paper says, and whether it holds here:\n\n" + claims_markdown(recipe, outcome);
  return out;
}

std::vector<std::string> write_experiments_page(const std::string& page, const std::string& out) {
  std::string text =
      "# Experiments\n\nEvery experiment of the paper, from the recipes in `recipes/experiments`. This page "
      "is "
      "written by the program from what `aha experiment NAME` left in its folder (`make experiments-page`); "
      "`make reproduce` runs them all. Figures: mean over images ± half of the 95 % interval. The paper's "
      "own "
      "targets are ViT-B/16, ViT-B/32 and ConvNeXt-S on 50,000 ImageNet images: what can be compared is the "
      "order of the rows, not their level.\n";
  std::vector<std::string> without;
  const fs::path images = fs::path(page).parent_path() / "images" / "experiments";
  for (const auto& name : experiment_names()) {
    const fs::path folder = fs::path(out) / name;
    if (!fs::exists(folder / "section.md")) {
      without.push_back(name);
      continue;
    }
    std::string section = read_file((folder / "section.md").string());
    for (size_t at = section.find("\n!["); at != std::string::npos; at = section.find("\n![", at + 3)) {
      const size_t begin = section.find("](", at) + 2, end = section.find(')', begin);
      const std::string file = section.substr(begin, end - begin);
      if (!fs::exists(folder / file)) throw input_error("{}: expected {}, found none", folder.string(), file);
      make_directories(images.string());
      const std::string copy = fmt::format("{}-{}", name, fs::path(file).filename().string());
      write_file_atomically((images / copy).string(), read_file((folder / file).string()));
      section.replace(begin, end - begin, "images/experiments/" + copy);
    }
    text += "\n" + section;
  }
  if (!without.empty()) {
    text += "\n## Not run here\n\n";
    for (const auto& name : without) {
      const Recipe recipe = experiment_named(name);
      text += fmt::format("- `{}`: {}{}\n", name, recipe.summary,
                          recipe.needs.empty() ? "" : " Needs " + recipe.needs + ".");
    }
  }
  write_file_atomically(page, text);
  return without;
}

}  // namespace aha
