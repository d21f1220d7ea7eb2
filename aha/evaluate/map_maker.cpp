#include "aha/evaluate/map_maker.h"

#include <algorithm>

#include "aha/base/error.h"

namespace aha {
namespace {

// What attribute() takes, for some images of a batch.
struct Asked {
  Tensor pixels, classes;
  std::vector<uint64_t> streams;
};

Asked asked(const ImageBatch& batch, const std::string& explained, int64_t first, int64_t count) {
  Asked out{batch.pixels.narrow(0, first, count),
            batch.classes.at(explained).narrow(0, first, count).to(batch.pixels.device()),
            {}};
  out.streams = image_streams(out.pixels);
  return out;
}

std::vector<Attribution> all_together(const Methods& methods, const SharedWork& work, const Asked& asked,
                                      const Context& context) {
  std::vector<Method*> others;
  for (size_t i = 1; i < work.methods.size(); ++i) others.push_back(methods[work.methods[i]].get());
  auto out =
      methods[work.methods[0]]->attribute_shared(others, asked.pixels, asked.classes, asked.streams, context);
  for (Attribution& one : out) one.maps = one.maps.cpu();
  return out;
}

// Sharing nothing: what fails for one method must not fail for another.
Attribution one_by_one(Method& method, const ImageBatch& batch, const std::string& explained,
                       const Context& context) {
  Attribution out;
  std::vector<Tensor> maps;
  for (int64_t b = 0; b < batch.size(); ++b) {
    const Asked one = asked(batch, explained, b, 1);
    try {
      const Attribution made = method.attribute(one.pixels, one.classes, one.streams, context);
      maps.push_back(made.maps.cpu());
      out.made.push_back(made.made[0]);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kCanceled) throw;
      maps.push_back(torch::full({1, one.pixels.size(2), one.pixels.size(3)}, std::nan("")));
      out.made.emplace_back().failure = error.what();
    }
  }
  out.maps = torch::cat(maps);
  return out;
}

}  // namespace

std::vector<SharedWork> shared_work(const Methods& methods,
                                    const std::vector<std::vector<int64_t>>& missing) {
  std::vector<bool> placed(methods.size());
  std::vector<SharedWork> out;
  for (size_t m = 0; m < methods.size(); ++m) {
    if (missing[m].empty() || placed[m]) continue;
    const auto open = [&](size_t other) { return !placed[other] && missing[other] == missing[m]; };
    const auto group_of = [&](size_t leader) {
      std::vector<size_t> group = {leader};
      for (size_t other = 0; other < methods.size(); ++other)
        if (other != leader && open(other) && methods[leader]->shares_work_with(*methods[other]))
          group.push_back(other);
      return group;
    };
    std::vector<size_t> best = group_of(m);
    for (size_t leader = 0; leader < methods.size(); ++leader) {
      if (!open(leader) || !methods[leader]->shares_work_with(*methods[m])) continue;
      if (auto group = group_of(leader); group.size() > best.size()) best = std::move(group);
    }
    for (const size_t i : best) placed[i] = true;
    out.push_back({std::move(best), missing[m]});
  }
  return out;
}

std::vector<Attribution> make_maps(const Methods& methods, const SharedWork& work, const ImageBatch& batch,
                                   const std::string& explained, const Context& context) {
  const bool timed =
      std::any_of(work.methods.begin(), work.methods.end(), [&](size_t m) { return methods[m]->timed(); });
  if (!timed) {
    try {
      return all_together(methods, work, asked(batch, explained, 0, batch.size()), context);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kCanceled) throw;
    }
  }
  std::vector<Attribution> out;
  for (const size_t m : work.methods) out.push_back(one_by_one(*methods[m], batch, explained, context));
  return out;
}

}  // namespace aha
