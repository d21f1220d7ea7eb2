// From a perturbation curve to one number.
//
// A curve holds one score a point, point i having i of `steps` equal shares of the pixels removed; point 0 is
// the clean image. Five rules are in use, and figures made by different ones cannot be compared:
//
//   auc10       0.1 (c_0/2 + c_1 + ... + c_8 + c_9/2): ten points, 0..90 % removed, the last tenth left out
//               and not made up for, so that 0.9 is the largest value. It reproduces every plotted and
//               tabulated pair of the paper to 6e-5.
//   mean_k      (1/S) sum_{k=1..S} f(k): the mean of the paper's equations. A deletion leaves out the clean
//               image, an insertion the empty one.
//   trapezoid   (sum - c_0/2 - c_S/2) / S, both ends included: RISE.
//   inner       the same over the points 1..S-1, neither end included: Chefer's fractions 0.1..0.9, MDA's
//   area normalized  the trapezoid of clip((c - c_S) / |c_0 - c_S|, 0, 1), made monotone from where the test
//   begins
//               (a deletion at the clean image, an insertion at the empty one); a straight line where both
//               ends are the same: MDA's "RISE". Areas of hits have none of this: they are the trapezoid's.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace aha {

enum class AreaRule { kAuc10, kMeanK, kTrapezoid, kInner, kNormalized };

AreaRule area_rule_from_text(const std::string& text);
std::vector<std::string> area_rule_names();
AreaRule rule_of_hits(AreaRule rule);

double auc10(std::span<const double> curve);      // exactly 10 points
double trapezoid(std::span<const double> curve);  // 2 points or more

// How many points a sweep of `steps` shares has under a rule: auc10 and inner never look at the fully
// replaced image.
int points_of(AreaRule rule, int steps);

// Curves by removal. `removed_top[i]` has i shares of the most important pixels removed, `removed_bottom[i]`
// i shares of the least important; the latter is the image with the other steps - i shares inserted.
double deletion_area(std::span<const double> removed_top, AreaRule rule);
double insertion_area(std::span<const double> removed_bottom, AreaRule rule);

// floor(point * pixels / steps), in integers.
int64_t removed_pixels(int point, int steps, int64_t pixels);

}  // namespace aha
