// The records of metrics that have a file of their own (catalog.cpp lists them), and what these files share.
#pragma once

#include <optional>

#include "aha/metrics/metric.h"

namespace aha {

MetricRecord adp_metric();
MetricRecord pic_metric();
std::vector<MetricRecord> road_metrics();
std::vector<MetricRecord> mas_metrics();
MetricRecord saco_metric();
MetricRecord idsds_metric();
MetricRecord sparseness_metric();
std::vector<MetricRecord> segmentation_metrics();
std::vector<MetricRecord> localization_metrics();
MetricRecord infidelity_metric();
MetricRecord sensitivity_max_metric();
MetricRecord class_sensitivity_metric();
MetricRecord random_class_leakage_metric();
MetricRecord parameter_randomization_metric();
MetricRecord randomization_unchanged_metric();
MetricRecord model_gap_metric();

// A map scaled to 0..1 by its own least and greatest value; a constant one becomes 0. (H, W), contiguous
// float32.
Tensor scaled_to_unit(const Tensor& map);

// An image or a map as loops read it: contiguous float32 on the CPU.
Tensor host_image(const Tensor& image);

// The color that the target's normalization makes zero, everywhere; pixels (3, H, W).
Tensor normal_zero(const Classifier& target, const Tensor& pixels);

// Of values that are not negative; 0 where all are 0.
double gini_index(std::vector<float> values);

// SaCo of groups, most important first: the map's sums and what removing each costs. Nothing where all sums
// are equal.
std::optional<double> salience_coefficient(const std::vector<double>& sums, const std::vector<double>& drops);

// sum_n (R_n - R_{n-1}) P_n over the distinct scores; labels are 0 or not.
double average_precision(const std::vector<float>& scores, const std::vector<uint8_t>& labels);

// Around the largest connected part (8 neighbors) of the map (H, W), scaled to 0..1, that is at least the
// threshold.
Box box_of_map(const Tensor& map, double threshold);

}  // namespace aha
