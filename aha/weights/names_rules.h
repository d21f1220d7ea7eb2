// The rename rules as data, and the small pattern language they are written in.
//
//   {i} {j} {s} {c}   a number; {2s} an even one, twice s; {2s+1} an odd one
//   *                 "weight" or "bias"
//   **                any rest
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace aha {

// What a tensor of a file is of the canonical tensor.
enum class Piece {
  kWhole,
  kQuery,     // the first third of the rows
  kKey,       // the second
  kValue,     // the last
  kBiasMask,  // factors of a bias
  kColumn,    // all of it, with sides of one behind: [w, 1, 1]
};

struct Rule {
  std::string theirs;
  std::string ours;  // empty: left out knowingly
  Piece piece = Piece::kWhole;
};

struct Dialect {
  std::string_view name;    // its source, and behind a hyphen what tells it from others of the family
  std::string_view family;  // CanonicalWeights::family
  std::vector<std::string_view> has;         // recognized by these names, all of them ...
  std::vector<Rule> rules;                   // the first that matches counts
  std::vector<std::string_view> lacks = {};  // ... without any of these

  std::string_view source() const { return name.substr(0, name.find('-')); }  // CanonicalWeights::source
};

// Of the networks that have had several homes; others bring theirs with their record. In the order in which
// they are tried.
std::vector<Dialect> vit_dialects();
std::vector<Dialect> convnext_dialects();
const std::vector<Dialect>& dialects();  // both

// The name (or pattern) without the prefixes of wrappers ("module.vit."), and with the chunks that DINOv2 may
// group its blocks in ("blocks.0.3.") taken out.
std::string plain_name(std::string_view name);

// `name` written after `from`, rewritten after `to`; nothing where it does not match.
std::optional<std::string> rewritten(std::string_view name, std::string_view from, std::string_view to);

}  // namespace aha
