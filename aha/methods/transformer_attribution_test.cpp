// Transformer Attribution against plain loops in double on the transformer whose weights are waves.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "aha/methods/catalog.h"
#include "aha/testing/tiny_targets.h"

namespace aha {
namespace {

using Rows = std::vector<std::vector<double>>;

Rows rows_of_zeros(size_t rows, size_t columns) {
  return Rows(rows, std::vector<double>(columns));
}

double divided_safely(double a, double b) {
  return b == 0 ? 0 : a / (b + 1e-9);
}

double sum_of(const Rows& x) {
  double sum = 0;
  for (const auto& row : x)
    for (const double value : row) sum += value;
  return sum;
}

constexpr int kTokens = 5, kWidth = 8, kHeads = 2, kHeadWidth = 4, kHidden = 16, kDepth = 2;

// The whole network and the propagation, one number at a time.
class SlowVit {
 public:
  explicit SlowVit(const Vit& vit) {
    for (const auto& item : vit->named_parameters()) {
      const auto values = item.value().to(torch::kFloat64).contiguous();
      weights_[item.key()] = {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
    }
  }

  // What a block computes on its way.
  struct Block {
    Rows in, normed1, q, k, v, context, branch1, middle, normed2, hidden, branch2;
    std::array<Rows, kHeads> attention;
  };
  // `nudge` is added to one entry of an attention.
  struct Nudge {
    int block = -1, head = 0, query = 0, key = 0;
    double by = 0;
  };

  double logit(const std::vector<double>& pixels, int wanted, const Nudge& nudge) {
    Rows x = embedded(pixels);
    for (int l = 0; l < kDepth; ++l) {
      Block& b = blocks[l];
      const std::string name = "blocks." + std::to_string(l) + ".";
      b.in = x;
      b.normed1 = normed(x);
      const Rows qkv = linear(b.normed1, name + "attn.qkv", 3 * kWidth);
      b.q = b.k = b.v = b.context = rows_of_zeros(kTokens, kWidth);
      for (int t = 0; t < kTokens; ++t)
        for (int c = 0; c < kWidth; ++c) {
          b.q[t][c] = qkv[t][c];
          b.k[t][c] = qkv[t][kWidth + c];
          b.v[t][c] = qkv[t][2 * kWidth + c];
        }
      for (int h = 0; h < kHeads; ++h) {
        Rows& a = b.attention[h] = rows_of_zeros(kTokens, kTokens);
        for (int i = 0; i < kTokens; ++i) {
          double sum = 0;
          for (int j = 0; j < kTokens; ++j) sum += a[i][j] = std::exp(dot(b, h, i, j) / 2);
          for (int j = 0; j < kTokens; ++j) a[i][j] /= sum;
        }
        if (nudge.block == l && nudge.head == h) a[nudge.query][nudge.key] += nudge.by;
        for (int i = 0; i < kTokens; ++i)
          for (int j = 0; j < kTokens; ++j)
            for (int c = h * kHeadWidth; c < (h + 1) * kHeadWidth; ++c)
              b.context[i][c] += a[i][j] * b.v[j][c];
      }
      b.branch1 = linear(b.context, name + "attn.proj", kWidth);
      b.middle = added(x, b.branch1);
      b.normed2 = normed(b.middle);
      b.hidden = linear(b.normed2, name + "mlp.fc1", kHidden);
      for (auto& row : b.hidden)
        for (double& value : row) value *= 0.5 * (1 + std::erf(value / std::sqrt(2.0)));
      b.branch2 = linear(b.hidden, name + "mlp.fc2", kWidth);
      x = added(b.middle, b.branch2);
    }
    out = normed(x);
    return linear(out, "head", 3)[0][wanted];
  }

  // Relevance of every attention, from the last logit() without a nudge.
  std::array<std::array<Rows, kHeads>, kDepth> attention_relevance(int wanted) {
    std::array<std::array<Rows, kHeads>, kDepth> found;
    Rows at_logits = rows_of_zeros(kTokens, 3);
    at_logits[0][wanted] = 1;
    Rows r = linear_back(out, at_logits, "head");
    for (int l = kDepth; l-- > 0;) {
      const Block& b = blocks[l];
      const std::string name = "blocks." + std::to_string(l) + ".";
      auto [skip2, mlp] = sum_back(b.middle, b.branch2, r);
      mlp = linear_back(b.normed2, linear_back(b.hidden, mlp, name + "mlp.fc2"), name + "mlp.fc1");
      auto [skip1, of_branch] = sum_back(b.in, b.branch1, added(skip2, mlp));
      const Rows of_context = linear_back(b.context, of_branch, name + "attn.proj");
      Rows of_qkv = rows_of_zeros(kTokens, 3 * kWidth);
      for (int h = 0; h < kHeads; ++h) {
        Rows& ra = found[l][h] = rows_of_zeros(kTokens, kTokens);
        const Rows& a = b.attention[h];
        for (int i = 0; i < kTokens; ++i)
          for (int c = h * kHeadWidth; c < (h + 1) * kHeadWidth; ++c) {
            const double s = divided_safely(of_context[i][c], b.context[i][c]);
            for (int j = 0; j < kTokens; ++j) {
              ra[i][j] += a[i][j] * s * b.v[j][c] / 2;
              of_qkv[j][2 * kWidth + c] += b.v[j][c] * a[i][j] * s / 2;
            }
          }
        for (int i = 0; i < kTokens; ++i)
          for (int j = 0; j < kTokens; ++j) {
            const double s = divided_safely(ra[i][j], dot(b, h, i, j));
            for (int c = h * kHeadWidth; c < (h + 1) * kHeadWidth; ++c) {
              of_qkv[i][c] += b.q[i][c] * s * b.k[j][c] / 2;
              of_qkv[j][kWidth + c] += b.k[j][c] * s * b.q[i][c] / 2;
            }
          }
      }
      r = added(skip1, linear_back(b.normed1, of_qkv, name + "attn.qkv"));
    }
    return found;
  }

  std::array<Block, kDepth> blocks;
  Rows out;  // after the final norm

 private:
  double weight(const std::string& name, size_t i) const { return weights_.at(name)[i]; }

  static double dot(const Block& b, int head, int i, int j) {
    double sum = 0;
    for (int c = head * kHeadWidth; c < (head + 1) * kHeadWidth; ++c) sum += b.q[i][c] * b.k[j][c];
    return sum;
  }

  Rows embedded(const std::vector<double>& pixels) const {
    Rows x = rows_of_zeros(kTokens, kWidth);
    for (int d = 0; d < kWidth; ++d) {
      x[0][d] = weight("cls_token", d);
      for (int p = 0; p < 4; ++p) {
        double sum = weight("patch_embed.proj.bias", d);
        for (int c = 0; c < 3; ++c)
          for (int y = 0; y < 2; ++y)
            for (int z = 0; z < 2; ++z)
              sum += weight("patch_embed.proj.weight", ((d * 3 + c) * 2 + y) * 2 + z) *
                     pixels[(c * 4 + p / 2 * 2 + y) * 4 + p % 2 * 2 + z];
        x[1 + p][d] = sum;
      }
      for (int t = 0; t < kTokens; ++t) x[t][d] += weight("pos_embed", t * kWidth + d);
    }
    return x;
  }

  static Rows normed(Rows x) {
    for (auto& row : x) {
      double mean = 0, square = 0;
      for (const double value : row) mean += value / kWidth;
      for (const double value : row) square += (value - mean) * (value - mean) / kWidth;
      for (double& value : row) value = (value - mean) / std::sqrt(square + 1e-6);
    }
    return x;
  }

  Rows linear(const Rows& x, const std::string& name, int outputs) const {
    Rows y = rows_of_zeros(x.size(), outputs);
    for (size_t t = 0; t < x.size(); ++t)
      for (int o = 0; o < outputs; ++o) {
        y[t][o] = weight(name + ".bias", o);
        for (size_t i = 0; i < x[t].size(); ++i)
          y[t][o] += weight(name + ".weight", o * x[t].size() + i) * x[t][i];
      }
    return y;
  }

  static Rows added(const Rows& a, const Rows& b) {
    Rows sum = a;
    for (size_t t = 0; t < a.size(); ++t)
      for (size_t i = 0; i < a[t].size(); ++i) sum[t][i] += b[t][i];
    return sum;
  }

  // Products of equal signs share the relevance of their sum.
  Rows linear_back(const Rows& x, const Rows& r, const std::string& name) const {
    Rows back = rows_of_zeros(x.size(), x[0].size());
    for (size_t t = 0; t < x.size(); ++t)
      for (size_t o = 0; o < r[t].size(); ++o) {
        const auto share = [&](size_t i) {
          return std::max(0.0, x[t][i] * weight(name + ".weight", o * x[t].size() + i));
        };
        double sum = 0;
        for (size_t i = 0; i < x[t].size(); ++i) sum += share(i);
        for (size_t i = 0; i < x[t].size(); ++i) back[t][i] += share(i) * divided_safely(r[t][o], sum);
      }
    return back;
  }

  static std::pair<Rows, Rows> sum_back(const Rows& a, const Rows& b, const Rows& r) {
    Rows u = a, v = b;
    for (size_t t = 0; t < a.size(); ++t)
      for (size_t i = 0; i < a[t].size(); ++i) {
        const double ratio = divided_safely(r[t][i], a[t][i] + b[t][i]);
        u[t][i] *= ratio, v[t][i] *= ratio;
      }
    const double su = sum_of(u), sv = sum_of(v), whole = std::abs(su) + std::abs(sv), all = sum_of(r);
    for (auto& row : u)
      for (double& value : row) value *= divided_safely(divided_safely(std::abs(su), whole) * all, su);
    for (auto& row : v)
      for (double& value : row) value *= divided_safely(divided_safely(std::abs(sv), whole) * all, sv);
    return {u, v};
  }

  std::map<std::string, std::vector<double>> weights_;
};

class TransformerAttributionOfGoldenVit : public ::testing::TestWithParam<int> {};

TEST_P(TransformerAttributionOfGoldenVit, IsThatOfPlainLoopsAndFiniteDifferences) {
  const int wanted = GetParam();
  const Tensor pixels = (torch::arange(48, torch::kFloat64) * 0.3).cos().view({1, 3, 4, 4});
  std::vector<double> values;
  for (int i = 0; i < 48; ++i) values.push_back(std::cos(0.3 * i));

  SlowVit slow(checks::golden_vit());
  EXPECT_NEAR(slow.logit(values, wanted, {}), (std::vector{-1.120743, -0.382227, 0.239370})[wanted], 1e-6);
  const auto relevance = slow.attention_relevance(wanted);
  for (const bool normalized : {true, false}) {
    std::vector<double> row = {1, 0, 0, 0, 0};
    for (int l = kDepth; l-- > 0;) {
      Rows b = rows_of_zeros(kTokens, kTokens);
      for (int i = 0; i < kTokens; ++i) {
        b[i][i] = 1;
        double sum = 1;
        for (int j = 0; j < kTokens; ++j)
          for (int h = 0; h < kHeads; ++h) {
            const double step = 1e-5, gradient = (slow.logit(values, wanted, {l, h, i, j, step}) -
                                                  slow.logit(values, wanted, {l, h, i, j, -step})) /
                                                 (2 * step);
            const double share = std::max(0.0, gradient * relevance[l][h][i][j]) / kHeads;
            b[i][j] += share;
            sum += share;
          }
        if (normalized)
          for (double& value : b[i]) value /= sum;
      }
      std::vector<double> next(kTokens);
      for (int i = 0; i < kTokens; ++i)
        for (int j = 0; j < kTokens; ++j) next[j] += row[i] * b[i][j];
      row = next;
    }
    double largest = 0;
    for (int p = 1; p < kTokens; ++p) largest = std::max(largest, std::abs(row[p]));
    EXPECT_GT(largest, 1e-3);
    // In double the difference is that of the finite differences; float32 loses digits where a query and a
    // key are nearly orthogonal, because relevance is divided by their product.
    for (const auto& [type, tolerance] :
         {std::pair(torch::kFloat64, 1e-7 * largest), std::pair(torch::kFloat32, 1e-5)}) {
      Vit vit = checks::golden_vit();
      vit->to(type);
      VitClassifier target(vit, checks::golden_info());
      const auto method = make_method(
          std::string("transformer-attribution:rows=") + (normalized ? "normalized" : "plain"), {target});
      const auto map =
          method->attribute(pixels.to(type), torch::tensor({wanted}, torch::kInt64), {{1}}, Context())
              .maps[0];  // (4, 4): the patches' values are its corners
      for (int p = 0; p < 4; ++p)
        EXPECT_NEAR(map[p / 2 * 3][p % 2 * 3].item<double>(), row[1 + p], tolerance) << p;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Classes, TransformerAttributionOfGoldenVit, ::testing::Values(0, 1, 2));

}  // namespace
}  // namespace aha
