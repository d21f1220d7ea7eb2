// One function per method file: its record. catalog.cpp lists them.
#pragma once

#include "aha/methods/method.h"

namespace aha {

MethodRecord ablationcam_method();
MethodRecord aha_method();
MethodRecord bi_att_method();
MethodRecord blurred_random_method();
MethodRecord cam_method();
MethodRecord center_method();
MethodRecord chefer_method();
MethodRecord gradcam_method();
MethodRecord gradcam_plus_method();
MethodRecord gradient_method();
MethodRecord greedy_method();
MethodRecord hirescam_method();
MethodRecord ig_method();
MethodRecord layercam_method();
MethodRecord legrad_method();
MethodRecord logit_attribution_method();
MethodRecord maps_method();
MethodRecord mda_method();
MethodRecord occlusion_method();
MethodRecord optimized_method();
MethodRecord random_method();
MethodRecord raw_attention_method();
MethodRecord rise_method();
MethodRecord rollout_method();
MethodRecord scorecam_method();
MethodRecord smoothgrad_method();
MethodRecord sobel_method();
MethodRecord tis_method();
MethodRecord trans_att_method();
MethodRecord transformer_attribution_method();
MethodRecord vit_cx_method();

// What a record's `fits` may ask.
bool fits_any(const MethodContext& context);
bool has_attention(const MethodContext& context);
bool is_vision_transformer(const MethodContext& context);
bool has_open_blocks(const MethodContext& context);
bool has_feature_maps(const MethodContext& context);
bool has_attention_or_feature_maps(const MethodContext& context);

}  // namespace aha
