// pointing, energy, box-iou: whether the map is where the object is.
//
//   pointing  1 where the map's greatest value (the first of equal ones) lies in a box, or at most
//   `tolerance`
//             pixels from one (Zhang et al. 2018, the pointing game; they allow 15)
//   energy    share of the map's positive values inside the boxes (Wang et al. 2020, Score-CAM)
//   box-iou   greatest IoU of a box with the one around the largest connected part of the map, scaled to
//   0..1, that
//             is at least `threshold` (Zhou et al. 2016, CAM: 0.2 of the maximum)
//
// An image without boxes has the one around its mask. With inside=mask, pointing and energy look at the mask
// instead where there is one. The target is not asked.
#include <algorithm>
#include <cmath>

#include "aha/metrics/metric_records.h"

namespace aha {
namespace {

double area_of(const Box& box) {
  return std::max(0.0, box.right - box.left) * std::max(0.0, box.bottom - box.top);
}

double iou_of(const Box& a, const Box& b) {
  const double both = area_of({std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right),
                               std::min(a.bottom, b.bottom)});
  return both / (area_of(a) + area_of(b) - both);
}

struct PixelBounds {
  int64_t pixels = 0, left = 0, top = 0, right = 0, bottom = 0;  // the last two are inside

  void add(int64_t x, int64_t y) {
    left = pixels ? std::min(left, x) : x, top = pixels ? std::min(top, y) : y;
    right = pixels ? std::max(right, x) : x, bottom = pixels ? std::max(bottom, y) : y;
    ++pixels;
  }
  Box box() const {
    return {static_cast<double>(left), static_cast<double>(top), static_cast<double>(right + 1),
            static_cast<double>(bottom + 1)};
  }
};

PixelBounds bounds_of_mask(const Tensor& mask) {
  PixelBounds out;
  const Tensor flat = mask.to(torch::kCPU).contiguous();
  for (int64_t i = 0; i < flat.numel(); ++i)
    if (flat.data_ptr<bool>()[i]) out.add(i % mask.size(1), i / mask.size(1));
  return out;
}

class Localization : public Metric {
 public:
  Fields fields() override {
    return Fields()
        .add("tolerance", tolerance_, "of pointing: pixels by which the greatest value may miss")
        .range(0, 1000)
        .add("threshold", threshold_, "of box-iou: least value of the map, scaled to 0..1")
        .range(0, 1)
        .add("inside", inside_, "where pointing and energy look: in boxes, or in the mask where there is one")
        .choices({"box", "mask"});
  }

  Pending measure(const MetricCall& call) override {
    std::vector<MetricValues> out;
    for (int64_t b = 0; b < call.images.size(); ++b)
      out.push_back(values_of_map(host_image(call.maps[b]), call.images.annotations[b]));
    return [out] { return out; };
  }

 private:
  MetricValues values_of_map(const Tensor& map, const InputAnnotation& annotation) const {
    auto boxes = annotation.boxes;
    if (boxes.empty() && annotation.mask.defined())
      if (const PixelBounds bounds = bounds_of_mask(annotation.mask); bounds.pixels > 0)
        boxes.push_back(bounds.box());
    if (boxes.empty()) return {{}, "no box and no mask"};
    const int64_t H = map.size(0), W = map.size(1);
    const Tensor inside = inside_ == "mask" && annotation.mask.defined()
                              ? annotation.mask.to(torch::kCPU).contiguous()
                              : pixels_inside(boxes, H, W);
    MetricValues out;
    const float* values = map.data_ptr<float>();
    const int64_t top = std::max_element(values, values + H * W) - values;
    double in = 0, all = 0;
    bool hit = false;
    for (int64_t i = 0; i < H * W; ++i) {
      const bool here = inside.data_ptr<bool>()[i];
      all += std::max(0.f, values[i]);
      in += here ? std::max(0.f, values[i]) : 0;
      hit = hit || (here && std::hypot(i % W - top % W, i / W - top / W) <= tolerance_);
    }
    out.values["pointing"] = hit;
    if (all > 0)
      out.values["energy"] = in / all;
    else
      out.missing = "no value above 0";
    const Box found = box_of_map(map, threshold_);
    for (const Box& box : boxes) out.values["box-iou"] = std::max(out.values["box-iou"], iou_of(found, box));
    return out;
  }

  // Pixels whose center lies in a box.
  static Tensor pixels_inside(const std::vector<Box>& boxes, int64_t H, int64_t W) {
    Tensor out = torch::zeros({H, W}, torch::kBool);
    for (int64_t i = 0; i < H * W; ++i) {
      const double x = static_cast<double>(i % W) + 0.5, y = static_cast<double>(i / W) + 0.5;
      out.data_ptr<bool>()[i] = std::any_of(boxes.begin(), boxes.end(), [&](const Box& box) {
        return x >= box.left && x < box.right && y >= box.top && y < box.bottom;
      });
    }
    return out;
  }

  double tolerance_ = 0, threshold_ = 0.2;
  std::string inside_ = "box";
};

std::unique_ptr<Metric> make_localization() {
  return std::make_unique<Localization>();
}

}  // namespace

Box box_of_map(const Tensor& map, double threshold) {
  const Tensor scaled = scaled_to_unit(map);
  const int64_t H = map.size(0), W = map.size(1);
  std::vector<uint8_t> left(static_cast<size_t>(H * W));  // to visit
  for (int64_t i = 0; i < H * W; ++i) left[i] = scaled.data_ptr<float>()[i] >= threshold;
  PixelBounds largest;
  std::vector<int64_t> border;
  for (int64_t start = 0; start < H * W; ++start) {
    if (!left[start]) continue;
    PixelBounds part;
    left[start] = 0;
    border.assign(1, start);
    while (!border.empty()) {
      const int64_t x = border.back() % W, y = border.back() / W;
      border.pop_back();
      part.add(x, y);
      for (int64_t ny = std::max<int64_t>(0, y - 1); ny <= std::min(H - 1, y + 1); ++ny)
        for (int64_t nx = std::max<int64_t>(0, x - 1); nx <= std::min(W - 1, x + 1); ++nx)
          if (std::exchange(left[ny * W + nx], 0)) border.push_back(ny * W + nx);
    }
    if (part.pixels > largest.pixels) largest = part;
  }
  return largest.box();
}

std::vector<MetricRecord> localization_metrics() {
  const auto one = [](std::string name, std::string summary, std::string paper, std::string note = {}) {
    return MetricRecord{.name = std::move(name),
                        .summary = std::move(summary),
                        .paper = std::move(paper),
                        .need = MetricNeed::kBox,
                        .higher_is_better = true,
                        .make = make_localization,
                        .note = std::move(note)};
  };
  return {
      one("pointing", "whether the map's greatest value lies in a box of the object", "Zhang et al. 2018"),
      one("energy", "share of the map's positive values inside the object's boxes",
          "Wang et al. 2020, Score-CAM"),
      one("box-iou", "IoU of the object's box and the one around the map's largest strong part",
          "Zhou et al. 2016, CAM",
          "A map that is strong everywhere draws the box of the whole image, which large objects fill "
          "well.")};
}

}  // namespace aha
