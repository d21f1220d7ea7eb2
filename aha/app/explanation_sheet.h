// STEM.sheet.png: what image/summary_sheet.h draws, filled from an explanation.
#pragma once

#include "aha/app/explain.h"
#include "aha/app/kept_photos.h"

namespace aha {

constexpr int kSheetPhotoSide = 1600;  // of a photo, at most: more would not be seen

Image sheet_of_explanation(const Explanation& explanation, const KeptPhoto& photo,
                           const ClassifierInfo& target, const HeatOptions& heat);

// "vit_b_16" of vit_b_16:path/to/weights.pth, "model.pt" of script:path/to/model.pt, "model" of path/to/model
std::string short_name(const ClassifierInfo& target);
// "tabby" of "tabby, tabby cat"; "class 281" where there are no names
std::string short_name(const ChosenClass& chosen);
// "< 0.1 ms", "8.3 ms", "246 ms", "1.2 s"
std::string text_from_seconds(double seconds);

}  // namespace aha
