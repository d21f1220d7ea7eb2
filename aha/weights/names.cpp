#include "aha/weights/names.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "aha/base/error.h"
#include "aha/base/square_side.h"
#include "aha/weights/names_rules.h"

namespace aha {
namespace {

constexpr std::string_view kFamilyKey = "aha.family", kSourceKey = "aha.source";
constexpr std::string_view kQkvWeight = ".attn.qkv.weight";

TensorView view_from_bytes(DType dtype, std::vector<int64_t> shape, std::vector<std::byte> bytes) {
  auto owned = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return {dtype, std::move(shape), *owned, owned};
}

// What a file has of one canonical tensor.
using Pieces = std::map<Piece, const TensorView*>;

class Assembler {
 public:
  Assembler(std::string_view file, std::string_view name, const Pieces& pieces)
      : file_(printable(file, 300)), name_(name), pieces_(pieces) {}

  TensorView assembled() const {
    TensorView view = has(Piece::kWhole)    ? *pieces_.at(Piece::kWhole)
                      : has(Piece::kColumn) ? *pieces_.at(Piece::kColumn)
                                            : stacked();
    if (has(Piece::kBiasMask)) view = masked(view, *pieces_.at(Piece::kBiasMask));
    return without_trailing_ones(std::move(view));
  }

 private:
  bool has(Piece piece) const { return pieces_.contains(piece); }

  // Query, key and value below one another. A key without bias adds the same to all scores of a query: zeros.
  TensorView stacked() const {
    const bool bias = name_.ends_with(".bias");
    if (!has(Piece::kQuery) || !has(Piece::kValue) || (!has(Piece::kKey) && !bias))
      throw input_error("{}: '{}' needs query, key and value; found only some of them", file_,
                        printable(name_));
    const TensorView& query = *pieces_.at(Piece::kQuery);
    std::vector<std::byte> bytes;
    for (const Piece piece : {Piece::kQuery, Piece::kKey, Piece::kValue}) {
      if (!has(piece)) {
        bytes.resize(bytes.size() + query.bytes.size());
        continue;
      }
      const TensorView& part = *pieces_.at(piece);
      if (part.dtype != query.dtype || part.shape != query.shape || part.shape.empty() || part.bytes.empty())
        throw input_error(
            "{}: '{}': expected query, key and value alike and not empty, found {} {} and {} {}", file_,
            printable(name_), name_of(query.dtype), text_from_shape(query.shape), name_of(part.dtype),
            text_from_shape(part.shape));
      bytes.insert(bytes.end(), part.bytes.begin(), part.bytes.end());
    }
    std::vector<int64_t> shape = query.shape;
    shape[0] *= 3;
    return view_from_bytes(query.dtype, std::move(shape), std::move(bytes));
  }

  // bias * mask; a mask that was never initialized (NaN) stands for ones, zeros, ones.
  TensorView masked(const TensorView& bias, const TensorView& mask) const {
    std::vector<float> values = floats_from_view(bias), factors = floats_from_view(mask);
    if (values.size() != factors.size() || values.size() % 3 != 0)
      throw input_error("{}: '{}': expected a bias and a mask of three equal parts, found {} and {}", file_,
                        printable(name_), text_from_shape(bias.shape), text_from_shape(mask.shape));
    const size_t third = values.size() / 3;
    if (std::any_of(factors.begin(), factors.end(), [](float f) { return std::isnan(f); }))
      for (size_t i = 0; i < factors.size(); ++i) factors[i] = i / third == 1 ? 0.0f : 1.0f;
    for (size_t i = 0; i < values.size(); ++i) values[i] = factors[i] == 0 ? 0.0f : values[i] * factors[i];
    return view_from_floats(bias.shape, std::move(values));
  }

  TensorView without_trailing_ones(TensorView view) const {
    const size_t rank = name_.ends_with(".gamma") ? 1
                        : name_.ends_with(".mlp.fc1.weight") || name_.ends_with(".mlp.fc2.weight")
                            ? 2
                            : view.shape.size();
    while (view.shape.size() > rank && view.shape.back() == 1) view.shape.pop_back();
    return view;
  }

  std::string file_;
  std::string_view name_;
  const Pieces& pieces_;
};

const Dialect* find_dialect(const std::map<std::string, const TensorView*, std::less<>>& plain,
                            std::span<const Dialect> dialects) {
  for (const Dialect& dialect : dialects) {
    const auto present = [&](std::string_view name) { return plain.find(name) != plain.end(); };
    if (std::all_of(dialect.has.begin(), dialect.has.end(), present) &&
        std::none_of(dialect.lacks.begin(), dialect.lacks.end(), present))
      return &dialect;
  }
  return nullptr;
}

void add_missing_qkv_biases(TensorTable& table) {
  std::map<std::string, int64_t> missing;  // name -> length
  for (const auto& [name, view] : table.tensors) {
    if (!name.ends_with(kQkvWeight) || view.shape.empty()) continue;
    const std::string bias = name.substr(0, name.size() - std::string_view("weight").size()) + "bias";
    // The bytes of the weight are there, so its rows cannot ask for more memory than the file has, unless it
    // has no columns.
    if (!table.has(bias) && view.numel() > 0) missing[bias] = view.shape[0];
  }
  for (const auto& [name, length] : missing)
    table.tensors[name] = view_from_floats({length}, std::vector<float>(static_cast<size_t>(length)));
}

// timm's models with registers, and DeiT-3, add positions to patches only: a class row of zeros says the
// same.
void add_missing_class_row(TensorTable& table) {
  const auto found = table.tensors.find("pos_embed");
  if (found == table.tensors.end() || !table.has("cls_token") || table.has("dist_token")) return;
  const TensorView& old = found->second;
  if (old.shape.size() != 3 || old.shape[0] != 1 || old.numel() <= 0) return;
  if (square_side(old.shape[1]) == 0) return;
  std::vector<std::byte> bytes(old.bytes.size() / static_cast<size_t>(old.shape[1]));
  bytes.insert(bytes.end(), old.bytes.begin(), old.bytes.end());
  found->second = view_from_bytes(old.dtype, {1, old.shape[1] + 1, old.shape[2]}, std::move(bytes));
}

// What a dialect has, or our own files.
std::string checked_choice(const std::string& found, std::set<std::string> known, std::string_view what,
                           std::string_view file) {
  known.insert("aha");
  if (!known.contains(found))
    throw input_error(
        "{}: {}", printable(file, 300),
        unknown_name_error(what, found, std::vector<std::string>(known.begin(), known.end())).what());
  return found;
}

}  // namespace

CanonicalWeights canonical_from_any(const TensorTable& table, std::span<const Dialect> known) {
  std::set<std::string> families, sources;
  for (const Dialect& dialect : known) families.emplace(dialect.family), sources.emplace(dialect.source());
  const auto family = table.metadata.find(std::string(kFamilyKey)),
             source = table.metadata.find(std::string(kSourceKey));
  if (family != table.metadata.end() && source != table.metadata.end())
    return {table, checked_choice(family->second, families, "family", table.source),
            checked_choice(source->second, sources, "source", table.source)};

  const std::string file = printable(table.source, 300);
  std::map<std::string, const TensorView*, std::less<>> plain;
  for (const auto& [name, view] : table.tensors)
    if (!plain.try_emplace(plain_name(name), &view).second)
      throw input_error("{}: two tensors are called '{}' once their prefixes are stripped", file,
                        printable(plain_name(name)));
  const Dialect* dialect = find_dialect(plain, known);
  if (!dialect)
    throw input_error(
        "{}: expected one of {} with the tensor names of torchvision, timm, Hugging Face or Meta; found: {}",
        file, fmt::join(families, ", "), list_some(table.names()));

  std::vector<std::pair<std::string, const Rule*>> patterns;
  for (const Rule& rule : dialect->rules) patterns.emplace_back(plain_name(rule.theirs), &rule);
  std::map<std::string, Pieces> found;
  std::vector<std::string> leftovers;
  for (const auto& [name, view] : plain) {
    bool known = false;
    for (const auto& [pattern, rule] : patterns) {
      const auto ours = rewritten(name, pattern, rule->ours);
      if (!ours) continue;
      known = true;
      if (!ours->empty() && !found[*ours].try_emplace(rule->piece, view).second)
        throw input_error("{}: '{}' is there under two names, one of them '{}'", file, printable(*ours),
                          printable(name));
      break;
    }
    if (!known) leftovers.push_back(name);
  }
  if (!leftovers.empty())
    throw input_error("{}: resembles a {} of {}, but {} tensors have no place in it: {}", file,
                      dialect->family, dialect->source(), leftovers.size(), list_some(leftovers));

  CanonicalWeights weights{{}, std::string(dialect->family), std::string(dialect->source())};
  weights.table.source = table.source;
  weights.table.metadata = table.metadata;
  weights.table.metadata[std::string(kFamilyKey)] = weights.family;
  weights.table.metadata[std::string(kSourceKey)] = weights.source;
  for (const auto& [name, pieces] : found)
    weights.table.tensors[name] = Assembler(table.source, name, pieces).assembled();
  add_missing_qkv_biases(weights.table);
  if (weights.source == "timm") add_missing_class_row(weights.table);
  return weights;
}

void check_keys(const TensorTable& table, const std::map<std::string, std::vector<int64_t>>& expected,
                std::string_view network) {
  std::vector<std::string> missing, unexpected, different;
  for (const auto& [name, shape] : expected) {
    const auto found = table.tensors.find(name);
    if (found == table.tensors.end())
      missing.push_back(name);
    else if (found->second.shape != shape)
      different.push_back(fmt::format("'{}' expected {}, found {}", name, text_from_shape(shape),
                                      text_from_shape(found->second.shape)));
  }
  for (const auto& [name, view] : table.tensors)
    if (!expected.contains(name)) unexpected.push_back(name);
  if (missing.empty() && unexpected.empty() && different.empty()) return;

  std::vector<std::string> parts;
  if (!missing.empty()) parts.push_back(fmt::format("{} missing: {}", missing.size(), list_some(missing)));
  if (!unexpected.empty())
    parts.push_back(fmt::format("{} unexpected: {}", unexpected.size(), list_some(unexpected)));
  if (!different.empty()) {
    const size_t count = different.size();
    different.resize(std::min<size_t>(count, 3));
    parts.push_back(fmt::format("{} of another shape: {}", count, fmt::join(different, "; ")));
  }
  throw input_error("{}: not the tensors of {}: {}", printable(table.source, 300), network,
                    fmt::join(parts, "; "));
}

}  // namespace aha
