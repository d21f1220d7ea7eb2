// A rectangle in pixels, from the left and the top; the right and lower edges are outside.
#pragma once

namespace aha {

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;

  bool operator==(const Box&) const = default;
};

}  // namespace aha
