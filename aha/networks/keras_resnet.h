// The ResNet of keras.applications (converted from Caffe) as one of ours: names, axes, and the config that
// goes with them. Its input is BGR in 0..255 minus a mean color.
//
//   conv1, bn_conv1                        conv1, bn1
//   res3b_branch2a, bn3b_branch2a          layer2.1.conv1, layer2.1.bn1      2b, 2c: conv2, conv3
//   res3a_branch1, bn3a_branch1            layer2.0.downsample.0 and .1
//   fc1000                                 fc
#pragma once

#include "aha/networks/resnet.h"

namespace aha {

// Tensors by Keras' names and axes -> canonical ones. A name without a place is an input error.
TensorTable resnet_table_from_keras(const TensorTable& keras);

// The network of these tensors, filled and frozen.
ResNet resnet_from_keras(const TensorTable& keras);

// What it expects of an image.
InputSpec keras_resnet_input();

}  // namespace aha
