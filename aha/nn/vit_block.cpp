#include "aha/nn/vit_block.h"

#include <cstring>

#include "aha/base/parallel.h"
#include "aha/kernels/attention/attention.h"
#include "aha/kernels/gemm/gemm.h"
#include "aha/kernels/layer_norm/layer_norm.h"
#include "aha/kernels/rope/rope.h"
#include "aha/kernels/swiglu/swiglu.h"
#include "aha/kernels/weight_gradient/weight_gradient.h"
#include "aha/nn/tensor_members.h"

namespace aha {
namespace {

using VitMember = VitBlockWeights;
constexpr TensorMembers<VitMember, 14> kVitMembers = {
    {&VitMember::norm1_weight, &VitMember::norm1_bias, &VitMember::qkv_weight, &VitMember::qkv_bias,
     &VitMember::proj_weight, &VitMember::proj_bias, &VitMember::norm2_weight, &VitMember::norm2_bias,
     &VitMember::fc1_weight, &VitMember::fc1_bias, &VitMember::fc2_weight, &VitMember::fc2_bias,
     &VitMember::scale1, &VitMember::scale2},
    "a transformer block"};

// First rows of every image of `from`, `all` rows each, to `to`, `first` rows each.
void copy_first_rows(int64_t images, const float* from, int64_t all, float* to, int64_t first,
                     int64_t width) {
  for (int64_t b = 0; b < images; ++b)
    std::memcpy(to + b * first * width, from + b * all * width, sizeof(float) * first * width);
}

// First tokens of every image and head of `from`, as many as `to` has.
void copy_first_tokens(int64_t images, const Heads& from, Heads& to) {
  const int64_t count = to.tokens() * to.width();
  for (int64_t b = 0; b < images; ++b)
    for (int64_t h = 0; h < from.heads(); ++h) {
      const int64_t source = from.offset(b, h), target = to.offset(b, h);
      if (from.format() == Format::kF32)
        std::copy_n(from.f32() + source, count, to.f32() + target);
      else
        std::copy_n(from.bf16() + source, count, to.bf16() + target);
      if (from.format() == Format::kBf16Pair)
        std::copy_n(from.bf16() + from.plane() + source, count, to.bf16() + to.plane() + target);
    }
}

}  // namespace

bool VitBlockOptions::fits() const {
  return heads > 0 && width % kPanel == 0 && width % heads == 0 && head_width() % kPanel == 0 &&
         (!swiglu || hidden % kPanel == 0);
}

bool VitBlockOptions::fits_training() const {
  return fits() && hidden % kPanel == 0;
}

std::vector<Tensor> VitBlockWeights::list() const {
  return kVitMembers.list(*this);
}

VitBlockWeights VitBlockWeights::from_list(at::TensorList list) {
  return kVitMembers.from_list(list);
}

VitBlockWeights VitBlockWeights::plain(const VitBlockOptions& o) const {
  const int64_t D = o.width, F = o.hidden, F1 = o.fc1_outputs();
  return kVitMembers.plain(
      *this, {{{D}, {D}, {3 * D, D}, {3 * D}, {D, D}, {D}, {D}, {D}, {F1, D}, {F1}, {D, F}, {D}, {D}, {D}}});
}

VitBlockLinears linears_of(const VitBlockWeights& w, const VitBlockOptions& options) {
  return {AffineLinear{w.qkv_weight,
                       w.qkv_bias,
                       w.norm1_weight,
                       w.norm1_bias,
                       {},
                       options.width,
                       1 / std::sqrt(static_cast<double>(options.head_width()))},
          AffineLinear{w.proj_weight, w.proj_bias, {}, {}, w.scale1},
          AffineLinear{w.fc1_weight, w.fc1_bias, w.norm2_weight, w.norm2_bias, {}},
          AffineLinear{w.fc2_weight, w.fc2_bias, {}, {}, w.scale2}};
}

GradientSums gradient_sums(const VitBlockOptions& o) {
  return GradientSums(
      {{3 * o.width, o.width}, {o.width, o.width}, {o.fc1_outputs(), o.width}, {o.width, o.hidden}});
}

VitBlockState::VitBlockState(const VitBlockOptions& o, Format format, CountedBuffers& buffers, int64_t images,
                             int64_t tokens, int64_t queries, VitBlockKeep keep)
    : capacity(images), tokens(tokens), queries(queries) {
  const int64_t R = images * tokens, Rq = images * queries, D = o.width;
  const auto heads = [&](int64_t count) {
    return buffers.heads(format, images, o.heads, count, o.head_width());
  };
  xhat1 = buffers.operand(format, R, D);
  rstd1 = buffers.floats(R);
  if (queries < tokens) {
    xhat_q = buffers.operand(format, Rq, D);
    rstd_q = buffers.floats(Rq);
  }
  xhat2 = buffers.operand(format, Rq, D);
  rstd2 = buffers.floats(Rq);
  q = heads(queries);
  k = heads(tokens);
  v = heads(tokens);
  log_sum_exp = buffers.floats(Rq * o.heads);
  if (o.swiglu)
    gates = buffers.operand(format, Rq, 2 * o.hidden);
  else if (keep != VitBlockKeep::kNothing)
    gelu_derivative = buffers.activation_derivative(format, Rq, o.hidden);
  if (keep == VitBlockKeep::kForAllGradients) {
    context = buffers.operand(format, Rq, D);
    hidden = buffers.operand(format, Rq, o.hidden);
  }
}

VitBlockScratch::VitBlockScratch(const VitBlockOptions& o, Format format, CountedBuffers& buffers,
                                 int64_t images, int64_t tokens, const std::vector<int64_t>& queries,
                                 bool backward, int64_t row_width) {
  const int64_t R = images * tokens, D = o.width,
                most = images * *std::max_element(queries.begin(), queries.end());
  stream = buffers.operand(format, most, D);
  hidden = buffers.operand(format, most, o.hidden);
  if (!backward) return;
  if (o.swiglu) dgates = buffers.operand(format, most, 2 * o.hidden);
  rows = buffers.floats(R * std::max(D, row_width));
  for (const int64_t count : queries) {
    OfQueries part{.queries = count};
    if (count == tokens) {
      part.dqkv = buffers.operand(format, R, 3 * D);
    } else {
      part.dq = buffers.operand(format, images * count, D);
      part.dkv = buffers.operand(format, R, 2 * D);
      part.dx = buffers.floats(images * count * D);
    }
    part.dout = buffers.heads(format, images, o.heads, count, o.head_width());
    of_queries.push_back(std::move(part));
  }
}

VitBlockScratch::OfQueries& VitBlockScratch::of(int64_t queries) {
  return *std::find_if(of_queries.begin(), of_queries.end(),
                       [&](const OfQueries& part) { return part.queries == queries; });
}

VitBlock::VitBlock(const VitBlockOptions& options, const VitBlockLinears& linears, const KernelSet& kernels,
                   Queries queries, Pass pass, const RopeAngles& rope)
    : options_(options), kernels_(&kernels), rope_(rope), sums_(gradient_sums(options)) {
  const int64_t D = options.width;
  std::array<FoldedLinear, kVitLinears> ready;
  parallel_for(kVitLinears, [&](int64_t i, int) { ready[i] = folded(linears[i]); });
  struct Job {
    PackedLinear* to;
    VitLinear from;
    int64_t first, outputs;
  };
  std::vector<Job> jobs = {
      {&proj_, kProj, 0, D}, {&fc1_, kFc1, 0, options.fc1_outputs()}, {&fc2_, kFc2, 0, D}};
  if (queries != Queries::kFirst) jobs.push_back({&qkv_, kQkv, 0, 3 * D});
  if (queries != Queries::kAll) jobs.insert(jobs.end(), {{&q_, kQkv, 0, D}, {&kv_, kQkv, D, 2 * D}});
  parallel_for(std::ssize(jobs), [&](int64_t i, int) {
    const Job& job = jobs[i];
    *job.to = PackedLinear(kernels.format, ready[job.from], pass, job.first, job.outputs);
  });
}

void VitBlock::forward(VitBlockState& s, int64_t images, const float* x, float* out, Activations& context,
                       Activations& hidden, bool save) const {
  const KernelSet& k = *kernels_;
  const int64_t D = options_.width, T = s.tokens, Q = s.queries, R = images * T, Rq = images * Q;
  const auto eps = static_cast<float>(options_.eps);
  layer_norm(k, R, x, D, eps, s.xhat1, s.rstd1.data());
  if (out != x) copy_first_rows(images, x, T, out, Q, D);
  if (Q == T) {
    gemm(k, R, s.xhat1, qkv_.forward(), StoreHeads{{&s.q, &s.k, &s.v}, qkv_.bias()});
  } else {
    gemm(k, R, s.xhat1, kv_.forward(), StoreHeads{{&s.k, &s.v, nullptr}, kv_.bias()});
    layer_norm(k, Rq, out, D, eps, s.xhat_q, s.rstd_q.data());
    gemm(k, Rq, s.xhat_q, q_.forward(), StoreHeads{{&s.q, nullptr, nullptr}, q_.bias()});
  }
  if (rope_.cos)
    for (Heads* heads : {&s.q, &s.k}) rotate_heads(k, images, rope_, *heads);
  finish(s, {&s.q, &s.k, &s.v, images}, out, context, hidden, save);
}

void VitBlock::forward_first(const VitBlockState& whole, VitBlockState& first, int64_t images, float* out,
                             Activations& context, Activations& hidden) const {
  copy_first_tokens(images, whole.q, first.q);
  finish(first, {&first.q, &whole.k, &whole.v, images}, out, context, hidden, true);
}

void VitBlock::first_queries(const VitBlockState& whole, VitBlockState& first, int64_t images) const {
  copy_first_tokens(images, whole.q, first.q);
  for (int64_t i = 0; i < images * options_.heads; ++i)
    std::copy_n(whole.log_sum_exp.data() + i * whole.queries, first.queries,
                first.log_sum_exp.data() + i * first.queries);
}

const Heads& VitBlock::attention_gradient(int64_t images, int64_t queries, VitBlockScratch& scratch) const {
  Heads& dout = scratch.of(queries).dout;
  gemm(*kernels_, images * queries, scratch.stream, proj_.backward(*kernels_),
       StoreHeads{{&dout, nullptr, nullptr}});
  return dout;
}

void VitBlock::finish(VitBlockState& s, const AttentionInput& attention, float* out, Activations& context,
                      Activations& hidden, bool save) const {
  const KernelSet& k = *kernels_;
  const int64_t D = options_.width, Rq = attention.images * s.queries;
  const auto eps = static_cast<float>(options_.eps);
  attention_forward(k, attention, context, s.log_sum_exp.data());
  gemm(k, Rq, context, proj_.forward(), AddToRows{out, D, proj_.bias()});
  layer_norm(k, Rq, out, D, eps, s.xhat2, s.rstd2.data());
  if (options_.swiglu) {
    gemm(k, Rq, s.xhat2, fc1_.forward(), StoreActivations{&s.gates, fc1_.bias()});
    swiglu(k, Rq, s.gates, hidden);
  } else {
    gemm(k, Rq, s.xhat2, fc1_.forward(),
         GeluToActivations{&hidden, fc1_.bias(), save ? &s.gelu_derivative : nullptr});
  }
  gemm(k, Rq, hidden, fc2_.forward(), AddToRows{out, D, fc2_.bias()});
}

void VitBlock::backward(const VitBlockState& s, int64_t images, VitBlockScratch& scratch,
                        const Gradient& g) const {
  const KernelSet& k = *kernels_;
  const int64_t D = options_.width, H = options_.heads, d = options_.head_width();
  const int64_t T = s.tokens, Q = s.queries, R = images * T, Rq = images * Q;
  const bool whole = Q == T;
  VitBlockScratch::OfQueries& part = scratch.of(Q);
  float* rows = scratch.rows.data();
  const auto learn = [&](VitLinear linear, int64_t n, const Activations& dy, const Activations& in,
                         int64_t first_output = 0) {
    if (!g.sums) return;
    const int64_t K = in.columns();
    weight_gradient(k, n,
                    {&dy, &in, g.sums + sums_.weight(linear) + first_output * K, K,
                     g.sums + sums_.bias(linear) + first_output});
  };
  const auto turn_back = [&](Activations& gradient, int64_t column, int64_t tokens) {
    if (rope_.cos) rotate_gradient(k, rope_, {&gradient, column, images, tokens, H, d});
  };

  float* stream = whole ? g.dx : part.dx.data();  // gradient of the tokens that ask, (Rq, D)
  if (stream != g.dout) std::memcpy(stream, g.dout, sizeof(float) * Rq * D);
  learn(kFc2, Rq, scratch.stream, s.hidden);
  Activations* dfc1 = &scratch.hidden;
  if (options_.swiglu) {
    gemm(k, Rq, scratch.stream, fc2_.backward(k), StoreActivations{&scratch.hidden});
    swiglu_backward(k, Rq, s.gates, scratch.hidden, scratch.dgates);
    dfc1 = &scratch.dgates;
  } else {
    gemm(k, Rq, scratch.stream, fc2_.backward(k), ScaleToActivations{&scratch.hidden, &s.gelu_derivative});
  }
  learn(kFc1, Rq, *dfc1, s.xhat2);
  gemm(k, Rq, *dfc1, fc1_.backward(k), StoreRows{rows, D});
  layer_norm_backward(k, Rq, {rows, D, &s.xhat2, s.rstd2.data(), stream, D, &scratch.stream});
  learn(kProj, Rq, scratch.stream, s.context);
  attention_gradient(images, Q, scratch);
  if (g.at_attention && !g.at_attention(s, part.dout)) return;
  const AttentionInput attention = {&s.q, &s.k, &s.v, images};
  if (whole) {
    attention_backward(k, attention,
                       {&part.dout, s.log_sum_exp.data(), &part.dqkv, 0, &part.dqkv, D, &part.dqkv, 2 * D});
    turn_back(part.dqkv, 0, T);
    turn_back(part.dqkv, D, T);
    learn(kQkv, R, part.dqkv, s.xhat1);
    gemm(k, R, part.dqkv, qkv_.backward(k), StoreRows{rows, D});
  } else {
    attention_backward(k, attention,
                       {&part.dout, s.log_sum_exp.data(), &part.dq, 0, &part.dkv, 0, &part.dkv, D});
    turn_back(part.dq, 0, Q);
    turn_back(part.dkv, 0, T);
    learn(kQkv, Rq, part.dq, s.xhat_q);
    gemm(k, Rq, part.dq, q_.backward(k), StoreRows{rows, D});
    layer_norm_backward(k, Rq, {rows, D, &s.xhat_q, s.rstd_q.data(), stream, D, nullptr});
    // What came to the tokens that ask goes to their places; keys and values add their part.
    std::memset(g.dx, 0, sizeof(float) * R * D);
    for (int64_t b = 0; b < images; ++b)
      std::memcpy(g.dx + b * T * D, stream + b * Q * D, sizeof(float) * Q * D);
    learn(kQkv, R, part.dkv, s.xhat1, D);
    gemm(k, R, part.dkv, kv_.backward(k), StoreRows{rows, D});
  }
  layer_norm_backward(k, R,
                      {rows, D, &s.xhat1, s.rstd1.data(), g.dx, D, g.to_operand ? &scratch.stream : nullptr});
}

int64_t VitBlock::bytes() const {
  int64_t bytes = 0;
  for (const PackedLinear* p : {&qkv_, &q_, &kv_, &proj_, &fc1_, &fc2_}) bytes += p->bytes();
  return bytes;
}

}  // namespace aha
