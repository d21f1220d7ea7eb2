#include "aha/nn/frozen_convnext.h"

#include "aha/base/error.h"
#include "aha/base/shared_for.h"
#include "aha/kernels/gemm/gemm.h"
#include "aha/kernels/layer_norm/layer_norm.h"
#include "aha/nn/frozen_engine.h"
#include "aha/nn/plain_tensors.h"

namespace aha {
namespace {

// Rows of a piece: whole tiles of 14 rows (AVX-512) and of 32 (AMX) on the usual widths of a line. Hidden
// rows then take 0.2 MB at 64 channels and 2.8 MB at 768. Forward + backward at 32 x 32 pixels: 10 % faster
// than pieces of 1 MB; at 224 x 224 anything from 100 to 700 rows is within 5 %.
constexpr int64_t kPieceRows = 224;
// Stem rows of a chunk: late stages, which have 64 times fewer rows, need more than one image. At 224 x 224
// two images are 3 % faster than one, four 1 % more.
constexpr int64_t kFrozenChunkRows = 6272;

struct Stage : LinePieces {
  int64_t width, hidden;  // channels
  PackedLinear down;      // (D, 4 D of the stage before), its norm folded in; empty in the first stage
  std::vector<ConvNextBlock> blocks;
};

// All columns of a row of `from` to the columns of `to` from `to_column` on, both whole panels.
void copy_row(const Activations& from, int64_t row, Activations& to, int64_t to_row, int64_t to_column) {
  if (from.format() == Format::kF32) {
    std::memcpy(to.f32() + to_row * to.stride() + to_column, from.f32() + row * from.stride(),
                sizeof(float) * from.columns());
    return;
  }
  for (int64_t s = 0; s < from.panels(); ++s)
    for (int64_t plane = 0; plane < from.planes(); ++plane)
      std::memcpy(to.bf16() + to.panel_offset(to_row, to_column / kPanel + s) + plane * Activations::kPlane,
                  from.bf16() + from.panel_offset(row, s) + plane * Activations::kPlane,
                  sizeof(Bf16) * kPanel);
}

// What copying so many values takes, in operations of a GEMM.
double copying(int64_t values) {
  return 8.0 * static_cast<double>(values);
}

// Row of the stage before whose pixel is quarter q of row r.
int64_t row_before(const Stage& before, int64_t r, int64_t q) {
  const int64_t across = before.line_pixels / 2;
  return (r / across * 2 + q / 2) * before.line_pixels + r % across * 2 + q % 2;
}

}  // namespace

struct FrozenConvNext::Body : FrozenBody {
  struct Workspace;

  Body(const FrozenConvNextWeights& w, const KernelSet& set);

  float eps, head_eps;
  PackedLinear stem, stem_affine, head;  // stem_affine: the diagonal GEMM of the stem's norm
  PackedWeights stem_back;               // in the form of the other layers
  std::vector<Stage> stages;

  std::unique_ptr<FrozenWorkspace> make_workspace(int64_t images, bool save) const override;
  void forward(FrozenWorkspace& w, int64_t images) const override;
  void backward(FrozenWorkspace& w, int64_t images) const override;
  int64_t packed_bytes() const override;

  // after(stage, x): the residual stream after a stage or the stem.
  using After = std::function<void(int stage, const float* x)>;
  void run_stages(Workspace& w, int64_t images, const After& after) const;

 private:
  void stem_forward(Workspace& w, int64_t images) const;
  void stem_backward(Workspace& w, int64_t images) const;
  void down_forward(Workspace& w, size_t stage, int64_t images) const;
  void down_backward(Workspace& w, size_t stage, int64_t images) const;
  void head_forward(Workspace& w, int64_t images) const;
  void head_backward(Workspace& w, int64_t images) const;
};

struct FrozenConvNext::Body::Workspace : FrozenWorkspace {
  struct StageSpace {
    std::vector<ConvNextBlockState> blocks;  // one per block on the way to a gradient, else one for all
    PieceOperands down_xhat;                 // of the stage before
    AlignedBuffer<float> down_rstd;
    Activations quarters;  // (R, 4 D of the stage before)
    Activations hidden;    // of one piece; its gradient too
    PieceOperands dx_operand;
  };
  Workspace(const Body& net, int64_t images, bool save);

  std::vector<StageSpace> stages;
  PieceOperands stem_xhat;
  AlignedBuffer<float> stem_rstd;
  AlignedBuffer<float> x;     // (R, D): the residual stream
  AlignedBuffer<float> rows;  // (R, D) or a piece of it: what a norm reads
  AlignedBuffer<float> dx,
      dy;  // (R, D): gradient of the residual stream; of a depthwise convolution's output, later dpatches
  AlignedBuffer<float> dquarters;  // (R, 4 D of the stage before)
  AlignedBuffer<float> pooled, dpooled, head_rstd;
  Activations head_input, dlogits_operand;
};

FrozenConvNext::Body::Workspace::Workspace(const Body& net, int64_t images, bool save)
    : FrozenWorkspace(images, save) {
  const Format format = net.kernels->format;
  const auto pieces = [&](const Stage& stage, int64_t columns) {
    return piece_operands(stage, format, *this, images, columns);
  };
  int64_t most_rows = 0, most_quarters = 0;  // floats
  for (size_t s = 0; s < net.stages.size(); ++s) {
    const Stage& stage = net.stages[s];
    const int64_t R = images * stage.pixels();
    StageSpace space;
    for (size_t i = 0; i < (save ? stage.blocks.size() : 1); ++i)
      space.blocks.emplace_back(stage, format, *this, images, stage.width, stage.hidden, save);
    space.hidden = operand(format, std::min(R, stage.piece_rows()), stage.hidden);
    if (s > 0) {
      const Stage& before = net.stages[s - 1];
      space.down_xhat = pieces(before, before.width);
      space.down_rstd = floats(images * before.pixels());
      space.quarters = operand(format, R, 4 * before.width);
      most_quarters = std::max(most_quarters, R * 4 * before.width);
    }
    if (save) space.dx_operand = pieces(stage, stage.width);
    most_rows = std::max(most_rows, R * stage.width);
    stages.push_back(std::move(space));
  }
  const Stage &first = net.stages.front(), &last = net.stages.back();
  const int64_t R = images * first.pixels(), D = last.width;
  patches = operand(net.pixel_kernels().format, R, net.geometry.columns());
  stem_xhat = pieces(first, first.width);
  stem_rstd = floats(R);
  x = floats(most_rows);
  rows = floats(most_rows);
  pooled = floats(images * D);
  head_input = operand(format, images, D);
  head_rstd = floats(images);
  logits = floats(images * rounded_to_panel(net.classes));
  if (save) {
    dx = floats(most_rows);
    dy = floats(std::max(most_rows, R * rounded_to_panel(net.geometry.columns())));
    dpatches = dy.data();
    dquarters = floats(most_quarters);
    dpooled = floats(images * D);
    dlogits = floats(images * net.classes);
    dlogits_operand = operand(format, images, net.classes);
  }
}

FrozenConvNext::Body::Body(const FrozenConvNextWeights& w, const KernelSet& set)
    : FrozenBody(set), eps(static_cast<float>(w.eps)), head_eps(static_cast<float>(w.head_eps)) {
  const Format format = kernels->format;
  const int64_t least = w.stem_stride << (w.stages.size() - 1);
  if (w.height % least != 0 || w.width % least != 0)
    throw input_error("the fast engine needs images of a multiple of {} pixels, found {} x {}", least,
                      w.height, w.width);
  geometry.height = static_cast<int>(w.height);
  geometry.width = static_cast<int>(w.width);
  geometry.patch = static_cast<int>(w.stem_stride);
  geometry.prefix_tokens = 0;
  geometry.mean = w.mean;
  geometry.std = w.std;
  const FoldedLinear stem_linear = folded({plain_from(w.stem_weight.flatten(1)), plain_from(w.stem_bias)});
  stem = PackedLinear(pixel_kernels().format, stem_linear);
  stem_back =
      PackedWeights::backward(format, stem_linear.weight.data(), stem_linear.outputs, stem_linear.inputs);
  stem_affine = PackedLinear(
      format, folded({torch::diag(plain_from(w.stem_norm_weight)), plain_from(w.stem_norm_bias)}));
  for (size_t s = 0; s < w.stages.size(); ++s) {
    const auto& given = w.stages[s];
    Stage stage;
    stage.width = given.blocks.at(0).dw_weight.size(0);
    stage.hidden = given.blocks[0].fc1_weight.size(0);
    if (stage.width % kPanel != 0)
      throw input_error("the fast engine needs widths that are multiples of {}, found {} in stage {}", kPanel,
                        stage.width, s);
    stage.lines = w.height / w.stem_stride >> s;
    stage.line_pixels = w.width / w.stem_stride >> s;
    stage.piece_lines = std::max<int64_t>(1, (kPieceRows + stage.line_pixels / 2) / stage.line_pixels);
    if (s > 0) {
      const Tensor quarters =
          given.down_weight.permute({0, 2, 3, 1}).flatten(1);  // (D, 4 D before): quarter, then channel
      stage.down = PackedLinear(format, folded({plain_from(quarters), plain_from(given.down_bias),
                                                plain_from(given.norm_weight.repeat({4})),
                                                plain_from(given.norm_bias.repeat({4}))}));
    }
    for (const auto& b : given.blocks) stage.blocks.emplace_back(b.plain(), w.eps, *kernels);
    stages.push_back(std::move(stage));
  }
  head = PackedLinear(format, folded({plain_from(w.head_weight), plain_from(w.head_bias),
                                      plain_from(w.head_norm_weight), plain_from(w.head_norm_bias)}));
  classes = w.head_weight.size(0);
  images_a_chunk = std::clamp<int64_t>(kFrozenChunkRows / stages[0].pixels(), 1, 64);
}

std::unique_ptr<FrozenWorkspace> FrozenConvNext::Body::make_workspace(int64_t images, bool save) const {
  return std::make_unique<Workspace>(*this, images, save);
}

int64_t FrozenConvNext::Body::packed_bytes() const {
  int64_t bytes = stem.bytes() + stem_back.bytes() + stem_affine.bytes() + head.bytes();
  for (const auto& stage : stages) {
    bytes += stage.down.bytes();
    for (const auto& block : stage.blocks) bytes += block.bytes();
  }
  return bytes;
}

void FrozenConvNext::Body::stem_forward(Workspace& w, int64_t images) const {
  const KernelSet& k = *kernels;
  const Stage& stage = stages.front();
  const int64_t D = stage.width;
  gemm(pixel_kernels(), images * stage.pixels(), w.patches, stem.forward(),
       StoreRows{w.rows.data(), D, stem.bias()});
  stage.each(images, [&](const LinePieces::Piece& p) {
    layer_norm(k, p.rows, w.rows.data() + p.first_row * D, D, eps, w.stem_xhat[p.index],
               w.stem_rstd.data() + p.first_row);
    gemm(k, p.rows, w.stem_xhat[p.index], stem_affine.forward(),
         StoreRows{w.x.data() + p.first_row * stage.width, stage.width, stem_affine.bias()});
  });
}

void FrozenConvNext::Body::down_forward(Workspace& w, size_t s, int64_t images) const {
  const KernelSet& k = *kernels;
  const Stage &stage = stages[s], &before = stages[s - 1];
  Workspace::StageSpace& space = w.stages[s];
  before.each(images, [&](const LinePieces::Piece& p) {
    layer_norm(k, p.rows, w.x.data() + p.first_row * before.width, before.width, eps,
               space.down_xhat[p.index], space.down_rstd.data() + p.first_row);
  });
  const int64_t R = images * stage.pixels(), piece_rows = before.piece_rows();
  shared_ranges(R, 1, copying(R * 4 * before.width), [&](int64_t first, int64_t end) {
    for (int64_t r = first; r < end; ++r)
      for (int64_t q = 0; q < 4; ++q) {
        const int64_t from = row_before(before, r, q);
        copy_row(space.down_xhat[from / piece_rows], from % piece_rows, space.quarters, r, q * before.width);
      }
  });
  gemm(k, R, space.quarters, stage.down.forward(), StoreRows{w.x.data(), stage.width, stage.down.bias()});
}

void FrozenConvNext::Body::head_forward(Workspace& w, int64_t images) const {
  const Stage& stage = stages.back();
  const int64_t D = stage.width, pixels = stage.pixels();
  const float share = 1.0f / static_cast<float>(pixels);
  std::memset(w.pooled.data(), 0, sizeof(float) * images * D);
  for (int64_t i = 0; i < images; ++i) {
    float* mean = w.pooled.data() + i * D;
    for (int64_t r = 0; r < pixels; ++r) {
      const float* row = w.x.data() + (i * pixels + r) * stage.width;
      for (int64_t c = 0; c < D; ++c) mean[c] += row[c];
    }
    for (int64_t c = 0; c < D; ++c) mean[c] *= share;
  }
  layer_norm(*kernels, images, w.pooled.data(), D, head_eps, w.head_input, w.head_rstd.data());
  gemm(*kernels, images, w.head_input, head.forward(),
       StoreRows{w.logits.data(), rounded_to_panel(classes), head.bias()});
}

void FrozenConvNext::Body::run_stages(Workspace& w, int64_t images, const After& after) const {
  stem_forward(w, images);
  if (after) after(kStem, w.x.data());
  for (size_t s = 0; s < stages.size(); ++s) {
    if (s > 0) down_forward(w, s, images);
    for (size_t b = 0; b < stages[s].blocks.size(); ++b)
      stages[s].blocks[b].forward(w.stages[s].blocks[w.saving ? b : 0], images, w.x.data(), w.x.data(),
                                  w.rows.data(), w.stages[s].hidden, w.saving);
    if (after) after(static_cast<int>(s), w.x.data());
  }
}

void FrozenConvNext::Body::forward(FrozenWorkspace& workspace, int64_t images) const {
  auto& w = static_cast<Workspace&>(workspace);
  run_stages(w, images, nullptr);
  head_forward(w, images);
}

void FrozenConvNext::Body::head_backward(Workspace& w, int64_t images) const {
  const KernelSet& k = *kernels;
  const Stage& stage = stages.back();
  const int64_t D = stage.width, pixels = stage.pixels();
  for (int64_t i = 0; i < images; ++i)
    for (int64_t c = 0; c < classes; ++c) w.dlogits_operand.set(i, c, w.dlogits[i * classes + c]);
  gemm(k, images, w.dlogits_operand, head.backward(k), StoreRows{w.rows.data(), D});
  std::memset(w.dpooled.data(), 0, sizeof(float) * images * D);
  layer_norm_backward(k, images,
                      {w.rows.data(), D, &w.head_input, w.head_rstd.data(), w.dpooled.data(), D, nullptr});
  // Every pixel of an image gets the same row.
  PieceOperands& operands = w.stages.back().dx_operand;
  const int64_t piece_rows = stage.piece_rows();
  const float share = 1.0f / static_cast<float>(pixels);
  for (int64_t i = 0; i < images; ++i) {
    const int64_t first = i * pixels;
    float* row = w.dx.data() + first * stage.width;
    Activations& operand = operands[first / piece_rows];
    for (int64_t c = 0; c < D; ++c) {
      row[c] = w.dpooled[i * D + c] * share;
      operand.set(first % piece_rows, c, row[c]);
    }
    for (int64_t r = first + 1; r < first + pixels; ++r) {
      std::memcpy(w.dx.data() + r * stage.width, row, sizeof(float) * D);
      copy_row(operand, first % piece_rows, operands[r / piece_rows], r % piece_rows, 0);
    }
  }
}

void FrozenConvNext::Body::down_backward(Workspace& w, size_t s, int64_t images) const {
  const KernelSet& k = *kernels;
  const Stage &stage = stages[s], &before = stages[s - 1];
  Workspace::StageSpace& space = w.stages[s];
  const int64_t wide = 4 * before.width;
  const PackedWeights& down_back = stage.down.backward(k);
  stage.each(images, [&](const LinePieces::Piece& p) {
    gemm(k, p.rows, space.dx_operand[p.index], down_back,
         StoreRows{w.dquarters.data() + p.first_row * wide, wide});
  });
  const int64_t R = images * stage.pixels();
  shared_ranges(R, 1, copying(R * wide), [&](int64_t first, int64_t end) {
    for (int64_t r = first; r < end; ++r)
      for (int64_t q = 0; q < 4; ++q)
        std::memcpy(w.rows.data() + row_before(before, r, q) * before.width,
                    w.dquarters.data() + r * wide + q * before.width, sizeof(float) * before.width);
  });
  before.each(images, [&](const LinePieces::Piece& p) {
    float* dx = w.dx.data() + p.first_row * before.width;
    std::memset(dx, 0, sizeof(float) * p.rows * before.width);
    layer_norm_backward(
        k, p.rows,
        {w.rows.data() + p.first_row * before.width, before.width, &space.down_xhat[p.index],
         space.down_rstd.data() + p.first_row, dx, before.width, &w.stages[s - 1].dx_operand[p.index]});
  });
}

void FrozenConvNext::Body::stem_backward(Workspace& w, int64_t images) const {
  const KernelSet& k = *kernels;
  const Stage& stage = stages.front();
  const int64_t D = stage.width, columns = rounded_to_panel(geometry.columns());
  const PackedWeights& affine_back = stem_affine.backward(k);
  stage.each(images, [&](const LinePieces::Piece& p) {
    Activations& operand = w.stages.front().dx_operand[p.index];
    gemm(k, p.rows, operand, affine_back, StoreRows{w.rows.data(), D});
    float* dx = w.dx.data() + p.first_row * D;
    std::memset(dx, 0, sizeof(float) * p.rows * D);
    layer_norm_backward(
        k, p.rows,
        {w.rows.data(), D, &w.stem_xhat[p.index], w.stem_rstd.data() + p.first_row, dx, D, &operand});
    gemm(k, p.rows, operand, stem_back, StoreRows{w.dpatches + p.first_row * columns, columns});
  });
}

void FrozenConvNext::Body::backward(FrozenWorkspace& workspace, int64_t images) const {
  auto& w = static_cast<Workspace&>(workspace);
  head_backward(w, images);
  for (size_t s = stages.size(); s-- > 0;) {
    Workspace::StageSpace& space = w.stages[s];
    for (size_t b = stages[s].blocks.size(); b-- > 0;)
      stages[s].blocks[b].backward(space.blocks[b], images,
                                   {.dx = w.dx.data(),
                                    .operand = &space.dx_operand,
                                    .to_operand = true,
                                    .rows = w.rows.data(),
                                    .dy = w.dy.data(),
                                    .hidden = &space.hidden});
    if (s > 0) down_backward(w, s, images);
  }
  stem_backward(w, images);
}

FrozenConvNext::FrozenConvNext(const FrozenConvNextWeights& weights, Precision precision)
    : FrozenConvNext(weights, best_kernel_set(precision)) {}

FrozenConvNext::FrozenConvNext(const FrozenConvNextWeights& weights, const KernelSet& kernels)
    : FrozenNetwork(std::make_shared<Body>(weights, kernels)) {}

std::vector<Tensor> FrozenConvNext::features_after(const Tensor& pixels, const std::vector<int>& stages) {
  check_pixels(pixels);
  auto& net = static_cast<Body&>(body());
  const auto grid_of = [&](int stage) -> const Stage& { return net.stages[stage == kStem ? 0 : stage]; };
  for (int stage : stages)
    if (stage < kStem || stage >= static_cast<int>(net.stages.size()))
      throw input_error("features after stage {}: this network has stages 0..{}, and {} for its stem", stage,
                        net.stages.size() - 1, kStem);
  std::vector<Tensor> out;
  for (int stage : stages)
    out.push_back(torch::empty(
        {pixels.size(0), grid_of(stage).lines, grid_of(stage).line_pixels, grid_of(stage).width}));
  net.for_chunks(pixels, false, [&](FrozenBody::Taken& w, int64_t first, int64_t n) {
    net.run_stages(static_cast<Body::Workspace&>(*w), n, [&](int stage, const float* x) {
      const Stage& grid = grid_of(stage);
      for (size_t i = 0; i < stages.size(); ++i)
        if (stages[i] == stage)
          std::memcpy(out[i].data_ptr<float>() + first * grid.pixels() * grid.width, x,
                      sizeof(float) * n * grid.pixels() * grid.width);
    });
  });
  for (Tensor& map : out) map = map.permute({0, 3, 1, 2});
  return out;
}

}  // namespace aha
