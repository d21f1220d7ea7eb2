// One function per method file: its record. catalog.cpp lists them.
#pragma once

#include "aha/methods/method.h"

namespace aha {

MethodRecord aha_method();
MethodRecord random_method();
MethodRecord center_method();
MethodRecord sobel_method();
MethodRecord gradient_method();
MethodRecord smoothgrad_method();
MethodRecord ig_method();
MethodRecord gradcam_method();
MethodRecord rollout_method();
MethodRecord chefer_method();
MethodRecord legrad_method();
MethodRecord rise_method();

// What a record's `fits` may ask.
bool fits_any(const MethodContext& context);
bool has_attention(const MethodContext& context);
bool has_feature_maps(const MethodContext& context);
bool has_attention_or_feature_maps(const MethodContext& context);

}  // namespace aha
