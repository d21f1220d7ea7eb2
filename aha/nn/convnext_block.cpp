#include "aha/nn/convnext_block.h"

#include <cstring>

#include "aha/base/parallel.h"
#include "aha/kernels/gemm/gemm.h"
#include "aha/kernels/layer_norm/layer_norm.h"
#include "aha/kernels/weight_gradient/weight_gradient.h"
#include "aha/nn/tensor_members.h"

namespace aha {
namespace {

constexpr int64_t kTaps = DepthwiseWeights::kTaps;

using ConvMember = ConvNextBlockWeights;
constexpr TensorMembers<ConvMember, 9> kConvMembers = {
    {&ConvMember::dw_weight, &ConvMember::dw_bias, &ConvMember::norm_weight, &ConvMember::norm_bias,
     &ConvMember::fc1_weight, &ConvMember::fc1_bias, &ConvMember::fc2_weight, &ConvMember::fc2_bias,
     &ConvMember::gamma},
    "a ConvNeXt block"};

}  // namespace

std::vector<Tensor> ConvNextBlockWeights::list() const {
  return kConvMembers.list(*this);
}

ConvNextBlockWeights ConvNextBlockWeights::from_list(at::TensorList list) {
  return kConvMembers.from_list(list);
}

ConvNextBlockWeights ConvNextBlockWeights::plain() const {
  const int64_t D = dw_weight.size(0), F = fc1_weight.size(0);
  return kConvMembers.plain(*this, {{{D, 1, 7, 7}, {D}, {D}, {D}, {F, D}, {F}, {D, F}, {D}, {D}}});
}

ConvNextBlockLinears linears_of(const ConvNextBlockWeights& w) {
  return {AffineLinear{w.fc1_weight, w.fc1_bias, w.norm_weight, w.norm_bias, {}},
          AffineLinear{w.fc2_weight, w.fc2_bias, {}, {}, w.gamma}};
}

PieceOperands piece_operands(const LinePieces& pieces, Format format, CountedBuffers& buffers, int64_t images,
                             int64_t columns) {
  PieceOperands list;
  pieces.each(images,
              [&](const LinePieces::Piece& p) { list.push_back(buffers.operand(format, p.rows, columns)); });
  return list;
}

ConvNextBlockState::ConvNextBlockState(const LinePieces& pieces, Format format, CountedBuffers& buffers,
                                       int64_t images, int64_t width, int64_t hidden, bool save)
    : pieces(pieces),
      xhat(piece_operands(pieces, format, buffers, images, width)),
      rstd(buffers.floats(images * pieces.pixels())) {
  if (save)
    pieces.each(images, [&](const LinePieces::Piece& p) {
      gelu_derivative.push_back(buffers.activation_derivative(format, p.rows, hidden));
    });
}

ConvNextBlock::ConvNextBlock(const ConvNextBlockWeights& w, double eps, const KernelSet& kernels, Pass pass)
    : width_(w.dw_weight.size(0)),
      hidden_(w.fc1_weight.size(0)),
      eps_(static_cast<float>(eps)),
      kernels_(&kernels),
      sums_({{hidden_, width_}, {width_, hidden_}}) {
  const auto linears = linears_of(w);
  parallel_for(kConvLinears, [&](int64_t i, int) {
    (i == kConvFc1 ? fc1_ : fc2_) = PackedLinear(kernels.format, folded(linears[i]), pass);
  });
  depthwise_ = DepthwiseWeights::forward(floats(w.dw_weight), floats(w.dw_bias), width_);
  depthwise_back_ = DepthwiseWeights::backward(floats(w.dw_weight), width_);
}

void ConvNextBlock::forward(ConvNextBlockState& s, int64_t images, const float* x, float* out, float* rows,
                            Activations& hidden, bool save) const {
  const KernelSet& k = *kernels_;
  const int64_t D = width_;
  s.pieces.each(images, [&](const LinePieces::Piece& p) {
    depthwise(k, p.first_line, p.lines, {x, D, s.pieces.lines, s.pieces.line_pixels, &depthwise_, rows, D});
    layer_norm(k, p.rows, rows, D, eps_, s.xhat[p.index], s.rstd.data() + p.first_row);
  });
  if (out != x) std::memcpy(out, x, sizeof(float) * images * s.pieces.pixels() * D);
  s.pieces.each(images, [&](const LinePieces::Piece& p) {
    gemm(k, p.rows, s.xhat[p.index], fc1_.forward(),
         GeluToActivations{&hidden, fc1_.bias(), save ? &s.gelu_derivative[p.index] : nullptr});
    gemm(k, p.rows, hidden, fc2_.forward(), AddToRows{out + p.first_row * D, D, fc2_.bias()});
  });
}

void ConvNextBlock::backward(const ConvNextBlockState& s, int64_t images, const Gradient& g) const {
  const KernelSet& k = *kernels_;
  const int64_t D = width_;
  const PackedWeights &fc2_back = fc2_.backward(k, 0), &fc1_back = fc1_.backward(k, 1);
  const auto learn = [&](ConvNextLinear linear, int64_t rows, const Activations& dy, const Activations& in) {
    float* sums = g.sums + linears_at();
    weight_gradient(k, rows,
                    {&dy, &in, sums + sums_.weight(linear), in.columns(), sums + sums_.bias(linear)});
  };
  s.pieces.each(images, [&](const LinePieces::Piece& p) {
    const Activations& dout = (*g.operand)[p.index];
    if (g.sums) learn(kConvFc2, p.rows, dout, *g.kept_hidden);
    gemm(k, p.rows, dout, fc2_back, ScaleToActivations{g.hidden, &s.gelu_derivative[p.index]});
    if (g.sums) learn(kConvFc1, p.rows, *g.hidden, s.xhat[p.index]);
    gemm(k, p.rows, *g.hidden, fc1_back, StoreRows{g.rows, D});
    float* dy = g.dy + p.first_row * D;
    std::memset(dy, 0, sizeof(float) * p.rows * D);
    layer_norm_backward(k, p.rows,
                        {g.rows, D, &s.xhat[p.index], s.rstd.data() + p.first_row, dy, D, nullptr});
  });
  if (g.sums)
    depthwise_weight_gradient(
        k, images, {g.x, g.dy, D, D, s.pieces.lines, s.pieces.line_pixels, D, g.sums, g.sums + D * kTaps});
  s.pieces.each(images, [&](const LinePieces::Piece& p) {
    depthwise(k, p.first_line, p.lines,
              {g.dy, D, s.pieces.lines, s.pieces.line_pixels, &depthwise_back_, g.dx + p.first_row * D, D,
               true, g.to_operand ? &(*g.operand)[p.index] : nullptr});
  });
}

void ConvNextBlock::unfold_sums(const ConvNextBlockWeights& plain, const float* sums,
                                const ConvNextBlockWeights& to) const {
  float* taps = to.dw_weight.data_ptr<float>();
  for (int64_t c = 0; c < width_; ++c)
    for (int64_t tap = 0; tap < kTaps; ++tap)
      taps[c * kTaps + tap] = sums[(c / kPanel * kTaps + tap) * kPanel + c % kPanel];
  std::memcpy(to.dw_bias.data_ptr<float>(), sums + width_ * kTaps, sizeof(float) * width_);
  const auto weights = linears_of(plain), gradients = linears_of(to);
  const float* linears = sums + linears_at();
  for (int i = 0; i < kConvLinears; ++i)
    unfold(weights[i], linears + sums_.weight(i), linears + sums_.bias(i), gradients[i]);
}

int64_t ConvNextBlock::bytes() const {
  return fc1_.bytes() + fc2_.bytes() + 2 * 4 * width_ * kTaps;
}

}  // namespace aha
