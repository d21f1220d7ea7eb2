// Canonical weights written back in a dialect: what weights/names.h reads, made on the spot.
#pragma once

#include <optional>
#include <set>

#include "aha/base/error.h"
#include "aha/weights/names.h"

namespace aha {

inline TensorView third_of(const TensorView& view, int third, const std::string& name) {
  if (view.shape.empty() || view.shape[0] % 3 != 0)
    throw input_error("'{}': expected three equal parts, found {}", printable(name),
                      text_from_shape(view.shape));
  TensorView part = view;
  part.shape[0] /= 3;
  const size_t size = view.bytes.size() / 3;
  part.bytes = view.bytes.subspan(static_cast<size_t>(third) * size, size);
  return part;
}

inline TensorView piece_of(const TensorView& view, Piece piece, const std::string& name) {
  switch (piece) {
    case Piece::kWhole:
      return view;
    case Piece::kQuery:
      return third_of(view, 0, name);
    case Piece::kKey:
      return third_of(view, 1, name);
    case Piece::kValue:
      return third_of(view, 2, name);
    case Piece::kColumn: {
      TensorView column = view;
      column.shape = {view.numel(), 1, 1};
      return column;
    }
    case Piece::kBiasMask:
      break;
  }
  std::vector<float> mask(static_cast<size_t>(view.numel()), 1.0f);
  std::fill(mask.begin() + static_cast<ptrdiff_t>(mask.size() / 3),
            mask.begin() + static_cast<ptrdiff_t>(mask.size() / 3 * 2), 0.0f);
  return view_from_floats(view.shape, std::move(mask));
}

// "huggingface" writes the names of the hub files, "huggingface-v5" those of transformers 5.
inline TensorTable renamed_from_canonical(const CanonicalWeights& weights, std::string_view dialect_name) {
  const auto is_third = [](Piece piece) {
    return piece == Piece::kQuery || piece == Piece::kKey || piece == Piece::kValue;
  };
  std::set<std::string> available;
  const Dialect* dialect = nullptr;
  for (const Dialect& candidate : dialects()) {
    if (candidate.family != weights.family) continue;
    available.emplace(candidate.name);
    if (!dialect && candidate.name == dialect_name) dialect = &candidate;
  }
  if (!dialect)
    throw unknown_name_error("dialect of a " + weights.family, dialect_name,
                             std::vector<std::string>(available.begin(), available.end()));

  TensorTable out;
  out.source = weights.table.source;
  for (const auto& [name, view] : weights.table.tensors) {
    // Several rules may lead to one tensor: synonyms, of which the first counts, or thirds and masks, which
    // belong together.
    std::optional<Piece> first;
    for (const Rule& rule : dialect->rules) {
      const auto theirs = rewritten(name, rule.ours, rule.theirs);
      if (!theirs) continue;
      const bool belongs =
          !first || rule.piece == Piece::kBiasMask || (is_third(*first) && is_third(rule.piece));
      if (belongs) out.tensors[*theirs] = piece_of(view, rule.piece, name);
      if (!first) first = rule.piece;
    }
    if (!first)
      throw input_error("'{}' has no name in the {} dialect of a {}", printable(name), dialect_name,
                        weights.family);
  }
  return out;
}

}  // namespace aha
